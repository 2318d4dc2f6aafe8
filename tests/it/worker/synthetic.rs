//! The synthetic worker as a process, called and read through the adapter: every scenario ends as the thing that it
//! plays would, and a session really goes on.

use ares::domain::outcome::{Cause, Outcome, Report, Seen};
use ares::domain::spec::{Limits, Spec};
use ares::error::Code;
use ares::host::clock;
use ares::worker::{Adapter, builtin};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ares-synthetic");
const UNKNOWN: &str = "0190d3a1-ffff-7000-8000-ffffffffffff";

fn spec() -> Spec {
    let limits: Limits = builtin("synthetic").unwrap().limits;
    Spec { worker: "synthetic".to_owned(), dir: "/".to_owned(), ..Spec::plain("codex", PROGRAM, &[], limits) }
}

fn call(home: &Path, resume: Option<&str>) -> duct::Expression {
    let plan = Adapter::Codex.plan(&spec(), resume, "1.1").unwrap();
    let call = duct::cmd(PROGRAM, plan.args).dir(home).env("ARES_SYNTHETIC_HOME", home).env_remove("ARES_SYNTHETIC");
    plan.env.into_iter().fold(call, |call, (name, value)| call.env(name, value))
}

/// Plays one turn to its end, or for as long as this; gives the report and what was printed.
fn turn_within(home: &Path, resume: Option<&str>, prompt: &str, time: Duration) -> (Report, String) {
    let call = call(home, resume).stdin_bytes(prompt).stdout_capture().stderr_capture().unchecked();
    let handle = call.start().unwrap();
    let mut cause = Cause::Exited;
    if handle.wait_timeout(time).unwrap().is_none() {
        cause = Cause::TimeoutWhole;
        handle.kill().unwrap();
    }
    let output = handle.wait().unwrap();
    let (exit, signal) = (output.status.code(), output.status.signal());
    let seen = Seen { cause, exit, signal, ended: clock::now().0, ..Seen::exited(0) };
    let mut reader = Adapter::Codex.reader(resume);
    reader.feed(&output.stdout);
    (reader.finish(&seen, &output.stderr), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn turn(home: &Path, resume: Option<&str>, prompt: &str) -> Report {
    turn_within(home, resume, prompt, Duration::from_secs(20)).0
}

fn answer(report: &Report) -> String {
    String::from_utf8(report.answer.clone().unwrap()).unwrap()
}

#[test]
fn a_session_goes_on_over_processes_and_its_totals_grow() {
    let home = tempfile::tempdir().unwrap();
    let first = turn(home.path(), None, "count\nthese three words");
    assert_eq!(first.outcome, Outcome::Ok, "{}", first.detail);
    assert_eq!(answer(&first), "turn 1 of this conversation\nthis message has 2 lines, 4 words, 23 bytes: count");
    let id = first.session.clone().unwrap();
    let failed = turn(home.path(), Some(&id), "scenario: fail:500\nagain");
    assert_eq!((failed.outcome, failed.session.as_deref()), (Outcome::Error, Some(id.as_str())));
    let third = turn(home.path(), Some(&id), "and now?");
    // A failed turn leaves what the user said in the session, as with the real one.
    assert!(
        answer(&third)
            .starts_with("turn 3 of this conversation; you said before: \"count\\nthese three words\" | \"again\"\n")
    );
    assert!(third.usage.unwrap().input > first.usage.unwrap().input + 1000);
    let day = clock::now().to_string()[..10].replace('-', "/");
    let kept = std::fs::read_dir(home.path().join("sessions").join(day)).unwrap().count();
    assert_eq!(kept, 1);
}

/// Every scenario, and what its turn ends as.
const SCENARIOS: &[(&str, Outcome, Option<Code>)] = {
    use Outcome::{Ambiguous, Error, Ok, Void};
    &[
        ("ok", Ok, None),
        ("ok@97", Ok, None),
        ("reason", Ok, None),
        ("tool", Ok, None),
        ("mcp", Ok, None),
        ("patch", Ok, None),
        ("todo", Ok, None),
        ("websearch", Ok, None),
        ("commentary", Ok, None),
        ("warning", Ok, None),
        ("empty", Ok, None),
        ("nousage", Ok, None),
        ("noise", Ok, None),
        ("reconnect", Ok, None),
        ("cut-after-message", Ok, None),
        ("slow:1", Ok, None),
        ("sleep:0", Ok, None),
        ("linger:0", Ok, None),
        ("orphan:0", Ok, None),
        ("daemon:0", Ok, None),
        ("fork:0", Ok, None),
        ("flood:1", Ok, None),
        ("flood-stderr:1", Ok, None),
        ("long-line:1", Ok, None),
        // An answer that is longer than a line may be is the whole output, and no failure.
        ("long-line:5", Ok, None),
        ("mute:0", Ambiguous, Some(Code::NoTerminal)),
        ("killed", Ambiguous, Some(Code::Signalled)),
        ("killed-saved", Ambiguous, Some(Code::Signalled)),
        ("torn", Ambiguous, Some(Code::Signalled)),
        ("signal:15", Ambiguous, Some(Code::Signalled)),
        ("exit", Ambiguous, Some(Code::NoTerminal)),
        ("exit:1", Ambiguous, Some(Code::NoTerminal)),
        ("late-exit", Ambiguous, Some(Code::Uncertain)),
        ("panic", Ambiguous, Some(Code::NoTerminal)),
        ("nameless", Ambiguous, Some(Code::Uncertain)),
        ("too-large", Void, Some(Code::WorkerSaidNo)),
        ("unknown", Void, Some(Code::WorkerSaidNo)),
        ("busy", Void, Some(Code::WorkerSaidNo)),
        ("empty-session", Void, Some(Code::WorkerSaidNo)),
        ("untrusted", Void, Some(Code::WorkerSaidNo)),
        ("bad-config", Void, Some(Code::WorkerSaidNo)),
        ("bad-utf8", Void, Some(Code::WorkerSaidNo)),
        ("no-prompt", Void, Some(Code::WorkerSaidNo)),
        ("bad-argument", Void, Some(Code::WorkerSaidNo)),
        ("nosuch", Void, Some(Code::WorkerSaidNo)),
        ("fail", Error, Some(Code::TurnFailed)),
        ("fail:401", Error, Some(Code::Authentication)),
        ("fail:403", Error, Some(Code::Authentication)),
        ("fail:key", Error, Some(Code::Authentication)),
        ("fail:404", Error, Some(Code::ModelNotFound)),
        ("fail@97:404", Error, Some(Code::ModelNotFound)),
        ("fail:400", Error, Some(Code::TurnFailed)),
        ("fail:context", Error, Some(Code::ContextTooLong)),
        ("fail@97:context", Error, Some(Code::ContextTooLong)),
        ("fail:usage", Error, Some(Code::Quota)),
        ("fail:usagepro", Error, Some(Code::Quota)),
        ("fail@97:usageteam", Error, Some(Code::Quota)),
        ("fail:usagelater", Error, Some(Code::Quota)),
        ("fail:notincluded", Error, Some(Code::Quota)),
        ("fail:insufficient", Error, Some(Code::Quota)),
        ("fail@97:insufficient", Error, Some(Code::RateLimited)),
        ("fail:rate", Error, Some(Code::RateLimited)),
        ("fail:500", Error, Some(Code::Overloaded)),
        ("fail:503", Error, Some(Code::Overloaded)),
        ("fail@97:503", Error, Some(Code::Overloaded)),
        ("fail:502", Error, Some(Code::Overloaded)),
        ("fail:cut", Error, Some(Code::TurnFailed)),
        ("fail:idle", Error, Some(Code::TurnFailed)),
        ("fail:incomplete", Error, Some(Code::TurnFailed)),
        ("fail:refused", Error, Some(Code::TurnFailed)),
    ]
};

#[test]
fn every_scenario_ends_as_what_it_plays() {
    let home = tempfile::tempdir().unwrap();
    for (scenario, outcome, code) in SCENARIOS {
        let report = turn(home.path(), None, &format!("scenario: {scenario}\nwords"));
        assert_eq!((report.outcome, report.code), (*outcome, *code), "{scenario}: {}", report.detail);
    }
}

#[test]
fn a_quota_names_its_reset_so_that_the_adapter_finds_it() {
    let home = tempfile::tempdir().unwrap();
    for (scenario, minutes) in [("fail:usage=30", 30), ("fail:usagepro", 49 * 60), ("fail@97:usageteam=3000", 3000)] {
        let now = clock::now().0;
        let report = turn(home.path(), None, &format!("scenario: {scenario}\nwords"));
        let reset = report.retry.flatten().unwrap().0;
        let late = reset - (now + minutes * 60_000);
        assert!((0..120_000).contains(&late), "{scenario}: {late} ms late, {}", report.detail);
    }
}

#[test]
fn what_does_not_end_is_ended_and_only_a_completed_turn_counts() {
    let home = tempfile::tempdir().unwrap();
    let within = |scenario: &str| {
        turn_within(home.path(), None, &format!("scenario: {scenario}\nwords"), Duration::from_millis(400)).0
    };
    assert_eq!(within("linger").outcome, Outcome::Ok);
    for scenario in ["hang", "mute", "endless", "stubborn", "sleep"] {
        let report = within(scenario);
        assert_eq!((report.outcome, report.code), (Outcome::Ambiguous, Some(Code::TimedOut)), "{scenario}");
    }
}

#[test]
fn a_resume_elsewhere_is_told_and_an_unknown_one_refused() {
    let home = tempfile::tempdir().unwrap();
    let id = turn(home.path(), None, "words").session.unwrap();
    let elsewhere = turn(home.path(), Some(&id), "scenario: elsewhere\nwords");
    assert_eq!((elsewhere.code, elsewhere.broken), (Some(Code::ResumeMismatch), true));
    assert_ne!(elsewhere.session.unwrap(), id);
    let unknown = turn(home.path(), Some(UNKNOWN), "words");
    assert_eq!((unknown.outcome, unknown.lasting), (Outcome::Void, true));
    let old = turn(home.path(), Some(UNKNOWN), "scenario: ok@97\nwords");
    assert_eq!(old.code, Some(Code::ResumeMismatch));
}

#[test]
fn one_session_has_one_writer() {
    let home = tempfile::tempdir().unwrap();
    let id = turn(home.path(), None, "words").session.unwrap();
    let holder = call(home.path(), Some(&id)).stdin_bytes("scenario: hang\nwords").stdout_null().start().unwrap();
    let refused = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        Some(turn(home.path(), Some(&id), "words")).filter(|report| report.outcome == Outcome::Void)
    });
    holder.kill().unwrap();
    let refused = refused.expect("a refusal");
    assert_eq!((refused.code, refused.lasting), (Some(Code::WorkerSaidNo), false));
    assert_eq!(turn(home.path(), Some(&id), "words").outcome, Outcome::Ok);
}

#[test]
fn a_turn_that_was_saved_and_never_told_is_in_its_session() {
    let home = tempfile::tempdir().unwrap();
    let id = turn(home.path(), None, "scenario: killed-saved\nfirst").session.unwrap();
    let day = home.path().join("sessions").join(clock::now().to_string()[..10].replace('-', "/"));
    let path = std::fs::read_dir(day).unwrap().next().unwrap().unwrap().path();
    assert!(path.to_string_lossy().ends_with(&format!("-{id}.jsonl")));
    let last = std::fs::read_to_string(path).unwrap();
    let last = last.lines().last().unwrap();
    assert!(last.contains("task_complete") && last.contains("turn 1 of this conversation"), "{last}");
    let next = turn(home.path(), Some(&id), "second");
    assert!(answer(&next).starts_with("turn 2 of this conversation; you said before: \"first\""));
}

#[test]
fn an_interrupt_ends_it_with_the_status_of_its_version() {
    let home = tempfile::tempdir().unwrap();
    for (scenario, status) in [("hang", 1), ("hang@97", 0)] {
        let out = home.path().join("out");
        let call = call(home.path(), None).stdin_bytes(format!("scenario: {scenario}\nwords")).stdout_path(&out);
        let handle = call.unchecked().start().unwrap();
        while !std::fs::read_to_string(&out).unwrap_or_default().contains("turn.started") {
            std::thread::sleep(Duration::from_millis(5));
        }
        let pid = rustix::process::Pid::from_raw(i32::try_from(handle.pids()[0]).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert_eq!(handle.wait().unwrap().status.code(), Some(status), "{scenario}");
    }
}

#[test]
fn a_recording_is_replayed_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let file = super::AGENTS[0].folder().join("171-cut.jsonl");
    let prompt = format!("scenario: replay:{}=1\n", file.display());
    let (report, printed) = turn_within(home.path(), None, &prompt, Duration::from_secs(20));
    assert_eq!((report.outcome, report.code), (Outcome::Error, Some(Code::TurnFailed)));
    assert_eq!(printed.as_bytes(), super::AGENTS[0].stdout("171-cut"));
}

#[test]
fn prompts_are_taken_as_codex_takes_them() {
    let home = tempfile::tempdir().unwrap();
    let run = |args: &[&str], input: &[u8]| {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        let call = duct::cmd(PROGRAM, args).dir(home.path()).env("ARES_SYNTHETIC_HOME", home.path());
        let output = call.stdin_bytes(input).stdout_capture().stderr_capture().unchecked().run().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let first = ["exec", "--json", "--skip-git-repo-check", "-"];
    assert_eq!(run(&first, b"abc\xff"), (1, String::new()));
    assert_eq!(run(&first, b" \n"), (1, String::new()));
    let (status, printed) = run(&first, &vec![b'x'; (1 << 20) + 1]);
    assert_eq!((status, printed.lines().count()), (1, 1));
    assert_eq!(run(&["exec", "--json", "-"], b"x"), (1, String::new()));
    assert_eq!(run(&["exec", "resume", "--json", "-s", "read-only", "x", "-"], b"x"), (2, String::new()));
    let (status, printed) = run(&["exec", "--json", "--skip-git-repo-check", "words"], b"more");
    assert_eq!(status, 0);
    assert!(printed.contains("this message has 5 lines, 4 words"), "{printed}");
    // Anything but an id is taken for the name of a new session.
    assert_eq!(run(&["exec", "resume", "--json", "--skip-git-repo-check", "not-a-uuid", "-"], b"x").0, 0);
    assert_eq!(run(&["--help"], b"").0, 0);
}

#[test]
fn a_child_in_the_group_holds_the_output_and_one_of_its_own_session_does_not() {
    let home = tempfile::tempdir().unwrap();
    for (scenario, holds) in [("orphan:1", true), ("daemon:1", false)] {
        let since = clock::mark();
        // The captured output ends only when its last writer ends, however early the worker itself did.
        assert_eq!(turn(home.path(), None, &format!("scenario: {scenario}\nwords")).outcome, Outcome::Ok);
        assert_eq!(since.elapsed() >= Duration::from_secs(1), holds, "{scenario}");
    }
}

#[test]
fn it_panics_as_codex_does_when_nobody_reads_its_output() {
    let home = tempfile::tempdir().unwrap();
    let script = format!("('{PROGRAM}' exec --json --skip-git-repo-check -; echo $? > status) | :");
    let call = duct::cmd("sh", ["-c", &script]).dir(home.path()).env("ARES_SYNTHETIC_HOME", home.path());
    call.stdin_bytes("scenario: slow:50\nwords").stderr_null().run().unwrap();
    assert_eq!(std::fs::read_to_string(home.path().join("status")).unwrap(), "101\n");
}

#[test]
fn without_arguments_it_says_what_it_plays() {
    let output = duct::cmd(PROGRAM, &[] as &[&str]).stderr_capture().unchecked().run().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("killed-saved"));
}
