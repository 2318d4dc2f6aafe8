//! Stopping jobs in each of their states; the order is durable and says what becomes of what nobody can tell.

use crate::run::{Shop, eventually, text};

const WAIT: &str = "trap 'exit 0' TERM; echo $$ > pid; while :; do sleep 0.02; done";
const STUBBORN: &str = "trap '' TERM; echo $$ > pid; while :; do sleep 0.02; done";

fn stopped(shop: &Shop, args: &[&str]) -> String {
    let ran = shop.run("ares-stop", &[args, &["--format", "%(job) %(state)"]].concat());
    assert_eq!(ran.status, 0, "{}", ran.err);
    ran.out
}

#[test]
fn queued_and_ended_jobs_and_those_of_a_label() {
    let shop = Shop::new();
    let (done, other) = (shop.script(&["--label", "l"], "true"), shop.script(&["--priority", "-1"], "true"));
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    let queued = [shop.script(&["--label", "l"], "true"), shop.script(&["--label", "l"], "true")];
    assert_eq!(stopped(&shop, &["--label", "l"]), "3 cancelled\n4 cancelled\n");
    assert_eq!(stopped(&shop, &[&done]), "1 succeeded\n", "what has ended stays as it is");
    assert_eq!(stopped(&shop, &[&queued[0]]), "3 cancelled\n");
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 0);
    assert_eq!(shop.state(&other), "succeeded");
    assert_eq!(shop.job(&queued[0])["tries"], 0);
    assert_eq!(shop.run("ares-stop", &["99"]).status, 14);
}

#[test]
fn a_running_job_is_ended_and_abandoned() {
    let shop = Shop::new();
    let job = shop.script(&[], WAIT);
    let run = shop.start(&[], "ares-run", &[]);
    shop.pid("pid");
    assert_eq!(stopped(&shop, &[&job, "--because", "not needed"]), format!("{job} running\n"));
    assert_eq!(run.end().status, 1, "it is decided, so nothing is uncertain");
    let (shown, attempt) = (shop.job(&job), shop.latest(&job));
    assert_eq!((&shown["state"], &shown["stop"]["because"]), (&"cancelled".into(), &"not needed".into()));
    assert_eq!(
        (text(&attempt["outcome"]), text(&attempt["code"])),
        ("ambiguous".into(), "ARES_STOPPED_RUNNING".into())
    );
    assert_eq!(attempt["resolution"]["decision"], "abandon", "it was decided beforehand, and that is written down");
    shop.clean();
}

#[test]
fn a_running_job_may_be_left_uncertain_or_be_decided_otherwise() {
    for (decision, state, status) in [("hold", "uncertain", 10), ("ok", "succeeded", 0), ("error", "failed", 1)] {
        let shop = Shop::new();
        let job = shop.script(&[], WAIT);
        let run = shop.start(&[], "ares-run", &[]);
        shop.pid("pid");
        stopped(&shop, &[&job, "--decide", decision]);
        assert_eq!(run.end().status, status);
        assert_eq!(shop.state(&job), state);
        assert!(shop.alive().is_empty());
    }
}

#[test]
fn a_hard_stop_gives_no_time_also_after_a_soft_one() {
    let shop = Shop::new();
    let job = shop.script(&["--grace", "300s"], STUBBORN);
    let run = shop.start(&[], "ares-run", &[]);
    shop.pid("pid");
    stopped(&shop, &[&job]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(shop.state(&job), "running");
    stopped(&shop, &[&job, "--hard"]);
    assert_eq!(run.end().status, 1);
    assert_eq!((shop.state(&job).as_str(), shop.latest(&job)["seen"]["signal"].as_i64()), ("cancelled", Some(9)));
}

#[test]
fn a_claimed_job_is_cancelled_before_anything_runs() {
    let shop = Shop::new();
    let job = shop.script(&[], "echo ran > ran");
    let run = shop.start(&[("ARES_FAULT", "run.prepared:sleep=1500")], "ares-run", &["--drain"]);
    shop.until(&job, "claimed");
    assert_eq!(stopped(&shop, &[&job]), format!("{job} claimed\n"));
    run.end();
    assert_eq!((shop.state(&job).as_str(), &shop.job(&job)["tries"]), ("cancelled", &0.into()));
    assert!(!shop.path().join("ran").exists());
    shop.clean();
}

#[test]
fn the_claim_of_a_dead_owner_is_cancelled_at_once() {
    let shop = Shop::new();
    let job = shop.script(&[], "true");
    assert_ne!(shop.run_with(&[("ARES_FAULT", "run.claimed")], "ares-run", &[]).status, 0);
    assert_eq!(stopped(&shop, &[&job]), format!("{job} cancelled\n"));
}

#[test]
fn an_uncertain_job_is_decided_by_a_stop_or_left() {
    let shop = Shop::new();
    let jobs = [shop.script(&[], "kill -9 $$"), shop.script(&[], "kill -9 $$")];
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 10);
    assert_eq!(stopped(&shop, &[&jobs[0], "--decide", "hold"]), "1 uncertain\n");
    assert_eq!(stopped(&shop, &[&jobs[0]]), "1 cancelled\n");
    assert_eq!(stopped(&shop, &[&jobs[1], "--decide", "error"]), "2 failed\n");
    assert_eq!(shop.latest(&jobs[1])["resolution"]["decision"], "error");
    assert_eq!(shop.reconciled(), 0);
}

#[test]
fn a_stop_beats_another_try() {
    let shop = Shop::new();
    let job =
        shop.script(&["--max-tries", "9", "--retry-delay", "1ms"], "echo $$ > pid; trap 'exit 3' TERM; kill -TERM $$");
    let run = shop.start(&[("ARES_FAULT", "run.ended:sleep=1500")], "ares-run", &["--drain"]);
    shop.pid("pid");
    eventually("it has ended", || shop.alive().is_empty().then_some(()));
    stopped(&shop, &[&job]);
    run.end();
    assert_eq!((shop.state(&job).as_str(), &shop.job(&job)["attempt"]), ("failed", &1.into()));
}

#[test]
fn a_stopped_job_that_never_acted_is_cancelled_and_not_failed() {
    let shop = Shop::new();
    let program = shop.path().join("program");
    std::fs::copy("/bin/true", &program).unwrap();
    let job = shop.submit(&["--", "./program"]);
    std::fs::remove_file(&program).unwrap();
    let run = shop.start(&[("ARES_FAULT", "run.dispatched:sleep=1500")], "ares-run", &[]);
    shop.until(&job, "running");
    stopped(&shop, &[&job]);
    run.end();
    let shown = shop.job(&job);
    assert_eq!((&shown["state"], &shown["tries"]), (&"cancelled".into(), &0.into()));
    assert_eq!(text(&shop.latest(&job)["code"]), "ARES_CANNOT_EXECUTE");
    shop.clean();
}
