//! Many operators decide the same thing at once, each in another way: one of them is heard, and all others are told what
//! was decided and why.

use crate::stock::Stock;
use std::thread;

const OPERATORS: usize = 20;

const DECISIONS: [(&str, &str); 5] =
    [("ok", "succeeded"), ("error", "failed"), ("no-effect", "queued"), ("retry", "queued"), ("abandon", "cancelled")];

/// One operator, who has looked at the evidence before anyone has decided.
fn operator(stock: &Stock, n: usize, seen: &str) -> crate::harness::Ran {
    let (decision, because) = (DECISIONS[n % DECISIONS.len()].0, format!("operator {n} says so"));
    let mut command = stock.command(crate::harness::bin_dir().join("ares-reconcile"));
    command.args(["1", "--decide", decision, "--because", &because]).env("ARES_FAULT", "decide.looked:sleep=700");
    if n.is_multiple_of(2) {
        command.args(["--seen", seen]);
    }
    crate::harness::ran(command.output().expect("it starts"))
}

#[test]
fn of_many_operators_one_decides_and_all_others_are_told_what() {
    let stock = Stock::new();
    stock.submit(&["--max-tries", "3"], &["true"]);
    let handle = stock.claim(&[]);
    stock.ok("ares-settle", &[&handle, "ambiguous"]);
    let seen = stock.run("ares-reconcile", &["1", "--format", "%(digest)"]).out.trim().to_owned();
    let answers: Vec<_> = thread::scope(|scope| {
        let (stock, seen) = (&stock, seen.as_str());
        let all: Vec<_> = (0..OPERATORS).map(|n| scope.spawn(move || operator(stock, n, seen))).collect();
        all.into_iter().map(|one| one.join().expect("an operator")).collect()
    });
    let winners: Vec<usize> = (0..OPERATORS).filter(|n| answers[*n].status == 0).collect();
    let [winner] = winners[..] else { panic!("{winners:?} decided: {answers:?}") };
    let (decision, state) = DECISIONS[winner % DECISIONS.len()];
    let told = format!("ARES_ALREADY_DECIDED: 1.1 was decided '{decision}' because: operator {winner} says so");
    for (n, answer) in answers.iter().enumerate().filter(|(n, _)| *n != winner) {
        assert!(answer.status == 3 && answer.err.contains(&told), "{n}, where {winner} won: {answer:?}");
    }
    assert_eq!(stock.state("1"), state);
    assert_eq!(stock.value("SELECT count(*) FROM resolutions"), "1");
    let kept = "SELECT decision || '|' || because || '|' || (evidence IS NOT NULL) FROM resolutions";
    assert_eq!(stock.value(kept), format!("{decision}|operator {winner} says so|1"));
    assert_eq!(stock.value("SELECT state || outcome FROM attempts"), "endedambiguous", "the record stays as it is");
    assert_eq!(stock.value("SELECT count(*) FROM operations WHERE verb = 'decide'"), "1");
    stock.ok("ares-fsck", &[]);
}

#[test]
fn a_decision_that_changed_the_evidence_is_what_the_other_is_told() {
    if !cfg!(debug_assertions) {
        return crate::harness::skipped("a release build has no fault points");
    }
    let stock = Stock::new();
    stock.submit(&[], &["sh", "-c", "kill -9 $$"]);
    assert_eq!(stock.run("ares-run", &["--quiet"]).status, 10);
    let seen = stock.run("ares-reconcile", &["1", "--format", "%(digest)"]).out.trim().to_owned();
    // The second looks at the record, and at the files only after the first has decided and removed them.
    let second = thread::scope(|scope| {
        let (stock, seen) = (&stock, seen.as_str());
        let late = scope.spawn(move || {
            let mut command = stock.command(crate::harness::bin_dir().join("ares-reconcile"));
            command.args(["1", "--decide", "error", "--because", "two", "--seen", seen]);
            command.env("ARES_FAULT", "decide.asked:sleep=1500");
            crate::harness::ran(command.output().expect("it starts"))
        });
        thread::sleep(std::time::Duration::from_millis(500));
        stock.ok("ares-reconcile", &["1", "--decide", "ok", "--because", "one", "--seen", seen]);
        late.join().expect("an answer")
    });
    assert!(second.status == 3 && second.err.contains("was decided 'ok' because: one"), "{second:?}");
}
