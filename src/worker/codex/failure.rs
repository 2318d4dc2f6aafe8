//! The texts by which codex says that a turn failed, or that it refused to begin one. Nothing but text tells them apart:
//! the events carry no code, and the texts changed between versions.

use crate::domain::outcome::Report;
use crate::domain::time::Time;
use crate::error::Code;
use crate::worker::clock;

/// What a message of `turn.failed` is recognised by, the first match counts. Typographic apostrophes are made plain
/// and case is ignored before it is looked up.
const FAILURES: &[(&[&str], Code)] = &[
    (&["hit your usage limit", "usage_limit_reached"], Code::Quota),
    (&["quota exceeded", "insufficient_quota", "to use codex with your chatgpt plan"], Code::Quota),
    (&["context_length_exceeded", "model's context window", "context window of this model"], Code::ContextTooLong),
    (
        &[
            "status 401",
            "status: 401",
            "status 403",
            "status: 403",
            "missing environment variable",
            "invalid_api_key",
            "refresh token",
            "sign in again",
            "log in again",
        ],
        Code::Authentication,
    ),
    (&["does not exist or you do not have access", "model_not_found"], Code::ModelNotFound),
    (&["status: 429", "status 429", "rate_limit_exceeded", "rate limit reached"], Code::RateLimited),
    (
        &[
            "experiencing high demand",
            "model is at capacity",
            "server_is_overloaded",
            "status 500",
            "status: 500",
            "status 502",
            "status: 502",
            "status 503",
            "status: 503",
            "status 504",
            "status: 504",
            "status 529",
        ],
        Code::Overloaded,
    ),
];

/// The report on a turn that codex says has failed, with this message, read at this moment.
pub(super) fn failed(message: &str, now: Time) -> Report {
    let plain = message.replace('\u{2019}', "'");
    let text = plain.to_lowercase();
    let found = FAILURES.iter().find(|(texts, _)| texts.iter().any(|known| text.contains(known)));
    let code = found.map_or(Code::TurnFailed, |(_, code)| *code);
    let retry = match code {
        // A used-up plan without a stated time opens again, but an account without the right to ask does not.
        Code::Quota => match clock::after(&plain, "try again at ", now) {
            Some(time) => Some(Some(time)),
            None => text.contains("try again later").then_some(None),
        },
        Code::RateLimited | Code::Overloaded => Some(None),
        _ => None,
    };
    Report { retry, ..Report::error(code, message) }
}

/// What a refusal to start is recognised by, and whether trying again would end the same way.
const REFUSALS: &[(&str, bool)] = &[
    ("already has an active writer", false),
    ("no rollout found for thread id", true),
    ("thread/resume failed", true),
    ("thread/start failed", true),
    ("empty session file", true),
    ("Not inside a trusted directory", true),
    ("Failed to read prompt from stdin", true),
    ("No prompt provided via stdin", true),
    ("Error loading config", true),
    ("Error finding codex home", true),
    ("Error parsing -c overrides", true),
    ("Error: CODEX_HOME points to", true),
    ("Error: config profile", true),
    ("Error: Unknown feature flag", true),
    ("input_too_large", true),
    ("Input exceeds the maximum length", true),
];

/// The line of standard error by which codex, or the parser of its arguments, says that it did not begin, and whether
/// that is lasting. Only lines of the program itself count, not those of its log.
pub(super) fn refusal(stderr_tail: &[u8], exit: Option<i32>) -> Option<(String, bool)> {
    let text = String::from_utf8_lossy(stderr_tail);
    text.lines().rev().find_map(|line| {
        let line = line.trim();
        if exit == Some(2) && line.starts_with("error: ") {
            return Some((line.to_owned(), true));
        }
        let own = line.starts_with("Error") || line.starts_with("No prompt") || line.starts_with("Not inside");
        let own = own || line.starts_with("Failed to read prompt");
        let (_, lasting) = REFUSALS.iter().find(|(known, _)| exit == Some(1) && own && line.contains(known))?;
        Some((line.to_owned(), *lasting))
    })
}

/// Whether a refusal says that the prompt was too long, which codex finds out only after it has named the session.
pub(super) fn is_too_large(line: &str) -> bool {
    line.contains("Input exceeds the maximum length") || line.contains("input_too_large")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::outcome::Outcome;

    const NOW: Time = Time(1_796_058_880_000);

    #[test]
    fn causes_are_told_by_their_texts_in_both_generations() {
        let later = Some(None);
        let at = |text: &str| Some(Some(crate::domain::time::moment(text, Time(0)).unwrap()));
        let cases = [
            ("unexpected status 401 Unauthorized: Incorrect API key, url: http://x", Code::Authentication, None),
            ("unexpected status 403 Forbidden: no", Code::Authentication, None),
            ("Missing environment variable: `KEY`.", Code::Authentication, None),
            ("The model `m` does not exist or you do not have access to it.", Code::ModelNotFound, None),
            (
                "unexpected status 404 Not Found: The model `m` does not exist or you do not have access to it.",
                Code::ModelNotFound,
                None,
            ),
            ("{\"error\": {\"message\": \"Invalid value: 'x'.\"}}", Code::TurnFailed, None),
            ("Codex ran out of room in the model's context window. Start a new thread", Code::ContextTooLong, None),
            ("Codex ran out of room in the model’s context window. Start a new thread", Code::ContextTooLong, None),
            ("{\"error\": {\"code\": \"context_length_exceeded\"}}", Code::ContextTooLong, None),
            ("You’ve hit your usage limit. Visit x or try again at 6:26 PM.", Code::Quota, at("2026-11-30T18:27:00Z")),
            (
                "You've hit your usage limit. Visit x or try again at Dec 2nd, 2026 5:27 PM.",
                Code::Quota,
                at("2026-12-02T17:28:00Z"),
            ),
            ("You’ve hit your usage limit. Try again later.", Code::Quota, later),
            ("To use Codex with your ChatGPT plan, upgrade to Plus: https://x.", Code::Quota, None),
            ("Quota exceeded. Check your plan and billing details.", Code::Quota, None),
            ("exceeded retry limit, last status: 429 Too Many Requests, request id: r", Code::RateLimited, later),
            ("We’re currently experiencing high demand, which may cause temporary errors.", Code::Overloaded, later),
            ("Selected model is at capacity. Please try a different model.", Code::Overloaded, later),
            ("unexpected status 503 Service Unavailable", Code::Overloaded, later),
            ("unexpected status 502 Bad Gateway: <html>", Code::Overloaded, later),
            ("stream disconnected before completion: idle timeout waiting for SSE", Code::TurnFailed, None),
            ("Incomplete response returned, reason: max_output_tokens", Code::TurnFailed, None),
            ("Connection failed: error sending request", Code::TurnFailed, None),
            ("", Code::TurnFailed, None),
        ];
        for (message, code, retry) in cases {
            let report = failed(message, NOW);
            assert_eq!((report.outcome, report.code, report.retry), (Outcome::Error, Some(code), retry), "{message}");
        }
    }

    #[test]
    fn refusals_are_lines_of_the_program_itself() {
        let busy = b"2026-11-30 ERROR core: thread already has an active writer\n\
            Error: thread/resume: thread/resume failed: thread x already has an active writer (code -32600)\n";
        assert_eq!(refusal(busy, Some(1)).map(|(_, lasting)| lasting), Some(false));
        let log = b"2026-11-30 ERROR core: thread already has an active writer\n";
        assert_eq!(refusal(log, Some(1)), None);
        let usage = b"error: unexpected argument '--sandbox' found\n\n  tip: x\n\nUsage: codex exec resume\n";
        assert_eq!(refusal(usage, Some(2)), Some(("error: unexpected argument '--sandbox' found".to_owned(), true)));
        assert_eq!(refusal(usage, Some(1)), None);
        assert_eq!(refusal(b"Not inside a trusted directory and x\n", Some(1)).map(|(_, lasting)| lasting), Some(true));
        assert_eq!(refusal(b"Error: something new\n", Some(1)), None);
        assert_eq!(refusal(b"\xff\xfe", Some(1)), None);
    }
}
