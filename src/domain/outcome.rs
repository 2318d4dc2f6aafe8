//! What is known of the end of an attempt, in three parts that are never merged: what was *seen* (exit status, signal,
//! time-out), what the worker *said*, and what *happened*, the outcome.
//!
//! INVARIANT `unknown-is-uncertain`: no time-out, no signal and no missing word makes an attempt a failure.

use super::time::{Span, Time};
use crate::error::{Class, Code};
use serde::{Deserialize, Serialize};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It did what it should.
    Ok,
    /// It ended and says that it failed.
    Error,
    /// It may have taken effect and nobody can tell.
    Ambiguous,
    /// It is proved never to have acted.
    Void,
}

impl Outcome {
    /// Every outcome with its word.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("ok", Self::Ok), ("error", Self::Error), ("ambiguous", Self::Ambiguous), ("void", Self::Void)];

    /// The word of this outcome.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, outcome)| *outcome == self).map_or("", |(word, _)| word)
    }

    /// The outcome of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, outcome)| *outcome)
    }
}

/// Why the keeper saw the worker end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// By itself.
    Exited,
    /// The program could not be executed; see `errno`.
    NotExecuted,
    /// Nothing was printed in the time allowed for the first output.
    TimeoutFirst,
    /// Nothing was printed for too long.
    TimeoutIdle,
    /// The time for the whole attempt was over.
    TimeoutWhole,
    /// It printed more than its bound.
    OutputLimit,
    /// Someone asked for it.
    Stopped,
    /// The owner had read the terminal event and the worker did not end by itself.
    Finished,
}

/// The keeper's record of an attempt's end, as it is written to `exit` and stored as `seen`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Why it ended.
    pub cause: Cause,
    /// Its exit status, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The signal that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it could not be executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// What could not be done then, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// The bound that it passed: milliseconds, or bytes of output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// When it was started, UTC milliseconds.
    pub started: i64,
    /// When its end was seen, UTC milliseconds.
    pub ended: i64,
    /// Processor time of the worker and its waited-for children, milliseconds.
    #[serde(default)]
    pub cpu_ms: i64,
    /// Processes that were left and had to be ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaked: Vec<i32>,
    /// Processes that could not be ended; empty when nothing of it lives on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<i32>,
    /// Which streams were cut at their bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
    /// Streams of which not all could be stored, because the disk had no room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

impl Seen {
    /// Ended by itself with this status; what the adapters and their tests start from.
    pub fn exited(exit: i32) -> Self {
        Self {
            cause: Cause::Exited,
            exit: Some(exit),
            signal: None,
            errno: None,
            what: None,
            limit: None,
            started: 0,
            ended: 0,
            cpu_ms: 0,
            leaked: Vec::new(),
            survivors: Vec::new(),
            cut: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// Whether the machine had no room for another process, file or page: it says nothing of the job, and would be the
    /// same for the next one.
    pub fn short(&self) -> bool {
        // EAGAIN, ENOMEM, ENFILE, EMFILE.
        self.cause == Cause::NotExecuted && matches!(self.errno, Some(11 | 12 | 23 | 24))
    }

    /// How an end that the worker did not choose came about, in words.
    pub fn how(&self) -> String {
        let span = self
            .limit
            .map(|ms| if ms % 1000 == 0 && ms < 60_000 { format!("{}s", ms / 1000) } else { Span(ms).to_string() });
        let of = |before: &str| span.as_ref().map_or_else(String::new, |span| format!("{before}{span}"));
        let cause = match self.cause {
            Cause::TimeoutWhole => format!("ran longer than its time-out{}", of(" of ")),
            Cause::TimeoutFirst => format!("printed nothing at first{}", of(" for ")),
            Cause::TimeoutIdle => format!("printed nothing{}", of(" for ")),
            Cause::OutputLimit => {
                self.limit.map_or_else(|| "printed too much".to_owned(), |max| format!("printed more than {max} bytes"))
            }
            Cause::Stopped => "was asked to stop".to_owned(),
            Cause::Exited | Cause::NotExecuted | Cause::Finished => String::new(),
        };
        let end = match (self.signal, self.exit) {
            (Some(signal), _) => format!("ended with signal {signal}"),
            (None, Some(exit)) => format!("ended with exit status {exit}"),
            (None, None) => String::new(),
        };
        let parts = [cause, end];
        parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join("; ")
    }

    /// Whether nothing ran because the keeper's own files had no room, by `ENOSPC` and `EDQUOT`, with which no program
    /// is refused: the job is not at fault.
    pub fn no_room(&self) -> bool {
        self.cause == Cause::NotExecuted && matches!(self.errno, Some(28 | 122))
    }

    /// The code of an end that leaves the outcome unknown whatever the worker said before; `None` for an end that the
    /// worker chose itself.
    pub fn unknown_end(&self) -> Option<Code> {
        match self.cause {
            Cause::TimeoutWhole => Some(Code::TimedOut),
            Cause::TimeoutFirst | Cause::TimeoutIdle => Some(Code::Silent),
            Cause::OutputLimit => Some(Code::OutputLimit),
            Cause::Stopped => Some(Code::StoppedRunning),
            Cause::Exited | Cause::Finished if self.signal.is_some() => Some(Code::Signalled),
            Cause::Exited | Cause::NotExecuted | Cause::Finished => None,
        }
    }
}

/// What a running job is settled by. There is no way from a time-out, a signal or a missing terminal event to
/// `Error`: those have codes of the class `Uncertain`, and [`Report::fact`] makes them `Ambiguous`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// It did what it should.
    Ok,
    /// It ended and failed; with a moment (or the job's own delay) when it is worth another try.
    Error {
        /// `Some(None)`: after the job's delay; `Some(Some(t))`: not before the stated reset.
        retry: Option<Option<Time>>,
    },
    /// Nobody can tell.
    Ambiguous,
    /// It never acted.
    Void {
        /// Whether trying again would end the same way.
        lasting: bool,
    },
    /// It never acted, which says nothing of the job: the machine had no room for it, or what was to be run for it is not
    /// its own.
    Blameless,
}

/// Tokens and money of one turn, as the worker reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input: i64,
    /// Of them, read from a cache.
    pub cached: i64,
    /// Tokens written, reasoning included.
    pub output: i64,
    /// Of them, reasoning.
    pub reasoning: i64,
    /// Model calls, where they are told.
    pub calls: i64,
    /// Cost in nano-USD, where it is told.
    pub cost_nano: Option<i64>,
    /// Whether the numbers are running totals of the session, not of this turn.
    pub cumulative: bool,
}

/// What an adapter, or a script, says of an attempt's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What happened.
    pub outcome: Outcome,
    /// Why, for everything but a plain success.
    pub code: Option<Code>,
    /// One line for people; empty where the code says it all.
    pub detail: String,
    /// Whether an error is worth another try, and not before when.
    pub retry: Option<Option<Time>>,
    /// Whether a void attempt would end the same way again.
    pub lasting: bool,
    /// Whether that it is void says nothing of the job.
    pub blameless: bool,
    /// The worker's answer; `None` takes its standard output.
    pub answer: Option<Vec<u8>>,
    /// The id of the worker's session, where it reported one.
    pub session: Option<String>,
    /// Whether that session must not be continued.
    pub broken: bool,
    /// The model that answered, where it is told.
    pub model_served: Option<String>,
    /// Tokens and money, where they are told.
    pub usage: Option<Usage>,
}

impl Report {
    fn new(outcome: Outcome, code: Option<Code>, detail: impl Into<String>) -> Self {
        Self {
            outcome,
            code,
            detail: clean(&detail.into()),
            retry: None,
            lasting: false,
            blameless: false,
            answer: None,
            session: None,
            broken: false,
            model_served: None,
            usage: None,
        }
    }

    /// It did what it should.
    pub fn ok() -> Self {
        Self::new(Outcome::Ok, None, "")
    }

    /// It ended and failed. A code of the class `Uncertain` is no known failure and makes it ambiguous.
    pub fn error(code: Code, detail: impl Into<String>) -> Self {
        let outcome = if code.class() == Class::Uncertain { Outcome::Ambiguous } else { Outcome::Error };
        Self::new(outcome, Some(code), detail)
    }

    /// Nobody can tell.
    pub fn ambiguous(code: Code, detail: impl Into<String>) -> Self {
        Self::new(Outcome::Ambiguous, Some(code), detail)
    }

    /// It never acted; `lasting` when trying again would end the same way.
    pub fn void(code: Code, detail: impl Into<String>, lasting: bool) -> Self {
        Self { lasting, ..Self::new(Outcome::Void, Some(code), detail) }
    }

    /// The same without anything that the worker said in words of its own.
    #[must_use]
    pub fn wordless(self, seen: &Seen) -> Self {
        let detail = if self.outcome == Outcome::Ok { String::new() } else { seen.how() };
        Self { detail, answer: None, ..self }
    }

    /// What the job's move is decided by.
    pub fn fact(&self) -> Fact {
        match self.outcome {
            Outcome::Ok => Fact::Ok,
            Outcome::Error if self.code.is_some_and(|code| code.class() == Class::Uncertain) => Fact::Ambiguous,
            Outcome::Error => Fact::Error { retry: self.retry },
            Outcome::Ambiguous => Fact::Ambiguous,
            Outcome::Void if self.blameless => Fact::Blameless,
            Outcome::Void => Fact::Void { lasting: self.lasting },
        }
    }
}

/// The longest detail that is kept, in characters.
const DETAIL_MAX: usize = 500;

/// One bounded line without control characters.
pub fn clean(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.trim();
    if line.chars().count() <= DETAIL_MAX {
        return line.to_owned();
    }
    line.chars().take(DETAIL_MAX - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_uncertain_code_can_become_a_failure() {
        for code in Code::ALL.iter().filter(|code| code.class() == Class::Uncertain) {
            assert_eq!(Report::error(*code, "").fact(), Fact::Ambiguous, "{code}");
            let forced = Report { outcome: Outcome::Error, retry: Some(None), ..Report::ambiguous(*code, "") };
            assert_eq!(forced.fact(), Fact::Ambiguous, "{code}");
        }
    }

    #[test]
    fn every_end_that_the_worker_did_not_choose_is_unknown() {
        for cause in [Cause::TimeoutFirst, Cause::TimeoutIdle, Cause::TimeoutWhole, Cause::OutputLimit, Cause::Stopped]
        {
            let code = Seen { cause, ..Seen::exited(0) }.unknown_end().expect("a code");
            assert_eq!(code.class(), Class::Uncertain);
        }
        let killed = Seen { exit: None, signal: Some(9), ..Seen::exited(0) };
        assert_eq!(killed.unknown_end(), Some(Code::Signalled));
        assert_eq!(Seen::exited(3).unknown_end(), None);
    }

    #[test]
    fn the_words_of_an_end_name_the_bound_and_the_signal() {
        let killed = Seen { exit: None, signal: Some(15), ..Seen::exited(0) };
        let how = |cause, limit| Seen { cause, limit, ..killed.clone() }.how();
        let words = "ran longer than its time-out of 5s; ended with signal 15";
        assert_eq!(how(Cause::TimeoutWhole, Some(5000)), words);
        assert_eq!(how(Cause::OutputLimit, Some(100)), "printed more than 100 bytes; ended with signal 15");
        assert_eq!(how(Cause::Stopped, None), "was asked to stop; ended with signal 15");
        assert_eq!(killed.how(), "ended with signal 15");
    }

    #[test]
    fn details_are_one_bounded_line() {
        assert_eq!(clean("a\nb\u{1b}[31m"), "a b [31m");
        assert_eq!(clean(&"x".repeat(600)).chars().count(), DETAIL_MAX);
    }

    #[test]
    fn seen_round_trips() {
        let seen = Seen { leaked: vec![7], cut: vec!["stdout".into()], ..Seen::exited(1) };
        let text = serde_json::to_string(&seen).unwrap();
        assert_eq!(serde_json::from_str::<Seen>(&text).unwrap(), seen);
    }
}
