//! `ares-claim`: who owns a claim and for how long, what a script is given, and how a command around which it is run
//! ends.

use crate::stock::{Stock, bash};

#[test]
fn without_an_owner_the_usage_shows_both_ways() {
    let stock = Stock::new();
    let ran = stock.fails("ares-claim", &[], 2, "ARES_USAGE");
    assert!(ran.err.contains("--owner-fd") && ran.err.contains("--owner <PID>"), "{}", ran.err);
    stock.fails("ares-claim", &["--owner-fd", "9", "--owner", "1"], 2, "ARES_USAGE");
    stock.fails("ares-claim", &["--reserve"], 2, "ARES_USAGE");
    stock.fails("ares-claim", &["--owner", "1", "--", "true"], 125, "ARES_USAGE");
    stock.fails("ares-claim", &["--owner-fd", "2"], 2, "ARES_USAGE");
    stock.fails("ares-claim", &["--owner", "4194304"], 2, "no process");
    stock.fails("ares-claim", &["--owner", &std::process::id().to_string()], 1, "ARES_NOTHING_TO_CLAIM");
}

#[test]
fn a_descriptor_must_be_an_owner_file_of_this_store() {
    let stock = Stock::new();
    for (open, why) in [
        ("", "is not open"),
        ("exec 9</dev/null;", "is not an owner file"),
        ("exec 9>>.ares/locks/write.lock;", "is not an owner file"),
        ("ares-init other >/dev/null; exec 9>>\"$(ares-claim --store other --owner-file)\";", "is not an owner file"),
        ("f=$(ares-claim --owner-file); exec 9>>$f; rm $f;", "was removed"),
        (
            "f=$(ares-claim --owner-file); exec 9>>$f; (flock -x 8; : >locked; exec sleep 60) 8>>$f & while ! [ -e locked ]; do sleep 0.02; done;",
            "is locked by another",
        ),
    ] {
        let ran = bash(&stock, &format!("{open} ares-claim --owner-fd 9; s=$?; [ -e locked ] && kill $!; exit $s"));
        assert!(ran.status == 2 && ran.err.contains(why), "{open} {} {}", ran.status, ran.err);
        assert!(ran.err.contains("hint: open it with"), "{}", ran.err);
    }
}

#[test]
fn the_claim_of_a_shell_lives_as_long_as_the_shell_or_a_child() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    let script =
        "exec 9>>\"$(ares-claim --owner-file)\"; ares-claim --owner-fd 9 >handle; cat handle; cut -d- -f1 handle
        ares-reconcile --format '%(attempt) %(found)'
        env -i PATH=$PATH sleep 30 >/dev/null 2>&1 & echo $! >child";
    let out = stock.bash(script, 0);
    assert!(out.ends_with("1.1\n1.1 alive"), "{out}");
    // The shell is gone, its child keeps the descriptor.
    assert_eq!(stock.ok("ares-reconcile", &["--format", "%(attempt) %(found)"]), "1.1 alive");
    let ran = bash(
        &stock,
        "kill $(cat child); while kill -0 $(cat child) 2>/dev/null; do sleep 0.02; done
        ares-reconcile --format '%(attempt) %(found) %(done) %(state)'",
    );
    assert_eq!((ran.status, ran.out.as_str()), (10, "1.1 unknown uncertain uncertain\n"), "{}", ran.err);
    // What the dead shell's handle says now is evidence, no settlement.
    let handle = std::fs::read_to_string(stock.path().join("handle")).expect("a handle");
    stock.fails("ares-settle", &[handle.trim(), "ok"], 3, "ARES_FENCED");
    assert_eq!(stock.state("1"), "uncertain");
}

#[test]
fn a_shell_that_settles_and_goes_leaves_nothing() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    stock.submit(&[], &["true"]);
    let script = "exec 9>>\"$(ares-claim --owner-file)\"
        while h=$(ares-claim --quiet --owner-fd 9); do ares-settle $h ok; done; ares-list --format '%(state)'";
    assert_eq!(stock.bash(script, 0), "succeeded\nsucceeded");
    stock.ok("ares-reconcile", &[]);
    assert_eq!(stock.bash("ls .ares/locks | grep -c owner", 1), "0");
}

#[test]
fn an_owner_by_process_is_found_dead_without_a_timer() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    stock.submit(&[], &["true"]);
    stock.bash("ares-claim --owner $$ >/dev/null; ares-claim --reserve --owner $$ >/dev/null", 0);
    let ran = stock.run("ares-reconcile", &["--dry-run", "--format", "%(attempt) %(done) %(state)"]);
    assert_eq!(ran.out, "1.1 uncertain uncertain\n2.1 released queued\n");
    assert_eq!((stock.state("1"), stock.state("2")), ("running".to_owned(), "claimed".to_owned()), "a dry run changes");
    assert_eq!(stock.run("ares-reconcile", &["--quiet"]).status, 10);
    assert_eq!((stock.state("1"), stock.state("2")), ("uncertain".to_owned(), "queued".to_owned()));
    assert_eq!(stock.value("SELECT tries FROM jobs WHERE id = 2"), "0");
}

#[test]
fn what_is_to_be_done_is_told_with_json() {
    let stock = Stock::new();
    stock.bash("printf 'an input' | ares-submit --file - -- sort -u", 0);
    let told: serde_json::Value = serde_json::from_str(&stock.claim(&["--json"])).expect("an object");
    assert_eq!(told["argv"], serde_json::json!(["/usr/bin/sort", "-u"]));
    assert_eq!((told["prompt"].as_str(), told["attempt"].as_str()), (Some("an input"), Some("1.1")));
    assert!(told["dir"].as_str().is_some_and(|dir| stock.root().starts_with(dir)), "{told}");
}

#[test]
fn claims_are_by_label_group_worker_and_job() {
    let stock = Stock::new();
    for options in [&["--label", "a"][..], &["--group", "g"], &["--label", "b"], &["--priority", "-1"], &[]] {
        stock.submit(options, &["true"]);
    }
    let job = |options: &[&str]| stock.claim(options).split('.').next().expect("a job").to_owned();
    assert_eq!(job(&["--label", "b"]), "3");
    assert_eq!(job(&["--group", "g"]), "2");
    assert_eq!(job(&["--job", "4"]), "4");
    assert_eq!(job(&["--worker", "command"]), "1");
    let me = std::process::id().to_string();
    stock.fails("ares-claim", &["--owner", &me, "--worker", "codex"], 1, "ARES_NOTHING_TO_CLAIM");
    stock.fails("ares-claim", &["--owner", &me, "--job", "99"], 14, "ARES_NOT_FOUND");
    stock.fails("ares-claim", &["--owner", &me, "--job", "4"], 1, "ARES_NOTHING_TO_CLAIM");
    assert_eq!(job(&[]), "5");
}

/// Runs a command for a job; gives the status, the report, and the job's state, outcome and tries.
fn around(options: &str, command: &str) -> (i32, String, String) {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    let ran = bash(&stock, &format!("ares-claim {options} --report report -- {command}"));
    let report = std::fs::read_to_string(stock.path().join("report")).expect("a report");
    let end = stock.value(
        "SELECT j.state || ' ' || coalesce(a.outcome, '-') || ' ' || coalesce(a.code, '-') || ' ' || j.tries
         FROM jobs j JOIN attempts a ON a.job = j.id",
    );
    (ran.status, report.trim().to_owned(), end)
}

#[test]
fn a_commands_own_status_is_passed_on() {
    let plain = |status: i32| format!("{{\"status\":{status}}}");
    for options in ["", "--capture"] {
        for (command, status, end) in [
            ("true", 0, "succeeded ok - 1"),
            ("sh -c 'exit 3'", 3, "failed error ARES_EXIT_STATUS 1"),
            ("./no-such-program", 127, "queued void ARES_CANNOT_EXECUTE 0"),
            ("no-such-program", 127, "queued void ARES_CANNOT_EXECUTE 0"),
            ("/etc/passwd", 126, "queued void ARES_CANNOT_EXECUTE 0"),
            ("sh -c 'kill -9 $$'", 137, "uncertain ambiguous ARES_SIGNALLED 1"),
            ("sh -c 'kill -TERM $$'", 143, "uncertain ambiguous ARES_SIGNALLED 1"),
        ] {
            let found = around(options, command);
            assert_eq!(found, (status, plain(status), end.to_owned()), "{options} {command}");
        }
    }
}

#[test]
fn every_failure_of_ours_around_a_command_is_125_and_told_in_the_report() {
    let stock = Stock::new();
    for (setup, code) in [(":", "ARES_NOTHING_TO_CLAIM"), ("chmod 755 .ares", "ARES_STORE_FOREIGN")] {
        let ran =
            bash(&stock, &format!("{setup}; echo '{{\"status\":0}}' >report; ares-claim --report report -- true"));
        assert_eq!(ran.status, 125);
        let report = std::fs::read_to_string(stock.path().join("report")).expect("a report");
        assert!(report.contains(code) && ran.err.contains(code), "{report} {}", ran.err);
    }
}

#[test]
fn a_command_keeps_the_streams_and_knows_its_attempt() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    let script = "echo in | ares-claim -- sh -c 'cat; echo $ARES_JOB $ARES_ATTEMPT; echo err >&2; test -d $ARES_DIR' 2>err; cat err";
    assert_eq!(stock.bash(script, 0), "in\n1 1.1\nerr");
    stock.submit(&[], &["true"]);
    assert_eq!(stock.bash("ares-claim --capture -- sh -c 'echo out; echo err >&2'", 0), "");
    assert_eq!(stock.bash("ares-show 2 --output stdout; ares-show 2 --output stderr", 0), "out\nerr");
}

#[test]
fn a_command_may_settle_itself() {
    let stock = Stock::new();
    for (say, status, state) in [("ok", 3, "succeeded"), ("error", 0, "failed"), ("ambiguous", 0, "uncertain")] {
        let job = stock.submit(&[], &["true"]);
        let script = format!("ares-claim -- sh -c 'ares-settle $ARES_HANDLE {say}; exit {status}'");
        stock.bash(&script, status);
        assert_eq!(stock.state(&job), state, "{say}");
    }
    assert_eq!(stock.value("SELECT count(*) FROM findings"), "0");
}

#[test]
fn a_signal_is_handed_on_to_the_command() {
    let stock = Stock::new();
    for options in ["", "--capture"] {
        for status in [7, 0] {
            let job = stock.submit(&[], &["true"]);
            // exec: the shell itself would only be told of the signal when its child ends.
            let script = format!(
            "rm -f ready; ares-claim {options} -- bash -c 'trap \"echo told >told; exit {status}\" TERM; : >ready; while :; do sleep 0.02; done' &
            while ! [ -e ready ]; do sleep 0.02; done; kill -TERM $!; wait $!; echo $?; cat told; rm told"
        );
            let out = stock.bash(&script, 0);
            assert!(out.ends_with("\ntold"), "{options}: {out}");
            // Whatever it makes of being asked to end, what it had done by then nobody knows.
            assert_eq!(stock.state(&job), "uncertain", "{options} {status}");
            let code = stock.value(&format!("SELECT code FROM attempts WHERE job = {job}"));
            assert_eq!(code, "ARES_STOPPED_RUNNING", "{options} {status}");
            if options.is_empty() {
                assert_eq!(out, format!("{status}\ntold"));
            }
        }
    }
}

#[test]
fn a_command_that_was_asked_to_end_together_with_us_is_not_judged_either() {
    let stock = Stock::new();
    for status in [3, 0] {
        let job = stock.submit(&["--max-tries", "3"], &["true"]);
        let script = format!(
            "rm -f ready; setsid ares-claim -- sh -c 'trap \"exit {status}\" TERM; : >ready; while :; do sleep 0.02; done' & P=$!
            while ! [ -e ready ]; do sleep 0.02; done; kill -TERM -- -$P; wait $P; echo $?"
        );
        assert_eq!(stock.bash(&script, 0), status.to_string());
        assert_eq!(stock.state(&job), "uncertain", "{status}");
    }
}

#[test]
fn processes_that_a_command_leaves_are_told_and_not_ended() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    std::fs::write(stock.path().join("stay"), "echo $$ >pid; : >up; read line <pipe\n").unwrap();
    let script = "mkfifo pipe; ares-claim -- sh -c 'setsid sh stay & while ! [ -e up ]; do sleep 0.01; done'
        kill $(cat pid); echo $?";
    let ran = bash(&stock, script);
    assert_eq!(ran.out, "0\n", "{}", ran.err);
    assert_eq!(ran.err, "ares-claim: attempt 1.1 has ended and 1 process of it is left\n");
    let end = stock.value("SELECT state || ': ' || detail FROM attempts");
    assert!(end.ends_with(": 1 process of it is left"), "{end}");
}
