//! A kill of the keeper at every system call from the order to go to its end. Whether its worker acted is known from
//! outside: what is queued again never ran, what succeeded ran once, and what nobody can tell waits for a decision.

use super::bench::trace_of;
use super::kill::{SILENT, TELLING};
use super::{full, only, share};
use crate::harness::{has, skipped};
use crate::run::{Running, Shop, eventually, runs};
use std::fs;
use std::sync::Mutex;

/// How many points an ordinary run of the tests tries; how many are tried at a time, as most of it is waiting.
const SHARE: usize = 6;
const BESIDE: usize = 4;

/// How long the keeper waits for its orders, in which it is attached to, in milliseconds; longer where that was too short.
const PAUSES: [u32; 4] = [250, 800, 3000, 12000];

/// One job whose keeper is traced from before its order to go.
struct Cut {
    shop: Shop,
    job: String,
    status: i32,
    trace: String,
}

/// Runs a job with its keeper under this tracer.
fn run(options: &[&str]) -> Cut {
    PAUSES.iter().find_map(|pause| attach(options, *pause)).expect("strace attaches within seconds")
}

/// The same, unless the keeper was attached to too late.
fn attach(options: &[&str], pause: u32) -> Option<Cut> {
    let shop = Shop::new();
    let job = shop.script(&[], "echo $ARES_ATTEMPT >>runs; echo done");
    let run = shop.start(&[("ARES_FAULT", &format!("run.dispatched:sleep={pause}"))], "ares-run", &["-q"]);
    let keeper = eventually("the keeper is there", || shop.keeper_of(run.pid()));
    let number = keeper.to_string();
    let tracer = shop.start(&[], "/usr/bin/env", &[&["strace", "-q", "-o", "trace", "-p", &number], options].concat());
    // It may be killed by the very call that it waits in.
    eventually("it is traced", || (is_traced(keeper) || !runs(keeper)).then_some(()));
    let mark = shop.root().join(format!("attempts/{job}.1/mark"));
    let begun = fs::metadata(mark).map_or(0, |meta| meta.len()) > 0;
    let status = run.end().status;
    Running::end(tracer);
    let trace = fs::read_to_string(shop.path().join("trace")).unwrap_or_default();
    (!begun && !trace.is_empty()).then_some(Cut { shop, job, status, trace })
}

fn is_traced(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|by| by.trim() != "0"))
}

/// What a kill at this call showed; `None` where the keeper had ended before.
fn kill(call: &str, n: usize) -> Option<Result<(), String>> {
    let trace = format!("trace={call}");
    let inject = format!("inject={call}:signal=KILL:when={n}");
    let cut = run(&["-e", &trace, "-e", &inject]);
    cut.trace.contains("+++ killed by SIGKILL").then(|| account(&cut))
}

fn account(Cut { shop, job, status, .. }: &Cut) -> Result<(), String> {
    let ran = || fs::read_to_string(shop.path().join("runs")).unwrap_or_default().lines().count();
    let state = eventually("it comes to rest", || {
        shop.run("ares-reconcile", &["-q"]);
        Some(shop.state(job)).filter(|state| !matches!(state.as_str(), "claimed" | "running"))
    });
    let fits = match state.as_str() {
        "queued" => ran() == 0,
        "succeeded" => ran() == 1,
        "uncertain" => ran() <= 1,
        _ => false,
    };
    let told = match status {
        0 => state == "succeeded",
        10 => state == "uncertain",
        status => matches!(status, 1 | 5 | 9) && state != "succeeded",
    };
    if !fits || !told {
        return Err(format!("status {status}, {state}, and it ran {} times: {}", ran(), shop.latest(job)));
    }
    // Nothing is run again by itself.
    let before = ran();
    shop.run("ares-run", &["--drain", "-q"]);
    if state != "queued" && ran() != before {
        return Err(format!("{state}, and run again"));
    }
    if state == "uncertain" {
        shop.run("ares-reconcile", &[job, "--decide", "retry", "--because", "it was looked at"]);
        shop.run("ares-run", &["--drain", "-q"]);
    }
    let fsck = shop.run("ares-fsck", &["--full"]);
    match (shop.state(job).as_str(), shop.reconciled(), fsck.status) {
        ("succeeded", 0, 0) => Ok(()),
        other => Err(format!("in the end: {other:?} {fsck:?}")),
    }
}

fn points() -> Vec<(String, usize)> {
    let cut = run(&[]);
    assert_eq!(cut.status, 0);
    let all = trace_of(&cut.trace);
    match only() {
        Some(only) => all.into_iter().filter(|(call, n)| format!("{call}:{n}") == only).collect(),
        None if full() => all.into_iter().filter(|(call, _)| !SILENT.contains(&call.as_str())).collect(),
        None => {
            let telling: Vec<_> = all.into_iter().filter(|(call, _)| TELLING.contains(&call.as_str())).collect();
            share(&telling, SHARE)
        }
    }
}

/// Whether a keeper can be traced and its owner held up; where not, that is counted.
fn can() -> bool {
    if !cfg!(debug_assertions) {
        skipped("a release build has no fault points");
        return false;
    }
    has("strace")
}

#[test]
fn a_keeper_that_is_killed_at_any_call_leaves_a_true_account() {
    if !can() {
        return;
    }
    let points = points();
    let (bad, tried, next) = (Mutex::new(Vec::new()), Mutex::new(0), Mutex::new(points.iter()));
    std::thread::scope(|scope| {
        for _ in 0..BESIDE {
            scope.spawn(|| {
                while let Some((call, n)) = { next.lock().unwrap().next() } {
                    if let Some(found) = kill(call, *n) {
                        *tried.lock().unwrap() += 1;
                        bad.lock().unwrap().extend(found.err().map(|why| format!("{call}:{n}: {why}")));
                    }
                }
            });
        }
    });
    let (bad, tried) = (bad.into_inner().unwrap(), tried.into_inner().unwrap());
    assert!(bad.is_empty(), "{} of {tried} points:\n{}", bad.len(), bad.join("\n"));
    assert!(tried > 0, "nothing was killed");
}

#[test]
fn an_effect_that_was_doubled_is_seen() {
    if !can() {
        return;
    }
    let cut = run(&[]);
    fs::write(cut.shop.path().join("runs"), "1.1\n1.1\n").unwrap();
    let found = account(&cut);
    assert!(found.as_ref().is_err_and(|why| why.contains("it ran 2 times")), "{found:?}");
}
