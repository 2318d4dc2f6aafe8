//! Waiting for jobs: the status says how they ended, and what is uncertain is told at once.

use crate::run::Shop;
use rustix::process::Signal;

#[test]
fn the_status_says_how_they_ended() {
    let shop = Shop::new();
    let (good, bad, lost, never) = (
        shop.script(&[], "true"),
        shop.script(&[], "exit 3"),
        shop.script(&[], "kill -9 $$"),
        shop.script(&["--not-before", "+1h"], "true"),
    );
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 10);
    let wait = |args: &[&str]| {
        let ran = shop.run("ares-wait", &[args, &["--format", "%(job) %(state)"]].concat());
        (ran.status, ran.out)
    };
    assert_eq!(wait(&[&good]), (0, "1 succeeded\n".to_owned()));
    assert_eq!(wait(&[&good, &bad]), (1, "1 succeeded\n2 failed\n".to_owned()));
    assert_eq!(wait(&[&bad, &lost]), (10, "2 failed\n3 uncertain\n".to_owned()));
    assert_eq!(wait(&[&never, "--timeout", "50ms"]), (1, String::new()));
    assert_eq!(wait(&[&never, &good, "--any"]), (0, "1 succeeded\n".to_owned()));
    assert_eq!(
        wait(&[&never, &lost, "--timeout", "20s"]),
        (10, "3 uncertain\n".to_owned()),
        "it is not waited for what never ends"
    );
    assert_eq!(shop.run("ares-stop", &[&never]).status, 0);
    assert_eq!(wait(&[&never]), (1, "4 cancelled\n".to_owned()));
    assert_eq!(wait(&["99"]).0, 14);
}

#[test]
fn it_waits_for_what_runs_and_can_be_interrupted() {
    let shop = Shop::new();
    let job = shop.script(&["--label", "l"], "echo $$ > pid; while ! [ -e go ]; do sleep 0.02; done");
    let (by_label, interrupted) =
        (shop.start(&[], "ares-wait", &["--label", "l"]), shop.start(&[], "ares-wait", &[&job]));
    let run = shop.start(&[], "ares-run", &[]);
    shop.pid("pid");
    interrupted.send(Signal::INT);
    let ran = interrupted.end();
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("interrupted; the jobs go on"), "{}", ran.err);
    assert_eq!(shop.state(&job), "running");
    std::fs::write(shop.path().join("go"), "").unwrap();
    assert_eq!((run.end().status, by_label.end().status), (0, 0));
}

#[test]
fn what_waits_for_a_decision_about_another_is_not_waited_for() {
    let shop = Shop::new();
    let anyway = ["--after-uncertain", "run"];
    let (lost, failed) = (shop.script(&[], "kill -9 $$"), shop.script(&[], "exit 3"));
    let turn = shop.turn(&[], "scenario: killed\nhello");
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 10);
    let after = |on: &str, more: &[&str]| shop.script(&[&["--after", on], more].concat(), "true");
    let (behind, held) = (after(&lost, &[]), after(&failed, &["--after-failed", "hold"]));
    let chain = after(&after(&behind, &[]), &[]);
    let free = after(&lost, &anyway);
    // It would run whatever that turn came to, but one session has one turn at a time.
    let same = shop.turn(&[&["--continue", &turn, "--after", &turn], &anyway[..]].concat(), "go on");
    let next = shop.turn(&["--continue", &turn], "go on");
    let wait = |job: &str| {
        let ran = shop.run("ares-wait", &[job, "--timeout", "20s", "--format", "%(job) %(state)"]);
        assert!(ran.out == format!("{job} queued\n") || ran.status != 10, "{ran:?}");
        (ran.status, ran.err.lines().next().unwrap_or_default().to_owned())
    };
    let says = |job: &str, code: &str, on: &str, how: &str| {
        format!("ares-wait: {code}: job {job} waits for job {on}, which is {how}")
    };
    for (job, on) in [(&behind, &lost), (&chain, &lost), (&next, &turn), (&same, &turn)] {
        assert_eq!(wait(job), (10, says(job, "ARES_UNCERTAIN", on, "uncertain")));
    }
    assert_eq!(wait(&held), (1, says(&held, "ARES_WAITED_FAILED", &failed, "failed")));
    // What runs whatever the other came to is waited for.
    let waiting = shop.start(&[], "ares-wait", &[&free]);
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 0);
    assert_eq!(waiting.end().status, 0);
    assert_eq!(shop.run("ares-reconcile", &[&lost, "--decide", "ok", "--because", "x"]).status, 0);
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 0);
    assert_eq!(wait(&chain).0, 0);
}
