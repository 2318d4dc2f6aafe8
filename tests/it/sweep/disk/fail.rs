//! A disk that fails at each of its operations, once or for good, with or without room: what is said of the step is
//! true, and it can be repeated.

use super::vfs::{Disk, Plan};
use super::{Image, STEPS, Shelf, states_after};
use crate::sweep::{full, only};
use ares::error::{Class, Error};

/// The steps that are tried: each kind in a short log, and one that begins by starting a long log anew.
const TRIED: [usize; 4] = [3, 4, 5, 12];

/// One fault, as `ARES_POINT` names it: the step, the operation, `+` where it fails for good, `f` where there is no room.
fn name(step: usize, plan: Plan) -> String {
    format!("{step}:{}{}{}", plan.at, if plan.on { "+" } else { "" }, if plan.full { "f" } else { "" })
}

/// The store before each step, with the handle that was given last.
struct Course {
    shelf: Shelf,
    before: Vec<(Image, Option<String>)>,
}

impl Course {
    fn run(steps: usize) -> Self {
        let shelf = Shelf::new();
        let mut before = vec![(shelf.image(), None)];
        for at in 0..steps {
            let handle = before[at].1.clone();
            let mut store = shelf.open().unwrap();
            let handle = shelf.step(&mut store, at, handle.as_deref()).unwrap();
            drop(store);
            before.push((shelf.image(), handle));
        }
        Self { shelf, before }
    }

    /// One step, as the command that makes it.
    fn step(&self, at: usize) -> Result<Option<String>, Error> {
        let mut store = self.shelf.open()?;
        self.shelf.step(&mut store, at, self.before[at].1.as_deref())
    }

    /// Makes a step on a disk that fails. `None` where it had ended before; else what does not hold, by what `tell`
    /// makes of its outcome.
    fn fault(&self, disk: &Disk, at: usize, plan: Plan, tell: fn(Option<Class>) -> Option<Class>) -> Option<String> {
        self.shelf.put(&self.before[at].0);
        disk.fail(Some(plan));
        let answer = self.step(at);
        let reached = disk.passed() >= plan.at;
        disk.fail(None);
        if !reached {
            return None;
        }
        let class = tell(answer.as_ref().err().map(|error| error.code.class()));
        Some(self.account(at, class).err().map_or_else(String::new, |why| format!("{answer:?}: {why}")))
    }

    /// Whether what was said is true, and the step can be repeated.
    fn account(&self, at: usize, class: Option<Class>) -> Result<(), String> {
        let (before, after) = (states_after(at), states_after(at + 1));
        self.shelf.faults()?;
        let seen = self.shelf.states();
        let fits = match class {
            None => seen == after,
            Some(Class::Unknown) => seen == before || seen == after,
            Some(Class::Store | Class::Busy) => seen == before,
            Some(_) => false,
        };
        if !fits {
            return Err(format!("{seen:?} is there"));
        }
        self.step(at).map_err(|error| format!("repeated: {error}"))?;
        let seen = self.shelf.states();
        if seen != after {
            return Err(format!("repeated, it came to {seen:?}"));
        }
        self.shelf.faults()
    }
}

/// Whether an ordinary run of the tests tries this operation too.
fn is_tried(at: usize) -> bool {
    full() || at.is_multiple_of(4)
}

#[test]
fn a_disk_that_fails_at_any_operation_is_told_of_truly() {
    let course = Course::run(5 * STEPS);
    let disk = Disk::below(&course.shelf.root);
    let (mut bad, mut tried) = (Vec::new(), 0);
    for step in TRIED {
        for (on, full) in [(false, false), (true, false), (false, true), (true, true)] {
            for at in 1.. {
                let plan = Plan { at, on, full };
                let wanted = only().map_or_else(|| is_tried(at), |point| point == name(step, plan));
                let found = if wanted { course.fault(&disk, step, plan, |class| class) } else { Some(String::new()) };
                let Some(why) = found else { break };
                tried += usize::from(wanted);
                bad.extend((!why.is_empty()).then(|| format!("{}: {why}", name(step, plan))));
                assert!(at < 2000, "step {step} never ends");
                if only().is_some() && at == 1000 {
                    break;
                }
            }
        }
    }
    assert!(bad.is_empty(), "{} of {tried} faults, step:operation\n{}", bad.len(), bad.join("\n"));
    assert!(tried > 40 || only().is_some(), "{tried} faults");
}

/// A failure that nobody is told of.
#[test]
fn a_swallowed_failure_is_seen() {
    let course = Course::run(5 * STEPS);
    let disk = Disk::below(&course.shelf.root);
    let plan = Plan { at: 12, on: true, full: false };
    let found = course.fault(&disk, 3, plan, |_| None).expect("it fails");
    assert!(found.contains("is there"), "{found}");
}
