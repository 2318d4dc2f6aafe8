//! A kill at every named point of the runner, the store and the keeper.

use crate::run::{Shop, eventually, gone, text};

/// What is allowed after the kill and one pass of the reconciler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Queued again: it provably never ran.
    Queued,
    /// Recorded as the success that it was.
    Done,
    /// Nobody can tell.
    Uncertain,
}

use Then::{Done, Queued, Uncertain};

/// Each point, what may be found after it, and whether the worker may have acted.
const RUNNER: &[(&str, &[Then], bool)] = &[
    ("run.claimed", &[Queued], false),
    ("run.prepared", &[Queued], false),
    ("run.dispatched", &[Queued], false),
    ("run.gone", &[Done], true),
    ("run.ended", &[Done], true),
    ("run.settled", &[Done], true),
    // The first commit is the claim, the second the dispatch, the third the settlement.
    ("store.began:1", &[Queued], false),
    ("store.before_commit:1", &[Queued], false),
    ("store.after_commit:1", &[Queued], false),
    ("store.before_commit:2", &[Queued], false),
    ("store.after_commit:2", &[Queued], false),
    ("store.began:3", &[Done], true),
    ("store.before_commit:3", &[Done], true),
    ("store.after_commit:3", &[Done], true),
];

const KEEPER: &[(&str, &[Then], bool)] = &[
    ("keeper.before_mark", &[Queued], false),
    ("keeper.after_mark", &[Uncertain], false),
    ("keeper.after_start", &[Uncertain], true),
    ("keeper.before_exit", &[Uncertain], true),
    ("keeper.after_exit", &[Done], true),
];

/// Appends one line for each run; that it takes a moment lets a kill come before its end.
const SCRIPT: &str = "echo run >> runs; sleep 0.05; echo done";

fn ran(shop: &Shop) -> usize {
    std::fs::read_to_string(shop.path().join("runs")).unwrap_or_default().lines().count()
}

/// Reconciles until nothing goes on, and says what is found.
fn found(shop: &Shop, job: &str) -> Then {
    eventually("it comes to rest", || {
        let status = shop.run("ares-reconcile", &[]).status;
        match shop.state(job).as_str() {
            "queued" => Some(Queued),
            "succeeded" => Some(Done),
            "uncertain" => {
                assert_eq!(status, 10);
                Some(Uncertain)
            }
            "claimed" | "running" => None,
            other => panic!("{other}"),
        }
    })
}

/// Kills at one point, then checks the account, heals, and checks that the job completes.
fn kill_at(point: &str, allowed: &[Then], acted: bool) {
    let shop = Shop::new();
    let job = shop.submit(&["--", "/bin/sh", "-c", SCRIPT]);
    let killed = shop.run_with(&[("ARES_FAULT", point)], "ares-run", &[]);
    if allowed != KEEPER[4].1 || !point.starts_with("keeper") {
        assert_ne!(killed.status, 0, "{point}: it was not killed");
    }
    let then = found(&shop, &job);
    assert!(allowed.contains(&then), "{point}: {then:?}");
    let shown = shop.job(&job);
    match then {
        Queued => assert_eq!((&shown["tries"], ran(&shop)), (&0.into(), 0), "{point}"),
        Done => assert_eq!((&shown["tries"], ran(&shop)), (&1.into(), 1), "{point}"),
        Uncertain => assert!(ran(&shop) <= usize::from(acted), "{point}"),
    }
    // Nothing is run again by itself, however often it is asked for.
    if then != Queued {
        shop.run("ares-run", &["--drain"]);
        assert!(ran(&shop) <= 1, "{point}");
    }
    if then == Uncertain {
        let decided = shop.run("ares-reconcile", &[&job, "--decide", "retry", "--because", "a test"]);
        assert_eq!(decided.status, 0, "{point}: {}", decided.err);
    }
    if then != Done {
        assert_eq!(shop.run("ares-run", &["--drain"]).status, 0, "{point}");
    }
    assert_eq!(shop.state(&job), "succeeded", "{point}");
    assert_eq!(shop.output(&job, "stdout"), "done\n", "{point}");
    assert_eq!(shop.reconciled(), 0, "{point}");
}

#[test]
fn a_runner_that_is_killed_anywhere_leaves_a_true_account() {
    for (point, allowed, acted) in RUNNER {
        kill_at(point, allowed, *acted);
    }
}

/// Where the settlement of one attempt is also the dispatch of the next: what the kill leaves of the first, and whether the
/// second has an attempt that never began.
const FOLLOWING: &[(&str, bool, bool)] = &[
    ("run.laid_out", false, false),
    ("store.before_commit:3", false, false),
    ("store.after_commit:3", true, true),
    ("run.settled", true, true),
    ("run.dispatched:2", true, true),
];

#[test]
fn a_kill_between_two_attempts_loses_neither() {
    for (point, settled, claimed) in FOLLOWING {
        let shop = Shop::new();
        let first = shop.submit(&["--", "/bin/sh", "-c", "echo one >> runs"]);
        let second = shop.submit(&["--", "/bin/sh", "-c", "echo two >> runs; echo $ARES_ATTEMPT"]);
        assert_ne!(shop.run_with(&[("ARES_FAULT", point)], "ares-run", &["--drain"]).status, 0, "{point}");
        let state = |settled: bool| if settled { "succeeded" } else { "running" };
        assert_eq!(shop.state(&first), state(*settled), "{point}");
        assert_eq!(shop.state(&second), if *claimed { "running" } else { "queued" }, "{point}");
        // What was laid out and never claimed is a leftover until the attempt of this name comes.
        assert!(shop.root().join(format!("attempts/{second}.1")).exists(), "{point}");
        if *claimed {
            assert_eq!((found(&shop, &first), found(&shop, &second)), (Done, Queued), "{point}");
        }
        assert_eq!(shop.job(&second)["tries"], 0, "{point}");
        assert_eq!(shop.run("ares-run", &["--drain"]).status, 0, "{point}");
        assert_eq!(shop.file("runs"), "one\ntwo\n", "{point}");
        let again = if *claimed { 2 } else { 1 };
        assert_eq!(shop.output(&second, "stdout"), format!("{second}.{again}\n"), "{point}");
        assert_eq!(shop.reconciled(), 0, "{point}");
        shop.clean();
    }
}

#[test]
fn what_is_laid_out_for_an_attempt_is_left_alone_until_it_is_claimed() {
    let shop = Shop::new();
    let first = shop.submit(&["--", "true"]);
    let second = shop.submit(&["--", "/bin/sh", "-c", "echo really"]);
    let run = shop.start(&[("ARES_FAULT", "run.laid_out:sleep=1500")], "ares-run", &["--drain"]);
    let folder = shop.root().join(format!("attempts/{second}.1"));
    eventually("it is laid out", || folder.exists().then_some(()));
    // Whoever tidies waits for its writer, and then it is claimed.
    assert_eq!(shop.run("ares-fsck", &["--repair"]).out, "");
    assert_eq!(run.end().status, 0);
    assert_eq!((shop.state(&first).as_str(), shop.output(&second, "stdout").as_str()), ("succeeded", "really\n"));
    shop.clean();
}

/// A commit that its writer died in comes back when the log is read anew, unless another one was written in its place.
#[test]
fn what_was_laid_out_and_never_claimed_is_removed_by_a_commit() {
    let shop = Shop::new();
    shop.submit(&["--", "true"]);
    let second = shop.submit(&["--", "/bin/sh", "-c", "echo $ARES_ATTEMPT"]);
    assert_ne!(shop.run_with(&[("ARES_FAULT", "run.laid_out")], "ares-run", &["--drain"]).status, 0);
    let folder = shop.root().join(format!("attempts/{second}.1"));
    assert!(folder.exists());
    // One who dies inside that commit has removed nothing: without it the lost one may still come back.
    assert_ne!(shop.run_with(&[("ARES_FAULT", "store.before_commit:2")], "ares-reconcile", &[]).status, 0);
    assert!(folder.exists());
    shop.run("ares-reconcile", &[]);
    assert!(!folder.exists());
    let log = shop.run("ares-log", &["--subject", &format!("{second}.1"), "--format", "%(verb): %(detail)"]);
    assert_eq!(log.out, "reconcile: removed what was laid out and never claimed\n");
    shop.run("ares-reconcile", &[]);
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 0);
    assert_eq!(shop.output(&second, "stdout"), format!("{second}.1\n"));
    shop.clean();
}

/// What was seen unclaimed and is claimed, dispatched and running a moment later is nobody's leftover.
#[test]
fn what_was_laid_out_when_it_was_listed_is_left_alone_when_it_runs() {
    for tidier in [&["ares-reconcile"][..], &["ares-fsck", "--repair"], &["ares-gc"]] {
        let shop = Shop::new();
        shop.submit(&["--", "true"]);
        let second = shop.submit(&["--", "/bin/sh", "-c", "sleep 1.5; echo really"]);
        let run = shop.start(&[("ARES_FAULT", "run.laid_out:sleep=400")], "ares-run", &["--drain"]);
        let folder = shop.root().join(format!("attempts/{second}.1"));
        eventually("it is laid out", || folder.exists().then_some(()));
        let slow = [("ARES_FAULT", "tidy.listed:sleep=900")];
        assert_eq!(shop.run_with(&slow, tidier[0], &tidier[1..]).status, 0, "{tidier:?}");
        assert_eq!(shop.state(&second), "running", "{tidier:?}");
        assert_eq!(run.end().status, 0, "{tidier:?}");
        assert_eq!(shop.output(&second, "stdout"), "really\n", "{tidier:?}");
        shop.clean();
    }
}

#[test]
fn a_keeper_that_is_killed_anywhere_leaves_a_true_account() {
    for (point, allowed, acted) in KEEPER {
        kill_at(point, allowed, *acted);
    }
}

#[test]
fn a_keeper_that_could_not_execute_says_so_by_its_mark_alone() {
    let shop = Shop::new();
    let program = shop.path().join("program");
    std::fs::copy("/bin/true", &program).unwrap();
    let job = shop.submit(&["--", "./program"]);
    std::fs::remove_file(&program).unwrap();
    assert_eq!(shop.run_with(&[("ARES_FAULT", "keeper.before_exit")], "ares-run", &[]).status, 1);
    let attempt = shop.latest(&job);
    assert_eq!((text(&attempt["outcome"]).as_str(), text(&attempt["code"]).as_str()), ("void", "ARES_CANNOT_EXECUTE"));
    assert_eq!((shop.state(&job).as_str(), &shop.job(&job)["tries"]), ("failed", &0.into()));
    shop.clean();
}

#[test]
fn the_session_is_known_although_the_owner_died_right_before_it_was_stored() {
    let shop = Shop::new();
    let job = shop.turn(&[], "scenario: slow:20\nhello");
    assert_ne!(shop.run_with(&[("ARES_FAULT", "run.before_session")], "ares-run", &[]).status, 0);
    shop.run("ares-wait", &[&job]);
    assert_eq!(shop.state(&job), "succeeded");
    let next = shop.turn(&["--continue", &job], "and then?");
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    assert!(shop.output(&next, "result").contains("turn 2"));
    assert_eq!(shop.reconciled(), 0);
}

#[test]
fn the_session_is_known_when_owner_and_keeper_die_right_after_it_was_stored() {
    let shop = Shop::new();
    let job = shop.turn(&[], "scenario: sleep:300\nhello");
    let run = shop.start(&[], "ares-run", &[]);
    let session = eventually("the session is stored", || shop.job(&job)["session"].as_str().map(str::to_owned));
    let (keeper, worker) = (shop.keeper(), shop.alive()[0]);
    run.kill();
    crate::run::send(keeper, rustix::process::Signal::KILL);
    gone(worker);
    assert_eq!(shop.run("ares-reconcile", &[]).status, 10);
    assert_eq!(text(&shop.job(&job)["session"]), session);
    let shown = shop.run("ares-show", &[&session, "--json"]);
    assert!(shown.status == 0 && shown.out.contains(&session), "{}", shown.err);
}

#[test]
fn two_crashes_in_a_row_and_a_crash_of_the_reconciler_change_nothing() {
    let shop = Shop::new();
    let job = shop.submit(&["--", "/bin/sh", "-c", SCRIPT]);
    assert_ne!(shop.run_with(&[("ARES_FAULT", "run.ended")], "ares-run", &[]).status, 0);
    for point in ["store.began", "store.before_commit", "store.before_commit"] {
        assert_ne!(shop.run_with(&[("ARES_FAULT", point)], "ares-reconcile", &[]).status, 0);
        assert_eq!(shop.state(&job), "running");
    }
    assert_ne!(shop.run_with(&[("ARES_FAULT", "store.after_commit")], "ares-reconcile", &[]).status, 0);
    assert_eq!((shop.state(&job).as_str(), ran(&shop)), ("succeeded", 1));
    assert_eq!(shop.reconciled(), 0);
}
