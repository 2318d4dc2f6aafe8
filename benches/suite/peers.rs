//! Other queues, with what they promise: the name says what their durability is.

use crate::measure::{Lab, Times, call, feed, installed};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// Their names, and what is on the disk when they say that a job is queued or done.
pub(crate) const ALL: [(&str, &str); 6] = [
    ("nq", "files, never synced"),
    ("task-spooler", "memory only"),
    ("parallel --joblog", "a log, never synced"),
    ("litequeue", "SQLite FULL, synced"),
    ("persist-queue", "SQLite FULL, synced"),
    ("huey", "SQLite, synced"),
];

fn python() -> Option<PathBuf> {
    let given = std::env::var_os("BENCH_PYTHON").map(PathBuf::from);
    given.filter(|python| python.exists())
}

/// Each that is there, once.
pub(crate) fn all(lab: &Lab, width: usize, count: usize, rates: &mut Times) {
    let each = u32::try_from(count).unwrap();
    let mut add = |name: &str, began: Instant| rates.add(&format!("{name} {width}"), began.elapsed() / each);
    let dir = lab.tmp.join("peers");
    if dir.exists() {
        std::fs::remove_dir_all(&dir).unwrap();
    }
    std::fs::create_dir(&dir).unwrap();
    if installed("parallel") {
        let numbers = lab.file("parallel", &(0..count).map(|n| format!("{n}\n")).collect::<String>());
        let began = Instant::now();
        let log = dir.join("joblog");
        feed(Command::new("parallel").arg(format!("-j{width}")).arg("--joblog").arg(log).args(["true", "#"]), &numbers);
        add("parallel --joblog", began);
    }
    if installed("tsp") {
        let tsp = || {
            let mut command = Command::new("tsp");
            command.env("TS_SOCKET", dir.join("tsp")).env("TMPDIR", &dir).env("TS_MAXFINISHED", "10");
            command
        };
        call(tsp().args(["-S", &width.to_string()]));
        let began = Instant::now();
        for _ in 0..count {
            call(tsp().args(["-n", "/bin/true"]));
        }
        call(tsp().arg("-w"));
        add("task-spooler", began);
        call(tsp().arg("-K"));
    }
    if width > 1 {
        return;
    }
    if installed("nq") {
        let began = Instant::now();
        for _ in 0..count {
            call(Command::new("nq").arg("/bin/true").env("NQDIR", &dir));
        }
        call(Command::new("nq").arg("-w").env("NQDIR", &dir));
        add("nq", began);
    }
    let Some(python) = python() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers.py");
    for (name, word) in [("litequeue", "litequeue"), ("persist-queue", "persistqueue"), ("huey", "huey")] {
        let there = Command::new(&python).args(["-c", &format!("import {word}")]).output().unwrap().status.success();
        if there {
            let began = Instant::now();
            call(Command::new(&python).args([script, word, &count.to_string()]).arg(&dir));
            add(name, began);
        }
    }
}
