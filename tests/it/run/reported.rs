//! Failures that users of like systems reported, each under its number, as far as no other file here has it.

use super::{Shop, eventually, gone, send, text};
use rustix::process::Signal;

#[test]
fn case_1_nothing_stays_running_after_its_owner() {
    let shop = Shop::new();
    let mut runs = Vec::new();
    for at in 0..6 {
        shop.script(&[], &format!("echo $$ > pid{at}; exec sleep 300"));
        runs.push(shop.start(&[], "ares-run", &[]));
    }
    let workers: Vec<i32> = (0..6).map(|at| shop.pid(&format!("pid{at}"))).collect();
    let keepers: Vec<i32> = workers.iter().filter_map(|pid| super::parents(*pid).first().copied()).collect();
    runs.into_iter().for_each(super::Running::kill);
    keepers.iter().for_each(|pid| send(*pid, Signal::KILL));
    workers.into_iter().for_each(gone);
    let dry = shop.run("ares-reconcile", &["--dry-run", "--format", "%(found) %(done)"]);
    assert_eq!(dry.out, "unknown uncertain\n".repeat(6));
    assert_eq!(shop.run("ares-reconcile", &[]).status, 10);
    assert_eq!(shop.run("ares-list", &["--state", "running", "--count"]).out.trim(), "0");
    assert_eq!(shop.run("ares-list", &["--state", "uncertain", "--count"]).out.trim(), "6");
}

#[test]
fn case_2_a_long_job_with_a_live_worker_is_never_taken_for_dead() {
    let shop = Shop::new();
    let job = shop.script(
        &["--max-tries", "3", "--if-uncertain", "retry"],
        "echo run >> runs; echo $$ > pid; while ! [ -e go ]; do sleep 0.02; done",
    );
    let run = shop.start(&[], "ares-run", &[]);
    shop.pid("pid");
    // An owner that does nothing for as long as anybody likes still holds its lock: neither that it is silent nor how long
    // ago it began says anything.
    run.send(Signal::STOP);
    let old = "UPDATE attempts SET claimed_at = 1, dispatched_at = 1";
    assert_eq!(crate::stock::db(shop.root()).execute(old, []).unwrap(), 1);
    for _ in 0..5 {
        assert_eq!(shop.run("ares-reconcile", &["--format", "%(found)"]).out, "alive\n");
        assert_eq!(shop.run("ares-run", &["--drain"]).status, 0);
    }
    run.send(Signal::CONT);
    assert_eq!(shop.state(&job), "running");
    std::fs::write(shop.path().join("go"), "").unwrap();
    assert_eq!(run.end().status, 0);
    assert_eq!(shop.latest(&job)["attempt"], format!("{job}.1"), "it was never another's");
    assert_eq!((shop.state(&job).as_str(), shop.file("runs").lines().count()), ("succeeded", 1));
    shop.clean();
}

#[test]
fn case_5_reconcilers_and_runners_at_once_record_each_end_once() {
    let shop = Shop::new();
    for at in 0..5 {
        shop.script(&[], &format!("echo $ARES_ATTEMPT >> ran{at}"));
        assert_ne!(shop.run_with(&[("ARES_FAULT", "run.ended")], "ares-run", &[]).status, 0);
    }
    let others: Vec<_> = (0..4)
        .map(|at| {
            if at % 2 == 0 { shop.start(&[], "ares-reconcile", &[]) } else { shop.start(&[], "ares-run", &["--drain"]) }
        })
        .collect();
    for other in others {
        assert_eq!(other.end().status, 0);
    }
    for at in 0..5_usize {
        let job = (at + 1).to_string();
        assert_eq!(shop.state(&job), "succeeded");
        assert_eq!(shop.latest(&job)["receipts"].as_array().map(Vec::len), Some(2));
        assert_eq!(shop.file(&format!("ran{at}")), format!("{job}.1\n"));
    }
    assert_eq!(shop.reconciled(), 0);
}

#[test]
fn case_10_a_graceful_stop_is_not_worse_than_a_kill() {
    let came_to = |signal: Signal| {
        let shop = Shop::new();
        let job = shop.script(&["--max-tries", "3"], "echo $$ > pid; sleep 0.3; echo done");
        let run = shop.start(&[], "ares-run", &["--grace", "60s"]);
        shop.pid("pid");
        run.send(signal);
        run.end();
        shop.run("ares-wait", &[&job]);
        let shown = shop.job(&job);
        (text(&shown["state"]), shown["tries"].clone(), shop.output(&job, "stdout"))
    };
    assert_eq!(came_to(Signal::TERM), came_to(Signal::KILL));
}

#[test]
fn case_12_finished_work_is_not_begun_again_when_its_owner_vanished() {
    let shop = Shop::new();
    let job = shop.script(&["--max-tries", "9", "--if-uncertain", "retry"], "echo committed >> work");
    assert_ne!(shop.run_with(&[("ARES_FAULT", "run.ended")], "ares-run", &[]).status, 0);
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 0);
    assert_eq!((shop.state(&job).as_str(), shop.file("work").as_str()), ("succeeded", "committed\n"));
}

#[test]
fn case_15_a_slot_comes_back_whatever_died_in_it() {
    let shop = Shop::new();
    for point in ["run.claimed", "run.prepared", "run.dispatched", "run.gone", "run.ended", "run.settled"] {
        let job = shop.script(&["--group", "one", "--width", "1"], "true");
        shop.run_with(&[("ARES_FAULT", point)], "ares-run", &["--job", &job]);
        // The next runner finds the group full, looks who is alive, and goes on.
        let next = shop.script(&["--group", "one", "--width", "1"], "true");
        eventually(&format!("the slot is free after {point}"), || {
            shop.run("ares-run", &["--drain", "--group", "one"]);
            (shop.state(&next) == "succeeded" && shop.state(&job) == "succeeded").then_some(())
        });
    }
    assert_eq!(shop.reconciled(), 0);
}

#[test]
fn case_18_done_is_what_was_settled_and_not_what_left_a_file() {
    let shop = Shop::new();
    let failed = shop
        .script(&["--max-tries", "2", "--retry-delay", "1ms"], "echo log; test -e second || { : > second; exit 1; }");
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 0, "the job came to a good end");
    assert_eq!((shop.state(&failed).as_str(), &shop.job(&failed)["attempt"]), ("succeeded", &2.into()));
    // What looks like the remains of an attempt says nothing of a job.
    let job = shop.script(&[], "echo really");
    std::fs::create_dir(shop.root().join(format!("attempts/{job}.7"))).unwrap();
    std::fs::write(shop.root().join(format!("attempts/{job}.7/exit")), "{}").unwrap();
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    assert_eq!(shop.output(&job, "stdout"), "really\n");
    assert_eq!(shop.reconciled(), 0);
}

#[test]
fn case_37_no_child_escapes_by_a_session_of_its_own() {
    let shop = Shop::new();
    // Each is the orphan of a shell in a session of its own.
    let script = "for n in 0 1 2; do setsid sh -c \"sleep 300 & echo \\$! > child$n\"; done; sleep 300";
    let job = shop.script(&["--timeout", "2s", "--grace", "100ms"], script);
    let run = shop.start(&[], "ares-run", &[]);
    let children: Vec<i32> = (0..3).map(|n| shop.pid(&format!("child{n}"))).collect();
    assert_eq!(run.end().status, 10);
    children.into_iter().for_each(gone);
    let attempt = shop.latest(&job);
    assert_eq!(text(&attempt["code"]), "ARES_TIMED_OUT");
    assert!(attempt["seen"]["survivors"].is_null(), "{attempt}");
    assert!(shop.alive().is_empty());
}

#[test]
fn case_42_an_answer_that_is_still_being_written_is_read_to_its_end() {
    let shop = Shop::new();
    let job = shop.turn(&[], "scenario: long-line:3\nhello");
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    assert_eq!(shop.output(&job, "result").len(), 3 << 20);
    // The end of the output comes from a child, a moment after the worker itself ended.
    let job = shop.script(&[], "(sleep 0.005; head -c 200000 /dev/zero) & exit 0");
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    let attempt = shop.latest(&job);
    assert!(attempt["seen"]["leaked"].is_array() || shop.output(&job, "stdout").len() == 200_000, "{attempt}");
}
