//! What each recording is to be read as.

pub(crate) mod claude;
pub(crate) mod codex;

use ares::domain::outcome::Outcome;
use ares::error::Code;
use ares::worker::Adapter;
use std::path::PathBuf;

/// The session that a recording was asked to continue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    New,
    Same,
    Other,
}
pub(crate) use Asked::{New, Other, Same};

pub(crate) const OTHER: &str = "0190d3a1-ffff-7000-8000-ffffffffffff";

/// Name, exit status, what was asked, outcome, code, answer, input tokens (0 for none told).
pub(crate) type Row = (&'static str, i32, Asked, Outcome, Option<Code>, Option<&'static str>, i64);

pub(crate) const fn ok(name: &'static str, asked: Asked, answer: &'static str, input: i64) -> Row {
    (name, 0, asked, Outcome::Ok, None, Some(answer), input)
}

pub(crate) const fn failed(name: &'static str, code: Code) -> Row {
    failed_after(name, code, 0)
}

pub(crate) const fn failed_after(name: &'static str, code: Code, input: i64) -> Row {
    (name, 1, New, Outcome::Error, Some(code), None, input)
}

pub(crate) const fn void(name: &'static str, exit: i32, asked: Asked) -> Row {
    (name, exit, asked, Outcome::Void, Some(Code::WorkerSaidNo), None, 0)
}

pub(crate) const fn open(name: &'static str, exit: i32, code: Code) -> Row {
    (name, exit, New, Outcome::Ambiguous, Some(code), None, 0)
}

pub(crate) const fn elsewhere(name: &'static str) -> Row {
    (name, 0, Other, Outcome::Ambiguous, Some(Code::ResumeMismatch), None, 2002)
}

/// One program whose recordings are read.
pub(crate) struct Agent {
    pub(crate) adapter: Adapter,
    pub(crate) table: &'static [Row],
    /// Whether its numbers are totals of the session.
    pub(crate) cumulative: bool,
    /// What stands before the id of the session, once, in the event that begins one.
    begun: &'static str,
    /// What an event that begins a turn holds, and one that completes it.
    pub(crate) order: (&'static str, &'static str),
    /// What an event that ends a turn holds.
    terminal: &'static [&'static str],
}

pub(crate) const AGENTS: &[Agent] = &[
    Agent {
        adapter: Adapter::Codex,
        table: codex::TABLE,
        cumulative: true,
        begun: "\"type\":\"thread.started\",\"thread_id\":\"",
        order: ("\"turn.started\"", "\"turn.completed\""),
        terminal: &["\"turn.completed\"", "\"turn.failed\""],
    },
    Agent {
        adapter: Adapter::Claude,
        table: claude::TABLE,
        cumulative: false,
        begun: "\"subtype\":\"init\",\"cwd\":\"/srv/work\",\"session_id\":\"",
        order: ("\"subtype\":\"init\"", "\"type\":\"result\""),
        terminal: &["\"type\":\"result\""],
    },
];

impl Agent {
    pub(crate) fn folder(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(self.adapter.name())
    }

    pub(crate) fn stdout(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder().join(format!("{name}.jsonl"))).unwrap()
    }

    pub(crate) fn stderr(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder().join(format!("{name}.stderr"))).unwrap_or_default()
    }

    /// The session that a recording begins.
    pub(crate) fn session(&self, bytes: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(bytes);
        text.split(self.begun).nth(1).and_then(|rest| rest.get(..36)).map(str::to_owned)
    }

    pub(crate) fn asked(&self, row: &Row, bytes: &[u8]) -> Option<String> {
        match row.2 {
            New => None,
            Same => self.session(bytes),
            Other => Some(OTHER.to_owned()),
        }
    }

    pub(crate) fn is_terminal(&self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        self.terminal.iter().any(|word| text.contains(word))
    }
}
