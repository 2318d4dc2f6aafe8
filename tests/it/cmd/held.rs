//! Jobs that were given back five times in a row are held: everyone who looks is told, and nothing hangs on them. What
//! is not a job's fault is not counted.

use crate::stock::Stock;

/// A job's hold and how often it was given back in a row.
fn hold(stock: &Stock, job: &str) -> String {
    stock.value(&format!("SELECT hold || release_count FROM jobs WHERE id = {job}"))
}

#[test]
fn what_is_not_the_jobs_fault_is_not_counted() {
    let stock = Stock::new();
    let job = stock.submit(&[], &["true"]);
    for options in [&["--quiet"][..], &["--quiet", "--capture"]] {
        for _ in 0..6 {
            assert_eq!(stock.run("ares-claim", &[options, &["--", "no-such-program"]].concat()).status, 127);
            assert_eq!(stock.run("ares-claim", &[options, &["--", "/etc/passwd"]].concat()).status, 126);
        }
    }
    assert_eq!((hold(&stock, &job).as_str(), stock.state(&job).as_str()), ("0", "queued"));
    // A runner that is told to end between its claim and its dispatch.
    let script = "ARES_FAULT=store.after_commit:sleep=300 ares-run --job 1 &
        until [ \"$(ares-show 1 --format '%(state)')\" = claimed ]; do sleep 0.02; done; kill -TERM $!; wait $!; true";
    stock.bash(script, 0);
    assert_eq!((hold(&stock, &job).as_str(), stock.state(&job).as_str()), ("0", "queued"));
    assert_eq!(stock.value("SELECT detail FROM attempts ORDER BY n DESC"), "given back before anything was dispatched");
}
