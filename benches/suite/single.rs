//! One-shot commands against the limit, and batches against SQLite's own rate.

use crate::measure::{Lab, Times, call, feed, installed, memory, syncs};
use crate::report::Report;
use std::path::Path;
use std::process::Command;

const INSERT: &str = "PRAGMA synchronous=FULL; INSERT INTO jobs (argv, dir, at) VALUES ('[\"true\"]', '/tmp', 1);";

pub(crate) fn run(lab: &Lab, report: &mut Report) {
    let store = lab.store("single");
    let lines = lab.file("hundred", &"{\"argv\":[\"true\"]}\n".repeat(100));
    feed(Command::new(lab.ares("ares-submit")).arg("--store").arg(&store).arg("--stdin"), &lines);
    let database = lab.tmp.join("insert.db");
    if installed("sqlite3") {
        let make =
            "PRAGMA journal_mode=WAL; CREATE TABLE jobs (id INTEGER PRIMARY KEY, argv TEXT, dir TEXT, at INTEGER);";
        call(Command::new("sqlite3").arg(&database).arg(make));
    }
    let mut times = Times::default();
    for _ in 0..lab.rounds(400, 60) {
        round(lab, &store, &database, &mut times);
    }
    let limit = times.median("limit").unwrap();
    let ratio = |name: &str| times.median(name).map(|time| time / limit);
    for (name, target) in [
        ("nothing, static", None),
        ("/bin/true", None),
        ("sqlite3 insert", None),
        ("SQLite alone reads one row of the store", None),
        ("SQLite alone submits one job", None),
        ("nq", None),
        ("task-spooler", None),
        ("ares-submit", Some(2.2)),
        ("ares-submit, dynamic", None),
        ("ares-claim", Some(2.2)),
        ("ares-settle", Some(2.2)),
        ("ares-show", Some(1.8)),
        ("ares-list", Some(1.8)),
    ] {
        report.at_most(&format!("{name} / limit"), ratio(name), target);
    }
    let insert = times.median("sqlite3 insert");
    let submit = times.median("ares-submit");
    report.at_most("ares-submit / sqlite3 insert", insert.zip(submit).map(|(i, s)| s / i), Some(0.65));
    facts(lab, &store, &database, report);
}

/// Every subject once.
fn round(lab: &Lab, store: &Path, database: &Path, times: &mut Times) {
    let ours = |name: &str| {
        let mut command = Command::new(lab.ares(name));
        command.arg("--store").arg(store);
        command
    };
    let mut take = |name: &str, command: &mut Command| {
        let (text, time) = call(command);
        times.add(name, time);
        text
    };
    take("limit", Command::new(&lab.limit).arg(lab.tmp.join("limit.data")));
    take("ares-submit", ours("ares-submit").args(["--", "true"]));
    take("nothing, static", &mut Command::new(&lab.limit));
    let owner = std::process::id().to_string();
    let handle = take("ares-claim", ours("ares-claim").args(["--owner", &owner]));
    take("/bin/true", &mut Command::new("/bin/true"));
    take("ares-settle", ours("ares-settle").args([&handle, "ok"]));
    take("ares-show", ours("ares-show").arg("1"));
    take("ares-list", ours("ares-list").args(["--limit", "100"]));
    let (floor, file) = (lab.tmp.join("floor"), store.join("ares.db"));
    take("SQLite alone reads one row of the store", Command::new(&floor).arg(&file));
    take("SQLite alone submits one job", Command::new(&floor).arg(&file).arg("1"));
    if lab.plain.join("ares-submit").exists() {
        take(
            "ares-submit, dynamic",
            Command::new(lab.plain.join("ares-submit")).arg("--store").arg(store).args(["--", "true"]),
        );
    }
    if installed("sqlite3") {
        take("sqlite3 insert", Command::new("sqlite3").arg(database).arg(INSERT));
    }
    if installed("nq") {
        take("nq", Command::new("nq").arg("true").env("NQDIR", &lab.tmp));
    }
    if installed("tsp") {
        take(
            "task-spooler",
            Command::new("tsp").args(["-n", "true"]).env("TS_SOCKET", lab.tmp.join("tsp")).env("TMPDIR", &lab.tmp),
        );
    }
}

/// What is counted and not timed.
fn facts(lab: &Lab, store: &Path, database: &Path, report: &mut Report) {
    let store = store.to_str().unwrap();
    let path = |name: &str| lab.ares(name).to_str().unwrap().to_owned();
    let owner = std::process::id().to_string();
    let submit = [&path("ares-submit"), "--store", store, "--", "true"];
    let claim = path("ares-claim");
    let claim = [&claim, "--store", store, "--owner", &owner];
    // The median of a few: the one whose turn it is also starts the log anew.
    let usual = |command: &[&str]| {
        let mut all: Vec<usize> = (0..5).filter_map(|_| syncs(lab, command)).collect();
        all.sort_unstable();
        all.get(2).map(|count| *count as f64)
    };
    report.at_most("syncs of ares-submit", usual(&submit), Some(1.2));
    report.at_most("syncs of ares-claim", usual(&claim), Some(1.2));
    report.at_most("syncs of ares-show", usual(&[&path("ares-show"), "--store", store, "1"]), Some(0.0));
    if installed("sqlite3") {
        report.at_most("syncs of sqlite3 insert", usual(&["sqlite3", database.to_str().unwrap(), INSERT]), None);
    }
    report.at_most("memory of ares-submit, MiB", memory(lab, &submit), Some(12.0));
    report.at_most("memory of ares-claim, MiB", memory(lab, &claim), Some(12.0));
}

/// Many jobs in one transaction, against the same rows written by the SQLite shell in one transaction.
pub(crate) fn batches(lab: &Lab, report: &mut Report) {
    let mut times = Times::default();
    let small = lab.file("1000", &"{\"argv\":[\"true\"]}\n".repeat(1000));
    let large = lab.file("100000", &"{\"argv\":[\"true\"]}\n".repeat(100_000));
    for turn in 0..lab.rounds(5, 3) {
        let submit = |name: &str, times: &mut Times, input: &Path| {
            let store = lab.store(name);
            let mut command = Command::new(lab.ares("ares-submit"));
            times.add(name, feed(command.arg("--store").arg(&store).arg("--stdin"), input));
            store
        };
        for _ in 0..10 {
            times.add("limit", call(Command::new(&lab.limit).arg(lab.tmp.join("limit.data"))).1);
            let store = submit("1,000", &mut times, &small);
            let floor = call(Command::new(lab.tmp.join("floor")).arg(store.join("ares.db")).arg("1000"));
            times.add("SQLite alone", floor.1);
        }
        let store = submit("100,000", &mut times, &large);
        if installed("sqlite3") {
            sqlite_batch(lab, &store, &mut times, turn);
        }
    }
    let per = |a: &str, b: &str| Some(times.median(a)? / times.median(b)?);
    report.at_most("1,000 JSON lines / limit", per("1,000", "limit"), Some(6.0));
    report.at_most("SQLite alone submits 1,000 jobs / limit", per("SQLite alone", "limit"), None);
    report.at_least("100,000 JSON lines: rate / SQLite's own", per("sqlite", "100,000"), Some(0.25));
}

/// The rows that the batch wrote, as the shell's own INSERTs into the same tables and indexes, without triggers.
fn sqlite_batch(lab: &Lab, store: &Path, times: &mut Times, turn: usize) {
    let script = lab.tmp.join("batch.sql");
    let from = store.join("ares.db");
    if turn == 0 {
        let tables = "SELECT sql || ';' FROM sqlite_schema WHERE tbl_name IN ('jobs', 'sessions') AND type <> 'trigger' AND sql IS NOT NULL ORDER BY type DESC, name";
        let (schema, _) = call(Command::new("sqlite3").arg(&from).arg(tables));
        let dump = Command::new("sqlite3")
            .arg(&from)
            .args([".mode insert jobs", "SELECT * FROM jobs;", ".mode insert sessions", "SELECT * FROM sessions;"])
            .output()
            .unwrap();
        let rows = String::from_utf8(dump.stdout).unwrap();
        std::fs::write(
            &script,
            format!("PRAGMA journal_mode=WAL;\nPRAGMA synchronous=FULL;\n{schema}\nBEGIN;\n{rows}COMMIT;\n"),
        )
        .unwrap();
    }
    let database = lab.tmp.join(format!("batch{turn}.db"));
    times.add("sqlite", feed(Command::new("sqlite3").arg(database), &script));
}
