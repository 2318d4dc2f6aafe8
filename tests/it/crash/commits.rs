//! A commit whose answer is lost or bad: nothing is started on a guess, and nothing is recorded twice.

use crate::run::{Shop, text};

/// In a run of one command the first commit is the claim, the second the dispatch, the third the settlement.
const SCRIPT: &str = "echo run >> runs; echo done";

fn run(shop: &Shop, fault: &str) -> (String, i32) {
    let job = shop.submit(&["--", "/bin/sh", "-c", SCRIPT]);
    let ran = shop.run_with(&[("ARES_FAULT", fault)], "ares-run", &[]);
    (job, ran.status)
}

fn ran(shop: &Shop) -> usize {
    std::fs::read_to_string(shop.path().join("runs")).unwrap_or_default().lines().count()
}

#[test]
fn case_51_a_dispatch_that_failed_starts_nothing() {
    let shop = Shop::new();
    let (job, status) = run(&shop, "store.commit:err=2");
    assert_eq!((status, ran(&shop)), (7, 0));
    assert_eq!(shop.reconciled(), 0);
    assert_eq!((shop.state(&job).as_str(), &shop.job(&job)["tries"]), ("queued", &0.into()));
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    assert_eq!(ran(&shop), 1);
}

#[test]
fn a_dispatch_whose_answer_was_lost_is_read_back_and_goes_on() {
    let shop = Shop::new();
    let (job, status) = run(&shop, "store.committed:err=2");
    assert_eq!((status, ran(&shop), shop.state(&job).as_str()), (0, 1, "succeeded"));
    shop.clean();
}

#[test]
fn case_4_a_settlement_is_recorded_once_whatever_its_commit_says() {
    for fault in ["store.commit:err=3", "store.committed:err=3"] {
        let shop = Shop::new();
        let (job, status) = run(&shop, fault);
        assert_eq!((status, shop.state(&job).as_str()), (0, "succeeded"), "{fault}");
        let attempt = shop.latest(&job);
        assert_eq!(attempt["receipts"].as_array().map(Vec::len), Some(2), "{fault}: {attempt}");
        assert_eq!(text(&attempt["outcome"]), "ok");
        let log = shop.run("ares-log", &["--verb", "settle", "--format", "%(subject)"]);
        assert_eq!(log.out, format!("{job}.1\n"), "{fault}");
        assert_eq!(ran(&shop), 1);
        shop.clean();
    }
}

#[test]
fn case_4_what_the_settling_commit_claimed_is_not_lost_with_its_answer() {
    for (fault, commands) in
        [("store.committed:err=3", true), ("store.commit:err=3", true), ("store.committed:err=3", false)]
    {
        let shop = Shop::new();
        std::fs::write(shop.path().join("words"), "some").unwrap();
        // What hands something over is only claimed in that commit, and a plain command dispatched too.
        let prompt: &[&str] = if commands { &[] } else { &["--file", "words"] };
        let script = "echo $ARES_ATTEMPT >> runs";
        let jobs: Vec<String> = (0..3).map(|_| shop.script(prompt, script)).collect();
        assert_eq!(shop.run_with(&[("ARES_FAULT", fault)], "ares-run", &["--drain"]).status, 0, "{fault}");
        let all: String = jobs.iter().map(|job| format!("{job}.1\n")).collect();
        assert_eq!(shop.file("runs"), all, "{fault}");
        assert!(jobs.iter().all(|job| shop.state(job) == "succeeded"), "{fault}");
        shop.clean();
    }
}

#[test]
fn case_4_a_settlement_that_fails_for_good_is_left_to_the_next_command() {
    let shop = Shop::new();
    let (job, status) = run(&shop, "store.commit:err");
    assert_eq!(status, 7, "even the claim fails");
    // A directory in the place of the database's journal would be unfair; a full settlement is refused by a kill.
    assert_ne!(shop.run_with(&[("ARES_FAULT", "store.before_commit:3")], "ares-run", &[]).status, 0);
    assert_eq!(shop.state(&job), "running");
    assert_eq!(shop.reconciled(), 0);
    assert_eq!((shop.state(&job).as_str(), ran(&shop)), ("succeeded", 1));
}
