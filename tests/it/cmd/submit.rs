//! `ares-submit`: batches that are all or nothing, keys that outlive their jobs, and what decides when a job may run.

use crate::stock::{Stock, bash};

/// Feeds a batch; gives status and standard error.
fn batch(stock: &Stock, options: &[&str], input: &[u8]) -> (i32, String) {
    let mut command = stock.command(crate::stock::program("ares-submit"));
    let ran = crate::harness::ran(command.arg("--stdin").args(options).write_stdin(input).output().expect("it starts"));
    (ran.status, ran.err)
}

#[test]
fn a_bad_record_is_told_by_its_place_and_nothing_is_applied() {
    let stock = Stock::new();
    let good = "{\"argv\":[\"true\"],\"prompt\":\"p\",\"key\":\"k\"}\n";
    let large = format!("{{\"argv\":[\"cat\"],\"prompt\":\"{}\"}}", "x".repeat(1_100_000));
    let cases: &[(&[u8], i32, &str)] = &[
        (b"{\"argv\":[\"true\"],\"colour\":1}", 2, "line 3: column 25: unknown field `colour`"),
        (b"{\"argv\":[\"true\"],}", 2, "line 3: column 18: trailing comma"),
        (b"{\"argv\":[\"true\"]", 2, "line 3: column 16: EOF"),
        (b"not json", 2, "line 3: column 1: a record is a JSON object"),
        (b"[\"codex\",[\"true\"]]", 2, "line 3: column 1: a record is a JSON object"),
        (b"{\"argv\":\"true\"}", 2, "line 3: column 14: invalid type: string"),
        (b"{\"argv\":[\"true\"],\"priority\":\"high\"}", 2, "line 3: column 34"),
        (b"{\"argv\":[\"true\"],\"argv\":[\"x\"]}", 2, "line 3: column 23: duplicate field"),
        (b"{\"argv\":[\"tr\xffue\"]}", 2, "line 3: column"),
        (b"{\"argv\":[\"true\",\"a\\u0000b\"]}", 2, "line 3: column 28: an argument contains a NUL byte"),
        (b"{\"argv\":[\"tr\x01ue\"]}", 2, "line 3: column 13: control character"),
        (b"{\"argv\":[\"true\"],\"label\":\"a\\u001b[31m\"}", 2, "line 3: column 39: 'a\\u{1b}[31m' is not a name"),
        (b"{\"argv\":[\"true\"],\"label\":\"\"}", 2, "line 3: column 28: '' is not a name"),
        (b"{\"argv\":[]}", 2, "line 3: no command"),
        (b"{\"worker\":\"nobody\",\"prompt\":\"x\"}", 2, "line 3: no worker 'nobody'"),
        (b"{\"argv\":[\"true\"],\"after\":99}", 14, "line 3: no job 99"),
        (b"{\"argv\":[\"no-such-program-here\"]}", 2, "ARES_UNKNOWN_PROGRAM: line 3: cannot find the program"),
        (b"{\"argv\":[\"true\"],\"max-tries\":0}", 2, "line 3: column 31: 0 is not 1 to 1000000"),
        (b"{\"argv\":[\"true\"],\"output-max\":-1}", 2, "line 3: column 33: -1 is not at least 1"),
        (b"{\"argv\":[\"true\"],\"timeout\":\"soon\"}", 2, "line 3: column 34: 'soon' is not a length of time; write"),
        (b"{\"argv\":[\"true\"],\"not-before\":\"x\"}", 2, "line 3: column 34: 'x' is not a moment; write"),
        (b"{\"argv\":[\"true\"],\"after\":[2,0]}", 2, "line 3: column 31: 0 is no number of a job"),
        (b"{\"argv\":[\"true\"],\"after\":\"x\"}", 2, "line 3: column 28: invalid type: string"),
        (b"{\"argv\":[\"true\"],\"key\":\"\"}", 2, "line 3: column 26: '' is not a name"),
        (b"{\"argv\":[\"true\"],\"after-failed\":\"x\"}", 2, "line 3: column 35: unknown variant `x`"),
        (b"{\"argv\":[\"true\"],\"if-active\":[\"a\",\"x\"]}", 2, "line 3: column 37: unknown variant `x`"),
        (b"{\"argv\":[\"true\"],\"env\":\"A=B\"}", 2, "line 3: column 29: env takes the name of a variable"),
        (b"{\"argv\":[\"true\"],\"key\":\"k\"}", 3, "line 3: key 'k' belongs to job 1"),
        (large.as_bytes(), 2, "line 3: the prompt has 1100000 bytes"),
    ];
    for (bad, status, why) in cases {
        let input = [good.as_bytes(), b"\n", bad, b"\n", good.as_bytes()].concat();
        let (found, err) = batch(&stock, &[], &input);
        assert!(found == *status && err.contains(why), "{:?}: {found} {err}", String::from_utf8_lossy(bad));
        let zero = [good.as_bytes(), b"\0", b"\0", bad, b"\0"].concat();
        let (found, err) = batch(&stock, &["-z"], &zero);
        assert!(found == *status && err.contains(&why.replace("line 3", "record 3")), "{found} {err}");
        assert_eq!(stock.value("SELECT count(*) FROM jobs") + &stock.value("SELECT count(*) FROM keys"), "00");
    }
    let (status, err) = batch(&stock, &[], &vec![b' '; (64 << 20) + 1]);
    assert!(status == 2 && err.contains("ARES_INPUT_TOO_LARGE"), "{err}");
    assert_eq!(stock.value("SELECT count(*) FROM operations"), "0");
}

#[test]
fn ten_thousand_lines_are_one_transaction() {
    let stock = Stock::new();
    let version = stock.value("PRAGMA schema_version");
    let script = "yes '{\"argv\":[\"true\"],\"label\":[\"a\",\"b\"]}' | head -10000 | ares-submit --stdin | tail -1";
    assert_eq!(stock.bash(script, 0), "10000");
    assert_eq!(stock.value("SELECT count(*) FROM jobs"), "10000");
    assert_eq!(stock.value("SELECT count(*) || ' ' || max(note) FROM operations"), "1 and 9999 more");
    assert_eq!(stock.value("SELECT count(DISTINCT submitted_at) FROM jobs"), "1");
    assert_eq!(stock.value("PRAGMA schema_version"), version);
    // Killed before its one commit, nothing of it is there.
    if cfg!(debug_assertions) {
        let script = "yes '{\"argv\":[\"true\"]}' | head -100 | ARES_FAULT=store.before_commit ares-submit --stdin";
        bash(&stock, script);
        assert_eq!(stock.value("SELECT count(*) FROM jobs"), "10000");
    }
}

#[test]
fn options_beside_a_batch_are_its_defaults() {
    let stock = Stock::new();
    let records = b"{\"argv\":[\"true\"]}\0{\"argv\":[\"true\"],\"priority\":7,\"label\":\"own\"}\0";
    assert_eq!(batch(&stock, &["-z", "--priority", "3", "--label", "all"], records).0, 0);
    assert_eq!(stock.ok("ares-list", &["--format", "%(job) %(priority) %(labels)"]), "1 3 [\"all\"]\n2 7 [\"own\"]");
}

#[test]
fn a_program_that_is_not_there_is_a_mistake_in_the_call() {
    let stock = Stock::new();
    stock.fails("ares-submit", &["--", "no-such-program-here"], 2, "ARES_UNKNOWN_PROGRAM");
    stock.fails("ares-submit", &["--", "./no-such-program-here"], 2, "ARES_UNKNOWN_PROGRAM");
    assert_eq!(stock.value("SELECT count(*) FROM jobs"), "0");
    // One that is there and is no program is known to be none only when it is tried.
    stock.bash("echo words >text; ares-submit -- ./text", 0);
    assert_eq!(stock.run("ares-run", &["--quiet"]).status, 1);
    assert_eq!(stock.value("SELECT code FROM attempts"), "ARES_CANNOT_EXECUTE");
}

#[test]
fn a_key_outlives_its_job_and_the_program() {
    let stock = Stock::new();
    let script = "printf '#!/bin/sh\\n' >tool; chmod 755 tool; ares-submit --key k --op-id o -- ./tool
        ares-run --quiet >/dev/null; ares-submit --key k -- ./tool; rm tool; ares-submit --key k --op-id o -- ./tool";
    assert_eq!(stock.bash(script, 0), "1\n1\n1");
    stock.fails("ares-submit", &["--key", "k", "--", "true"], 3, "ARES_KEY_CONFLICT");
    stock.fails("ares-submit", &["--op-id", "o", "--", "true"], 3, "ARES_OPERATION_CONFLICT");
}

#[test]
fn a_command_may_be_given_a_file_and_a_prompt_only_one_text() {
    let stock = Stock::new();
    stock.bash("printf 'b\\na\\n' >names; ares-submit --file names -- sort", 0);
    stock.ok("ares-run", &["--quiet"]);
    assert_eq!(stock.ok("ares-show", &["1", "--output", "stdout"]), "a\nb");
    stock.fails("ares-submit", &["-w", "synthetic", "--file", "names", "--", "more"], 2, "ARES_USAGE");
    let ran = bash(&stock, "head -c 1048577 /dev/zero | ares-submit -w synthetic");
    assert!(ran.status == 2 && ran.err.contains("ARES_INPUT_TOO_LARGE"), "{}", ran.err);
}

/// Ends a job in this way.
fn end(stock: &Stock, job: &str, how: &str) {
    match how {
        "cancelled" => drop(stock.ok("ares-stop", &[job])),
        how => drop(stock.ok("ares-settle", &[&stock.claim(&["--job", job]), how])),
    }
}

#[test]
fn every_policy_of_a_dependency_holds_at_every_end_before_and_after() {
    // Ended how, with which option, to what: the first of each is the default.
    let cases: &[(&str, &[&str], &str)] = &[
        ("ok", &[], "queued"),
        ("error", &[], "cancelled"),
        ("error", &["--after-failed", "hold"], "queued dependency"),
        ("error", &["--after-failed", "run"], "queued"),
        ("cancelled", &[], "cancelled"),
        ("cancelled", &["--after-cancelled", "hold"], "queued dependency"),
        ("cancelled", &["--after-cancelled", "run"], "queued"),
        ("ambiguous", &[], "queued dependency"),
        ("ambiguous", &["--after-uncertain", "cancel"], "cancelled"),
        ("ambiguous", &["--after-uncertain", "run"], "queued"),
    ];
    for (how, options, wanted) in cases {
        let stock = Stock::new();
        let state = |job: &str| stock.value(&format!("SELECT trim(state || ' ' || hold) FROM jobs WHERE id = {job}"));
        let first = stock.submit(&[], &["true"]);
        let after = [&["--after", first.as_str()], *options].concat();
        let waits = stock.submit(&after, &["true"]);
        assert_eq!(state(&waits), "queued dependency");
        end(&stock, &first, how);
        assert_eq!(state(&waits), *wanted, "{how} {options:?}, waiting");
        let late = stock.submit(&after, &["true"]);
        assert_eq!(state(&late), *wanted, "{how} {options:?}, submitted afterwards");
        let told = if *wanted == "cancelled" { "2" } else { "0" };
        let events = "SELECT count(*) FROM events WHERE kind = 'job.cancelled' AND body LIKE '%dependency%'";
        assert_eq!(stock.value(events), told, "{how} {options:?}: an end that nobody is told of");
    }
}

#[test]
fn what_waits_for_an_uncertain_job_follows_its_decision() {
    for (decision, wanted) in [("ok", "queued"), ("error", "cancelled"), ("abandon", "cancelled")] {
        let stock = Stock::new();
        stock.submit(&[], &["true"]);
        stock.submit(&["--after", "1"], &["true"]);
        end(&stock, "1", "ambiguous");
        stock.ok("ares-reconcile", &["1", "--decide", decision, "--because", "so"]);
        assert_eq!(stock.value("SELECT trim(state || ' ' || hold) FROM jobs WHERE id = 2"), wanted, "{decision}");
    }
}

#[test]
fn all_of_several_must_end_and_a_chain_runs_in_order() {
    let stock = Stock::new();
    for n in 1..=4 {
        let before = (n - 1).to_string();
        let after: &[&str] = if n > 1 { &["--after", &before, "--priority", "9"] } else { &[] };
        stock.submit(after, &["sh", "-c", &format!("echo {n} >>order")]);
    }
    stock.submit(&["--after", "2", "--after", "4", "--after", "4"], &["sh", "-c", "echo 5 >>order"]);
    stock.ok("ares-run", &["--drain", "-j", "3", "--quiet"]);
    assert_eq!(stock.bash("cat order", 0), "1\n2\n3\n4\n5");
    stock.fails("ares-submit", &["--after", "99", "--", "true"], 14, "ARES_NOT_FOUND");
}

#[test]
fn what_is_cancelled_with_another_says_with_which() {
    let stock = Stock::new();
    stock.submit(&[], &["false"]);
    stock.submit(&["--after", "1"], &["true"]);
    stock.submit(&["--after", "2"], &["true"]);
    assert_eq!(stock.run("ares-run", &["--drain", "--quiet"]).status, 1);
    stock.submit(&["--after", "1"], &["true"]);
    stock.submit(&[], &["true"]);
    stock.ok("ares-stop", &["5"]);
    let details = stock.ok("ares-list", &["--state", "cancelled", "--format", "%(job) %(detail)"]);
    assert_eq!(details, "2 job 1 failed\n3 job 2 was cancelled\n4 job 1 failed\n5 stopped before it ran");
    assert!(stock.ok("ares-show", &["3", "--json"]).contains("\"detail\":\"job 2 was cancelled\""));
    let log = stock.ok("ares-log", &["--format", "%(verb) %(subject) %(detail)"]);
    assert!(log.contains("settle 1.1 cancelled: 2, 3\n"), "{log}");
    assert!(log.contains("submit 4 cancelled: 4\n"), "{log}");
}

#[test]
fn a_cascade_of_a_thousand_is_one_transaction() {
    let stock = Stock::new();
    let script =
        "ares-submit -- true; for n in $(seq 1000); do echo \"{\\\"argv\\\":[\\\"true\\\"],\\\"after\\\":$n}\"; done |
        ares-submit --stdin >/dev/null; ares-stop 1 --format '%(job) %(state)'";
    assert_eq!(stock.bash(script, 0), "1\n1 cancelled");
    assert_eq!(stock.value("SELECT count(*) FROM jobs WHERE state = 'cancelled'"), "1001");
    assert_eq!(stock.value("SELECT count(*) FROM events WHERE kind = 'job.cancelled'"), "1001");
    let told = "cancelled: 2, 3, 4, 5, 6, 7, 8, 9 and 992 more";
    assert_eq!(stock.ok("ares-log", &["--verb", "stop", "--format", "%(detail)"]), told);
    assert_eq!(stock.ok("ares-show", &["1001", "--format", "%(detail)"]), "job 1000 was cancelled");
    assert_eq!(stock.value("SELECT count(DISTINCT ended_at) FROM jobs"), "1");
}

#[test]
fn the_highest_priority_is_first_and_then_the_oldest() {
    let stock = Stock::new();
    for priority in ["0", "-5", "3", "0", "3", "9223372036854775807", "-9223372036854775808"] {
        stock.submit(&["--priority", priority], &["true"]);
    }
    let order: Vec<String> = (0..7).map(|_| stock.claim(&[]).split('.').next().expect("a job").to_owned()).collect();
    assert_eq!(order, ["6", "3", "5", "1", "4", "2", "7"]);
}

#[test]
fn a_job_is_not_offered_before_its_time() {
    let stock = Stock::new();
    stock.submit(&["--not-before", "+1h"], &["true"]);
    stock.submit(&["--not-before", "@1"], &["true"]);
    stock.submit(&["--not-before", "2999-01-01T00:00:00Z", "--after", "2"], &["true"]);
    assert!(stock.claim(&[]).starts_with("2.1-"));
    let me = std::process::id().to_string();
    stock.fails("ares-claim", &["--owner", &me], 1, "ARES_NOTHING_TO_CLAIM");
    stock.fails("ares-claim", &["--owner", &me, "--job", "1"], 1, "ARES_NOTHING_TO_CLAIM");
    assert_eq!(stock.value("SELECT (due - submitted_at) / 1000 FROM jobs WHERE id = 1"), "3600");
    stock.db().execute("UPDATE jobs SET due = 1 WHERE id = 1", []).expect("its time has come");
    assert!(stock.claim(&[]).starts_with("1.1-"));
}

#[test]
fn tries_are_counted_and_delays_double() {
    let stock = Stock::new();
    stock.submit(&["--max-tries", "3", "--retry-delay", "90s"], &["false"]);
    for delay in [90, 180] {
        stock.run("ares-run", &["--quiet"]);
        let due = "SELECT (due - (SELECT max(ended_at) FROM attempts)) / 1000 FROM jobs";
        assert_eq!((stock.state("1"), stock.value(due)), ("queued".to_owned(), delay.to_string()));
        stock.db().execute("UPDATE jobs SET due = 1", []).expect("its time has come");
    }
    stock.run("ares-run", &["--quiet"]);
    assert_eq!(stock.value("SELECT state || ' ' || tries || ' ' || attempt FROM jobs"), "failed 3 3");
}
