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
    assert_eq!(wait(&[&never, &lost]), (10, "3 uncertain\n".to_owned()), "it is not waited for what never ends");
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
