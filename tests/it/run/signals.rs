//! Ending a runner in order: it starts nothing more, lets the worker finish or stops it, and gives back what it only
//! claimed. What was stopped is uncertain, never failed, and no try is burnt for nothing.

use super::{Shop, eventually, gone, send, text};
use rustix::process::Signal;

const STUBBORN: &str = "trap '' TERM; echo $$ > pid; while :; do sleep 0.02; done";

#[test]
fn case_10_the_running_job_may_finish_and_no_other_is_started() {
    for (signal, until) in [(Signal::TERM, "--drain"), (Signal::INT, "--wait"), (Signal::HUP, "--drain")] {
        let shop = Shop::new();
        let job = shop.script(&[], "echo $$ > pid; while ! [ -e go ]; do sleep 0.02; done; echo done");
        let next = shop.script(&[], "true");
        let run = shop.start(&[], "ares-run", &[until, "--grace", "60s"]);
        shop.pid("pid");
        run.send(signal);
        std::thread::sleep(std::time::Duration::from_millis(200));
        std::fs::write(shop.path().join("go"), "").unwrap();
        assert_eq!(run.end().status, 0);
        assert_eq!((shop.state(&job).as_str(), shop.output(&job, "stdout").as_str()), ("succeeded", "done\n"));
        let shown = shop.job(&next);
        assert_eq!((&shown["state"], &shown["tries"]), (&"queued".into(), &0.into()));
        shop.clean();
    }
}

#[test]
fn case_10_after_the_grace_the_worker_is_stopped_and_uncertain() {
    let shop = Shop::new();
    // It ends with status 0 when it is asked to: that does not make it a success, nor a failure.
    let job = shop.script(&[], "trap 'exit 0' TERM; echo $$ > pid; while :; do sleep 0.02; done");
    let run = shop.start(&[], "ares-run", &["--drain", "--grace", "200ms"]);
    shop.pid("pid");
    run.send(Signal::TERM);
    assert_eq!(run.end().status, 10);
    assert_eq!(shop.state(&job), "uncertain");
    assert_eq!(text(&shop.latest(&job)["code"]), "ARES_STOPPED_RUNNING");
    assert!(shop.alive().is_empty());
}

#[test]
fn a_second_signal_ends_the_worker_at_once() {
    let shop = Shop::new();
    let job = shop.script(&["--grace", "300s"], STUBBORN);
    let run = shop.start(&[], "ares-run", &["--drain", "--grace", "300s"]);
    shop.pid("pid");
    run.send(Signal::TERM);
    std::thread::sleep(std::time::Duration::from_millis(700));
    assert_eq!(shop.state(&job), "running");
    run.send(Signal::TERM);
    assert_eq!(run.end().status, 10);
    let attempt = shop.latest(&job);
    assert_eq!(
        (text(&attempt["code"]).as_str(), attempt["seen"]["signal"].as_i64()),
        ("ARES_STOPPED_RUNNING", Some(9))
    );
    assert!(shop.alive().is_empty());
}

#[test]
fn case_10_what_was_only_claimed_goes_back_without_a_try() {
    // The next job is claimed together with the settlement, and dispatched too where nothing is handed over; the runner
    // is told to end right after that.
    for (prompt, then) in [(&["--file", "words"][..], "claimed"), (&[], "running")] {
        let shop = Shop::new();
        std::fs::write(shop.path().join("words"), "some").unwrap();
        let first = shop.script(&[], "echo $$ > pid; true");
        let next = shop.script(prompt, "echo ran > ran");
        let run = shop.start(&[("ARES_FAULT", "run.settled:sleep=1500")], "ares-run", &["--drain"]);
        eventually("the first is settled", || (shop.state(&first) == "succeeded").then_some(()));
        assert_eq!(shop.state(&next), then);
        run.send(Signal::TERM);
        assert_eq!(run.end().status, 0);
        let shown = shop.job(&next);
        assert_eq!((&shown["state"], &shown["tries"], &shown["attempt"]), (&"queued".into(), &0.into(), &1.into()));
        assert_eq!(shown["release_count"], shop.job(&first)["release_count"], "it is not the job's fault");
        assert!(!shop.path().join("ran").exists());
        assert_eq!(shop.run("ares-run", &["--drain"]).status, 0);
        assert_eq!((shop.state(&next).as_str(), shop.file("ran").as_str()), ("succeeded", "ran\n"));
        shop.clean();
    }
}

#[test]
fn a_runner_that_was_killed_among_several_is_told() {
    let shop = Shop::new();
    let job = shop.script(&[], "echo $$ > pid; exec sleep 0.5");
    let run = shop.start(&[], "ares-run", &["-j", "2", "--drain"]);
    shop.pid("pid");
    let pid = run.pid();
    let runners = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("it has some");
    let runners = runners.split_whitespace().filter_map(|pid| pid.parse().ok());
    let owner = runners.into_iter().find(|pid| shop.keeper_of(*pid).is_some()).expect("one of them has a keeper");
    send(owner, Signal::KILL);
    let ended = run.end();
    assert_eq!(ended.status, 10, "{}", ended.err);
    assert!(ended.err.contains("ARES_OWNER_LOST") && ended.err.contains("signal 9"), "{}", ended.err);
    eventually("its worker ends and is recorded", || {
        shop.run("ares-reconcile", &["-q"]);
        (shop.state(&job) == "succeeded").then_some(())
    });
}

#[test]
fn a_runner_that_waits_ends_at_once() {
    let shop = Shop::new();
    let run = shop.start(&[], "ares-run", &["--wait"]);
    let job = shop.script(&[], "true");
    shop.until(&job, "succeeded");
    run.send(Signal::TERM);
    assert_eq!(run.end().status, 0);
    shop.clean();
}

#[test]
fn several_runners_hand_signals_on_and_add_up_their_statuses() {
    for (signal, script, status) in [
        (Signal::TERM, "trap 'exit 0' TERM; echo $$ > $ARES_ATTEMPT; while :; do sleep 0.02; done", 10),
        (Signal::INT, "trap 'exit 0' TERM; echo $$ > $ARES_ATTEMPT; while :; do sleep 0.02; done", 10),
    ] {
        let shop = Shop::new();
        for _ in 0..3 {
            shop.script(&[], script);
        }
        let late = shop.script(&[], "true");
        let run = shop.start(&[], "ares-run", &["-j", "3", "--drain", "--grace", "100ms"]);
        for name in ["1.1", "2.1", "3.1"] {
            shop.pid(name);
        }
        run.send(signal);
        assert_eq!(run.end().status, status);
        for job in ["1", "2", "3"] {
            assert_eq!(shop.state(job), "uncertain");
        }
        assert_eq!(shop.state(&late), "queued");
        assert!(shop.alive().is_empty());
    }
}

#[test]
fn several_runners_share_the_queue_and_say_how_it_went() {
    let shop = Shop::new();
    for (script, status) in [("true", 0), ("exit 3", 1), ("kill -9 $$", 10)] {
        for _ in 0..6 {
            shop.script(&[], "echo $ARES_ATTEMPT >> ran");
        }
        shop.script(&[], script);
        assert_eq!(shop.run("ares-run", &["-j", "3", "--drain"]).status, status, "{script}");
    }
    let ran = std::fs::read_to_string(shop.path().join("ran")).unwrap();
    let mut attempts: Vec<&str> = ran.lines().collect();
    attempts.sort_unstable();
    attempts.dedup();
    assert_eq!((ran.lines().count(), attempts.len()), (18, 18));
}

#[test]
fn a_keeper_that_was_stopped_itself_is_not_waited_for_without_end() {
    let shop = Shop::new();
    let job = shop.script(&["--grace", "10ms"], "echo $PPID > keeper; kill -STOP $PPID; echo $$ > pid; exec sleep 300");
    let run = shop.start(&[], "ares-run", &["--drain", "--grace", "10ms"]);
    shop.pid("pid");
    run.send(Signal::TERM);
    let ran = run.end();
    assert_eq!(ran.status, 10, "{}", ran.err);
    assert!(ran.err.contains("does not answer"), "{}", ran.err);
    assert_eq!(shop.state(&job), "running");
    let keeper = rustix::process::Pid::from_raw(shop.pid("keeper")).unwrap();
    rustix::process::kill_process(keeper, Signal::CONT).unwrap();
    eventually("the keeper carries out what it was asked", || shop.alive().is_empty().then_some(()));
    // The worker is gone a moment before its keeper has written that down.
    eventually("its end is recorded", || {
        shop.run("ares-reconcile", &[]);
        (text(&shop.latest(&job)["code"]) == "ARES_STOPPED_RUNNING").then_some(())
    });
}

#[test]
fn runners_whose_starter_was_killed_finish_their_job_and_claim_no_other() {
    for until in ["--drain", "--wait"] {
        let shop = Shop::new();
        for _ in 0..3 {
            shop.script(&[], "echo $$ >$ARES_ATTEMPT; while ! [ -e go ]; do sleep 0.02; done");
        }
        // One of the four finds nothing to do: with --wait it waits for work when its starter dies.
        let run = shop.start(&[], "ares-run", &["-j", "4", until]);
        for name in ["1.1", "2.1", "3.1"] {
            shop.pid(name);
        }
        let runners = children(run.pid());
        // Its output stays open in the others, so only its own end is waited for.
        run.send(Signal::KILL);
        gone(run.pid());
        eventually("who waits for work ends", || {
            (runners.iter().filter(|pid| super::runs(**pid)).count() <= 3).then_some(())
        });
        let late = shop.script(&[], "true");
        std::fs::write(shop.path().join("go"), "").unwrap();
        runners.into_iter().for_each(gone);
        assert_eq!(["1", "2", "3"].map(|job| shop.state(job)), ["succeeded"; 3], "{until}");
        assert_eq!(shop.state(&late), "queued", "{until}");
    }
}

fn children(parent: i32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
