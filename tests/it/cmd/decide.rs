//! Reconciling: it may be done twice, a dry run changes nothing, and each decision leads where it says, once.

use crate::run::{Running, Shop, eventually, text};
use crate::stock::Stock;

/// A job that is uncertain.
fn uncertain(shop: &Shop) -> String {
    let job = shop.script(&["--max-tries", "3"], "echo run >> runs; kill -9 $$");
    assert_eq!(shop.run("ares-run", &["--job", &job]).status, 10);
    job
}

#[test]
fn a_code_that_was_decided_away_is_its_attempts_only() {
    let stock = Stock::new();
    for (decision, wanted) in [("ok", "succeeded "), ("retry", "queued "), ("error", "failed ARES_SIGNALLED")] {
        let job = stock.submit(&["--max-tries", "2"], &["true"]);
        let handle = stock.claim(&["--job", &job]);
        stock.ok("ares-settle", &[&handle, "ambiguous", "--code", "ARES_SIGNALLED"]);
        assert_eq!(stock.ok("ares-show", &[&job, "--format", "%(state) %(code)"]), "uncertain ARES_SIGNALLED");
        stock.ok("ares-reconcile", &[&job, "--decide", decision, "--because", "so"]);
        assert_eq!(stock.run("ares-show", &[&job, "--format", "%(state) %(code)"]).out, format!("{wanted}\n"));
        let attempt = format!("{job}.1");
        assert_eq!(stock.ok("ares-show", &[&attempt, "--format", "%(code)"]), "ARES_SIGNALLED");
    }
}

#[test]
fn each_decision_leads_where_it_says() {
    let shop = Shop::new();
    let cases = [
        ("ok", "succeeded", 1),
        ("error", "failed", 1),
        ("no-effect", "queued", 0),
        ("retry", "queued", 1),
        ("abandon", "cancelled", 1),
    ];
    for (decision, state, tries) in cases {
        let job = uncertain(&shop);
        let decide =
            |words: &[&str]| shop.run("ares-reconcile", &[&[job.as_str(), "--decide", decision], words].concat());
        let ran = decide(&[]);
        assert_eq!(ran.status, 2, "a decision needs its reason: {}", ran.err);
        assert_eq!(shop.run("ares-reconcile", &[&job]).status, 10);
        assert_eq!(decide(&["--because", "looked at it"]).status, 0);
        let shown = shop.job(&job);
        assert_eq!((text(&shown["state"]).as_str(), &shown["tries"]), (state, &tries.into()), "{decision}");
        let attempt = shop.latest(&job);
        assert_eq!(attempt["outcome"], "ambiguous", "the record stays as it is");
        assert_eq!(
            (&attempt["resolution"]["decision"], &attempt["resolution"]["because"]),
            (&decision.into(), &"looked at it".into())
        );
        for second in ["ok", decision] {
            let again = shop.run("ares-reconcile", &[&job, "--decide", second, "--because", "again"]);
            assert_eq!(again.status, 3);
            assert!(again.err.contains("ARES_ALREADY_DECIDED") && again.err.contains("looked at it"), "{}", again.err);
        }
        shop.run("ares-stop", &[&job]);
    }
    shop.clean();
}

#[test]
fn a_decision_to_run_again_makes_one_more_attempt_under_another_number() {
    let shop = Shop::new();
    let job = uncertain(&shop);
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 0, "nothing runs without a decision");
    assert_eq!(shop.file("runs"), "run\n");
    assert_eq!(shop.run("ares-reconcile", &[&job, "--decide", "retry", "--because", "again"]).status, 0);
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 10);
    assert_eq!((shop.file("runs").as_str(), &shop.latest(&job)["attempt"]), ("run\nrun\n", &"1.2".into()));
    assert_eq!(shop.run("ares-reconcile", &[&job, "--decide", "ok", "--because", "it did"]).status, 0);
    assert_eq!(shop.job(&job)["attempts"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_dry_run_changes_nothing_and_a_second_one_finds_nothing() {
    let shop = Shop::new();
    // The owners die together: each command that looks would settle what the one before it left.
    let mut owners = Vec::new();
    for (script, point) in [("true", "run.ended"), ("true", "run.claimed"), ("exit 3", "run.ended")] {
        let job = shop.script(&[], script);
        let fault = format!("{point}:sleep=60000");
        owners.push(shop.start(&[("ARES_FAULT", &fault)], "ares-run", &["--job", &job]));
        if point == "run.claimed" {
            shop.until(&job, "claimed");
        } else {
            let exit = shop.root().join(format!("attempts/{job}.1/exit"));
            eventually("it has ended", || exit.exists().then_some(()));
        }
    }
    owners.into_iter().for_each(Running::kill);
    let before = (shop.job("1"), shop.job("2"), shop.job("3"), shop.names("attempts").len());
    let columns = ["--format", "%(attempt) %(found) %(done) %(state)"];
    let wanted = "1.1 ended settled succeeded\n2.1 never-started released queued\n3.1 ended settled failed\n";
    // The keepers see that their owners are gone, and go.
    eventually("all of it is found", || {
        let dry = shop.run("ares-reconcile", &[&["--dry-run"], &columns[..]].concat());
        (dry.status == 0 && dry.out == wanted).then_some(())
    });
    assert_eq!((shop.job("1"), shop.job("2"), shop.job("3"), shop.names("attempts").len()), before);
    assert_eq!(shop.run("ares-reconcile", &columns).out, wanted);
    let (twice, log) = (shop.run("ares-reconcile", &columns), shop.run("ares-log", &["--verb", "reconcile"]).out);
    assert_eq!((twice.status, twice.out.as_str()), (0, ""));
    assert_eq!(log.lines().count(), 3);
    shop.clean();
}

#[test]
fn what_is_not_uncertain_cannot_be_decided() {
    let shop = Shop::new();
    let (queued, done) = (shop.script(&["--not-before", "+1h"], "true"), shop.script(&[], "true"));
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    for job in [&queued, &done] {
        let ran = shop.run("ares-reconcile", &[job, "--decide", "ok", "--because", "x"]);
        assert_eq!(ran.status, 3, "{}", ran.err);
        assert!(ran.err.contains("ARES_ILLEGAL_MOVE"), "{}", ran.err);
        let ran = shop.run("ares-reconcile", &[job, "--adopt"]);
        assert!(ran.status == 3 && ran.err.contains("ARES_ILLEGAL_MOVE"), "{ran:?}");
    }
    let decided = uncertain(&shop);
    let retry = ["--decide", "retry", "--because", "x"];
    assert_eq!(shop.run("ares-reconcile", &[&[decided.as_str()], &retry[..]].concat()).status, 0);
    let ran = shop.run("ares-reconcile", &[&decided, "--adopt"]);
    assert!(ran.status == 3 && ran.err.contains("ARES_ALREADY_DECIDED"), "{ran:?}");
    assert_eq!(shop.run("ares-reconcile", &["99", "--decide", "ok", "--because", "x"]).status, 14);
}
