//! How claude's failures are told apart: by the class that it names in the model's place, the HTTP status, and where it
//! gives neither by its words, which changed between versions.

use super::read::Ended;
use crate::domain::outcome::Report;
use crate::domain::time::Time;
use crate::error::Code;
use crate::worker::clock;

/// What the words of a failure are recognised by, the first match counts; case is ignored.
const WORDS: &[(&[&str], Code)] = &[
    (&["prompt is too long", "request too large"], Code::ContextTooLong),
    (
        &[
            "credit balance is too low",
            "usage limit",
            "hit your limit",
            "hit your 5-hour limit",
            "hit your weekly limit",
        ],
        Code::Quota,
    ),
    (&["invalid api key", "not logged in", "please run /login", "failed to authenticate"], Code::Authentication),
    (&["issue with the selected model"], Code::ModelNotFound),
];

/// The report on a turn that claude says has failed; `class` is the class that it gave, `reset` when a quota is open again
/// by its own clock, and it was read at this moment.
pub(super) fn failed(ended: &Ended, class: Option<&str>, reset: Option<Time>, now: Time) -> Report {
    let code = code(ended, class);
    let retry = match code {
        // A plan that is used up opens again at the time it states; an account without credit does not by itself.
        Code::Quota => reset.or_else(|| clock::after(&ended.words, "resets ", now)).map(Some),
        Code::RateLimited | Code::Overloaded => Some(None),
        _ => None,
    };
    Report { retry, ..Report::error(code, ended.words.as_str()) }
}

fn code(ended: &Ended, class: Option<&str>) -> Code {
    let words = ended.words.to_lowercase();
    if ended.reason == "prompt_too_long" {
        return Code::ContextTooLong;
    }
    if let Some((_, code)) = WORDS.iter().find(|(texts, _)| texts.iter().any(|known| words.contains(known))) {
        return *code;
    }
    match (ended.status, class) {
        (Some(500..=599), _) => Code::Overloaded,
        (Some(401 | 403), _) | (_, Some("authentication_failed")) => Code::Authentication,
        (_, Some("model_not_found")) => Code::ModelNotFound,
        (_, Some("billing_error")) => Code::Quota,
        (Some(429), _) | (_, Some("rate_limit")) => Code::RateLimited,
        _ => Code::TurnFailed,
    }
}

/// What a refusal to start is recognised by, and whether trying again would end the same way.
const REFUSALS: &[(&str, bool)] = &[
    ("No conversation found with session ID", true),
    ("--resume requires a valid session ID", true),
    ("is already in use.", true),
    ("Invalid session ID", true),
    ("Input must be provided either through stdin", true),
    ("piped stdin input exceeds", true),
    ("cannot be used with root/sudo privileges", true),
    ("error: unknown option", true),
    ("error: option '", true),
];

/// Whether these words refuse to begin; if so, whether that is lasting.
pub(super) fn refusal(words: &str) -> Option<bool> {
    REFUSALS.iter().find(|(known, _)| words.contains(known)).map(|(_, lasting)| *lasting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_words_refuse() {
        assert_eq!(refusal("Error: Session ID 1 is already in use."), Some(true));
        assert_eq!(refusal("Error: something new"), None);
    }
}
