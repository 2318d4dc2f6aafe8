//! What the reader makes of endings, orders and sessions; whole recordings are in `tests/it/worker.rs`.

use super::read::Reader;
use crate::domain::outcome::{Cause, Outcome, Report, Seen, Usage};
use crate::domain::time::Time;
use crate::error::Code;
use crate::worker::Said;

const ID: &str = "0190d3a1-0000-4000-8000-000000000001";
const OTHER: &str = "0190d3a1-0000-4000-8000-000000000002";
const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"0190d3a1-0000-4000-8000-000000000001"}"#;
const MESSAGE: &str = r#"{"type":"assistant","message":{"model":"model-a","content":[{"type":"text","text":"done"}]}}"#;
const RESULT: &str = r#"{"is_error":false,"subtype":"success","stop_reason":"end_turn","num_turns":1,"session_id":"0190d3a1-0000-4000-8000-000000000001","usage":{"input_tokens":10,"cache_creation_input_tokens":1,"cache_read_input_tokens":4,"output_tokens":2,"output_tokens_details":{"thinking_tokens":1}},"total_cost_usd":0.5,"model_usage_since_last_result":{"model-a":{"costUSD":0.25},"model-b":{"costUSD":0.05}},"result":"done","type":"result"}"#;

fn report(lines: &[&str], resume: Option<&str>, seen: &Seen, stderr: &str) -> Report {
    let mut reader = Reader::new(resume);
    lines.iter().for_each(|line| {
        reader.feed(format!("{line}\n").as_bytes());
    });
    reader.finish(seen, stderr.as_bytes())
}

fn failed(words: &str, more: &str) -> String {
    format!(
        r#"{{"type":"result","subtype":"success","is_error":true,"num_turns":1,"session_id":"{ID}","result":"{words}"{more}}}"#
    )
}

#[test]
fn a_completed_turn_is_a_success_with_its_answer_its_own_numbers_and_model() {
    let report = report(&[INIT, MESSAGE, RESULT], Some(ID), &Seen::exited(0), "noise");
    assert_eq!((report.outcome, report.code, report.detail.as_str()), (Outcome::Ok, None, ""));
    assert_eq!((report.answer.as_deref(), report.session.as_deref()), (Some(&b"done"[..]), Some(ID)));
    assert_eq!(report.model_served.as_deref(), Some("model-a"));
    let cost_nano = Some(300_000_000);
    let expected = Usage { input: 15, cached: 4, output: 2, reasoning: 1, cost_nano, ..Usage::default() };
    assert_eq!(report.usage, Some(expected));
}

#[test]
fn an_older_version_tells_the_cost_of_its_own_process() {
    let (before, _) = RESULT.split_once(r#""model_usage"#).unwrap();
    let old = format!(r#"{before}"result":"done","type":"result"}}"#);
    let report = report(&[INIT, &old], None, &Seen::exited(0), "");
    assert_eq!(report.usage.and_then(|usage| usage.cost_nano), Some(500_000_000));
}

#[test]
fn no_exit_status_but_zero_follows_a_completed_turn() {
    for seen in [
        Seen::exited(1),
        Seen { exit: None, signal: Some(9), ..Seen::exited(0) },
        Seen { cause: Cause::OutputLimit, ..Seen::exited(0) },
    ] {
        assert_eq!(report(&[INIT, RESULT], None, &seen, "").outcome, Outcome::Ambiguous, "{seen:?}");
    }
    let ended = Seen { cause: Cause::Finished, exit: None, signal: Some(15), ..Seen::exited(0) };
    assert_eq!(report(&[INIT, RESULT], None, &ended, "").outcome, Outcome::Ok);
}

#[test]
fn another_session_is_told_at_its_first_event_and_never_a_success() {
    let mut reader = Reader::new(Some(OTHER));
    let said = reader.feed(format!("{INIT}\n").as_bytes());
    assert_eq!(said[0], Said::WrongSession { asked: OTHER.to_owned(), got: ID.to_owned() });
    let report = report(&[INIT, MESSAGE, RESULT], Some(OTHER), &Seen::exited(0), "");
    assert_eq!((report.code, report.broken), (Some(Code::ResumeMismatch), true));
    assert_eq!(report.session.as_deref(), Some(ID));
    let other = RESULT.replace(ID, OTHER);
    let report = super::read_tests::report(&[INIT, &other], None, &Seen::exited(0), "");
    assert_eq!((report.outcome, report.code), (Outcome::Ambiguous, Some(Code::ResumeMismatch)));
    assert_eq!(super::read_tests::report(&[RESULT], None, &Seen::exited(0), "").outcome, Outcome::Ambiguous);
}

#[test]
fn a_success_without_the_end_of_the_answer_and_two_ends_are_unknown() {
    let cut = RESULT.replace(r#""end_turn""#, "null");
    assert_eq!(report(&[INIT, &cut], None, &Seen::exited(0), "").code, Some(Code::NoTerminal));
    let both = report(&[INIT, RESULT, &failed("no", "")], None, &Seen::exited(0), "");
    assert_eq!((both.outcome, both.code), (Outcome::Ambiguous, Some(Code::Uncertain)));
    for none in [&[][..], &[INIT], &[INIT, MESSAGE]] {
        assert_eq!(report(none, None, &Seen::exited(0), "").code, Some(Code::NoTerminal), "{none:?}");
    }
    let no_bool = RESULT.replace("\"is_error\":false,", "");
    assert_ne!(report(&[INIT, &no_bool], None, &Seen::exited(0), "").outcome, Outcome::Ok);
}

#[test]
fn an_interrupted_turn_is_no_failure() {
    let aborted = failed("", r#","terminal_reason":"aborted_tools""#);
    let report = report(&[INIT, &aborted], None, &Seen::exited(0), "");
    assert_eq!((report.outcome, report.code), (Outcome::Ambiguous, Some(Code::NoTerminal)));
}

#[test]
fn causes_are_told_by_status_class_and_words() {
    let reset = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1796064685}}"#;
    let class = |name: &str| format!(r#"{{"type":"assistant","message":{{"model":"<synthetic>"}},"error":"{name}"}}"#);
    /// What comes before the result, the result, the code, and when to try again.
    type Case<'a> = (&'a [&'a str], String, Code, Option<Option<Time>>);
    let cases: &[Case<'_>] = &[
        (&[], failed("Not logged in · Please run /login", ""), Code::Authentication, None),
        (&[&class("authentication_failed")], failed("other words", ""), Code::Authentication, None),
        (&[&class("model_not_found")], failed("other words", ""), Code::ModelNotFound, None),
        (&[], failed("Prompt is too long · x", ""), Code::ContextTooLong, None),
        (&[], failed("other", r#","terminal_reason":"prompt_too_long""#), Code::ContextTooLong, None),
        (&[&class("billing_error")], failed("Credit balance is too low", ""), Code::Quota, None),
        (&[reset], failed("You've hit your 5-hour limit", ""), Code::Quota, Some(Some(Time(1_796_064_685_000)))),
        (&[&class("rate_limit")], failed("API Error: x", r#","api_error_status":529"#), Code::Overloaded, Some(None)),
        (&[&class("rate_limit")], failed("API Error: x", ""), Code::RateLimited, Some(None)),
        (&[&class("server_error")], failed("API Error: Connection refused", ""), Code::TurnFailed, None),
        (&[], failed("something new", ""), Code::TurnFailed, None),
    ];
    for (before, result, code, retry) in cases {
        let lines: Vec<&str> = [INIT].into_iter().chain(before.iter().copied()).chain([result.as_str()]).collect();
        let report = report(&lines, None, &Seen::exited(1), "");
        assert_eq!((report.outcome, report.code, report.retry), (Outcome::Error, Some(*code), *retry), "{result}");
    }
}

#[test]
fn it_refused_only_where_nothing_began() {
    let unknown = format!(
        r#"{{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,"session_id":"{OTHER}","errors":["No conversation found with session ID: {ID}"]}}"#
    );
    let refused = report(&[&unknown], Some(ID), &Seen::exited(1), "");
    assert_eq!((refused.outcome, refused.code, refused.lasting), (Outcome::Void, Some(Code::WorkerSaidNo), true));
    assert_eq!(refused.session, None, "an id that never was");
    assert_eq!(report(&[INIT, &unknown], Some(ID), &Seen::exited(1), "").outcome, Outcome::Error);
    let used = "Error: Session ID x is already in use.\n";
    assert_eq!(report(&[], None, &Seen::exited(1), used).outcome, Outcome::Void);
    for (lines, exit, stderr) in [(&[INIT][..], 1, used), (&[], 0, used), (&[], 1, "Error: something new\n")] {
        assert_eq!(report(lines, None, &Seen::exited(exit), stderr).outcome, Outcome::Ambiguous, "{lines:?} {exit}");
    }
}
