//! Recordings of codex, rewritten so that nothing of a real machine or account is left in them, through the reader; then
//! the same recordings cut, damaged and out of order.

mod synthetic;

use ares::domain::outcome::{Outcome, Report, Seen};
use ares::domain::time::{Time, moment};
use ares::error::Code;
use ares::worker::{Adapter, Said};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The session that a recording was asked to continue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    New,
    Same,
    Other,
}
use Asked::{New, Other, Same};

const OTHER: &str = "0190d3a1-ffff-7000-8000-ffffffffffff";

/// Name, exit status, what was asked, outcome, code, answer, input tokens (0 for none told).
type Row = (&'static str, i32, Asked, Outcome, Option<Code>, Option<&'static str>, i64);

const fn ok(name: &'static str, asked: Asked, answer: &'static str, input: i64) -> Row {
    (name, 0, asked, Outcome::Ok, None, Some(answer), input)
}

const fn failed(name: &'static str, code: Code) -> Row {
    (name, 1, New, Outcome::Error, Some(code), None, 0)
}

const fn void(name: &'static str, exit: i32, asked: Asked) -> Row {
    (name, exit, asked, Outcome::Void, Some(Code::WorkerSaidNo), None, 0)
}

const fn open(name: &'static str, exit: i32, code: Code) -> Row {
    (name, exit, New, Outcome::Ambiguous, Some(code), None, 0)
}

const fn elsewhere(name: &'static str) -> Row {
    (name, 0, Other, Outcome::Ambiguous, Some(Code::ResumeMismatch), None, 2002)
}

const TABLE: &[Row] = &[
    ok("097-conc-resume-0", Same, "slow done", 4004),
    ok("097-conc-resume-1", Same, "slow done", 4006),
    failed("097-connrefused", Code::TurnFailed),
    ok("097-cut-then-ok", New, "recovered after cut", 2004),
    failed("097-cut", Code::TurnFailed),
    ok("097-cutaftermsg-then-ok", New, "message n=2", 2004),
    ok("097-empty", New, "", 2002),
    failed("097-err400ctx", Code::ContextTooLong),
    failed("097-err401", Code::Authentication),
    failed("097-err404", Code::ModelNotFound),
    failed("097-err429rate", Code::RateLimited),
    failed("097-err429usage", Code::Quota),
    failed("097-err429usagepro", Code::Quota),
    ok("097-err500-then-ok2", New, "you asked: do it", 2006),
    failed("097-err503", Code::Overloaded),
    ok("097-first", New, "you asked: hello one", 2002),
    failed("097-hang", Code::TurnFailed),
    failed("097-incomplete-max-output-tokens", Code::TurnFailed),
    ok("097-nousage", New, "no usage here", 0),
    ok("097-okreason", New, "final answer", 2002),
    elsewhere("097-resume-empty-id"),
    elsewhere("097-resume-garbage"),
    elsewhere("097-resume-last-nosessions"),
    void("097-resume-sandbox-after", 2, Other),
    ok("097-resume-sandbox-before", Same, "you asked: p", 14014),
    ok("097-resume-stdin-dash", Same, "you asked: resume prompt via stdin", 4004),
    elsewhere("097-resume-unknown-uuid"),
    ok("097-resume", Same, "you asked: hello two", 4004),
    ok("097-resume3", Same, "you asked: hello three", 6006),
    open("097-sigint", 0, Code::NoTerminal),
    ok("097-toolmcp", New, "mcp said: [{\"type\":\"text\",\"text\":\"echo: hi mcp\"}]", 4006),
    ok("097-toolonce", New, "the command printed hello", 4006),
    ok(
        "097-toolpatch",
        New,
        "after patch: patch rejected: writing outside of the project; rejected by user approval settings",
        4006,
    ),
    ok("097-toolplan", New, "plan done", 6012),
    ok("097-toolweb", New, "searched", 2002),
    void("171-bad-config", 1, New),
    void("171-bad-utf8", 1, New),
    void("171-conc-resume-0", 1, Other),
    ok("171-conc-resume-1", Same, "slow done", 4004),
    failed("171-connrefused-bounded", Code::TurnFailed),
    ok("171-cut-then-ok", New, "recovered after cut", 2004),
    failed("171-cut", Code::TurnFailed),
    ok("171-cutaftermsg-then-ok", New, "message n=2", 2004),
    failed("171-cutaftermsg", Code::TurnFailed),
    void("171-empty-session", 1, Other),
    ok("171-empty", New, "", 2002),
    open("171-endless", 1, Code::NoTerminal),
    failed("171-err400", Code::TurnFailed),
    failed("171-err400ctx", Code::ContextTooLong),
    failed("171-err401", Code::Authentication),
    failed("171-err403", Code::Authentication),
    failed("171-err404", Code::ModelNotFound),
    failed("171-err429insufficient", Code::Quota),
    failed("171-err429later", Code::Quota),
    failed("171-err429notincluded", Code::Quota),
    failed("171-err429rate", Code::RateLimited),
    failed("171-err429team", Code::Quota),
    failed("171-err429usage", Code::Quota),
    failed("171-err429usagepro", Code::Quota),
    ok("171-err500-then-ok2", New, "you asked: do it", 2006),
    failed("171-err500", Code::Overloaded),
    failed("171-err502", Code::Overloaded),
    failed("171-err503", Code::Overloaded),
    failed("171-errkey", Code::Authentication),
    ok("171-file-change", New, "written", 2002),
    ok("171-first", New, "you asked: hello one", 2002),
    ok("171-fork", New, "you asked: forked prompt", 34034),
    failed("171-hang", Code::TurnFailed),
    failed("171-incomplete-max-output-tokens", Code::TurnFailed),
    open("171-killed-torn", 137, Code::NoTerminal),
    void("171-missing-ordinal", 1, Other),
    open("171-nothing", 1, Code::NoTerminal),
    ok("171-nousage", New, "no usage here", 0),
    ok("171-okreason", New, "final answer", 2002),
    open("171-panicked", 101, Code::NoTerminal),
    elsewhere("171-resume-empty-id"),
    elsewhere("171-resume-garbage"),
    elsewhere("171-resume-last-nosessions"),
    ok("171-resume-other-model", Same, "an answer", 2002),
    void("171-resume-sandbox-after", 2, Other),
    ok("171-resume-sandbox-before", Same, "you asked: p", 18018),
    ok("171-resume-stdin-dash", Same, "you asked: resume prompt via stdin", 4004),
    void("171-resume-unknown-uuid", 1, Other),
    ok("171-resume", Same, "you asked: hello two", 4004),
    ok("171-resume3", Same, "you asked: hello three", 6006),
    open("171-sigint", 1, Code::NoTerminal),
    void("171-too-large", 1, New),
    ok("171-toolmcp", New, "mcp said: unsupported call: helper echo", 4006),
    ok("171-toolonce", New, "the command printed hello", 4006),
    ok(
        "171-toolpatch",
        New,
        "after patch: patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings",
        4006,
    ),
    ok("171-toolplan", New, "plan done", 6012),
    ok("171-toolweb", New, "searched", 2002),
    void("171-unknown-feature", 1, New),
    open("171-unrecognised", 1, Code::NoTerminal),
    void("171-untrusted", 1, New),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/codex")
}

fn stdout(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{name}.jsonl"))).unwrap()
}

fn stderr(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{name}.stderr"))).unwrap_or_default()
}

/// The session that a recording names first.
fn session(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    text.split("\"thread_id\":\"").nth(1).and_then(|rest| rest.get(..36)).map(str::to_owned)
}

fn asked(row: &Row, bytes: &[u8]) -> Option<String> {
    match row.2 {
        New => None,
        Same => session(bytes),
        Other => Some(OTHER.to_owned()),
    }
}

fn seen(exit: i32) -> Seen {
    Seen { ended: moment("2026-11-30T17:14:40Z", Time(0)).unwrap().0, ..Seen::exited(exit) }
}

fn read(resume: Option<&str>, bytes: &[u8], exit: i32, stderr: &[u8]) -> (Vec<Said>, Report) {
    let mut reader = Adapter::Codex.reader(resume);
    let said = reader.feed(bytes);
    (said, reader.finish(&seen(exit), stderr))
}

#[test]
fn every_recording_is_read_as_what_it_was() {
    for row in TABLE {
        let (name, exit, _, outcome, code, answer, input) = *row;
        let bytes = stdout(name);
        let (said, report) = read(asked(row, &bytes).as_deref(), &bytes, exit, &stderr(name));
        assert_eq!((report.outcome, report.code), (outcome, code), "{name}: {}", report.detail);
        assert_eq!(report.answer.as_deref(), answer.map(str::as_bytes), "{name}");
        assert_eq!(report.session, session(&bytes), "{name}");
        assert_eq!(report.usage.as_ref().map(|usage| usage.input), (input > 0).then_some(input), "{name}");
        assert!(report.usage.is_none_or(|usage| usage.cumulative != report.broken), "{name}");
        assert_eq!(report.broken, code == Some(Code::ResumeMismatch), "{name}");
        let wrong = said.iter().any(|said| matches!(said, Said::WrongSession { .. }));
        assert_eq!(wrong, report.broken, "{name}");
        let terminal = matches!(outcome, Outcome::Ok | Outcome::Error) || report.broken;
        assert_eq!(said.contains(&Said::Terminal), terminal, "{name}");
    }
}

#[test]
fn only_some_failures_are_worth_another_try_and_only_a_busy_session_is_a_passing_refusal() {
    let at = |text: &str| Some(Some(moment(text, Time(0)).unwrap()));
    for row in TABLE {
        let name = row.0;
        let bytes = stdout(name);
        let (_, report) = read(asked(row, &bytes).as_deref(), &bytes, row.1, &stderr(name));
        let retry = match name {
            "097-err429usage" => at("2026-11-30T19:21:00Z"),
            "171-err429usage" => at("2026-11-30T19:15:00Z"),
            "171-err429team" => at("2026-11-30T18:27:00Z"),
            "097-err429usagepro" => at("2026-12-02T18:22:00Z"),
            "171-err429usagepro" => at("2026-12-02T18:16:00Z"),
            "171-err429later" => Some(None),
            _ if matches!(row.4, Some(Code::RateLimited | Code::Overloaded)) => Some(None),
            _ => None,
        };
        assert_eq!(report.retry, retry, "{name}");
        let lasting = row.3 == Outcome::Void && name != "171-conc-resume-0";
        assert_eq!(report.lasting, lasting, "{name}");
    }
}

#[test]
fn no_recording_is_forgotten_or_names_a_machine() {
    let names: BTreeSet<String> = TABLE.iter().map(|row| row.0.to_owned()).collect();
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        files.insert(path.file_stem().unwrap().to_string_lossy().into_owned());
        let text = std::fs::read_to_string(&path).unwrap();
        for word in ["/home/", "/root", "/Users/", "127.0.0.1", "localhost", "@"] {
            assert!(!text.contains(word), "{} contains {word}", path.display());
        }
    }
    assert_eq!(names, files);
    assert_eq!(names.len(), TABLE.len());
}

#[test]
fn byte_by_byte_is_the_same_as_at_once() {
    for row in TABLE {
        let bytes = stdout(row.0);
        let resume = asked(row, &bytes);
        let whole = read(resume.as_deref(), &bytes, row.1, &stderr(row.0));
        let mut reader = Adapter::Codex.reader(resume.as_deref());
        let said: Vec<Said> = bytes.iter().flat_map(|byte| reader.feed(&[*byte])).collect();
        assert_eq!((said, reader.finish(&seen(row.1), &stderr(row.0))), whole, "{}", row.0);
    }
}

#[test]
fn no_beginning_of_a_recording_is_a_success() {
    for row in TABLE.iter().filter(|row| row.3 == Outcome::Ok) {
        let bytes = stdout(row.0);
        // The last byte is the end of the line, without which the last event is whole all the same.
        for end in 0..bytes.len() - 1 {
            let (_, report) = read(asked(row, &bytes).as_deref(), &bytes[..end], 0, b"");
            assert_eq!(report.outcome, Outcome::Ambiguous, "{} cut at {end}", row.0);
        }
    }
}

/// A small generator that gives the same numbers at every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

#[test]
fn garbage_is_never_a_success() {
    let mut numbers = Numbers(1);
    let pieces: &[&[u8]] = &[
        b"{\"type\":\"",
        b"turn.completed",
        b"\"}",
        b"\n",
        b"{",
        b"}",
        b"[",
        b"\"",
        b"\xff",
        b"\0",
        b"thread.started",
        b":",
        b"\"usage\":{",
        b"1e999",
        b"-1",
        b"null",
        b"\\ud800",
        b"{\"item\":",
        b"agent_message",
        b"\r\n",
    ];
    for round in 0..4000 {
        let mut bytes = Vec::new();
        for _ in 0..numbers.below(40) {
            match numbers.below(3) {
                0 => bytes.push(u8::try_from(numbers.below(256)).unwrap()),
                _ => bytes.extend(pieces[numbers.below(pieces.len())]),
            }
        }
        for resume in [None, Some(OTHER)] {
            for exit in [0, 1, 2] {
                let (_, report) = read(resume, &bytes, exit, &bytes);
                assert_ne!(report.outcome, Outcome::Ok, "round {round}: {:?}", String::from_utf8_lossy(&bytes));
            }
        }
    }
}

#[test]
fn a_flipped_byte_never_makes_a_success_of_something_else() {
    let mut numbers = Numbers(2);
    for row in TABLE.iter().filter(|row| row.3 != Outcome::Ok && !stdout(row.0).is_empty()) {
        let bytes = stdout(row.0);
        for _ in 0..200 {
            let mut bytes = bytes.clone();
            let at = numbers.below(bytes.len());
            bytes[at] ^= 1 << numbers.below(8);
            let (_, report) = read(asked(row, &stdout(row.0)).as_deref(), &bytes, row.1, &stderr(row.0));
            assert_ne!(report.outcome, Outcome::Ok, "{} flipped at {at}", row.0);
        }
    }
}

#[test]
fn lines_out_of_order_succeed_only_when_the_end_comes_last_of_what_matters() {
    let mut numbers = Numbers(3);
    for row in TABLE {
        let text = String::from_utf8(stdout(row.0)).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        for _ in 0..50 {
            for at in (1..lines.len()).rev() {
                lines.swap(at, numbers.below(at + 1));
            }
            let (_, report) = read(asked(row, text.as_bytes()).as_deref(), lines.join("\n").as_bytes(), row.1, b"");
            if report.outcome != Outcome::Ok {
                continue;
            }
            assert_eq!(row.3, Outcome::Ok, "{}", row.0);
            let place = |mark: &str| lines.iter().position(|line| line.contains(mark)).unwrap();
            assert!(place("\"turn.started\"") < place("\"turn.completed\""), "{}", row.0);
        }
    }
}
