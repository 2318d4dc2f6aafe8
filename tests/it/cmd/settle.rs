//! `ares-settle`: outcomes, what may be said twice, what comes too late, what it burns and what it cost.

use crate::stock::Stock;
use serde_json::Value;

fn shown(stock: &Stock, job: &str) -> Value {
    serde_json::from_str(&stock.ok("ares-show", &[job, "--json"])).expect("an object")
}

#[test]
fn each_outcome_may_be_said_twice_and_no_other_after_it() {
    let outcomes = [("ok", "succeeded"), ("error", "failed"), ("ambiguous", "uncertain"), ("void", "queued")];
    for (outcome, state) in outcomes {
        let stock = Stock::new();
        let job = stock.submit(&[], &["true"]);
        let handle = stock.claim(&[]);
        stock.ok("ares-settle", &[&handle, outcome]);
        let picture = stock.picture();
        stock.ok("ares-settle", &[&handle, outcome]);
        assert_eq!(stock.picture(), picture, "{outcome}: said twice, applied twice");
        assert_eq!(stock.state(&job), state);
        for (other, _) in outcomes.iter().filter(|(other, _)| *other != outcome) {
            stock.fails("ares-settle", &[&handle, other], 3, "ARES_FENCED");
            assert_eq!(stock.state(&job), state, "{outcome}, then {other}");
        }
    }
}

#[test]
fn a_code_that_says_nobody_knows_is_ambiguous_also_when_it_is_repeated() {
    let stock = Stock::new();
    let job = stock.submit(&["--max-tries", "3"], &["true"]);
    let handle = stock.claim(&[]);
    let say = [handle.as_str(), "error", "--retry", "--code", "ARES_TIMED_OUT"];
    stock.ok("ares-settle", &say);
    assert_eq!(stock.state(&job), "uncertain");
    stock.ok("ares-settle", &say);
    assert_eq!(stock.value("SELECT outcome FROM attempts"), "ambiguous");
    assert_eq!(stock.value("SELECT count(*) FROM findings"), "0");
}

#[test]
fn only_the_handle_settles() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    let handle = stock.claim(&[]);
    let wrong = format!("1.1-{}", if handle.ends_with('0') { "1111111111" } else { "0000000000" });
    stock.fails("ares-settle", &[&wrong, "ok"], 3, "ARES_NOT_YOURS");
    stock.fails("ares-settle", &["1.1", "ok"], 2, "ARES_USAGE");
    stock.fails("ares-settle", &["9.1-0000000000", "ok"], 14, "ARES_NOT_FOUND");
    assert_eq!(stock.state("1"), "running");
    assert!(!stock.ok("ares-show", &["1", "--json"]).contains(handle.split_once('-').expect("a nonce").1));
    let dump = std::fs::read(stock.root().join("ares.db-wal")).expect("a log");
    let nonce = handle.split_once('-').expect("a nonce").1.as_bytes();
    assert!(!dump.windows(nonce.len()).any(|bytes| bytes == nonce), "the nonce is stored");
}

#[test]
fn a_late_result_is_kept_once_and_shown() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    let handle = stock.bash("ares-claim --owner $$", 0);
    assert_eq!(stock.run("ares-reconcile", &["--quiet"]).status, 10);
    stock.ok("ares-reconcile", &["1", "--decide", "retry", "--because", "again"]);
    let second = stock.claim(&[]);
    assert!(second.starts_with("1.2-"));
    let late = format!("echo late | ares-settle {handle} ok --exit 0 --because 'it was done' --result -");
    for _ in 0..3 {
        let ran = crate::stock::bash(&stock, &late);
        assert!(ran.status == 3 && ran.err.contains("ARES_FENCED"), "{}", ran.err);
    }
    stock.ok("ares-settle", &[&second, "ok"]);
    let shown = shown(&stock, "1");
    let findings = shown["attempts"][0]["findings"].as_array().expect("findings").clone();
    assert_eq!(findings.len(), 1, "{findings:?}");
    let text = findings[0].to_string();
    assert!(text.contains("late-result") && text.contains("it was done"), "{text}");
    assert_eq!(stock.value("SELECT bytes FROM objects o JOIN findings f ON f.object = o.digest"), "6c6174650a");
    assert_eq!(shown["state"], "succeeded");
}

#[test]
fn void_burns_no_try_and_five_in_a_row_hold_the_job() {
    let stock = Stock::new();
    let job = stock.submit(&[], &["true"]);
    for n in 1..=5 {
        let options: &[&str] = if n % 2 == 0 { &["--reserve"] } else { &[] };
        let handle = stock.claim(options);
        assert!(handle.starts_with(&format!("1.{n}-")), "a number is used again: {handle}");
        stock.ok("ares-settle", &[&handle, "void"]);
        assert_eq!(stock.value("SELECT tries FROM jobs"), "0");
    }
    assert_eq!(stock.value("SELECT state || ' ' || hold FROM jobs"), "queued releases");
    let me = std::process::id().to_string();
    stock.fails("ares-claim", &["--owner", &me], 1, "ARES_NOTHING_TO_CLAIM");
    stock.fails("ares-reconcile", &[&job, "--decide", "ok", "--because", "no"], 3, "ARES_ILLEGAL_MOVE");
    stock.ok("ares-reconcile", &[&job, "--decide", "retry", "--because", "mended"]);
    stock.ok("ares-settle", &[&stock.claim(&[]), "ok"]);
    assert_eq!(stock.state(&job), "succeeded");
}

#[test]
fn a_try_between_releases_begins_the_count_anew() {
    let stock = Stock::new();
    stock.submit(&["--max-tries", "9", "--retry-delay", "0s"], &["true"]);
    for _ in 0..3 {
        for _ in 0..3 {
            stock.ok("ares-settle", &[&stock.claim(&[]), "void"]);
        }
        stock.ok("ares-settle", &[&stock.claim(&[]), "error", "--retry"]);
    }
    assert_eq!(stock.value("SELECT state || ' ' || hold || tries FROM jobs"), "queued 3");
}

#[test]
fn a_lasting_void_ends_the_job() {
    for reserve in [&[][..], &["--reserve"]] {
        let stock = Stock::new();
        stock.submit(&["--max-tries", "5"], &["true"]);
        let handle = stock.claim(reserve);
        stock.ok("ares-settle", &[&handle, "void", "--lasting", "--because", "no such thing"]);
        assert_eq!(stock.value("SELECT state || ' ' || tries FROM jobs"), "failed 0");
        stock.ok("ares-settle", &[&handle, "void", "--lasting", "--because", "no such thing"]);
    }
}

#[test]
fn a_reservation_cannot_have_had_an_effect() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    let handle = stock.claim(&["--reserve"]);
    for outcome in ["ok", "error", "ambiguous"] {
        stock.fails("ares-settle", &[&handle, outcome], 3, "ARES_ILLEGAL_MOVE");
    }
    assert_eq!(stock.state("1"), "claimed");
}

#[test]
fn usage_and_cost_are_recorded_exactly() {
    let stock = Stock::new();
    stock.submit(&["--max-tries", "2", "--retry-delay", "0s"], &["true"]);
    let first = stock.claim(&[]);
    let usage = ["--usage", "input=1200,cached=200,output=80,reasoning=5,calls=2", "--cost", "0.004200001"];
    stock.ok("ares-settle", &[&[first.as_str(), "error", "--retry"][..], &usage].concat());
    let second = stock.claim(&[]);
    stock.ok("ares-settle", &[&second, "ok", "--usage", "{\"input\":7,\"cost_nano\":9}"]);
    let sums = "SELECT sum(input) || ' ' || sum(cached) || ' ' || sum(output) || ' ' || sum(reasoning) || ' ' ||
        sum(calls) || ' ' || sum(cost) FROM runs";
    assert_eq!(stock.value(sums), "1207 200 80 5 2 4200010");
    let usage = &shown(&stock, "1")["usage"];
    assert!(usage.to_string().contains("1207"), "{usage}");
    let third = [second.as_str(), "ok", "--usage", "input=1", "--cost", "0.1"];
    stock.fails(
        "ares-settle",
        &[&third[..2], &["--usage", "{\"cost_nano\":3}", "--cost", "0.1"]].concat(),
        2,
        "ARES_USAGE",
    );
    for bad in ["-1", "0.0000000001", "1e3", "10000000000", ""] {
        stock.fails("ares-settle", &[&second, "ok", "--cost", bad], 2, "ARES_USAGE");
    }
}

#[test]
fn an_uncertain_end_follows_what_was_decided_beforehand() {
    for (options, state, decision) in [
        (&["--if-uncertain", "hold"][..], "uncertain", ""),
        (&["--if-uncertain", "fail"], "failed", "error"),
        (&["--if-uncertain", "retry", "--max-tries", "2"], "queued", "retry"),
        (&["--if-uncertain", "retry"], "uncertain", ""),
    ] {
        let stock = Stock::new();
        stock.submit(options, &["true"]);
        stock.ok("ares-settle", &[&stock.claim(&[]), "ambiguous"]);
        assert_eq!(stock.state("1"), state, "{options:?}");
        assert_eq!(stock.value("SELECT coalesce(max(decision), '') FROM resolutions"), decision, "{options:?}");
        // The permit's own end stays ambiguous, whatever was decided beside it.
        assert_eq!(stock.value("SELECT outcome FROM permits"), "ambiguous");
    }
}
