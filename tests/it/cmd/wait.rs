//! `ares-wait`: its status says how the jobs ended, and nothing makes it wait for what cannot come.

use crate::stock::{Stock, bash};

#[test]
fn the_status_says_how_they_ended() {
    let stock = Stock::new();
    for outcome in ["ok", "error", "ambiguous", "ok"] {
        stock.submit(&["--label", outcome], &["true"]);
        stock.ok("ares-settle", &[&stock.claim(&[]), outcome]);
    }
    assert_eq!(stock.ok("ares-wait", &["1", "4", "--format", "%(job) %(state)"]), "1 succeeded\n4 succeeded");
    stock.fails("ares-wait", &["1", "2"], 1, "ARES_WAITED_FAILED: not succeeded: 1 of 2 jobs, job 2\n");
    let ran = stock.fails("ares-wait", &["1", "3", "2"], 10, "ARES_UNCERTAIN: uncertain: 1 of 3 jobs, job 3\n");
    assert!(!ran.err.contains("job 2"), "{}", ran.err);
    stock.fails("ares-wait", &["1", "9"], 14, "ARES_NOT_FOUND");
    // A label stands for what has not ended now, which an uncertain job has not.
    assert_eq!(stock.ok("ares-wait", &["--label", "ok"]), "");
    stock.fails("ares-wait", &["--label", "ambiguous"], 10, "ARES_UNCERTAIN");
}

#[test]
fn it_hears_of_every_end_and_of_a_dead_owner() {
    let stock = Stock::new();
    for _ in 0..3 {
        stock.submit(&[], &["true"]);
    }
    let script = "ares-wait 1 2 --format '%(job) %(state)' & sleep 0.1; ares-run --drain --quiet >/dev/null; wait $!";
    assert_eq!(stock.bash(script, 0), "1 succeeded\n2 succeeded");
    let job = stock.submit(&[], &["true"]);
    let ran = bash(
        &stock,
        &format!("bash -c 'ares-claim --owner $$ >/dev/null; sleep 0.2' & sleep 0.1; ares-wait {job}; exit $?"),
    );
    assert_eq!(ran.status, 10, "{}", ran.err);
}

#[test]
fn any_is_the_first_of_them_and_a_timeout_leaves_them_alone() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    stock.submit(&[], &["true"]);
    stock.fails("ares-wait", &["1", "--timeout", "50ms"], 1, "ARES_TIMEOUT");
    stock.ok("ares-settle", &[&stock.claim(&["--job", "2"]), "ok"]);
    assert_eq!(stock.ok("ares-wait", &["1", "2", "--any", "--format", "%(job)"]), "2");
    assert_eq!(stock.state("1"), "queued");
}
