//! The promise under a storm: owners, keepers, workers and reconcilers are killed at random moments while jobs with an
//! effect outside run. Afterwards nothing that was acknowledged is lost, no effect is doubled without a decision, what
//! is uncertain says so, and all jobs end once someone decides.
//!
//! `ARES_STORM=N` asks for N kills; `ARES_SEED=N` repeats one storm's choices, though not the machine's timing.

use crate::harness::{Lab, bin_dir};
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Kills in an ordinary run of the tests.
const KILLS: u64 = 40;

/// Each job writes that it begins, works, and writes that it is done, into a file outside the store.
const WORK: &str = "echo begin $ARES_ATTEMPT >>\"$0\"; sleep 0.0$1; echo done $ARES_ATTEMPT >>\"$0\"";

/// A small generator, so that a storm can be told by its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

struct Storm {
    lab: Lab,
    dice: Dice,
    owners: Vec<Child>,
    killed: BTreeMap<&'static str, u64>,
}

#[expect(clippy::disallowed_methods, reason = "the tests' own switch")]
fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Starts one of our commands in the background; its end is waited for by whoever keeps it.
#[expect(clippy::disallowed_methods, reason = "it is to be killed, which a test's runner would not do")]
fn start(lab: &Lab, name: &str, args: &[&str]) -> Child {
    Command::new(bin_dir().join(name))
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", lab.path())
        .current_dir(lab.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    // It may have ended by itself in between.
    let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

/// The name and the parent of a process.
fn of(pid: i32) -> Option<(String, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = stat.rsplit_once(')')?;
    let parent = tail.split_whitespace().nth(1)?.parse().ok()?;
    Some((head.split_once('(')?.1.to_owned(), parent))
}

fn processes() -> Vec<i32> {
    let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}

impl Storm {
    fn new(jobs: usize, seed: u64) -> Self {
        let lab = Lab::new();
        let file = lab.path().join("effects");
        fs::write(&file, "").unwrap();
        let line = |at: usize| {
            let argv = ["sh", "-c", WORK, &file.to_string_lossy(), &(at % 5).to_string()];
            format!("{}\n", serde_json::json!({ "argv": argv }))
        };
        let batch: String = (0..jobs).map(line).collect();
        lab.run("ares-init", &["-q"]);
        let ran = lab.command(bin_dir().join("ares-submit")).arg("--stdin").write_stdin(batch).output().unwrap();
        assert_eq!(String::from_utf8(ran.stdout).unwrap().lines().count(), jobs);
        Self { lab, dice: Dice(seed | 1), owners: Vec::new(), killed: BTreeMap::new() }
    }

    /// Keeps so many owners at work.
    fn tend(&mut self, owners: usize) {
        self.owners.retain_mut(|owner| matches!(owner.try_wait(), Ok(None)));
        while self.owners.len() < owners {
            self.owners.push(start(&self.lab, "ares-run", &["--wait"]));
        }
    }

    fn keepers(&self) -> Vec<i32> {
        let owners: Vec<i32> = self.owners.iter().map(|owner| owner.id().cast_signed()).collect();
        processes().into_iter().filter(|pid| of(*pid).is_some_and(|(_, parent)| owners.contains(&parent))).collect()
    }

    fn workers(&self) -> Vec<i32> {
        let mark = format!("ARES_DIR={}", self.lab.path().join(".ares").canonicalize().unwrap().display());
        let marked = |pid: &i32| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|env| env.split(|byte| *byte == 0).any(|part| part == mark.as_bytes()))
        };
        processes().into_iter().filter(marked).collect()
    }

    fn pick(&mut self, from: &[i32]) -> Option<i32> {
        if from.is_empty() { None } else { from.get(self.dice.roll(from.len() as u64) as usize).copied() }
    }

    /// One kill of a random kind of process at a random moment.
    fn strike(&mut self) {
        sleep(Duration::from_millis(self.dice.roll(40)));
        let kind = ["owner", "keeper", "worker", "reconcile", "all"][self.dice.roll(5) as usize];
        let targets: Vec<i32> = match kind {
            "owner" => {
                let owners: Vec<i32> = self.owners.iter().map(|owner| owner.id().cast_signed()).collect();
                self.pick(&owners).into_iter().collect()
            }
            "keeper" => {
                let keepers = self.keepers();
                self.pick(&keepers).into_iter().collect()
            }
            "worker" => {
                let workers = self.workers();
                self.pick(&workers).into_iter().collect()
            }
            "reconcile" => {
                let mut child = start(&self.lab, "ares-reconcile", &[]);
                sleep(Duration::from_micros(self.dice.roll(8000)));
                kill(child.id().cast_signed());
                child.wait().unwrap();
                vec![0]
            }
            _ => {
                let owners = self.owners.iter().map(|owner| owner.id().cast_signed()).collect::<Vec<_>>();
                [owners, self.keepers(), self.workers()].concat()
            }
        };
        targets.iter().filter(|pid| **pid > 0).for_each(|pid| kill(*pid));
        if !targets.is_empty() {
            *self.killed.entry(kind).or_default() += 1;
        }
    }

    /// Ends the owners in good order and waits until nothing of any attempt lives.
    fn calm(&mut self) {
        for mut owner in std::mem::take(&mut self.owners) {
            let pid = rustix::process::Pid::from_child(&owner);
            let _gone = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            owner.wait().unwrap();
        }
        for _ in 0..400 {
            self.lab.run("ares-reconcile", &["-q"]);
            let open = ["list", "--state", "claimed", "--state", "running", "--count"];
            if self.lab.run("ares", &open).out == "0\n" {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        panic!("something is still open: {:?}", self.lab.run("ares-reconcile", &[]));
    }

    /// The attempts that wrote this word, in order.
    fn wrote(&self, word: &str) -> Vec<String> {
        let text = fs::read_to_string(self.lab.path().join("effects")).unwrap();
        text.lines().filter_map(|line| line.strip_prefix(word)).map(|name| name.trim().to_owned()).collect()
    }

    /// Decides what is uncertain as an operator would who can see the effects. Gives how many it decided to do again.
    fn decide(&self, decided: &mut BTreeMap<String, usize>) {
        let list = self.lab.run("ares-list", &["--state", "uncertain", "--all", "--format", "%(job).%(attempt)"]).out;
        let (begun, done) = (self.wrote("begin"), self.wrote("done"));
        for attempt in list.lines() {
            let has = |list: &[String]| list.iter().any(|name| name == attempt);
            let what = match (has(&begun), has(&done)) {
                (_, true) => "ok",
                (true, false) => "retry",
                (false, false) => "no-effect",
            };
            let job = attempt.split_once('.').unwrap().0;
            if what == "retry" {
                *decided.entry(job.to_owned()).or_default() += 1;
            }
            let ran =
                self.lab.run("ares-reconcile", &[job, "--decide", what, "--because", "the effects were looked at"]);
            assert_eq!(ran.status, 0, "{ran:?}");
        }
    }
}

#[test]
fn nothing_is_lost_or_doubled_in_a_storm() {
    let kills = asked("ARES_STORM").unwrap_or(KILLS);
    let seed = asked("ARES_SEED").unwrap_or(u64::from(std::process::id()) * 7919);
    let jobs = (kills as usize * 3).max(60);
    let mut storm = Storm::new(jobs, seed);
    let mut strikes = 0;
    while strikes < kills {
        storm.tend(2);
        storm.strike();
        strikes += 1;
    }
    storm.calm();
    let uncertain = storm.lab.run("ares-list", &["--state", "uncertain", "--count"]).out;
    // Heal: decide, run, and again, until everything has ended.
    let mut decided = BTreeMap::new();
    for _ in 0..5 {
        storm.decide(&mut decided);
        storm.lab.run("ares-run", &["--drain", "-q"]);
    }
    let told = format!("seed {seed}, kills {:?}, uncertain {}", storm.killed, uncertain.trim());
    let counts = storm.lab.run("ares-list", &["--state", "succeeded", "--count"]).out;
    assert_eq!(counts, format!("{jobs}\n"), "{told}: {}", storm.lab.run("ares-list", &["--all"]).out);
    let begun = storm.wrote("begin");
    let mut tries: BTreeMap<&str, usize> = BTreeMap::new();
    for attempt in &begun {
        *tries.entry(attempt.split_once('.').unwrap().0).or_default() += 1;
        assert_eq!(begun.iter().filter(|other| *other == attempt).count(), 1, "{told}: {attempt} ran twice");
    }
    for (job, count) in &tries {
        let allowed = 1 + decided.get(*job).copied().unwrap_or(0);
        assert!(*count <= allowed, "{told}: job {job} ran {count} times, {allowed} were decided");
    }
    assert_eq!(tries.len(), jobs, "{told}: every job had its effect");
    let fsck = storm.lab.run("ares-fsck", &[]);
    assert_eq!((fsck.status, fsck.out.as_str()), (0, ""), "{told}: {fsck:?}");
    assert_eq!(storm.workers(), Vec::<i32>::new(), "{told}: nothing lives on");
    let left = |name: &str| fs::read_dir(storm.lab.path().join(".ares").join(name)).unwrap().count();
    assert_eq!(left("attempts"), 0, "{told}");
}
