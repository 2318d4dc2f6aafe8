//! `ares-stop`: durable for what waits, what runs and what is uncertain.

use crate::stock::{Stock, bash};

#[test]
fn what_waits_is_cancelled_and_what_ended_stays() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    stock.submit(&["--not-before", "+1h"], &["true"]);
    stock.submit(&["--after", "2", "--after-cancelled", "hold"], &["true"]);
    stock.ok("ares-settle", &[&stock.claim(&[]), "ok"]);
    let told = stock.ok("ares-stop", &["3", "1", "2", "3", "--because", "no more"]);
    assert_eq!(told, "1\tsucceeded\n2\tcancelled\n3\tcancelled");
    stock.fails("ares-stop", &["1", "99"], 14, "ARES_NOT_FOUND");
    assert_eq!(stock.ok("ares-log", &["--verb", "stop", "--format", "%(detail)"]), "no more");
}

#[test]
fn one_that_is_not_there_stops_none_of_them() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    stock.fails("ares-stop", &["1", "99"], 14, "ARES_NOT_FOUND");
    assert_eq!((stock.state("1"), stock.value("SELECT count(*) FROM stops")), ("queued".to_owned(), "0".to_owned()));
    assert_eq!(stock.ok("ares-stop", &["--label", "none"]), "");
}

#[test]
fn a_claim_that_is_stopped_is_never_dispatched() {
    let stock = Stock::new();
    stock.submit(&["--label", "l"], &["true"]);
    let handle = stock.claim(&["--reserve"]);
    assert_eq!(stock.ok("ares-stop", &["--label", "l"]), "1\tclaimed");
    stock.ok("ares-settle", &[&handle, "void"]);
    assert_eq!(stock.state("1"), "cancelled");
    // A dead owner's claim is released first, and cancelled at once.
    stock.submit(&[], &["true"]);
    stock.bash("ares-claim --reserve --owner $$", 0);
    assert_eq!(stock.ok("ares-stop", &["2"]), "2\tcancelled");
}

#[test]
fn a_scripts_job_ends_as_the_script_says_or_as_the_stop_decided() {
    let cases = [
        ("ok", "abandon", "succeeded"),
        ("error", "abandon", "failed"),
        ("void", "abandon", "cancelled"),
        ("ambiguous", "abandon", "cancelled"),
        ("ambiguous", "ok", "succeeded"),
        ("ambiguous", "error", "failed"),
        ("ambiguous", "hold", "uncertain"),
    ];
    for (outcome, decision, state) in cases {
        let stock = Stock::new();
        stock.submit(&["--max-tries", "5", "--if-uncertain", "retry"], &["true"]);
        let handle = stock.claim(&[]);
        assert_eq!(stock.ok("ares-stop", &["1", "--decide", decision]), "1\trunning");
        let retry: &[&str] = if outcome == "error" { &["--retry"] } else { &[] };
        stock.ok("ares-settle", &[&[handle.as_str(), outcome], retry].concat());
        assert_eq!(stock.state("1"), state, "{outcome}, decided {decision}");
    }
}

#[test]
fn what_is_uncertain_already_is_decided_by_it() {
    for (decision, state) in [("abandon", "cancelled"), ("ok", "succeeded"), ("error", "failed"), ("hold", "uncertain")]
    {
        let stock = Stock::new();
        stock.submit(&[], &["true"]);
        stock.ok("ares-settle", &[&stock.claim(&[]), "ambiguous"]);
        assert_eq!(stock.ok("ares-stop", &["1", "--decide", decision]), format!("1\t{state}"));
    }
}

#[test]
fn a_running_worker_is_told_also_when_its_owner_is_gone() {
    let stock = Stock::new();
    for hard in ["", "--hard"] {
        let job = stock.submit(
            &["--grace", "5s"],
            &["bash", "-c", "trap 'echo told; exit 0' TERM; : >up; while :; do sleep 0.02; done"],
        );
        let script = format!(
            "rm -f up; ares-run --quiet >/dev/null 2>&1 & while ! [ -e up ]; do sleep 0.02; done; kill -9 $!; wait $! 2>/dev/null
            ares-stop {job} {hard} --quiet; ares-wait {job} --format '%(state)' 2>/dev/null"
        );
        let ran = bash(&stock, &script);
        assert!(ran.out.ends_with("cancelled\n"), "{hard}: {}{}", ran.out, ran.err);
        let told = stock.ok("ares-show", &[&job, "--output", "stdout"]);
        assert_eq!(told, if hard.is_empty() { "told" } else { "" }, "{hard}");
    }
}
