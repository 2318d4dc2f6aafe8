//! Every call that may fail fails: no room, a failing disk, no more files or memory, a reader that went away; once, and
//! from there on. The exit status tells the truth about what was applied, and the next call works.

use super::bench::{Bench, Struck};
use super::cases::{self, Case, Kind};
use super::{full, only, share};

/// How many points of one command an ordinary run of the tests tries.
const SHARE: usize = 8;

/// What is said by which calls, and whether also from there on: what is used up stays so. Locks are left out: SQLite
/// reads every such failure as "busy", and waits.
const ERRORS: &[(&str, &str, bool)] = &[
    ("pwrite64", "ENOSPC", true),
    ("pwrite64", "EIO", false),
    ("write", "ENOSPC", true),
    ("write", "EPIPE", true),
    ("fsync", "EIO", true),
    ("fdatasync", "EIO", true),
    ("fdatasync", "ENOSPC", false),
    ("ftruncate", "EIO", false),
    ("fallocate", "ENOSPC", true),
    ("openat", "EMFILE", true),
    ("openat", "EACCES", false),
    ("openat2", "EMFILE", true),
    ("openat2", "EACCES", false),
    ("mmap", "ENOMEM", true),
    ("mkdir", "ENOSPC", true),
    ("rename", "EIO", false),
    ("socketpair", "EMFILE", true),
    ("clone3", "EAGAIN", true),
];

/// One fault: as `ARES_POINT` names it, `pwrite64:ENOSPC:3` or, from there on, `pwrite64:ENOSPC:3+`.
#[derive(Clone)]
struct Point {
    call: String,
    error: &'static str,
    when: String,
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.call, self.error, self.when)
    }
}

fn all(bench: &Bench) -> Vec<Point> {
    let mut points = Vec::new();
    for (call, n) in bench.calls() {
        for (_, error, on) in ERRORS.iter().filter(|(name, ..)| name == call) {
            let whens = if *on { &["", "+"][..] } else { &[""] };
            points.extend(whens.iter().map(|on| Point { call: call.clone(), error, when: format!("{n}{on}") }));
        }
    }
    points
}

fn points(bench: &Bench) -> Vec<Point> {
    let all = all(bench);
    match only() {
        Some(only) => all.into_iter().filter(|point| point.to_string() == only).collect(),
        None if full() => all,
        None => share(&all, SHARE),
    }
}

/// Whether a status may be told where this much is there.
fn is_true(bench: &Bench, struck: &Struck, seen: &str) -> Result<(), String> {
    let (applied, untouched) = (bench.is_applied(seen), bench.is_untouched(seen));
    let whole = bench.case().kind == Kind::Once;
    match struck.ran.status {
        0 | 8 if !applied => Err("it says that it was applied".to_owned()),
        0 if !struck.unsynced().is_empty() => Err(format!("it says that {:?} is durable", struck.unsynced())),
        0 | 7 | 8 => Ok(()),
        1..=5 if whole && !untouched => Err("it says that nothing was applied".to_owned()),
        1 | 3 | 4 | 5 | 9 => Ok(()),
        // A file of the caller's that the caller may not read.
        2 if struck.ran.err.contains("Permission denied") => Ok(()),
        _ => Err("no such status fits".to_owned()),
    }
}

/// What a sandbox hides is hidden from every process alike; that it is so for a moment only is no fault to be had.
fn is_hidden(struck: &Struck, point: &Point) -> bool {
    point.error == "EACCES" && struck.injected().any(|line| line.contains("\"/proc/"))
}

/// What one fault showed; `None` where it did not come to pass.
fn fault(bench: &Bench, point: &Point) -> Option<Result<(), String>> {
    let struck = bench.strike(&point.call, &format!("error={}:when={}", point.error, point.when));
    (struck.injected().next().is_some() && !is_hidden(&struck, point)).then(|| {
        let (seen, known) = bench.left();
        is_true(bench, &struck, &seen).map_err(|why| {
            let injected = struck.injected().take(2).collect::<Vec<_>>().join("\n");
            let there = if bench.is_untouched(&seen) { "nothing" } else { "something" };
            format!("{why}, and {there} is there: {:?}\n{injected}", struck.ran)
        })?;
        if known { Ok(()) } else { bench.again() }.map_err(|why| format!("after status {}: {why}", struck.ran.status))
    })
}

fn holds(case: &'static Case) {
    let Some(bench) = Bench::new(case) else { return };
    let (mut bad, mut tried) = (Vec::new(), 0);
    for point in points(&bench) {
        if let Some(found) = fault(&bench, &point) {
            tried += 1;
            bad.extend(found.err().map(|why| format!("{point}: {why}")));
        }
    }
    assert!(bad.is_empty(), "{}: {} of {tried} points:\n{}", case.name, bad.len(), bad.join("\n"));
    assert!(tried > 0 || only().is_some(), "{}: nothing failed", case.name);
}

every_case!(holds);

/// Lets no failure be seen.
static SWALLOWED: Case =
    Case { call: "$TRACE ares-stop --op-id o --label l 2>/dev/null || :", again: cases::STOP.call, ..cases::STOP };

#[test]
fn a_swallowed_failure_is_seen() {
    let Some(bench) = Bench::new(&SWALLOWED) else { return };
    let last = bench.calls().iter().filter(|(call, _)| call == "pwrite64").map(|(_, n)| *n).max().expect("it writes");
    let point = Point { call: "pwrite64".to_owned(), error: "ENOSPC", when: last.to_string() };
    let found = fault(&bench, &point).expect("it fails");
    assert!(found.as_ref().is_err_and(|why| why.contains("it says that it was applied")), "{found:?}");
}

/// Says that all went well although the disk said that it did not.
static HASTY: Case = Case { call: "$TRACE ares-stop --op-id o --label l || [ $? = 7 ]", ..SWALLOWED };

#[test]
fn a_sync_that_is_not_heeded_is_seen() {
    let Some(bench) = Bench::new(&HASTY) else { return };
    let last = bench.calls().iter().filter(|(call, _)| call == "fdatasync").map(|(_, n)| *n).max().expect("it syncs");
    let point = Point { call: "fdatasync".to_owned(), error: "EIO", when: last.to_string() };
    let found = fault(&bench, &point).expect("it fails");
    assert!(found.as_ref().is_err_and(|why| why.contains("it says that")), "{found:?}");
}
