//! An owner that was stopped for as long as anybody likes, and whose job was given away meanwhile: when it wakes it
//! settles nothing, starts nothing, and ends its worker; what it has to say is kept beside the record.

use super::{Running, Shop, eventually, gone, runs, send, stopped, text};
use crate::stock::{column, db};
use rustix::process::Signal;
use serde_json::Value;

/// Says which attempt runs; the first one goes on until it is ended, the next one until it is told to go.
const SCRIPT: &str = "echo $ARES_ATTEMPT >> runs; echo begun; echo $$ > pid
    case $ARES_ATTEMPT in *.1) trap '' TERM; while :; do sleep 0.05; done;; esac
    while ! [ -e go ]; do sleep 0.02; done";

/// Stops the owner and makes its lock free, as nothing short of a broken file system would: a lock that is held is
/// never taken for a dead owner's.
fn stop(shop: &Shop, run: &Running) {
    run.send(Signal::STOP);
    let owners = shop.names("locks").into_iter().filter(|name| name.starts_with("owner-"));
    owners.for_each(|name| std::fs::remove_file(shop.root().join("locks").join(name)).unwrap());
}

/// Makes of the keeper one of which nobody here can tell whether it lives.
fn hide_keeper(shop: &Shop) {
    let sql = "UPDATE attempts SET keeper = json_set(keeper, '$.pid_ns', 1) WHERE keeper IS NOT NULL";
    assert_eq!(db(shop.root()).execute(sql, []).unwrap(), 1);
}

/// What must not change: every state, and how much of each kind there is.
fn picture(shop: &Shop) -> Vec<String> {
    let sql = "SELECT 'job ' || id || state || attempt || tries FROM jobs UNION ALL
        SELECT 'attempt ' || job || '.' || n || state || coalesce(outcome, '') FROM attempts UNION ALL
        SELECT 'permit ' || id || state || coalesce(outcome, '') FROM permits UNION ALL
        SELECT 'receipts ' || count(*) FROM receipts UNION ALL SELECT 'events ' || count(*) FROM events";
    column(&db(shop.root()), sql)
}

/// Lets the owner go on, and gives the late result that is shown of the first attempt.
fn wake(shop: &Shop, run: Running, job: &str) -> Value {
    let before = picture(shop);
    run.send(Signal::CONT);
    let ran = run.end();
    assert!(ran.status == 3 && ran.err.contains("ARES_FENCED"), "{ran:?}");
    assert_eq!(picture(shop), before, "it changed something");
    let shown = shop.run("ares-show", &[&format!("{job}.1"), "--json"]);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    let findings = shown["findings"].as_array().unwrap();
    let late: Vec<_> = findings.iter().filter(|finding| finding["kind"] == "late-result").collect();
    assert!(late.len() <= 1, "{shown}");
    late.first().map_or(Value::Null, |late| (*late).clone())
}

/// Another runner has the job under its next number, and lets it end when the first one was refused.
fn meanwhile(shop: &Shop, job: &str, run: Running) -> Value {
    let other = shop.start(&[], "ares-run", &["--job", job]);
    eventually("the next attempt runs", || ran(shop).ends_with(&format!("{job}.2\n")).then_some(()));
    let late = wake(shop, run, job);
    std::fs::write(shop.path().join("go"), "").unwrap();
    assert_eq!(other.end().status, 0);
    late
}

fn ran(shop: &Shop) -> String {
    std::fs::read_to_string(shop.path().join("runs")).unwrap_or_default()
}

#[test]
fn an_owner_that_wakes_while_another_has_its_job_settles_nothing() {
    let shop = Shop::new();
    let job = shop.script(&["--max-tries", "3"], SCRIPT);
    let next = shop.script(&[], "true");
    let run = shop.start(&[], "ares-run", &["--drain"]);
    let (worker, keeper) = (shop.pid("pid"), shop.keeper());
    stop(&shop, &run);
    send(keeper, Signal::KILL);
    gone(worker);
    // What the worker was just waiting for ends a moment later.
    eventually("it is uncertain", || (shop.run("ares-reconcile", &["--quiet"]).status == 10).then_some(()));
    assert_eq!(shop.run("ares-reconcile", &[&job, "--decide", "retry", "--because", "again"]).status, 0);
    let late = meanwhile(&shop, &job, run);
    assert_eq!((&late["what"]["outcome"], &late["what"]["code"]), (&"ambiguous".into(), &"ARES_OWNER_LOST".into()));
    assert_eq!((shop.state(&job).as_str(), ran(&shop)), ("succeeded", format!("{job}.1\n{job}.2\n")));
    assert_eq!(shop.state(&next), "queued", "who was fenced goes on with nothing");
    assert_eq!(shop.reconciled(), 0);
}

#[test]
fn an_owner_that_wakes_ends_its_worker_and_what_it_saw_is_kept() {
    let shop = Shop::new();
    let job = shop.script(&["--max-tries", "3", "--grace", "300s"], SCRIPT);
    let run = shop.start(&[], "ares-run", &[]);
    let worker = shop.pid("pid");
    stop(&shop, &run);
    hide_keeper(&shop);
    assert_eq!(shop.run("ares-reconcile", &["--quiet"]).status, 10);
    let retried = shop.run("ares-reconcile", &[&job, "--decide", "retry", "--because", "x"]);
    assert!(retried.status == 3 && retried.err.contains("ARES_SURVIVORS"), "{}", retried.err);
    assert_eq!(shop.run("ares-reconcile", &[&job, "--decide", "abandon", "--because", "given up"]).status, 0);
    assert!(runs(worker), "nobody but its owner can end it");
    // Whoever tidies up leaves what the owner may still read.
    assert_eq!(shop.run("ares-reconcile", &["--quiet"]).status, 0);
    let late = wake(&shop, run, &job);
    gone(worker);
    assert_eq!(
        (&late["what"]["outcome"], &late["what"]["code"]),
        (&"ambiguous".into(), &"ARES_STOPPED_RUNNING".into())
    );
    assert_eq!(shop.run("ares-show", &[&text(&late["object"])]).out, "begun\n", "its output is kept");
    assert_eq!(shop.state(&job), "cancelled");
    shop.clean();
    assert_eq!(shop.run("ares-fsck", &[]).status, 0);
}

#[test]
fn an_owner_that_had_not_dispatched_yet_starts_nothing() {
    for point in ["run.claimed", "run.prepared"] {
        let shop = Shop::new();
        let job = shop.script(&[], SCRIPT);
        let run = shop.start(&[("ARES_FAULT", &format!("{point}:sleep=1000"))], "ares-run", &[]);
        shop.until(&job, "claimed");
        stop(&shop, &run);
        assert_eq!(shop.run("ares-reconcile", &["--format", "%(found) %(done)"]).out, "never-started released\n");
        // Another one has claimed it, and has not dispatched it either.
        let me = std::process::id().to_string();
        let other = shop.run("ares-claim", &["--reserve", "--owner", &me]).out;
        assert!(other.starts_with(&format!("{job}.2-")), "{other}");
        assert_eq!(wake(&shop, run, &job), Value::Null, "{point}: nothing of it ran");
        let permits = column(&db(shop.root()), "SELECT count(*) FROM permits");
        assert_eq!((ran(&shop).as_str(), permits[0].as_str()), ("", "0"), "{point}: no permit was consumed");
        assert_eq!(shop.run("ares-settle", &[other.trim(), "void"]).status, 0);
        assert_eq!(shop.reconciled(), 0);
    }
}

#[test]
fn an_owner_that_had_dispatched_and_not_told_its_keeper_starts_nothing() {
    // Also where whoever decided was killed right after it.
    for (fault, status) in [("", 0), ("store.after_commit", 128 + 9)] {
        let shop = Shop::new();
        let job = shop.script(&["--max-tries", "3"], SCRIPT);
        let run = shop.start(&[("ARES_FAULT", "run.dispatched:sleep=1000")], "ares-run", &[]);
        shop.until(&job, "running");
        stop(&shop, &run);
        hide_keeper(&shop);
        assert_eq!(shop.run("ares-reconcile", &["--quiet"]).status, 10);
        let retry = [job.as_str(), "--decide", "retry", "--because", "again"];
        assert_eq!(shop.run_with(&[("ARES_FAULT", fault)], "ares-reconcile", &retry).status, status);
        let late = meanwhile(&shop, &job, run);
        assert_eq!(late["what"]["outcome"], "void", "{late}");
        assert_eq!((ran(&shop), shop.state(&job).as_str()), (format!("{job}.2\n"), "succeeded"));
        assert_eq!(shop.reconciled(), 0);
    }
}

#[test]
fn a_script_that_was_paused_while_its_job_was_given_away_is_refused() {
    let shop = Shop::new();
    for (reserve, say, wanted) in [("", "ok", "uncertain"), ("--reserve", "void", "queued")] {
        let job = shop.script(&["--max-tries", "3"], "true");
        // The owner is another process than the script that is paused.
        let script = format!(
            "sleep 300 & echo $! >owner.{job}; handle=$(ares-claim {reserve} --job {job} --owner $!)
            echo $$ >pid.{job}; kill -STOP $$; echo late words | ares-settle $handle {say} --result -; echo $? >told.{job}"
        );
        let file = shop.path().join("script");
        std::fs::write(&file, script).unwrap();
        let paused = shop.shell(&file.to_string_lossy());
        let script = shop.pid(&format!("pid.{job}"));
        eventually("it is paused", || stopped(script).then_some(()));
        let owner = shop.pid(&format!("owner.{job}"));
        send(owner, Signal::KILL);
        gone(owner);
        shop.run("ares-reconcile", &["--quiet"]);
        assert_eq!(shop.state(&job), wanted);
        if wanted == "uncertain" {
            assert_eq!(shop.run("ares-reconcile", &[&job, "--decide", "retry", "--because", "x"]).status, 0);
        }
        assert_eq!(shop.run("ares-run", &["--job", &job]).status, 0);
        let before = picture(&shop);
        send(script, Signal::CONT);
        let ended = paused.end();
        assert!(ended.err.contains("ARES_FENCED"), "{ended:?}");
        assert_eq!(shop.file(&format!("told.{job}")), "3\n");
        assert_eq!((picture(&shop), shop.state(&job).as_str()), (before, "succeeded"));
        let first: Value = serde_json::from_str(&shop.run("ares-show", &[&format!("{job}.1"), "--json"]).out).unwrap();
        let late = &first["findings"][0];
        assert_eq!((&late["kind"], &late["what"]["outcome"]), (&"late-result".into(), &say.into()));
        assert_eq!(shop.run("ares-show", &[&text(&late["object"])]).out, "late words\n");
    }
}
