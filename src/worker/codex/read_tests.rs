//! What the reader makes of endings, orders and damage; whole recordings are in `tests/it/worker.rs`.

use super::read::Reader;
use crate::domain::outcome::{Cause, Outcome, Report, Seen, Usage};
use crate::error::Code;
use crate::worker::Said;
use crate::worker::lines::LINE_MAX;

const ID: &str = "0190d3a1-0000-7000-8000-000000000001";
const OTHER: &str = "0190d3a1-0000-7000-8000-000000000002";
const STARTED: &str = r#"{"type":"thread.started","thread_id":"0190d3a1-0000-7000-8000-000000000001"}"#;
const TURN: &str = r#"{"type":"turn.started"}"#;
const MESSAGE: &str = r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"done"}}"#;
const COMPLETED: &str = r#"{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":2,"reasoning_output_tokens":1}}"#;
const FAILED: &str = r#"{"type":"turn.failed","error":{"message":"no"}}"#;

fn report(lines: &[&str], resume: Option<&str>, seen: &Seen, stderr: &str) -> Report {
    let mut reader = Reader::new(resume);
    reader.feed((lines.join("\n") + "\n").as_bytes());
    reader.finish(seen, stderr.as_bytes())
}

fn ok_lines() -> [&'static str; 4] {
    [STARTED, TURN, MESSAGE, COMPLETED]
}

#[test]
fn a_completed_turn_is_a_success_with_its_answer_and_totals() {
    let report = report(&ok_lines(), Some(ID), &Seen::exited(0), "noise");
    assert_eq!((report.outcome, report.code, report.detail.as_str()), (Outcome::Ok, None, ""));
    assert_eq!((report.answer.as_deref(), report.session.as_deref()), (Some(&b"done"[..]), Some(ID)));
    let expected = Usage { input: 10, cached: 4, output: 2, reasoning: 1, cumulative: true, ..Usage::default() };
    assert_eq!(report.usage, Some(expected));
}

#[test]
fn no_exit_status_but_zero_follows_a_completed_turn() {
    for seen in [
        Seen::exited(1),
        Seen::exited(101),
        Seen { exit: None, signal: Some(9), ..Seen::exited(0) },
        Seen { signal: Some(15), ..Seen::exited(0) },
        Seen { cause: Cause::OutputLimit, ..Seen::exited(0) },
    ] {
        assert_eq!(report(&ok_lines(), None, &seen, "").outcome, Outcome::Ambiguous, "{seen:?}");
    }
}

#[test]
fn what_we_ended_after_its_turn_had_completed_is_a_success() {
    for cause in [Cause::Finished, Cause::TimeoutIdle, Cause::TimeoutWhole, Cause::Stopped] {
        let seen = Seen { cause, exit: None, signal: Some(15), ..Seen::exited(0) };
        let ok = report(&ok_lines(), Some(ID), &seen, "");
        assert_eq!(ok.outcome, Outcome::Ok, "{cause:?}");
        assert!(ok.detail.contains("ended by us"), "{}", ok.detail);
        assert_eq!(report(&ok_lines()[..3], Some(ID), &seen, "").outcome, Outcome::Ambiguous, "{cause:?}");
    }
}

#[test]
fn another_session_is_told_at_its_first_event_and_never_succeeds() {
    let mut reader = Reader::new(Some(OTHER));
    let said = reader.feed(format!("{STARTED}\n").as_bytes());
    assert_eq!(said[0], Said::WrongSession { asked: OTHER.to_owned(), got: ID.to_owned() });
    reader.feed(ok_lines()[1..].join("\n").as_bytes());
    let report = reader.finish(&Seen::exited(0), b"");
    assert_eq!((report.outcome, report.code), (Outcome::Ambiguous, Some(Code::ResumeMismatch)));
    assert!(report.broken && report.answer.is_none());
    assert_eq!(report.session.as_deref(), Some(ID));
    assert_eq!(report.usage.map(|usage| (usage.input, usage.cumulative)), Some((10, false)));
}

#[test]
fn a_resume_that_never_names_its_session_is_not_a_success() {
    for last in [COMPLETED, FAILED] {
        let report = report(&[TURN, MESSAGE, last], Some(ID), &Seen::exited(0), "");
        assert_eq!((report.outcome, report.code), (Outcome::Ambiguous, Some(Code::ResumeMismatch)));
    }
    let nameless = r#"{"type":"thread.started"}"#;
    assert_eq!(report(&[nameless, COMPLETED], None, &Seen::exited(0), "").outcome, Outcome::Ambiguous);
    let changed = STARTED.replace("0001\"", "0002\"");
    assert_eq!(report(&[STARTED, &changed, COMPLETED], None, &Seen::exited(0), "").code, Some(Code::ResumeMismatch));
}

#[test]
fn a_failed_turn_is_a_known_failure_however_the_process_ended() {
    for seen in [Seen::exited(1), Seen::exited(0), Seen { cause: Cause::Finished, signal: Some(9), ..Seen::exited(0) }]
    {
        let report = report(&[STARTED, TURN, FAILED], Some(ID), &seen, "");
        assert_eq!(
            (report.outcome, report.code, report.detail.as_str()),
            (Outcome::Error, Some(Code::TurnFailed), "no")
        );
        assert_eq!(report.session.as_deref(), Some(ID));
    }
    for both in [[FAILED, COMPLETED], [COMPLETED, FAILED]] {
        let report = report(&[STARTED, both[0], both[1]], None, &Seen::exited(0), "");
        assert_eq!(report.outcome, Outcome::Ambiguous);
    }
}

#[test]
fn no_terminal_event_is_no_known_end() {
    let warning = r#"{"type":"error","message":"Reconnecting... 1/5"}"#;
    for status in [0, 1, 2, 101] {
        let report = report(&[STARTED, TURN, warning], None, &Seen::exited(status), "Error: thread/resume failed");
        assert_eq!((report.outcome, report.code), (Outcome::Ambiguous, Some(Code::NoTerminal)));
        assert_eq!(report.detail, format!("exit status {status}; Reconnecting... 1/5"));
    }
    let silent = Reader::new(None).finish(&Seen::exited(1), b"Error: something else");
    assert_eq!(silent.code, Some(Code::NoTerminal));
    let timed = Seen { cause: Cause::TimeoutWhole, signal: Some(15), exit: None, ..Seen::exited(0) };
    assert_eq!(report(&[STARTED, TURN, MESSAGE], None, &timed, "").code, Some(Code::TimedOut));
}

#[test]
fn a_refusal_counts_only_before_anything_was_begun() {
    let refusal = "Error: thread/resume: thread/resume failed: no rollout found for thread id x (code -32600)\n";
    let empty = || Reader::new(Some(ID));
    let void = empty().finish(&Seen::exited(1), refusal.as_bytes());
    assert_eq!((void.outcome, void.code, void.lasting), (Outcome::Void, Some(Code::WorkerSaidNo), true));
    assert_eq!(report(&[STARTED], Some(ID), &Seen::exited(1), refusal).outcome, Outcome::Ambiguous);
    let killed = Seen { cause: Cause::TimeoutFirst, exit: Some(1), ..Seen::exited(1) };
    assert_eq!(empty().finish(&killed, refusal.as_bytes()).outcome, Outcome::Ambiguous);

    let large = "Error: turn/start: turn/start failed: Input exceeds the maximum length of 1048576 characters.\n";
    assert_eq!(report(&[STARTED], None, &Seen::exited(1), large).outcome, Outcome::Void);
    assert_eq!(report(&[STARTED, TURN], None, &Seen::exited(1), large).outcome, Outcome::Ambiguous);
    let noise = "{\"type\":\"thread.started\",\"thread_id\":\"x\"";
    assert_eq!(report(&[STARTED, noise], None, &Seen::exited(1), large).outcome, Outcome::Ambiguous);
}

#[test]
fn the_answer_is_the_last_message_before_the_end() {
    let todo = r#"{"type":"item.completed","item":{"id":"item_1","type":"todo_list","items":[]}}"#;
    let late = MESSAGE.replace("done", "late");
    let first = MESSAGE.replace("done", "first");
    let report_of = |lines: &[&str]| report(lines, None, &Seen::exited(0), "");
    let answer = report_of(&[STARTED, TURN, &first, MESSAGE, todo, COMPLETED, &late]).answer;
    assert_eq!(answer.as_deref(), Some(&b"done"[..]));
    let empty = report_of(&[STARTED, TURN, COMPLETED]);
    assert_eq!((empty.outcome, empty.answer.as_deref()), (Outcome::Ok, Some(&b""[..])));
    assert_eq!(empty.detail, "its turn completed without a message");
    // A second turn that never ends leaves no known end.
    assert_eq!(report_of(&[STARTED, TURN, MESSAGE, COMPLETED, TURN, &late]).code, Some(Code::NoTerminal));
}

#[test]
fn a_message_that_could_not_be_read_is_never_replaced_by_an_earlier_one() {
    let long = "x".repeat(LINE_MAX + 1);
    for lost in [long.as_str(), r#"{"type":"item.completed","item":{"type":"agent_message","text":"#] {
        let report = report(&[STARTED, MESSAGE, lost, COMPLETED], None, &Seen::exited(0), "");
        assert_eq!((report.outcome, report.answer), (Outcome::Ok, None));
        assert!(report.detail.contains("1 lines"), "{}", report.detail);
    }
    let after = report(&[STARTED, &long, COMPLETED, &long], None, &Seen::exited(0), "");
    assert_eq!((after.outcome, after.answer), (Outcome::Ok, None));
    let report = report(&[STARTED, &long, MESSAGE, "noise", COMPLETED], None, &Seen::exited(0), "");
    assert_eq!(report.answer.as_deref(), Some(&b"done"[..]));
}

#[test]
fn damage_and_novelty_are_tolerated() {
    let torn = &COMPLETED[..COMPLETED.len() - 3];
    let mut reader = Reader::new(None);
    reader.feed(format!("{STARTED}\n{MESSAGE}\n{torn}").as_bytes());
    assert_eq!(reader.finish(&Seen::exited(0), b"").code, Some(Code::NoTerminal));
    let mut reader = Reader::new(None);
    reader.feed(format!("{STARTED}\r\n\r\n{MESSAGE}\r\n{COMPLETED}").as_bytes());
    assert_eq!(reader.finish(&Seen::exited(0), b"").outcome, Outcome::Ok);

    let odd = [
        r#"{"new":1,"thread_id":"0190d3a1-0000-7000-8000-000000000001","type":"thread.started"}"#,
        r#"{"type":"item.started","item":{"id":"item_0","type":"web_search","id":"ws_1","query":"q"}}"#,
        r#"{"type":"request_user_input","x":[]}"#,
        r#"[1]"#,
        r#"{"item":{"text":"odd","type":"agent_message"},"type":"item.completed"}"#,
        r#"{"usage":{"input_tokens":7.0,"output_tokens":-1,"cached_input_tokens":"x"},"type":"turn.completed"}"#,
    ];
    let report = report(&odd, Some(ID), &Seen::exited(0), "");
    assert_eq!((report.outcome, report.answer.as_deref()), (Outcome::Ok, Some(&b"odd"[..])));
    assert_eq!(report.usage.map(|usage| (usage.input, usage.output, usage.cached)), Some((7, 0, 0)));
}

#[test]
fn bytes_that_are_no_text_do_not_lose_the_line() {
    let mut reader = Reader::new(None);
    let mut bytes = format!("{STARTED}\n").into_bytes();
    bytes.extend(br#"{"type":"item.completed","item":{"type":"agent_message","text":"a"#);
    bytes.extend(b"\xff\"}}\n");
    bytes.extend(COMPLETED.as_bytes());
    reader.feed(&bytes);
    assert_eq!(reader.finish(&Seen::exited(0), b"").answer, Some("a\u{fffd}".as_bytes().to_vec()));
}

#[test]
fn what_was_said_comes_once_and_in_order() {
    let mut reader = Reader::new(None);
    let said = reader.feed((ok_lines().join("\n") + "\n" + COMPLETED + "\n").as_bytes());
    let words: Vec<&str> = said
        .iter()
        .map(|said| match said {
            Said::Session(_) => "session",
            Said::WrongSession { .. } => "wrong",
            Said::Terminal => "terminal",
            Said::Event(_) => "event",
        })
        .collect();
    assert_eq!(words, ["session", "event", "event", "event", "terminal", "event", "event"]);
}
