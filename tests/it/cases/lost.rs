//! Jobs that are lost, stuck or doubled.

use crate::stock::{Stock, bash};

/// Waits in a script until a file is there.
const UNTIL: &str = "seen() { while ! [ -e $1 ]; do sleep 0.02; done; }";

/// Workers that say that they are up and go on for long.
fn long(stock: &Stock, count: usize) {
    for n in 1..=count {
        stock.submit(
            &["--grace", "200ms"],
            &["sh", "-c", &format!("echo {n} >>effects; echo $$ >up.{n}; exec sleep 60")],
        );
    }
}

#[test]
fn case_01_after_every_process_is_killed_nothing_is_left_running() {
    let stock = Stock::new();
    long(&stock, 6);
    let script = format!(
        "{UNTIL}; for i in 1 2 3 4 5 6; do ares-run --quiet 2>/dev/null >/dev/null & done
        for i in 1 2 3 4 5 6; do seen up.$i; done"
    );
    stock.bash(&script, 0);
    // Runners, keepers and workers at once, as when a machine is short of memory.
    let pids = "SELECT json_extract(owner, '$.pid') || ' ' || json_extract(keeper, '$.pid') FROM attempts";
    let pids = crate::stock::column(&stock.db(), pids).join(" ");
    let script = format!(
        "kill -9 {pids} $(cat up.*) 2>/dev/null; gone() {{ for p in {pids}; do
            [ -e /proc/$p/exe ] && readlink -q /proc/$p/exe >/dev/null && return 1; done; return 0; }}
        while ! gone; do sleep 0.02; done; ares-reconcile --dry-run --format '%(state)' | sort | uniq -c | tr -s ' '
        ares-reconcile --quiet >/dev/null; echo $?; ares-list --state running --state claimed | wc -l"
    );
    let ran = bash(&stock, &script);
    assert_eq!(ran.out, " 6 uncertain\n10\n0\n", "{}", ran.err);
    // Nothing of it is done again by itself.
    stock.fails("ares-run", &["--drain", "--job", "1"], 2, "ARES_USAGE");
    assert_eq!(stock.ok("ares-run", &["--drain"]), "");
    assert_eq!(stock.bash("sort effects | uniq -d; wc -l <effects", 0), "6");
}

#[test]
fn case_02_a_long_job_is_never_taken_from_a_living_owner() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    let handle = stock.claim(&[]);
    // However long ago it began: ages decide nothing.
    stock.db().execute_batch("UPDATE attempts SET claimed_at = 1, dispatched_at = 1").expect("it is old");
    let me = std::process::id().to_string();
    for _ in 0..3 {
        assert_eq!(stock.ok("ares-reconcile", &["--format", "%(found) %(done)"]), "alive nothing");
        stock.fails("ares-claim", &["--owner", &me], 1, "ARES_NOTHING_TO_CLAIM");
        stock.ok("ares-run", &["--drain"]);
    }
    stock.ok("ares-settle", &[&handle, "ok"]);
    assert_eq!(stock.value("SELECT count(*) FROM attempts"), "1");
}

#[test]
fn case_04_a_settlement_that_fails_is_repeated_and_never_half() {
    if !cfg!(debug_assertions) {
        return crate::harness::skipped("a release build has no fault points");
    }
    for fault in ["store.commit:err", "store.before_commit", "store.after_commit", "store.began"] {
        let stock = Stock::new();
        stock.submit(&[], &["true"]);
        let handle = stock.claim(&[]);
        let ran = bash(&stock, &format!("ARES_FAULT={fault} ares-settle {handle} ok"));
        assert!([7, 137].contains(&ran.status), "{fault}: {}", ran.status);
        let states = "SELECT j.state || ' ' || a.state || ' ' || p.state FROM jobs j, attempts a, permits p";
        let now = stock.value(states);
        assert!(["running running consumed", "succeeded ended settled"].contains(&now.as_str()), "{fault}: {now}");
        stock.ok("ares-settle", &[&handle, "ok"]);
        assert_eq!(stock.value(states), "succeeded ended settled");
        stock.fails("ares-settle", &[&handle, "error"], 3, "ARES_FENCED");
        assert_eq!(stock.value("SELECT count(*) FROM receipts WHERE kind = 'outcome'"), "1");
    }
}

#[test]
fn case_05_recovery_beside_a_drainer_is_fenced() {
    // Every moment at which a recovery can be overtaken: it read the attempt, and someone else ended it.
    let stock = Stock::new();
    stock.submit(&["--retry-delay", "0s"], &["sh", "-c", "echo ran >>effects"]);
    stock.bash("ares-claim --reserve --owner $$", 0);
    let slow = "exec 3>&1 >/dev/null; ARES_FAULT=store.began:sleep=300 ares-reconcile & ARES_FAULT=store.began:sleep=150 ares-reconcile &
        ares-run --drain --quiet >/dev/null; wait; ares-run --drain --quiet; cat effects >&3";
    assert_eq!(stock.bash(slow, 0), "ran");
    assert_eq!(stock.value("SELECT group_concat(n || outcome, ' ') FROM attempts"), "1void 2ok");
}

#[test]
fn case_07_an_owner_is_not_its_number() {
    let stock = Stock::new();
    for _ in 0..3 {
        stock.submit(&[], &["true"]);
        stock.claim(&[]);
    }
    let owner = stock.value("SELECT owner FROM attempts WHERE job = 1");
    let mut identity: serde_json::Value = serde_json::from_str(&owner).expect("an identity");
    assert_eq!(identity["pid"], std::process::id());
    // Our number is alive, but it was another process's, or another boot's.
    identity["ticks"] = (identity["ticks"].as_u64().expect("a number") + 1).into();
    if identity.get("pidfd_ino").is_some() {
        identity["pidfd_ino"] = 1.into();
    }
    let tamper = |job: i64, identity: &serde_json::Value| {
        let sql = "UPDATE attempts SET owner = ?1 WHERE job = ?2";
        stock.db().execute(sql, rusqlite::params![identity.to_string(), job]).expect("tampered");
    };
    tamper(1, &identity);
    let mut booted: serde_json::Value = serde_json::from_str(&owner).expect("an identity");
    booted["boot"] = "00000000-0000-0000-0000-000000000000".into();
    tamper(2, &booted);
    let ran = stock.run("ares-reconcile", &["--format", "%(attempt) %(found) %(done)"]);
    assert_eq!(
        (ran.status, ran.out.as_str()),
        (10, "1.1 unknown uncertain\n2.1 unknown uncertain\n3.1 alive nothing\n")
    );
}

#[test]
fn case_08_a_decision_needs_no_timer() {
    for (decision, state) in [("retry", "queued"), ("ok", "succeeded"), ("abandon", "cancelled"), ("error", "failed")] {
        let stock = Stock::new();
        stock.submit(&[], &["true"]);
        stock.bash("ares-claim --owner $$", 0);
        assert_eq!(stock.run("ares-reconcile", &["--quiet"]).status, 10);
        stock.fails("ares-reconcile", &["1", "--decide", decision], 2, "--because");
        stock.ok("ares-reconcile", &["1", "--decide", decision, "--because", "seen"]);
        assert_eq!(stock.state("1"), state);
        stock.fails("ares-reconcile", &["1", "--decide", "ok", "--because", "other"], 3, "ARES_ALREADY_DECIDED");
        // What was permitted stays as it was: the decision stands beside it.
        assert_eq!(stock.value("SELECT outcome FROM permits"), "ambiguous");
    }
}

#[test]
fn case_09_nothing_is_run_again_while_a_process_of_it_lives() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    let script =
        "ares-claim -- sh -c 'setsid sleep 60 >/dev/null 2>&1 & echo $! >child; kill -9 $PPID; exit 0' 2>/dev/null
        while ! [ -s child ]; do sleep 0.02; done; ares-reconcile --format '%(found)'";
    assert!(stock.bash(script, 0).ends_with("alive") || stock.state("1") == "running");
    // A command that says that nobody can tell, while a child of it goes on.
    let script = "kill $(cat child); ares-submit -- true >/dev/null
        ares-claim --job 2 -- sh -c 'setsid sleep 60 >/dev/null 2>&1 & echo $! >child; ares-settle $ARES_HANDLE ambiguous'";
    bash(&stock, script);
    assert_eq!(stock.state("2"), "uncertain");
    for decision in ["retry", "no-effect"] {
        stock.fails("ares-reconcile", &["2", "--decide", decision, "--because", "x"], 3, "ARES_SURVIVORS");
    }
    stock.bash("kill $(cat child); while kill -0 $(cat child) 2>/dev/null; do sleep 0.02; done", 0);
    stock.ok("ares-reconcile", &["2", "--decide", "retry", "--because", "x"]);
    assert_eq!(stock.state("2"), "queued");
}

#[test]
fn case_10_an_asked_for_end_is_no_worse_than_a_killed_one() {
    // What was asked to end has not said how far it came; nothing is failed, no further job begins, and no try is lost.
    let polite = "trap 'sleep 0.2; exit 0' TERM; : >up; while :; do sleep 0.02; done";
    let deaf = "trap '' TERM; : >up; while :; do sleep 0.02; done";
    for (signal, worker, state) in [
        ("TERM", polite, "uncertain"),
        ("INT", polite, "uncertain"),
        ("TERM", deaf, "uncertain"),
        ("KILL", polite, "running"),
    ] {
        let stock = Stock::new();
        stock.submit(&["--grace", "300ms"], &["bash", "-c", worker]);
        stock.submit(&[], &["true"]);
        let script = format!(
            "{UNTIL}; set -m; ares-run --drain --grace 400ms >/dev/null 2>&1 & seen up; kill -{signal} $!; wait $! 2>/dev/null
            ares-list --format '%(job) %(state) %(tries)'; [ {signal} = KILL ] && ares-stop 1 --hard --quiet >/dev/null; exit 0"
        );
        let out = stock.bash(&script, 0);
        assert!(out.starts_with(&format!("1 {state} 1\n2 queued 0")), "{signal}: {out}");
        stock.run("ares-wait", &["1"]);
        assert_eq!(stock.value("SELECT count(*) FROM jobs WHERE state = 'failed'"), "0");
    }
}

#[test]
fn case_13_what_was_closed_meanwhile_is_not_begun_again() {
    let stock = Stock::new();
    let work = ["sh", "-c", "echo $ARES_ATTEMPT >>effects; exit $0", "0"];
    // Its worker died, and someone closed it since: by each decision that closes, and by a stop.
    for close in ["ok", "error", "abandon", "stop"] {
        let job = stock.submit(&["--max-tries", "9"], &work);
        stock.bash(&format!("ares-claim --job {job} --owner $$"), 0);
        assert_eq!(stock.run("ares-reconcile", &["--quiet"]).status, 10);
        match close {
            "stop" => stock.ok("ares-stop", &[&job]),
            decision => stock.ok("ares-reconcile", &[&job, "--decide", decision, "--because", "it is merged"]),
        };
        for args in [&["--drain"][..], &["--job", &job]] {
            stock.run("ares-run", args);
        }
        let me = std::process::id().to_string();
        assert_ne!(stock.run("ares-claim", &["--job", &job, "--owner", &me]).status, 0);
        assert_eq!(stock.value(&format!("SELECT count(*) FROM attempts WHERE job = {job}")), "1", "{close}");
    }
    // One that waits for another try is closed before its time comes.
    let job =
        stock.submit(&["--max-tries", "9", "--retry-delay", "300ms"], &["sh", "-c", "echo once >>effects; exit 1"]);
    stock.run("ares-run", &["--quiet"]);
    assert_eq!(stock.state(&job), "queued");
    stock.ok("ares-stop", &[&job]);
    stock.bash("sleep 0.5; ares-run --drain --quiet; cat effects", 0);
    assert_eq!(stock.bash("cat effects", 0), "once");
    if !cfg!(debug_assertions) {
        return crate::harness::skipped("a release build has no fault points");
    }
    // A runner that chose it looks again before it begins.
    let job = stock.submit(&[], &work);
    let script = format!(
        "ARES_FAULT=run.prepared:sleep=800 ares-run --quiet >/dev/null 2>&1 &
        while [ \"$(ares-show {job} --format '%(state)')\" != claimed ]; do sleep 0.02; done
        ares-stop {job} >/dev/null; wait; ares-show {job} --format '%(state)'; cat effects"
    );
    assert_eq!(stock.bash(&script, 0), "cancelled\nonce");
}

#[test]
fn case_15_a_slot_comes_back_from_every_death_and_is_kept_by_every_life() {
    let stock = Stock::new();
    let group = ["--group", "g", "--width", "1"];
    let me = std::process::id().to_string();
    for reserve in ["--reserve", ""] {
        let job = stock.submit(&group, &["true"]);
        stock.bash(&format!("ares-claim --job {job} {reserve} --owner $$"), 0);
        // The next claimer finds the group full and looks who is alive: no timer, no other command.
        let next = stock.submit(&group, &["true"]);
        stock.ok("ares-settle", &[&stock.claim(&["--group", "g", "--job", &next]), "ok"]);
        let freed = if reserve.is_empty() { "uncertain" } else { "queued" };
        assert_eq!(stock.state(&job), freed);
        stock.ok("ares-stop", &[&job]);
    }
    // A worker that survives its runner keeps its slot, also when the runner's keeper is gone with it.
    stock.submit(&group, &["sh", "-c", ": >up; exec sleep 60"]);
    let next = stock.submit(&group, &["true"]);
    let script = format!("{UNTIL}; ares-run --quiet >/dev/null 2>&1 & seen up; kill -9 $!; wait $! 2>/dev/null; true");
    stock.bash(&script, 0);
    stock.fails("ares-claim", &["--owner", &me], 1, "ARES_NOTHING_TO_CLAIM");
    stock.ok("ares-stop", &["5", "--hard"]);
    assert_eq!(bash(&stock, "ares-wait 5 --format '%(state)' 2>/dev/null").out, "cancelled\n");
    assert!(stock.claim(&[]).starts_with(&format!("{next}.1-")));
}

#[test]
fn case_18_only_a_settlement_is_an_end() {
    let stock = Stock::new();
    // Output, files and an exit of the script say nothing: the next one must not take it for done.
    let script =
        "exec 9>>\"$(ares-claim --owner-file)\"; ares-submit -- true; ares-claim --owner-fd 9; echo done >output";
    stock.bash(script, 0);
    assert_eq!(stock.run("ares-reconcile", &["--quiet"]).status, 10);
    assert_eq!(stock.state("1"), "uncertain");
    stock.fails("ares-wait", &["1"], 10, "ARES_UNCERTAIN");
    let failed = stock.submit(&[], &["false"]);
    stock.run("ares-run", &["--quiet"]);
    assert_eq!(stock.state(&failed), "failed");
}
