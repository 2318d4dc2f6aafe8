//! The promise under a storm: submitters, runners, keepers, workers and reconcilers are killed at random moments while
//! jobs with an effect outside run. How far each victim had come is seen from outside, what is found afterwards is judged
//! by what was seen, printed and done outside the record, and then everything is decided and ends.
//!
//! One storm serves the tests, with few kills of whatever was built, and `benches/crash`, with many of what is released.

#![allow(clippy::disallowed_methods, reason = "it kills what it starts, and reads the record by SQLite alone")]
#![allow(clippy::unwrap_used, reason = "a storm that cannot go on may say so by panicking")]

mod judge;
mod load;
mod look;
mod process;
mod report;
mod strike;

use judge::{Counts, Judge, Wrong};
use load::Load;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use strike::{Kill, Striker};

/// What is made wrong on purpose, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// One job has its effect twice.
    Double,
    /// One number counts as printed that no job has.
    Lost,
    /// The worker of one job ends itself by a signal, so that it is uncertain and nobody was killed.
    Uncertain,
    /// One job fails that should not.
    Failed,
}

/// What is asked for.
pub(crate) struct Plan<'a> {
    /// Where the commands are.
    pub(crate) bin: &'a Path,
    /// An empty directory for the store and everything around it.
    pub(crate) dir: &'a Path,
    /// How many kills.
    pub(crate) kills: usize,
    /// It repeats the choices, though not the machine's timing.
    pub(crate) seed: u64,
    pub(crate) plant: Option<Plant>,
}

/// What came of it.
pub(crate) struct Told {
    kills: Vec<Kill>,
    pub(crate) wrong: Wrong,
    counts: Counts,
    jobs: usize,
    waits: Vec<Duration>,
    looks: usize,
    took: Duration,
    seed: u64,
}

/// A store and the commands around it.
struct Lab {
    bin: PathBuf,
    dir: PathBuf,
    store: PathBuf,
}

impl Lab {
    /// One of our commands, under nearly no environment and heard by nobody.
    fn command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(self.bin.join(name));
        command.args(args).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &self.dir).current_dir(&self.dir);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn folder(&self, attempt: &str) -> PathBuf {
        self.store.join("attempts").join(attempt)
    }

    /// Where the effect of a job is.
    fn effect(&self, key: usize) -> PathBuf {
        self.dir.join("effects").join(key.to_string())
    }

    /// What the workers of this store, or of this attempt, have in their environment.
    fn marks(&self, attempt: Option<&str>) -> Vec<String> {
        let of = attempt.map(|name| format!("ARES_ATTEMPT={name}"));
        [format!("ARES_DIR={}", self.store.display())].into_iter().chain(of).collect()
    }
}

/// A small generator, so that a storm can be told by its seed.
pub(crate) struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides.max(1)
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.roll(from.len() as u64) as usize).cloned()
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.roll(at as u64 + 1) as usize);
        }
    }
}

/// Ends the threads of the load also where the storm itself cannot go on.
struct Ending<'a>(&'a Load<'a>);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Kills so often, heals and judges.
pub(crate) fn storm(plan: &Plan<'_>) -> Told {
    let began = Instant::now();
    let dir = plan.dir.canonicalize().unwrap();
    let lab = Lab { bin: plan.bin.to_owned(), store: dir.join(".ares"), dir };
    fs::create_dir(lab.dir.join("effects")).unwrap();
    assert!(lab.command("ares-init", &["--quiet"]).status().unwrap().success(), "the store is made");
    let load = Load::new(&lab, plan.plant);
    let (kills, looks, passes) = thread::scope(|scope| {
        let filling = scope.spawn(|| load.keep_filled());
        let passes = scope.spawn(|| load.keep_reconciling());
        let ending = Ending(&load);
        let mut striker = Striker::new(&lab, &load, Dice(plan.seed | 1));
        striker.strike(plan.kills);
        drop(ending);
        filling.join().unwrap();
        (striker.kills, striker.looks, passes.join().unwrap())
    });
    load.repeat();
    load.plant();
    let mut judge = Judge::new(&lab, &load, &kills);
    judge.heal();
    judge.jobs();
    judge.ends();
    let waits = judge.waits(&passes);
    judge.rest_is_clean();
    let Judge { wrong, counts, .. } = judge;
    Told { kills, wrong, counts, jobs: load.jobs(), waits, looks, took: began.elapsed(), seed: plan.seed }
}
