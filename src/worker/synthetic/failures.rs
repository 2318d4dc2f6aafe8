//! The words by which turns fail and starts are refused, new and old, with nothing of any real account in them.

use crate::domain::time::Time;
use crate::host::clock;

/// One cause of a failed turn.
pub(super) struct Failure {
    /// Its name, as in `fail:NAME`.
    pub(super) name: &'static str,
    /// The message of versions from 0.160 on.
    new: &'static str,
    /// The message of older ones; empty where it is the same.
    old: &'static str,
    /// Whether the connection is tried again before.
    pub(super) retried: bool,
}

const fn failure(name: &'static str, new: &'static str, old: &'static str, retried: bool) -> Failure {
    Failure { name, new, old, retried }
}

const CUT: &str = "stream disconnected before completion: stream closed before response.completed";
const RATE: &str = "exceeded retry limit, last status: 429 Too Many Requests, request id: req_1";

/// Every cause.
pub(super) const FAILURES: &[Failure] = &[
    failure(
        "401",
        "unexpected status 401 Unauthorized: Incorrect API key provided., url: http://model.invalid/v1/responses, request id: req_1",
        "",
        true,
    ),
    failure(
        "403",
        "unexpected status 403 Forbidden: no access., url: http://model.invalid/v1/responses, request id: req_1",
        "",
        true,
    ),
    failure("key", "Missing environment variable: `MODEL_KEY`.", "", false),
    failure(
        "404",
        "The model `m` does not exist or you do not have access to it.",
        "unexpected status 404 Not Found: The model `m` does not exist or you do not have access to it., url: http://model.invalid/v1/responses",
        false,
    ),
    failure(
        "400",
        "{\"error\": {\"message\": \"Invalid value: 'x'.\", \"type\": \"invalid_request_error\"}}",
        "",
        false,
    ),
    failure(
        "context",
        "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.",
        "{\"error\": {\"message\": \"Your input exceeds the context window of this model.\", \"code\": \"context_length_exceeded\"}}",
        false,
    ),
    failure(
        "usage",
        "You’ve hit your usage limit. Upgrade to Pro (https://plans.invalid/pro), visit https://plans.invalid/usage to purchase more credits or try again at {reset}.",
        "",
        false,
    ),
    failure(
        "usagepro",
        "You’ve hit your usage limit. Visit https://plans.invalid/usage to purchase more credits or try again at {reset}.",
        "",
        false,
    ),
    failure(
        "usageteam",
        "You’ve hit your usage limit. To get more access now, send a request to your admin or try again at {reset}.",
        "",
        false,
    ),
    failure("usagelater", "You’ve hit your usage limit. Try again later.", "", false),
    failure(
        "notincluded",
        "To use Codex with your ChatGPT plan, upgrade to Plus: https://plans.invalid/plus.",
        "",
        false,
    ),
    failure("insufficient", "Quota exceeded. Check your plan and billing details.", RATE, false),
    failure("rate", RATE, "", true),
    failure("500", "We’re currently experiencing high demand, which may cause temporary errors.", "", true),
    failure(
        "503",
        "Selected model is at capacity. Please try a different model.",
        "unexpected status 503 Service Unavailable: overloaded",
        true,
    ),
    failure("502", "unexpected status 502 Bad Gateway: <html>bad gateway</html>", "", true),
    failure("cut", CUT, "", true),
    failure("idle", "stream disconnected before completion: idle timeout waiting for SSE", "", true),
    failure("incomplete", "Incomplete response returned, reason: max_output_tokens", CUT, false),
    failure(
        "refused",
        "Connection failed: error sending request",
        "stream disconnected before completion: error sending request for url (http://model.invalid/v1/responses)",
        true,
    ),
    failure("other", "something that no version has said so far", "", false),
];

/// The cause of this name.
pub(super) fn find(name: &str) -> Option<&'static Failure> {
    FAILURES.iter().find(|failure| failure.name == name)
}

impl Failure {
    /// What the version says; a quota is open again in this many minutes.
    pub(super) fn message(&self, old: bool, minutes: Option<i64>) -> String {
        let text = if old && !self.old.is_empty() { self.old } else { self.new };
        let otherwise = if self.name == "usagepro" { 49 * 60 } else { 120 };
        let now = clock::now();
        let reset = Time(now.0.saturating_add(minutes.unwrap_or(otherwise).saturating_mul(60_000)));
        let text = text.replace("{reset}", &prose(reset, now));
        if old { text.replace('\u{2019}', "'") } else { text }
    }
}

/// A moment in codex's prose: the time alone on the same day, with the day on another one.
fn prose(time: Time, now: Time) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (text, today) = (time.to_string(), now.to_string());
    let number =
        |from: usize, to: usize| text.get(from..to).and_then(|digits| digits.parse::<usize>().ok()).unwrap_or(0);
    let (year, month, day, hour, minute) = (number(0, 4), number(5, 7), number(8, 10), number(11, 13), number(14, 16));
    let half = if hour < 12 { "AM" } else { "PM" };
    let clock = format!("{}:{minute:02} {half}", if hour % 12 == 0 { 12 } else { hour % 12 });
    if text.get(..10) == today.get(..10) {
        return clock;
    }
    let suffix = match day {
        1 | 21 | 31 => "st",
        2 | 22 => "nd",
        3 | 23 => "rd",
        _ => "th",
    };
    let month = MONTHS.get(month.wrapping_sub(1)).unwrap_or(&"Jan");
    format!("{month} {day}{suffix}, {year} {clock}")
}

/// A refusal before anything is printed: its scene, exit status and words. `{id}` is the session that was asked for.
pub(super) const REFUSALS: &[(&str, u8, &str)] = &[
    ("unknown", 1, "Error: thread/resume: thread/resume failed: no rollout found for thread id {id} (code -32600)"),
    ("busy", 1, "Error: thread/resume: thread/resume failed: thread {id} already has an active writer (code -32600)"),
    ("empty-session", 1, "Error: empty session file"),
    ("untrusted", 1, "Not inside a trusted directory and --skip-git-repo-check was not specified."),
    ("bad-config", 1, "Error loading config.toml: unknown variant `loud`, expected one of `quiet`"),
    ("bad-utf8", 1, "Failed to read prompt from stdin: input is not valid UTF-8 (invalid byte at offset 3)"),
    ("no-prompt", 1, "No prompt provided via stdin."),
    (
        "bad-argument",
        2,
        "error: unexpected argument '--sandbox' found\n\nUsage: codex exec resume [OPTIONS] [SESSION_ID] [PROMPT]\n\nFor more information, try '--help'.",
    ),
];

/// The words of a refusal, for this session.
pub(super) fn refusal(name: &str, id: &str) -> Option<(u8, String)> {
    REFUSALS.iter().find(|(known, ..)| *known == name).map(|(_, status, text)| (*status, text.replace("{id}", id)))
}

/// What stands on standard error when the prompt is too long.
pub(super) fn too_large(chars: usize) -> String {
    format!(
        "Error: turn/start: turn/start failed: Input exceeds the maximum length of 1048576 characters. (code -32602), \
         data: {{\"input_error_code\":\"input_too_large\",\"max_chars\":1048576,\"actual_chars\":{chars}}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::moment;

    #[test]
    fn resets_are_told_as_codex_tells_them() {
        let at = |text: &str| moment(text, Time(0)).unwrap();
        let now = at("2026-11-30T17:14:40Z");
        assert_eq!(prose(at("2026-11-30T18:26:18Z"), now), "6:26 PM");
        assert_eq!(prose(at("2026-12-02T17:27:00Z"), now), "Dec 2nd, 2026 5:27 PM");
        assert_eq!(prose(at("2026-12-01T00:05:00Z"), now), "Dec 1st, 2026 12:05 AM");
    }
}
