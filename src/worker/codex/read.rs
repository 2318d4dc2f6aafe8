//! Reads the events of `codex exec --json` and says what happened. Success is the terminal event of the session that was
//! asked for, never an exit status or a message alone; everything else that is not a proof is ambiguous.
//!
//! Events are read tolerantly, as plain JSON values: unknown types and keys, keys in any order or twice, numbers with a
//! fraction, bytes that are not UTF-8, and a torn last line all occur or may come.

use super::{failure, is_thread_id};
use crate::domain::outcome::{Cause, Report, Seen, Usage};
use crate::domain::time::Time;
use crate::error::Code;
use crate::worker::lines::{Line, Lines};
use crate::worker::{Said, note};
use serde_json::Value;

/// How the worker says that its turn ended.
#[derive(Debug)]
enum Turn {
    Completed(Option<Usage>),
    Failed(String),
    /// It said both.
    Contradicted,
}

/// What was read so far, in bounded memory: counts, ids and the last message only.
#[derive(Debug)]
pub(in crate::worker) struct Reader {
    lines: Lines,
    asked: Option<String>,
    session: Option<String>,
    /// The id of another session than the one that it should be.
    wrong: Option<String>,
    turn: Option<Turn>,
    answer: Option<Vec<u8>>,
    /// Whether a line that could not be read may have held a later message than `answer`.
    answer_lost: bool,
    /// Bytes of standard output, and events other than the session's id.
    bytes: u64,
    events: u64,
    /// Lines that are no event.
    unread: u64,
    /// The last warning, which explains an end without a terminal event best.
    warning: Option<String>,
}

impl Reader {
    /// A reader of a turn that continues this session, or begins one.
    pub(in crate::worker) fn new(resume: Option<&str>) -> Self {
        Self {
            lines: Lines::default(),
            asked: resume.map(str::to_owned),
            session: None,
            wrong: None,
            turn: None,
            answer: None,
            answer_lost: false,
            bytes: 0,
            events: 0,
            unread: 0,
            warning: None,
        }
    }

    /// Takes the next bytes.
    pub(in crate::worker) fn feed(&mut self, bytes: &[u8]) -> Vec<Said> {
        self.bytes += bytes.len() as u64;
        let mut said = Vec::new();
        for line in self.lines.feed(bytes) {
            self.line(line, &mut said);
        }
        said
    }

    fn line(&mut self, line: Line, said: &mut Vec<Said>) {
        let bytes = match line {
            Line::Whole(bytes) => bytes,
            Line::TooLong(_) => {
                self.unread += 1;
                self.answer_lost |= self.turn.is_none();
                return;
            }
        };
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        match serde_json::from_str::<Value>(text) {
            Ok(event) if event.is_object() => {
                self.event(&event, said);
                said.push(Said::Event(event));
            }
            _ => {
                self.unread += 1;
                self.answer_lost |= self.turn.is_none() && text.contains("agent_message");
            }
        }
    }

    fn event(&mut self, event: &Value, said: &mut Vec<Said>) {
        let kind = text(event, "type").unwrap_or_default();
        if kind != "thread.started" {
            self.events += 1;
        }
        match kind {
            "thread.started" => self.started(text(event, "thread_id").unwrap_or_default(), said),
            // One process plays one turn. Should it begin another, its end is open again.
            "turn.started" => self.turn = None,
            "turn.completed" => self.ended(Turn::Completed(event.get("usage").and_then(usage)), said),
            "turn.failed" => {
                let message = event.get("error").and_then(|error| text(error, "message"));
                self.ended(Turn::Failed(message.unwrap_or_default().to_owned()), said);
            }
            "error" => self.warning = text(event, "message").map(crate::domain::outcome::clean),
            "item.completed" => self.item(event.get("item").unwrap_or(&Value::Null)),
            _ => {}
        }
    }

    fn started(&mut self, id: &str, said: &mut Vec<Said>) {
        let asked = self.asked.as_deref().or(self.session.as_deref());
        match asked {
            Some(asked) if asked != id => {
                let got = crate::domain::outcome::clean(id);
                said.push(Said::WrongSession { asked: asked.to_owned(), got: got.clone() });
                self.wrong = Some(got);
            }
            // An id of another form could never be given back to codex, so the session counts as unnamed.
            _ if !is_thread_id(id) => {}
            _ if self.session.is_some() => {}
            _ => {
                self.session = Some(id.to_owned());
                said.push(Said::Session(id.to_owned()));
            }
        }
    }

    fn ended(&mut self, turn: Turn, said: &mut Vec<Said>) {
        let first = self.turn.is_none();
        self.turn = Some(match (self.turn.take(), turn) {
            (None, turn) | (Some(Turn::Completed(_)), turn @ Turn::Completed(_)) => turn,
            (Some(Turn::Failed(_)), turn @ Turn::Failed(_)) => turn,
            _ => Turn::Contradicted,
        });
        if first {
            said.push(Said::Terminal);
        }
    }

    fn item(&mut self, item: &Value) {
        match text(item, "type") {
            // Of several messages the last one before the turn's end is the answer; items of other kinds may follow it.
            Some("agent_message") if self.turn.is_none() => {
                self.answer = Some(text(item, "text").unwrap_or_default().as_bytes().to_vec());
                self.answer_lost = false;
            }
            Some("error") => self.warning = text(item, "message").map(crate::domain::outcome::clean),
            _ => {}
        }
    }

    /// What happened.
    pub(in crate::worker) fn finish(mut self, seen: &Seen, stderr_tail: &[u8]) -> Report {
        // A last line without an end counts when it is a whole event: no event is the beginning of another one.
        if let Some(rest) = self.lines.rest() {
            self.line(rest, &mut Vec::new());
        }
        let mut report = self.outcome(seen, stderr_tail);
        report.session = self.wrong.or(self.session).filter(|id| !id.is_empty());
        if self.unread > 0 {
            note(&mut report, &format!("{} lines of its output could not be read", self.unread));
        }
        report
    }

    fn outcome(&mut self, seen: &Seen, stderr_tail: &[u8]) -> Report {
        if let Some(got) = &self.wrong {
            let asked = self.asked.as_deref().or(self.session.as_deref()).unwrap_or_default();
            let mut report =
                Report::ambiguous(Code::ResumeMismatch, format!("session {asked} was asked for and {got} answered"));
            report.broken = true;
            // The other session is a new one, so its totals are this turn's own numbers.
            if let Some(Turn::Completed(Some(usage))) = &self.turn {
                report.usage = Some(Usage { cumulative: false, ..usage.clone() });
            }
            return report;
        }
        match self.turn.take() {
            Some(_) if self.asked.is_some() && self.session.is_none() => {
                Report::ambiguous(Code::ResumeMismatch, "the turn ended without naming its session")
            }
            Some(Turn::Completed(usage)) => self.completed(usage, seen),
            Some(Turn::Failed(message)) => failure::failed(&message, Time(seen.ended)),
            Some(Turn::Contradicted) => {
                Report::ambiguous(Code::Uncertain, "it said both that its turn completed and that it failed")
            }
            None => self.no_terminal(seen, stderr_tail),
        }
    }

    fn completed(&mut self, usage: Option<Usage>, seen: &Seen) -> Report {
        let ended_by_us = matches!(
            seen.cause,
            Cause::Finished | Cause::TimeoutFirst | Cause::TimeoutIdle | Cause::TimeoutWhole | Cause::Stopped
        );
        let clean_exit = seen.cause == Cause::Exited && seen.exit == Some(0) && seen.signal.is_none();
        let mut report = if self.session.is_none() {
            // Without an id nobody knows which conversation this was.
            Report::ambiguous(Code::Uncertain, "the turn completed, but it never named its session")
        } else if clean_exit {
            Report::ok()
        } else if ended_by_us {
            let mut report = Report::ok();
            note(&mut report, "it was ended by us after its turn had completed");
            report
        } else if let Some(code) = seen.unknown_end() {
            Report::ambiguous(code, "after its turn had completed")
        } else {
            let status = seen.exit.unwrap_or(-1);
            Report::ambiguous(Code::Uncertain, format!("its turn completed, but its exit status is {status}"))
        };
        report.usage = usage;
        if self.answer_lost {
            note(
                &mut report,
                "a line that may hold its answer was too long or damaged, so its whole output is the answer",
            );
            return report;
        }
        if self.answer.is_none() {
            note(&mut report, "its turn completed without a message");
        }
        report.answer = Some(self.answer.take().unwrap_or_default());
        report
    }

    fn no_terminal(&mut self, seen: &Seen, stderr_tail: &[u8]) -> Report {
        if let Some(code) = seen.unknown_end() {
            return Report::ambiguous(code, self.warning.take().unwrap_or_default());
        }
        if let Some((line, lasting)) = failure::refusal(stderr_tail, seen.exit) {
            // A refusal is a proof only as long as nothing was begun. codex measures the prompt after it named the
            // session and before it starts the turn.
            let named_only = self.events == 0 && self.unread == 0 && self.session.is_some();
            if self.bytes == 0 || (named_only && failure::is_too_large(&line)) {
                return Report::void(Code::WorkerSaidNo, line, lasting);
            }
        }
        let status = seen.exit.map_or_else(|| "no exit status".to_owned(), |status| format!("exit status {status}"));
        let mut report = Report::ambiguous(Code::NoTerminal, status);
        if let Some(warning) = self.warning.take() {
            note(&mut report, &warning);
        }
        report
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// The running totals of the session. All zero is what codex prints when the service told it nothing.
fn usage(value: &Value) -> Option<Usage> {
    let number = |key: &str| {
        let value = value.get(key);
        let whole = value.and_then(Value::as_i64);
        // `as` saturates, which is what a number beyond all reason deserves.
        whole.or_else(|| value.and_then(Value::as_f64).map(|float| float as i64)).unwrap_or(0).max(0)
    };
    let usage = Usage {
        input: number("input_tokens"),
        cached: number("cached_input_tokens"),
        output: number("output_tokens"),
        reasoning: number("reasoning_output_tokens"),
        calls: 0,
        cost_nano: None,
        cumulative: true,
    };
    let told = usage.input != 0 || usage.cached != 0 || usage.output != 0 || usage.reasoning != 0;
    told.then_some(usage)
}
