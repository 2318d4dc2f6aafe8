//! The search: every state that can be reached is looked at, the promises are asked in each, and from each there is a way
//! to rest without anything going wrong further. What breaks a promise is told as the shortest way there.

use super::owner::Steps;
use super::world::{Job, Left};
use super::world::{Looker, Operator, Owner, Submission, World};
use super::{Fault, others, owner};
use ares::domain::attempt::State as AttemptState;
use ares::domain::job::State;
use ares::domain::moves::Permit;
use pathfinding::directed::bfs::{bfs, bfs_reach};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

/// What is looked at, and what is wrong on purpose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) jobs: usize,
    /// Whether they are submitted already.
    pub(super) submitted: bool,
    pub(super) lookers: usize,
    pub(super) left: Left,
    pub(super) fault: Fault,
}

/// No search looks at more states: one that would has grown by mistake.
const STATES_MAX: usize = 200_000;

/// What a whole search came to.
#[derive(Debug)]
pub(super) struct Searched {
    pub(super) states: usize,
    /// Whether a promise is broken in one of them.
    pub(super) broken: bool,
    /// The states from which nothing leads to rest.
    pub(super) stuck: Vec<World>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Owner(owner::Step),
    Other(others::Step),
}

impl Plan {
    pub(super) fn start(&self) -> World {
        let (state, submission, rows) =
            if self.submitted { (Some(State::Queued), Submission::Printed, 1) } else { (None, Submission::Planned, 0) };
        let job = Job { state, tries: 0, releases: 0, held: false, attempts: Vec::new(), submission, rows, effects: 0 };
        World {
            jobs: vec![job; self.jobs],
            // And one for whom the last has left something.
            owners: vec![Owner::UNBORN; usize::from(self.left.runners) + 1],
            lookers: vec![Looker::Idle; self.lookers],
            operator: Operator::Idle,
            boot: 0,
            left: self.left,
            broken: None,
        }
    }

    /// What may happen next: of itself, and what goes wrong.
    fn steps(&self, world: &World) -> (Steps<Step>, Steps<Step>) {
        let (mut own, mut other, mut asked, mut wrong) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for me in 0..world.owners.len() {
            owner::owner(world, me, self.fault, &mut own);
            owner::keeper_of(world, me, self.fault, &mut own);
            if world.left.kills > 0 {
                owner::give_back(world, me, self.fault, &mut asked);
            }
        }
        for me in 0..world.lookers.len() {
            others::looker(world, me, self.fault, &mut other);
        }
        others::submitter(world, self.fault, &mut other);
        others::operator(world, self.fault, &mut other);
        others::workers(world, &mut other);
        others::wake(world, &mut other);
        others::mishaps(world, &mut wrong);
        let owners = |steps: Steps<owner::Step>| {
            steps.into_iter().map(|(who, step, next)| (who, Step::Owner(step), next.tidy())).collect::<Vec<_>>()
        };
        let others = |steps: Steps<others::Step>| {
            steps.into_iter().map(|(who, step, next)| (who, Step::Other(step), next.tidy())).collect::<Vec<_>>()
        };
        ([owners(own), others(other)].concat(), [owners(asked), others(wrong)].concat())
    }

    fn next(&self, world: &World) -> Vec<World> {
        let (healing, wrong) = self.steps(world);
        healing.into_iter().chain(wrong).map(|(_, _, next)| next).collect()
    }

    /// The promise that is broken, and the shortest way there.
    pub(super) fn counterexample(&self) -> Option<(&'static str, Vec<World>)> {
        let mut states = 0;
        let path = bfs(
            &self.start(),
            |world| {
                states += 1;
                assert!(states < STATES_MAX, "too many states");
                self.next(world)
            },
            |world| broken(world).is_some(),
        )?;
        let promise = path.last().and_then(broken)?;
        Some((promise, path))
    }

    /// The steps of a way, one a line.
    pub(super) fn told(&self, path: &[World]) -> String {
        let line = |pair: &[World]| {
            let (healing, wrong) = self.steps(&pair[0]);
            let step = healing.into_iter().chain(wrong).find(|(_, _, next)| *next == pair[1]);
            step.map_or_else(String::new, |(who, step, _)| format!("  {who}: {step:?}\n"))
        };
        path.windows(2).map(line).collect::<String>() + &format!("  {:#?}", path.last())
    }

    /// Looks at every state, and finds those that do not heal. A state is kept as its digest.
    pub(super) fn search(&self) -> Searched {
        let digest = |world: &World| BuildHasherDefault::<DefaultHasher>::default().hash_one(world);
        let (mut into, mut resting) = (HashMap::<u64, Vec<u64>>::new(), Vec::new());
        let (mut states, mut found) = (0, false);
        let all = bfs_reach(self.start(), |world| {
            let me = digest(world);
            states += 1;
            assert!(states < STATES_MAX, "too many states");
            found |= broken(world).is_some();
            if at_rest(world) {
                resting.push(me);
            }
            let (healing, wrong) = self.steps(world);
            for (_, _, next) in &healing {
                into.entry(digest(next)).or_default().push(me);
            }
            healing.into_iter().chain(wrong).map(|(_, _, next)| next).collect::<Vec<_>>()
        })
        .collect::<Vec<_>>();
        // Backwards from rest: what is not met has no way there.
        let none = Vec::new();
        let mut healed: HashSet<u64> = resting.iter().copied().collect();
        while let Some(state) = resting.pop() {
            let before = into.get(&state).unwrap_or(&none);
            resting.extend(before.iter().filter(|before| healed.insert(**before)));
        }
        Searched {
            states,
            broken: found,
            stuck: all.into_iter().filter(|world| !healed.contains(&digest(world))).collect(),
        }
    }
}

/// Whether every job has ended, or is held for a person, and nothing of any lives.
fn at_rest(world: &World) -> bool {
    world.jobs.iter().all(|job| {
        let ended = job.state.is_some_and(State::is_terminal) || job.held;
        ended && job.submission == Submission::Printed && job.attempts.iter().all(|attempt| !attempt.tree.lives())
    })
}

/// The promise that this state breaks.
pub(super) fn broken(world: &World) -> Option<&'static str> {
    let jobs = || world.jobs.iter();
    let attempts = || jobs().flat_map(|job| &job.attempts);
    let said = |broken: bool, promise| broken.then_some(promise);
    world
        .broken
        .or(said(jobs().any(|job| job.effects > 1), "no two effects without a decision between"))
        .or(said(
            jobs().any(|job| job.submission == Submission::Printed && job.rows == 0)
                || attempts().any(|attempt| attempt.told.is_some() && attempt.told != attempt.outcome),
            "nothing acknowledged is lost",
        ))
        .or(said(jobs().any(|job| job.rows > 1), "one request is applied once"))
        .or(said(jobs().any(torn), "a fenced attempt settles nothing"))
}

/// Whether a job and its attempts contradict each other.
fn torn(job: &Job) -> bool {
    let open = |attempt: &AttemptState| match attempt {
        AttemptState::Claimed => State::Claimed,
        AttemptState::Running => State::Running,
        AttemptState::Uncertain => State::Uncertain,
        AttemptState::Ended => State::Queued,
    };
    let rest = |state: State| match state {
        State::Claimed | State::Running | State::Uncertain => state,
        State::Queued | State::Succeeded | State::Failed | State::Cancelled => State::Queued,
    };
    let Some((latest, earlier)) = job.attempts.split_last() else { return false };
    let permit = match latest.state {
        AttemptState::Claimed => latest.permit.is_none(),
        AttemptState::Running => latest.permit == Some(Permit::Consumed),
        AttemptState::Uncertain => latest.permit == Some(Permit::Settled),
        AttemptState::Ended => latest.permit != Some(Permit::Consumed),
    };
    job.state.map(rest) != Some(open(&latest.state))
        || earlier.iter().any(|attempt| attempt.state != AttemptState::Ended)
        || !permit
}
