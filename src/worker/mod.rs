//! Adapters: how each kind of worker is called and how what it prints is read. An adapter turns a frozen job into
//! arguments and environment, and bytes into a report; it starts nothing, stores nothing and prints nothing.

pub mod claude;
mod clock;
pub mod codex;
pub mod command;
pub mod env;
mod events;
mod given;
mod lines;
mod session;
pub mod synthetic;

pub use env::{base_env_names, may_be_secret, may_pass};

use crate::domain::outcome::{Cause, Report, Seen};
use crate::domain::spec::{Limits, OUTPUT_MAX, Spec};
use crate::domain::time::{Span, Time};
use crate::error::{Code, Error, Result};
use std::path::{Path, PathBuf};

/// The code that knows one kind of worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Adapter {
    /// Any program: what it prints is its answer, its exit status is its end.
    Command,
    /// `codex exec --json`, and everything that speaks like it.
    Codex,
    /// `claude -p --output-format stream-json`.
    Claude,
}

impl Adapter {
    /// Every adapter with its name.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("command", Self::Command), ("codex", Self::Codex), ("claude", Self::Claude)];

    /// The adapter of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == name).map(|(_, adapter)| *adapter)
    }

    /// The name of this adapter, as in `config.toml`.
    pub fn name(self) -> &'static str {
        Self::WORDS.iter().find(|(_, adapter)| *adapter == self).map_or("", |(name, _)| name)
    }

    /// Whether its workers keep a conversation that a later job can continue.
    pub fn keeps_session(self) -> bool {
        match self {
            Self::Command => false,
            Self::Codex | Self::Claude => true,
        }
    }

    /// The variable by which its workers are told where their credentials are.
    pub fn home_variable(self) -> Option<&'static str> {
        match self {
            Self::Command => None,
            Self::Codex => Some("CODEX_HOME"),
            Self::Claude => Some("CLAUDE_CONFIG_DIR"),
        }
    }

    /// Refuses, at submission, what this adapter can never do.
    pub fn check(self, spec: &Spec, prompt: Option<&[u8]>) -> Result<()> {
        match self {
            Self::Command => command::check(spec),
            Self::Codex => codex::check(spec, prompt),
            Self::Claude => claude::check(spec, prompt),
        }
    }

    /// How the worker is called, at dispatch, by this attempt, whose name nothing else has. A refusal means that nothing
    /// ran, and that trying again is no use.
    pub fn plan(self, spec: &Spec, resume: Option<&str>, attempt: &str) -> Result<Plan> {
        match self {
            Self::Command => command::plan(spec, resume),
            Self::Codex => codex::plan(spec, resume),
            Self::Claude => claude::plan(spec, resume, attempt),
        }
    }

    /// What reads the standard output of a worker that was called to continue this session, or to begin one.
    pub fn reader(self, resume: Option<&str>) -> Reader {
        match self {
            Self::Command => Reader(Kind::Command),
            Self::Codex => Reader(Kind::Codex(Box::new(codex::Reader::new(resume)))),
            Self::Claude => Reader(Kind::Claude(Box::new(claude::Reader::new(resume)))),
        }
    }
}

/// The latest turn that a worker's own store holds of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Where it was read.
    pub path: String,
    /// When the turn began, where that is told.
    pub began: Option<Time>,
    /// How it ended.
    pub turn: Turn,
}

/// How a turn ended, as a worker's own store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is complete.
    Completed {
        /// The answer.
        answer: String,
    },
    /// It failed.
    Failed {
        /// The worker's words.
        message: String,
    },
    /// It was interrupted.
    Interrupted,
    /// No end is recorded.
    Open {
        /// An answer that was saved, its end not confirmed.
        answer: Option<String>,
    },
}

impl Adapter {
    /// What the worker's own store, read only, holds of a session. `None` where it does not keep this one.
    pub fn kept(self, home: &Path, session: &str) -> Result<Option<Kept>> {
        match self {
            Self::Command | Self::Claude => claude::kept::last_turn(home, session),
            Self::Codex => codex::kept::last_turn(home, session),
        }
    }

    /// The session of an attempt that has none on record, by the job's own words and by what it printed, as a command may
    /// run an agent; or by the attempt's name, where that is what the session was named after.
    pub fn session_told(self, spec: &Spec, attempt: &str, stdout: &[u8]) -> Option<String> {
        match self {
            Self::Command => claude::session(&spec.argv, stdout),
            Self::Codex => None,
            Self::Claude => spec.continues.is_none().then(|| claude::fresh_id(attempt)),
        }
    }

    /// Whether a turn of its worker is all that a job does, so that how the turn ended is how the job ended. A command
    /// that runs an agent may do more before and after.
    pub fn is_one_turn(self, spec: &Spec) -> bool {
        match self {
            Self::Command => claude::is(&spec.program),
            Self::Codex | Self::Claude => true,
        }
    }

    /// Where the worker keeps its sessions: the directory that its entry names, else what its variables say, else its
    /// default under the caller's home.
    pub fn home(self, program: &str, named: &str, var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
        let synthetic = synthetic::is(program);
        match self {
            Self::Command => claude::home(var),
            Self::Codex | Self::Claude if synthetic && var("ARES_SYNTHETIC_HOME").is_some() => {
                var("ARES_SYNTHETIC_HOME")
            }
            Self::Codex | Self::Claude if !named.is_empty() => Some(PathBuf::from(named)),
            Self::Claude => claude::home(var),
            Self::Codex => var("CODEX_HOME")
                .or_else(|| Some(var("HOME")?.join(if synthetic { ".ares-synthetic" } else { ".codex" }))),
        }
    }
}

/// How a worker is called, beside its program, directory and prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The arguments, without the program itself.
    pub args: Vec<String>,
    /// Variables that are set for it, over everything that is passed on.
    pub env: Vec<(String, String)>,
    /// Names of the caller's variables that it may read beside [`base_env_names`]; never secrets, which only a job or a
    /// worker's entry names.
    pub pass: Vec<&'static str>,
}

/// What a reader noticed in the output so far, in the order of the output.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// The id of the worker's session.
    Session(String),
    /// It continues another session than the one asked for, and is to be stopped at once.
    WrongSession {
        /// The session that was asked for.
        asked: String,
        /// The one that it reports.
        got: String,
    },
    /// It has said how its turn ended; it may be ended when it does not end by itself.
    Terminal,
    /// An event as it was printed, for those who follow.
    Event(serde_json::Value),
}

/// Reads one worker's standard output, in pieces of any size and in bounded memory, and says in the end what happened.
#[derive(Debug)]
pub struct Reader(Kind);

#[derive(Debug)]
enum Kind {
    Command,
    Codex(Box<codex::Reader>),
    Claude(Box<claude::Reader>),
}

impl Reader {
    /// Whether what the worker prints tells anything beside being its answer.
    pub fn listens(&self) -> bool {
        !matches!(self.0, Kind::Command)
    }

    /// Takes the next bytes of standard output.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Said> {
        match &mut self.0 {
            Kind::Command => Vec::new(),
            Kind::Codex(reader) => reader.feed(bytes),
            Kind::Claude(reader) => reader.feed(bytes),
        }
    }

    /// What happened, from what was read, how it was seen to end, and the end of its standard error.
    pub fn finish(self, seen: &Seen, stderr_tail: &[u8]) -> Report {
        let mut report = match (seen.cause, self.0) {
            (Cause::NotExecuted, _) => command::not_executed(seen),
            (_, Kind::Command) => command::finish(seen),
            (_, Kind::Codex(reader)) => reader.finish(seen, stderr_tail),
            (_, Kind::Claude(reader)) => reader.finish(seen, stderr_tail),
        };
        if report.code.is_some() && report.code == seen.unknown_end() {
            note(&mut report, &seen.how());
        }
        if !seen.lost.is_empty() {
            note(&mut report, &format!("there was no room for all of its {}", seen.lost.join(" and ")));
        }
        if !seen.leaked.is_empty() {
            let (n, s) = (seen.leaked.len(), if seen.leaked.len() == 1 { "process was" } else { "processes were" });
            note(&mut report, &format!("{n} {s} left and had to be ended"));
        }
        report
    }
}

/// Adds a remark to what a report says for people.
fn note(report: &mut Report, words: &str) {
    let joined = if report.detail.is_empty() { words.to_owned() } else { format!("{}; {words}", report.detail) };
    report.detail = crate::domain::outcome::clean(&joined);
}

/// Whether this is the id of a session as agents give them: a UUID, in lower case and with hyphens.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        })
}

/// The refusal of what an adapter cannot give a worker.
fn refused(message: impl Into<String>) -> Error {
    Error::new(Code::WorkerRefused, message)
}

/// A worker that needs no entry in `config.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// The adapter that speaks to it.
    pub adapter: Adapter,
    /// The program to look up; empty where the job's first argument is the program.
    pub program: &'static str,
    /// Whether the program lies beside the running executable, instead of on `PATH`.
    pub beside: bool,
    /// The limits of its attempts, where the job sets none.
    pub limits: Limits,
}

/// The worker of this name that needs no entry.
pub fn builtin(worker: &str) -> Option<Builtin> {
    const MINUTE: i64 = 60_000;
    let limits = |timeout: Option<i64>, first: Option<i64>, idle: Option<i64>, grace: i64| Limits {
        timeout: timeout.map(|minutes| Span(minutes * MINUTE)),
        timeout_first: first.map(|minutes| Span(minutes * MINUTE)),
        timeout_idle: idle.map(|minutes| Span(minutes * MINUTE)),
        grace: Span(grace),
        output_max: OUTPUT_MAX,
        capture: true,
    };
    let (adapter, program, beside, limits) = match worker {
        "command" => (Adapter::Command, "", false, limits(None, None, None, 10_000)),
        // codex prints nothing between the start of a turn and its first finished item, and a stalled stream costs it
        // five minutes six times over, so half an hour of silence is still a live turn.
        "codex" => (Adapter::Codex, "codex", false, limits(Some(120), Some(2), Some(35), 10_000)),
        // claude may be silent for as long as one call to its service takes, and tries ten times.
        "claude" => (Adapter::Claude, "claude", false, limits(Some(120), Some(2), Some(35), 10_000)),
        "synthetic" => (Adapter::Codex, "ares-synthetic", true, limits(Some(10), Some(1), Some(5), 2_000)),
        _ => return None,
    };
    Some(Builtin { adapter, program, beside, limits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapters_parse_back() {
        for (name, adapter) in Adapter::WORDS {
            assert_eq!(Adapter::parse(name), Some(*adapter));
            assert_eq!(adapter.name(), *name);
        }
        assert_eq!(Adapter::parse("Codex"), None);
        assert!(Adapter::Codex.keeps_session() && Adapter::Claude.keeps_session() && !Adapter::Command.keeps_session());
    }

    #[test]
    fn builtins_need_no_entry() {
        assert_eq!(builtin("codex").map(|b| (b.adapter, b.program, b.beside)), Some((Adapter::Codex, "codex", false)));
        assert_eq!(
            builtin("synthetic").map(|b| (b.adapter, b.program, b.beside)),
            Some((Adapter::Codex, "ares-synthetic", true))
        );
        assert_eq!(builtin("command").map(|b| b.limits.timeout), Some(None));
        assert_eq!(builtin("nosuch"), None);
    }

    #[test]
    fn a_program_that_could_not_be_executed_never_acted_whatever_the_adapter() {
        let seen = Seen { cause: Cause::NotExecuted, exit: None, errno: Some(2), ..Seen::exited(0) };
        for (_, adapter) in Adapter::WORDS {
            let report = adapter.reader(None).finish(&seen, b"");
            assert_eq!(report.code, Some(Code::CannotExecute));
            assert_eq!(report.detail, "ENOENT: no such file or directory");
            assert!(report.lasting);
        }
    }

    #[test]
    fn output_that_found_no_room_is_told() {
        let seen = Seen { lost: vec!["stdout".into(), "stderr".into()], ..Seen::exited(0) };
        let report = Adapter::Command.reader(None).finish(&seen, b"");
        assert_eq!(report.detail, "exit status 0; there was no room for all of its stdout and stderr");
    }

    #[test]
    fn processes_that_were_left_are_only_a_note() {
        let seen = Seen { leaked: vec![4, 5], ..Seen::exited(0) };
        let report = Adapter::Command.reader(None).finish(&seen, b"");
        assert_eq!(report.outcome, crate::domain::outcome::Outcome::Ok);
        assert_eq!(report.detail, "2 processes were left and had to be ended");
    }
}

#[cfg(test)]
pub(crate) mod sample {
    //! A job for the tests of this folder.

    use super::*;

    /// A job of this adapter with these arguments.
    pub(crate) fn spec(adapter: &str, argv: &[&str]) -> Spec {
        let limits = builtin("command").expect("it is built in").limits;
        Spec::plain(adapter, &format!("/opt/{adapter}"), argv, limits)
    }
}
