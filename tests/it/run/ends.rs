//! How a worker ends, and what is recorded of it; what cannot be executed never acted.

use super::{Shop, gone, runs, text};
use std::os::unix::fs::PermissionsExt;

/// State, outcome and code of a job's latest attempt, after one `ares-run`.
fn ran(shop: &Shop, job: &str) -> (String, String, String) {
    shop.run("ares-run", &["--job", job]);
    let attempt = shop.latest(job);
    (shop.state(job), text(&attempt["outcome"]), text(&attempt["code"]))
}

fn is(state: &str, outcome: &str, code: &str) -> (String, String, String) {
    (state.to_owned(), outcome.to_owned(), code.to_owned())
}

#[test]
fn case_42_a_turn_that_completed_and_does_not_exit_is_ok_with_a_note() {
    let shop = Shop::new();
    let job = shop.turn(&[], "scenario: linger\nhello");
    assert_eq!(ran(&shop, &job), is("succeeded", "ok", ""));
    let attempt = shop.latest(&job);
    assert_eq!(text(&attempt["detail"]), "it was ended by us after its turn had completed");
    assert_eq!(attempt["seen"]["cause"], "finished");
    assert!(shop.output(&job, "result").starts_with("turn 1 of this conversation"));
    shop.clean();
}

#[test]
fn what_a_worker_leaves_is_ended_and_named() {
    let shop = Shop::new();
    // One in a session of its own, one that forked twice and lost its parent, one that ignores SIGTERM.
    let script = "setsid sleep 300 & echo $! > a; (sh -c 'sleep 300 & echo $! > b') ; \
                  (trap '' TERM; echo > c.up; exec sleep 300) & echo $! > c; \
                  while ! [ -e c.up ]; do sleep 0.01; done; exit 0";
    let job = shop.script(&["--grace", "100ms"], script);
    assert_eq!(ran(&shop, &job), is("succeeded", "ok", ""));
    let attempt = shop.latest(&job);
    let leaked: Vec<i64> = attempt["seen"]["leaked"].as_array().unwrap().iter().filter_map(|p| p.as_i64()).collect();
    for name in ["a", "b", "c"] {
        let pid = shop.pid(name);
        assert!(leaked.contains(&i64::from(pid)), "{name}: {attempt}");
        gone(pid);
    }
    assert!(text(&attempt["detail"]).ends_with("processes were left and had to be ended"), "{attempt}");
    shop.clean();
}

#[test]
fn a_turn_whose_daemon_goes_on_has_ended() {
    let shop = Shop::new();
    for scenario in ["orphan", "daemon"] {
        let job = shop.turn(&[], &format!("scenario: {scenario}\nhello"));
        assert_eq!(ran(&shop, &job), is("succeeded", "ok", ""), "{scenario}");
        assert_eq!(shop.latest(&job)["seen"]["leaked"].as_array().map(Vec::len), Some(1), "{scenario}");
        shop.clean();
    }
}

/// A program that is there at submission, as this makes it, and what of it is broken afterwards.
type Broken = (&'static str, fn(&std::path::Path), &'static str);

const BROKEN: &[Broken] = &[
    ("gone", |program| std::fs::remove_file(program).unwrap(), "ENOENT"),
    ("not executable", |program| mode(program, 0o600), "EACCES"),
    (
        "bad interpreter",
        |program| {
            std::fs::write(program, "#!/no/such/interpreter\n").unwrap();
        },
        "ENOENT",
    ),
    (
        "a directory",
        |program| {
            std::fs::remove_file(program).unwrap();
            std::fs::create_dir(program).unwrap();
        },
        "EACCES",
    ),
];

fn mode(path: &std::path::Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn case_28_what_cannot_be_executed_is_failed_and_void_and_burns_no_try() {
    for (what, broken, errno) in BROKEN {
        let shop = Shop::new();
        let program = shop.path().join("program");
        std::fs::write(&program, "#!/bin/sh\nexit 0\n").unwrap();
        mode(&program, 0o700);
        let job = shop.submit(&["--max-tries", "3", "--if-uncertain", "retry", "--", "./program"]);
        broken(&program);
        assert_eq!(ran(&shop, &job), is("failed", "void", "ARES_CANNOT_EXECUTE"), "{what}");
        let detail = text(&shop.latest(&job)["detail"]);
        assert!(detail.starts_with(errno) && detail.contains("cannot execute '/"), "{what}: {detail}");
        assert_eq!(
            detail.ends_with("/program' (its interpreter may be missing)"),
            *what == "bad interpreter",
            "{detail}"
        );
        assert_eq!((&shop.job(&job)["tries"], &shop.job(&job)["attempt"]), (&0.into(), &1.into()), "{what}");
        shop.clean();
    }
}

#[test]
fn case_28_a_missing_directory_and_too_many_arguments_are_void_as_well() {
    let shop = Shop::new();
    std::fs::create_dir(shop.path().join("place")).unwrap();
    let job = shop.submit(&["--dir", "place", "--", "true"]);
    std::fs::remove_dir(shop.path().join("place")).unwrap();
    assert_eq!(ran(&shop, &job), is("failed", "void", "ARES_CANNOT_EXECUTE"));
    let detail = text(&shop.latest(&job)["detail"]);
    assert!(detail.contains("cannot enter directory '/") && detail.ends_with("/place'"), "{detail}");
    // Each argument is as long as one may be; together they are more than the kernel takes, and in the second case
    // more than owner and keeper say to each other.
    for count in [50, 80] {
        let word = format!("\"{}\"", "x".repeat(120_000));
        let line = format!("{{\"argv\":[\"true\",{}]}}\n", vec![word; count].join(","));
        let submitted = shop.feed(line.as_bytes(), "ares-submit", &["--stdin"]);
        assert_eq!(submitted.status, 0, "{}", submitted.err);
        let job = submitted.out.trim();
        assert_eq!(ran(&shop, job), is("failed", "void", "ARES_CANNOT_EXECUTE"));
        assert!(text(&shop.latest(job)["detail"]).starts_with("E2BIG"), "{}", shop.latest(job)["detail"]);
        assert_eq!(shop.job(job)["tries"], 0);
    }
    shop.clean();
}

#[test]
fn a_status_is_a_failure_and_a_signal_is_not() {
    let shop = Shop::new();
    let failed = shop.script(&[], "exit 3");
    assert_eq!(ran(&shop, &failed), is("failed", "error", "ARES_EXIT_STATUS"));
    for signal in ["KILL", "SEGV", "TERM"] {
        let job = shop.script(&[], &format!("kill -{signal} $$; sleep 10"));
        assert_eq!(ran(&shop, &job), is("uncertain", "ambiguous", "ARES_SIGNALLED"), "{signal}");
    }
    assert_eq!(shop.reconciled(), 10);
}

#[test]
fn a_worker_that_was_killed_leaves_nothing_behind() {
    let shop = Shop::new();
    let job = shop.script(&[], "setsid sleep 300 & echo $! > child; echo $$ > worker; wait");
    let run = shop.start(&[], "ares-run", &[]);
    let (worker, child) = (shop.pid("worker"), shop.pid("child"));
    super::send(worker, rustix::process::Signal::KILL);
    assert_eq!(run.end().status, 10);
    assert_eq!(text(&shop.latest(&job)["code"]), "ARES_SIGNALLED");
    assert!(!runs(child) && shop.alive().is_empty());
}
