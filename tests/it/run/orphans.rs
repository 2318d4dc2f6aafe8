//! The owner, the keeper, the worker or all of them are killed in the middle of a turn: what is known is recorded by the
//! next command, what is not is uncertain, and what lives on is never claimed a second time.

use super::{Shop, eventually, gone, send, text};
use rustix::process::Signal;

/// Waits, tells what it did, and ends; it says in a file that it runs, and appends a line for each run.
const SCRIPT: &str = "echo run >> runs; echo $$ > pid; while ! [ -e go ]; do sleep 0.02; done; echo done";

/// A job that runs under a keeper whose owner was killed.
fn orphan(shop: &Shop, options: &[&str], script: &str) -> (String, i32) {
    let job = shop.script(options, script);
    let run = shop.start(&[], "ares-run", &[]);
    let worker = shop.pid("pid");
    run.kill();
    (job, worker)
}

fn go_on(shop: &Shop, worker: i32) {
    std::fs::write(shop.path().join("go"), "").unwrap();
    gone(worker);
}

fn runs(shop: &Shop) -> usize {
    std::fs::read_to_string(shop.path().join("runs")).unwrap_or_default().lines().count()
}

#[test]
fn case_38_the_worker_of_a_killed_owner_is_listed_and_not_claimed_again() {
    let shop = Shop::new();
    let (job, worker) = orphan(&shop, &["--max-tries", "5", "--if-uncertain", "retry"], SCRIPT);
    for _ in 0..2 {
        let ran = shop.run("ares-reconcile", &["--format", "%(attempt) %(found) %(done)"]);
        assert_eq!((ran.status, ran.out.trim()), (0, format!("{job}.1 orphaned nothing").as_str()));
    }
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 0);
    assert_eq!(shop.run("ares-claim", &["--owner", &std::process::id().to_string()]).status, 1);
    assert_eq!((shop.state(&job).as_str(), runs(&shop)), ("running", 1));
    go_on(&shop, worker);
    eventually("its end is recorded", || {
        shop.run("ares-reconcile", &[]);
        (shop.state(&job) == "succeeded").then_some(())
    });
    assert_eq!(shop.output(&job, "stdout"), "done\n");
    assert_eq!(runs(&shop), 1);
    shop.clean();
}

#[test]
fn case_14_every_command_that_looks_records_what_an_orphan_came_to() {
    let ended: [(&str, &str, &str); 4] = [
        ("exit 0", "succeeded", "ok"),
        ("exit 3", "failed", "error"),
        ("exit 0", "succeeded", "ok"),
        ("exit 0", "succeeded", "ok"),
    ];
    let commands: [&[&str]; 4] =
        [&["ares-reconcile"], &["ares-run", "--drain"], &["ares-claim", "--owner", "1"], &["ares-wait", "1"]];
    for ((exit, state, outcome), command) in ended.into_iter().zip(commands) {
        let shop = Shop::new();
        let (job, worker) = orphan(&shop, &[], &format!("{SCRIPT}; {exit}"));
        go_on(&shop, worker);
        eventually("its end is recorded", || {
            shop.run(command[0], &command[1..]);
            (shop.state(&job) == state).then_some(())
        });
        assert_eq!(shop.latest(&job)["outcome"], outcome);
        assert_eq!(shop.reconciled(), 0);
    }
}

#[test]
fn an_orphaned_turn_keeps_its_answer_its_session_and_its_usage() {
    let shop = Shop::new();
    let job = shop.turn(&[], "scenario: slow:150\nhello");
    let run = shop.start(&[], "ares-run", &[]);
    eventually("its session is known", || shop.job(&job)["session"].as_str().map(drop));
    run.kill();
    assert_eq!(shop.state(&job), "running");
    assert_eq!(shop.run("ares-wait", &[&job, "--timeout", "20s"]).status, 0);
    let shown = shop.job(&job);
    assert!(shown["usage"]["input"].as_i64() > Some(1000), "{shown}");
    assert!(shop.output(&job, "result").contains("turn 1"));
    let next = shop.turn(&["--continue", &job], "and then?");
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    assert!(shop.output(&next, "result").contains("turn 2"));
    assert_eq!(shop.job(&next)["session"], shown["session"]);
    assert_eq!(shop.reconciled(), 0);
}

/// Options, script, arguments of the stop if there is one, and the state and the code that it comes to.
type Bound = (&'static [&'static str], &'static str, &'static [&'static str], &'static str, &'static str);

#[test]
fn limits_and_stops_hold_without_an_owner() {
    let wait = "echo $$ > pid; exec sleep 300";
    let cases: [Bound; 4] = [
        (&["--timeout", "1s"], wait, &[], "uncertain", "ARES_TIMED_OUT"),
        (&["--output-max", "1M"], "echo $$ > pid; sleep 0.5; exec yes", &[], "uncertain", "ARES_OUTPUT_LIMIT"),
        (
            &["--grace", "100ms"],
            "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done",
            &["1"],
            "cancelled",
            "ARES_STOPPED_RUNNING",
        ),
        (
            &["--grace", "300s"],
            "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done",
            &["1", "--hard"],
            "cancelled",
            "ARES_STOPPED_RUNNING",
        ),
    ];
    for (options, script, stop, state, code) in cases {
        let shop = Shop::new();
        let (job, worker) = orphan(&shop, options, script);
        if !stop.is_empty() {
            assert_eq!(shop.run("ares-stop", stop).status, 0);
        }
        gone(worker);
        eventually("its end is recorded", || {
            shop.run("ares-reconcile", &[]);
            (shop.state(&job) == state).then_some(())
        });
        assert_eq!(text(&shop.latest(&job)["code"]), code);
    }
}

#[test]
fn a_killed_keeper_makes_the_attempt_uncertain_and_leaves_nothing() {
    let shop = Shop::new();
    // What the worker left in a session of its own survives the keeper; the owner ends it.
    let job = shop.script(&["--max-tries", "3"], "setsid sleep 300 & echo $! > child; echo $$ > pid; sleep 300");
    let next = shop.script(&[], "true");
    let run = shop.start(&[], "ares-run", &["--drain"]);
    let (worker, child) = (shop.pid("pid"), shop.pid("child"));
    send(shop.keeper(), Signal::KILL);
    assert_eq!(run.end().status, 10);
    assert_eq!((shop.state(&job).as_str(), text(&shop.latest(&job)["code"])), ("uncertain", "ARES_OWNER_LOST".into()));
    assert!(!super::runs(worker) && !super::runs(child));
    assert_eq!(shop.state(&next), "succeeded", "the rest goes on under another keeper");
    assert_eq!(shop.run("ares-reconcile", &[&job, "--decide", "retry", "--because", "a test"]).status, 0);
}

/// Whether a process holds the lock of an attempt, and whether it says that it belongs to one.
fn signs(pid: i32) -> (bool, bool) {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let lock = files.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|to| to.ends_with("worker.lock"));
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    (lock, environment.windows(13).any(|part| part == b"ARES_ATTEMPT="))
}

#[test]
fn case_9_nothing_is_run_again_while_something_of_it_lives() {
    // Of a child either sign is enough: the lock that it holds, or the mark in its environment.
    let closed = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-";
    for (start, lock, mark) in [
        ("setsid sleep 300 &".to_owned(), true, true),
        (format!("setsid sh -c '{closed}; echo up > up; exec sleep 300' &"), false, true),
        ("env -i setsid sleep 300 &".to_owned(), true, false),
    ] {
        let shop = Shop::new();
        let script = format!("{start} echo $! > child; echo $$ > pid; wait");
        let job = shop.script(&["--max-tries", "3", "--if-uncertain", "retry"], &script);
        let run = shop.start(&[], "ares-run", &[]);
        let child = shop.pid("child");
        eventually("it has the signs that are wanted", || (signs(child) == (lock, mark)).then_some(()));
        shop.crash(run);
        for _ in 0..2 {
            let ran = shop.run("ares-reconcile", &["--format", "%(found) %(detail)"]);
            assert_eq!(ran.out.trim(), "orphaned its keeper is gone, processes of it are alive", "{start}");
            assert_eq!(shop.run("ares-run", &["--drain"]).status, 0);
            assert_eq!((shop.state(&job).as_str(), super::runs(child)), ("running", true), "{start}");
        }
        // An order to stop ends what is left, although no keeper is there to do it; what does not say whose it is gets no
        // signal, and has to end by itself.
        assert_eq!(shop.run("ares-stop", &[&job]).status, 0);
        if !mark {
            assert!(super::runs(child));
            send(child, Signal::KILL);
        }
        gone(child);
        assert_eq!(shop.run("ares-reconcile", &[]).status, 0);
        assert_eq!(shop.state(&job), "cancelled");
        shop.clean();
    }
}

#[test]
fn case_9_a_decision_to_run_again_waits_for_survivors() {
    let shop = Shop::new();
    // What it starts leaves the lock and the mark of the attempt to a process that nobody ends.
    let job = shop.script(&["--max-tries", "3"], "echo $$ > pid; exec sleep 300");
    let run = shop.start(&[], "ares-run", &[]);
    shop.pid("pid");
    send(shop.keeper(), Signal::KILL);
    assert_eq!(run.end().status, 10);
    let survivor = shop.survivor(&format!("{job}.1"));
    let ran = shop.run("ares-reconcile", &[&job, "--decide", "retry", "--because", "again"]);
    assert_eq!(ran.status, 3, "{}", ran.err);
    assert!(ran.err.contains("ARES_SURVIVORS") && ran.err.contains(&survivor.pid().to_string()), "{}", ran.err);
    assert_eq!(shop.run("ares-reconcile", &[&job, "--decide", "no-effect", "--because", "again"]).status, 3);
    survivor.kill();
    assert_eq!(shop.run("ares-reconcile", &[&job, "--decide", "retry", "--because", "again"]).status, 0);
    assert_eq!(shop.state(&job), "queued");
}

#[test]
fn owner_and_keeper_killed_is_uncertain_and_blocks_only_itself() {
    let shop = Shop::new();
    let (job, worker) = {
        let job = shop.script(&[], "echo run >> runs; echo $$ > pid; exec sleep 300");
        let run = shop.start(&[], "ares-run", &[]);
        let (worker, keeper) = (shop.pid("pid"), shop.keeper());
        run.kill();
        send(keeper, Signal::KILL);
        (job, worker)
    };
    gone(worker);
    assert_eq!(shop.run("ares-reconcile", &["--dry-run"]).status, 0, "it is not uncertain yet");
    assert_eq!(shop.state(&job), "running");
    assert_eq!(shop.run("ares-reconcile", &[]).status, 10);
    assert_eq!(shop.state(&job), "uncertain");
    let other = shop.script(&[], "true");
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 0);
    assert_eq!((shop.state(&other).as_str(), runs(&shop)), ("succeeded", 1));
    assert_eq!(shop.run("ares-run", &["--job", &job]).status, 10, "a command that names it ends at once");
    assert_eq!(shop.run("ares-reconcile", &[&job, "--decide", "no-effect", "--because", "it slept"]).status, 0);
    assert_eq!(shop.job(&job)["tries"], 0);
    shop.clean();
}

#[test]
fn what_follows_an_attempt_ends_when_nobody_is_left_to_end_it() {
    let shop = Shop::new();
    let job = shop.script(&[], "echo begun; echo $$ > pid; exec sleep 300");
    let run = shop.start(&[], "ares-run", &[]);
    let keeper = {
        shop.pid("pid");
        shop.keeper()
    };
    let follow = shop.start(&[], "ares-show", &[&job, "--follow"]);
    run.kill();
    send(keeper, Signal::KILL);
    let followed = follow.end();
    assert_eq!((followed.status, followed.out.as_str()), (10, "begun\n"));
    assert_eq!(shop.state(&job), "running", "reading changes nothing");
}

#[test]
fn a_runner_that_finds_what_a_crash_left_uncertain_says_so_also_when_quiet() {
    for options in [&["--drain"][..], &[], &["--drain", "-j", "3"]] {
        let shop = Shop::new();
        let (job, worker) = orphan(&shop, &[], SCRIPT);
        let keeper = shop.keeper();
        send(keeper, Signal::KILL);
        send(worker, Signal::KILL);
        gone(keeper);
        eventually("nothing of it is left", || shop.alive().is_empty().then_some(()));
        let ran = shop.run("ares-run", &[options, &["--quiet"]].concat());
        assert_eq!(ran.status, 10, "{options:?}: {}", ran.err);
        let named =
            format!("ares-run: ARES_OWNER_LOST: job {job} was left by a crash and is uncertain: attempt {job}.1: ");
        assert_eq!(ran.err.matches(&named).count(), 1, "{options:?}: {}", ran.err);
        assert_eq!(ran.err.matches("ARES_UNCERTAIN").count(), 1, "{options:?}: {}", ran.err);
        assert_eq!(ran.err.matches("hint:").count(), 1, "{options:?}: {}", ran.err);
        let last = ran.err.lines().find(|line| line.contains("ARES_UNCERTAIN")).unwrap_or_default();
        assert!(last.ends_with(&format!("job {job}")), "{options:?}: {last}");
        let looked = shop.run("ares-reconcile", &["--quiet"]);
        assert!(looked.err.contains(&format!("a decision: 1, of job {job}\n")), "{}", looked.err);
    }
}
