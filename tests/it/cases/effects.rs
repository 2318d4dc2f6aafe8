//! Effects that were made twice: what is done is never entered again, and what nobody can tell costs nothing more.

use crate::harness::skipped;
use crate::stock::{Stock, bash};

/// What is known of a step, of the one after it, and of what it left.
const STEP: &str = "SELECT a.state || ' ' || (SELECT hold FROM jobs WHERE id = 2)
    || (SELECT count(*) FROM receipts WHERE kind = 'outcome' AND subject = '1.1')
    || (SELECT count(*) FROM events WHERE subject = '1.1') || (SELECT count(*) FROM attempts WHERE result IS NOT NULL)
    || (SELECT count(*) FROM permits WHERE job = 1 AND outcome = 'ok') FROM jobs a WHERE id = 1";

#[test]
fn case_25_a_steps_result_and_what_follows_it_are_one_commit() {
    if !cfg!(debug_assertions) {
        return skipped("a release build has no fault points");
    }
    let (before, after) = ("running dependency0000", "succeeded 1111");
    for fault in ["began", "before_commit", "commit:err", "after_commit", "committed:err"] {
        let stock = Stock::new();
        stock.submit(&[], &["true"]);
        stock.submit(&["--after", "1"], &["sh", "-c", "echo $ARES_ATTEMPT >>effects"]);
        let handle = stock.claim(&[]);
        assert_eq!(stock.value(STEP), before);
        let settle = format!("echo the result | ares-settle {handle} ok --result -");
        assert_ne!(bash(&stock, &format!("export ARES_FAULT=store.{fault}; {settle}")).status, 0, "{fault}");
        let committed = ["after_commit", "committed:err"].contains(&fault);
        assert_eq!(stock.value(STEP), if committed { after } else { before }, "{fault}: half of it");
        // Until it is settled, nothing that follows it runs.
        stock.run("ares-run", &["--drain", "--quiet"]);
        assert_eq!(stock.bash("cat effects 2>/dev/null || true", 0), if committed { "2.1" } else { "" }, "{fault}");
        stock.bash(&settle, 0);
        assert_eq!(stock.value(STEP), after);
        stock.ok("ares-run", &["--drain", "--quiet"]);
        assert_eq!(stock.bash("cat effects", 0), "2.1", "{fault}");
    }
}

#[test]
fn case_26_what_is_done_is_not_entered_again_when_what_follows_is() {
    let stock = Stock::new();
    let step = |n: &str, options: &[&str], end: &str| {
        let script = format!("echo {n} >>effects; {end}");
        stock.submit(options, &["sh", "-c", &script])
    };
    step("one", &["--max-tries", "5", "--key", "one"], "echo the result of one");
    step(
        "two",
        &["--after", "1", "--max-tries", "5", "--retry-delay", "0s"],
        "test -e second || { : >second; exit 1; }",
    );
    step("three", &["--after", "2", "--max-tries", "5"], "test -e third || { : >third; kill -9 $$; }");
    assert_eq!(stock.run("ares-run", &["--drain", "--quiet"]).status, 10);
    let effects = || stock.bash("sort effects | uniq -c | tr -s ' '", 0);
    assert_eq!(effects(), " 1 one\n 1 three\n 2 two");
    stock.ok("ares-reconcile", &["3", "--decide", "retry", "--because", "it may do it twice"]);
    stock.ok("ares-run", &["--drain", "--quiet"]);
    assert_eq!(effects(), " 1 one\n 2 three\n 2 two");
    // Whoever needs its result reads it, and whoever asks for it again is given the one that is done.
    assert_eq!(stock.ok("ares-show", &["1", "--output", "result"]), "the result of one");
    let again = ["--key", "one", "--max-tries", "5", "--", "sh", "-c", "echo one >>effects; echo the result of one"];
    assert_eq!(stock.ok("ares-submit", &again), "1");
    for args in [&["--drain", "--quiet"][..], &["--job", "1"], &["--job", "2"]] {
        stock.run("ares-run", args);
    }
    assert_eq!(effects(), " 1 one\n 2 three\n 2 two");
}

#[test]
fn case_29_what_only_a_person_can_decide_ends_the_run_and_costs_nothing_more() {
    let stock = Stock::new();
    stock.submit(&["--max-tries", "9"], &["sh", "-c", "echo spent >>effects; kill -9 $$"]);
    stock.submit(&["--after", "1"], &["sh", "-c", "echo spent >>effects"]);
    assert_eq!(stock.run("ares-run", &["--drain", "--quiet"]).status, 10);
    let me = std::process::id().to_string();
    let count = || stock.value("SELECT (SELECT count(*) FROM permits) || (SELECT count(*) FROM attempts)");
    assert_eq!(count(), "11");
    for _ in 0..3 {
        for (name, args, status) in [
            ("ares-run", &["--drain"][..], 0),
            ("ares-run", &["--job", "1"], 10),
            ("ares-claim", &["--owner", &me], 1),
            ("ares-claim", &["--owner", &me, "--job", "1"], 10),
            ("ares-wait", &["1"], 10),
            ("ares-wait", &["2", "--timeout", "20s"], 10),
            ("ares-reconcile", &[], 10),
        ] {
            let ran = stock.run(name, args);
            assert_eq!(ran.status, status, "{name} {args:?}: {}{}", ran.out, ran.err);
        }
    }
    assert_eq!((count().as_str(), stock.bash("cat effects", 0).as_str()), ("11", "spent"));
    // What does not depend on it goes on.
    stock.submit(&[], &["true"]);
    stock.ok("ares-run", &["--drain", "--quiet"]);
    assert_eq!(stock.state("3"), "succeeded");
}

#[test]
fn case_30_what_was_permitted_and_has_no_known_outcome_is_not_tried_again() {
    let stock = Stock::new();
    let me = std::process::id().to_string();
    let permits = || stock.value("SELECT group_concat(state || coalesce(' ' || outcome, ''), ', ') FROM permits");
    stock.submit(&["--max-tries", "9", "--retry-delay", "0s"], &["true"]);
    let handle = stock.claim(&[]);
    let refused = |status: i32| {
        assert_eq!(stock.run("ares-claim", &["--owner", &me]).status, 1);
        assert_eq!(stock.run("ares-claim", &["--owner", &me, "--job", "1"]).status, status);
        assert_eq!(stock.run("ares-run", &["--drain"]).status, 0);
    };
    // While it is being used, nobody can decide that it is tried again either.
    assert_eq!(permits(), "consumed");
    refused(1);
    stock.fails("ares-reconcile", &["1", "--decide", "retry", "--because", "x"], 3, "ARES_ILLEGAL_MOVE");
    // An end that nobody knows is no error that is worth another try.
    stock.ok("ares-settle", &[&handle, "error", "--retry", "--code", "ARES_TIMED_OUT"]);
    assert_eq!((stock.state("1").as_str(), permits().as_str()), ("uncertain", "settled ambiguous"));
    refused(10);
    stock.fails("ares-settle", &[&handle, "error", "--retry"], 3, "ARES_FENCED");
    refused(10);
    // Who decides gives another one; the first stays what it is.
    stock.ok("ares-reconcile", &["1", "--decide", "retry", "--because", "looked"]);
    let second = stock.claim(&[]);
    assert_eq!(permits(), "settled ambiguous, consumed");
    stock.ok("ares-settle", &[&second, "ok"]);
    assert_eq!(permits(), "settled ambiguous, settled ok");
}
