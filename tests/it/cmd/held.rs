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

/// A job that a script gave up so often.
fn given_up(stock: &Stock, times: usize) -> String {
    let job = stock.submit(&[], &["true"]);
    for n in 1..=times {
        let handle = stock.claim(&["--job", &job]);
        let ran =
            stock.run("ares-settle", &[&handle, "void", "--because", "no licence", "--format", "%(state) %(hold)"]);
        let held = n == 5;
        assert_eq!(ran.out, if held { "queued releases\n" } else { "queued \n" });
        assert_eq!(ran.err.contains(&format!("job {job} is held")), held, "{}", ran.err);
        assert_eq!(ran.err.contains(&format!("ares reconcile {job} --decide retry")), held, "{}", ran.err);
    }
    job
}

#[test]
fn a_held_job_is_seen_by_everyone_who_looks() {
    let stock = Stock::new();
    let (good, held) = (stock.submit(&[], &["true"]), given_up(&stock, 5));
    assert_eq!(
        stock.ok("ares-list", &["--state", "queued"]).lines().last().map(|line| line.ends_with("releases")),
        Some(true)
    );
    let named = |name: &str, args: &[&str]| {
        let ran = stock.fails(name, args, 1, "ARES_HELD");
        assert!(ran.err.contains(&format!("job {held}")) && ran.err.contains("--decide retry"), "{name}: {}", ran.err);
        ran.out
    };
    let columns = ["--format", "%(job) %(found) %(done) %(state) %(detail)"];
    let waits = format!("{held} held nothing queued no licence\n");
    assert_eq!(named("ares-reconcile", &columns), waits);
    assert_eq!(named("ares-reconcile", &[&["--dry-run"], &columns[..]].concat()), waits);
    assert_eq!(named("ares-reconcile", &[&held, "--format", "%(found)"]), "held\n");
    assert_eq!(
        named("ares-wait", &[&good, &held, "--timeout", "20s", "--format", "%(job) %(state)"]),
        format!("{held} queued\n")
    );
    named("ares-run", &["--job", &held]);
    stock.ok("ares-run", &["--quiet"]);
    let ran = stock.fails("ares-run", &[], 1, "ARES_NOTHING_TO_CLAIM");
    assert!(ran.err.contains(&format!("held after five releases in a row: job {held}")), "{}", ran.err);
    named("ares-claim", &["--job", &held, "--owner", "1"]);
}

#[test]
fn a_held_job_is_offered_again_by_a_decision() {
    let stock = Stock::new();
    let job = given_up(&stock, 5);
    for decision in ["ok", "error", "abandon"] {
        let ran =
            stock.fails("ares-reconcile", &[&job, "--decide", decision, "--because", "x"], 3, "ARES_ILLEGAL_MOVE");
        assert!(ran.err.contains("held") && ran.err.contains("ares stop"), "{}", ran.err);
    }
    let decide = ["--decide", "retry", "--because", "bought one", "--op-id", "a"];
    let decide = [&[job.as_str()], &decide[..], &["--format", "%(attempt) %(found) %(done) %(state)"]].concat();
    assert_eq!(stock.ok("ares-reconcile", &decide), "1.5 held decided queued");
    assert_eq!(stock.ok("ares-reconcile", &decide), "1.5 held decided queued", "the first answer again");
    assert_eq!(hold(&stock, &job), "0");
    stock.ok("ares-run", &[]);
    stock.ok("ares-wait", &[&job]);
}

#[test]
fn a_pass_says_which_release_was_the_fifth() {
    let stock = Stock::new();
    let job = given_up(&stock, 4);
    stock.bash("bash -c 'ares-claim --reserve --owner $$ >/dev/null'", 0);
    let columns = ["--format", "%(attempt) %(found) %(done) %(state)"];
    let wanted = format!("{job}.5 never-started held queued\n");
    assert_eq!(stock.run("ares-reconcile", &[&["--dry-run"], &columns[..]].concat()).out, wanted);
    let ran = stock.fails("ares-reconcile", &columns, 1, "ARES_HELD");
    assert_eq!(ran.out, wanted);
}

#[test]
fn a_runner_names_the_jobs_that_it_held() {
    let stock = Stock::new();
    // A program that is being written cannot be executed, and is whole in a moment: such a try is void.
    stock.bash(
        "cp /bin/true prog; ares-submit -- ./prog; ares-submit -- ./prog >/dev/null; ares-submit -- true >/dev/null",
        0,
    );
    for options in ["--job 1", "--drain", "--drain -j 2"] {
        let again = "for i in 1 2; do ares-reconcile $i --decide retry --because x -q >/dev/null 2>&1; done";
        let times = if options == "--job 1" { "1 2 3 4 5" } else { "1" };
        let script = format!(
            "exec 8>>prog; for i in {times}; do ares-run {options} --quiet >/dev/null 2>err; done; echo $?; cat err; {again}"
        );
        let out = stock.bash(&format!("({script}); true"), 0);
        assert!(out.starts_with("1\n"), "{options}: {out}");
        let last = out.lines().rfind(|line| line.contains("held after five")).unwrap_or_default();
        let jobs = if options == "--job 1" { "job 1" } else { "jobs 1, 2" };
        assert!(last.starts_with("ares-run: ARES_HELD: ") && last.ends_with(jobs), "{options}: {out}");
        assert!(out.contains("job 1 is held after five releases in a row: mend"), "{options}: {out}");
    }
}
