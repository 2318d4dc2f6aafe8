//! Submissions of many processes: the first opening, keys, overlaps, and processes that are killed on the way.

use crate::harness::Lab;
use crate::stock::{Stock, bash};
use std::collections::BTreeSet;

/// A script that runs a command this often at once and prints what each printed and its status.
fn at_once(count: usize, command: &str) -> String {
    format!("for i in $(seq {count}); do ({command}; echo status $?) >out.$i 2>&1 & done; wait; cat out.*; rm out.*")
}

#[test]
fn case_49_any_number_of_processes_may_open_a_new_store_first() {
    let lab = Lab::new();
    let ran = bash(&lab, &at_once(64, "ares-init >/dev/null"));
    assert_eq!(ran.out, "status 0\n".repeat(64));
    let ran = bash(&lab, &at_once(64, "ares-submit -- true"));
    let ids: BTreeSet<i64> = ran.out.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(ids, (1..=64).collect(), "{}", ran.out);
    assert_eq!(ran.out.lines().filter(|line| *line == "status 0").count(), 64, "{}", ran.out);
    // An upgrade is behind the same lock, also where there is nothing to upgrade.
    let ran = bash(&lab, &at_once(8, "ares-init --upgrade 2>/dev/null >/dev/null"));
    assert_eq!(ran.out, "status 0\n".repeat(8));
}

#[test]
fn one_key_is_one_job_and_one_id_one_answer() {
    let stock = Stock::new();
    for options in ["--key k", "--op-id o"] {
        let before: i64 = stock.value("SELECT count(*) FROM jobs").parse().expect("a count");
        let ran = bash(&stock, &at_once(64, &format!("ares-submit {options} -- true")));
        let wanted = format!("{}\nstatus 0\n", before + 1).repeat(64);
        assert_eq!(ran.out, wanted, "{options}");
        assert_eq!(stock.value("SELECT count(*) FROM jobs"), (before + 1).to_string());
    }
}

#[test]
fn case_31_fifty_ticks_at_once_queue_one() {
    let stock = Stock::new();
    let ran = bash(&stock, &at_once(50, "ares-submit --quiet --if-active nightly skip -- true"));
    assert_eq!(ran.out.lines().filter(|line| *line == "status 0").count(), 50, "{}", ran.out);
    assert_eq!(ran.out.lines().filter(|line| *line == "1").count(), 1, "{}", ran.out);
    assert_eq!(stock.value("SELECT count(*) FROM jobs"), "1");
    // Each that was skipped says so in the log.
    assert_eq!(stock.value("SELECT count(*) FROM operations WHERE note LIKE 'skipped 1: job 1%'"), "49");
    let ran = bash(&stock, &at_once(20, "ares-submit --if-active nightly fail -- true"));
    assert_eq!(ran.out.matches("ARES_ACTIVE").count(), 20, "{}", ran.out);
    let ran = bash(&stock, &at_once(10, "ares-submit --if-active nightly queue -- true"));
    assert_eq!(ran.out.lines().filter(|line| *line == "status 0").count(), 10, "{}", ran.out);
    // Queued ones follow each other: at any time one of them may run.
    assert_eq!(stock.value("SELECT count(*) FROM jobs WHERE hold = ''"), "1");
    stock.ok("ares-run", &["--drain", "--quiet"]);
    assert_eq!(stock.value("SELECT count(*) FROM jobs WHERE state = 'succeeded'"), "11");
}

#[test]
fn what_was_told_is_there_however_many_are_killed() {
    let stock = Stock::new();
    let script = "for i in $(seq 120); do
            (timeout -s KILL 0.$(printf %03d $((1 << RANDOM % 9))) ares-submit --label l$i -- true >told.$i 2>/dev/null) 2>/dev/null &
            [ $((i % 6)) = 0 ] && wait
        done; wait; cat told.* | grep -c . ; cat told.* | grep . | while read id; do
            ares-show $id --format '%(job)' >/dev/null || echo lost $id; done
        ares-submit -- true >/dev/null && ares-run --drain --quiet >/dev/null && ares-list --state queued";
    let out = stock.bash(script, 0);
    let (told, rest) = out.split_once('\n').unwrap_or((&out, ""));
    assert_eq!(rest, "", "an id was told and is not there, or a job was left");
    let told: usize = told.parse().expect("a count");
    let rows: usize = stock.value("SELECT count(*) - 1 FROM jobs").parse().expect("a count");
    assert!(rows >= told && told < 120, "{told} were told, {rows} are there");
    assert_eq!(stock.value("PRAGMA integrity_check"), "ok");
}
