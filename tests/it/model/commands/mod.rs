//! The commands beside a model of what they should do: random sequences of them, each followed by a look at every job,
//! and at the end by a check of the whole store. The shortest sequence that differs is told.
//!
//! `ARES_SEED=N` repeats a run, whose number a failure tells; `ARES_FAULTS=full` tries many more sequences.

mod reference;

use crate::harness::Ran;
use crate::stock::Stock;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use proptest_state_machine::{ReferenceStateMachine as _, StateMachineTest};
use reference::{Command, Model, Reference};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Child, Stdio};

/// A store with its jobs, and the processes that own what is claimed.
struct Commands<const WRONG: bool> {
    stock: Stock,
    claims: BTreeMap<usize, (String, Child)>,
}

impl<const WRONG: bool> Drop for Commands<WRONG> {
    fn drop(&mut self) {
        self.claims.values_mut().for_each(|(_, owner)| end(owner));
    }
}

fn end(owner: &mut Child) {
    owner.kill().expect("it can be killed");
    owner.wait().expect("it ends");
}

/// A process that owns a claim until it is killed.
#[expect(clippy::disallowed_methods, reason = "it is to be killed, which a test's runner would not do")]
fn owner() -> Child {
    let mut command = std::process::Command::new("/bin/sleep");
    command.arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("it starts")
}

fn number(at: usize) -> String {
    (at + 1).to_string()
}

impl<const WRONG: bool> Commands<WRONG> {
    fn ares(&self, args: &[&str]) -> Ran {
        self.stock.run("ares", args)
    }

    fn submit(&self, options: &[&str], fails: bool) -> Ran {
        self.ares(&[&["submit"], options, &["--", if fails { "false" } else { "true" }]].concat())
    }

    /// A claim is of the highest job that may run, and its handle is kept.
    fn claim(&mut self, model: &Model) {
        let mut process = owner();
        let ran = self.ares(&["claim", "--owner", &process.id().to_string()]);
        let handle = ran.out.trim().to_owned();
        if ran.status == 0 {
            let job: usize = handle.split('.').next().expect("a job").parse().expect("a number");
            assert!(model.open(job - 1), "it claimed {handle}");
            self.claims.insert(job - 1, (handle, process));
        } else {
            assert_eq!(ran.status, 1, "{ran:?}");
            end(&mut process);
        }
    }

    fn carry_out(&mut self, model: &Model, command: &Command) {
        match command {
            Command::Submit { fails, tries, priority, group, .. } => {
                let (tries, priority) = (tries.to_string(), priority.to_string());
                let mut options = vec!["--max-tries", &tries, "--retry-delay", "0s", "--priority", &priority];
                options.extend(["--label", "some"]);
                if *group {
                    options.extend(["--group", "g"]);
                }
                let after = model.jobs.last().and_then(reference::Job::after).map(number);
                options.extend(after.iter().flat_map(|after| ["--after", after]));
                let ran = self.submit(&options, *fails);
                assert_eq!((ran.status, ran.out.trim()), (0, &*number(model.jobs.len() - 1)), "{ran:?}");
            }
            Command::SubmitOnce { key, name, fails } => {
                let name_text = format!("name-{name}");
                let ran = self.submit(&[if *key { "--key" } else { "--op-id" }, &name_text], *fails);
                let (at, same) = model.before(*key, *name, *fails).expect("it is noted");
                let wanted = if same { (0, number(at)) } else { (3, String::new()) };
                assert_eq!((ran.status, ran.out.trim().to_owned()), wanted, "{ran:?}");
            }
            Command::Claim => self.claim(model),
            Command::Settle(at, outcome) => {
                if let Some((handle, mut owner)) = self.claims.remove(at) {
                    let ran = self.ares(&["settle", &handle, outcome]);
                    assert_eq!(ran.status, 0, "{ran:?}");
                    end(&mut owner);
                }
            }
            Command::KillOwner(at) => {
                if let Some((_, mut owner)) = self.claims.remove(at) {
                    end(&mut owner);
                }
            }
            Command::Reconcile => drop(self.ares(&["reconcile"])),
            Command::Decide(at, decision) => {
                drop(self.ares(&["reconcile", &number(*at), "--decide", decision, "--because", "a test"]));
            }
            Command::Stop(at) => drop(self.ares(&["stop", &number(*at)])),
            Command::Drain => drop(self.ares(&["run", "--drain", "--quiet"])),
            Command::Gc => {
                let ran = self.ares(&["gc", "--keep", "0"]);
                assert_eq!(ran.status, 0, "{ran:?}");
            }
        }
    }

    /// Every job as it is listed.
    fn listed(&self) -> BTreeMap<usize, Value> {
        let ran = self.ares(&["list", "--all", "--json"]);
        assert_eq!(ran.status, 0, "{ran:?}");
        let job = |line: &str| serde_json::from_str::<Value>(line).expect("an object");
        let place = |job: &Value| job["job"].as_u64().expect("a number") as usize - 1;
        ran.out.lines().map(job).map(|job| (place(&job), job)).collect()
    }
}

impl<const WRONG: bool> StateMachineTest for Commands<WRONG> {
    type SystemUnderTest = Self;
    type Reference = Reference<WRONG>;

    fn init_test(_: &Model) -> Self {
        Self { stock: Stock::new(), claims: BTreeMap::new() }
    }

    fn apply(mut self_: Self, model: &Model, command: Command) -> Self {
        self_.carry_out(model, &command);
        self_
    }

    fn check_invariants(self_: &Self, model: &Model) {
        let listed = self_.listed();
        for (at, job) in model.jobs.iter().enumerate() {
            match listed.get(&at) {
                None => assert!(job.may_go, "job {} is gone", at + 1),
                Some(found) => {
                    let held = found["hold"] == "releases";
                    let is = (found["state"].as_str().unwrap_or_default(), found["attempt"].as_i64(), held);
                    assert_eq!(is, (job.state, Some(job.attempt), job.held), "job {}: {found}", at + 1);
                }
            }
        }
        if let Some((at, job)) = model.jobs.iter().enumerate().rfind(|(at, _)| listed.contains_key(at)) {
            let ran = self_.ares(&["show", "--json", &number(at)]);
            let shown: Value = serde_json::from_str(&ran.out).expect("an object");
            let attempts = shown["attempts"].as_array().map(Vec::len);
            assert_eq!((&shown["state"], attempts), (&job.state.into(), usize::try_from(job.attempt).ok()), "{shown}");
        }
        assert!(listed.keys().all(|at| *at < model.jobs.len()), "there are more jobs");
    }

    fn teardown(self_: Self, _: Model) {
        let ran = self_.ares(&["fsck"]);
        assert_eq!((ran.status, &*ran.out), (0, ""), "{ran:?}");
    }
}

#[expect(clippy::disallowed_methods, reason = "the tests' own switches")]
fn asked(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Tries so many sequences; the first that differs, in words.
#[expect(clippy::print_stderr, reason = "by its number a run is repeated")]
fn tried<const WRONG: bool>(cases: u32, commands: usize, shrink: u32) -> Result<(), String> {
    let seed = asked("ARES_SEED").and_then(|seed| seed.parse().ok()).unwrap_or(u64::from(std::process::id()));
    eprintln!("repeat this run with ARES_SEED={seed}");
    let config = Config {
        cases,
        max_shrink_iters: shrink,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let mut runner = TestRunner::new(config.clone());
    let sequences = Reference::<WRONG>::sequential_strategy(1..commands);
    let run = runner.run(&sequences, |(start, commands, counter)| {
        Commands::<WRONG>::test_sequential(config.clone(), start, commands, counter);
        Ok(())
    });
    run.map_err(|error| error.to_string())
}

#[test]
fn sequences_of_commands_do_what_the_model_says() {
    let full = asked("ARES_FAULTS").as_deref() == Some("full");
    let (cases, commands) = if full { (256, 40) } else { (32, 24) };
    if let Err(differs) = tried::<false>(cases, commands, 200) {
        panic!("{differs}");
    }
}

#[test]
fn a_model_that_is_wrong_is_found() {
    let differs = tried::<true>(200, 24, 64).expect_err("a job whose owner died is not simply queued again");
    assert!(differs.contains("uncertain"), "{differs}");
}
