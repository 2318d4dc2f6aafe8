//! Reads the events of `codex exec --json` and says what happened. Success is the terminal event of the session that was
//! asked for, never an exit status or a message alone; everything else that is not a proof is ambiguous.

use super::failure;
use crate::domain::outcome::{Report, Seen, Usage};
use crate::domain::time::Time;
use crate::error::Code;
use crate::worker::events::{Events, Item, completed, number, text};
use crate::worker::session::Session;
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
    output: Events,
    session: Session,
    turn: Option<Turn>,
    answer: Option<Vec<u8>>,
    /// Whether a line that could not be read may have held a later message than `answer`.
    answer_lost: bool,
    /// Events other than the session's id.
    events: u64,
    /// The last warning, which explains an end without a terminal event best.
    warning: Option<String>,
}

impl Reader {
    /// A reader of a turn that continues this session, or begins one.
    pub(in crate::worker) fn new(resume: Option<&str>) -> Self {
        Self {
            output: Events::default(),
            session: Session::new(resume),
            turn: None,
            answer: None,
            answer_lost: false,
            events: 0,
            warning: None,
        }
    }

    /// Takes the next bytes.
    pub(in crate::worker) fn feed(&mut self, bytes: &[u8]) -> Vec<Said> {
        let mut said = Vec::new();
        for item in self.output.feed(bytes) {
            self.item_read(item, &mut said);
        }
        said
    }

    fn item_read(&mut self, item: Item, said: &mut Vec<Said>) {
        match item {
            Item::Event(event) => {
                self.event(&event, said);
                said.push(Said::Event(event));
            }
            Item::Unread(text) => {
                self.answer_lost |= self.turn.is_none() && text.is_none_or(|text| text.contains("agent_message"));
            }
        }
    }

    fn event(&mut self, event: &Value, said: &mut Vec<Said>) {
        let kind = text(event, "type").unwrap_or_default();
        if kind != "thread.started" {
            self.events += 1;
        }
        match kind {
            "thread.started" => self.session.reported(text(event, "thread_id").unwrap_or_default(), said),
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
        if let Some(rest) = self.output.rest() {
            self.item_read(rest, &mut Vec::new());
        }
        let mut report = self.outcome(seen, stderr_tail);
        report.session = self.session.id();
        self.output.remark(&mut report);
        report
    }

    fn outcome(&mut self, seen: &Seen, stderr_tail: &[u8]) -> Report {
        if let Some(mut report) = self.session.mismatch() {
            // The other session is a new one, so its totals are this turn's own numbers.
            if let Some(Turn::Completed(Some(usage))) = &self.turn {
                report.usage = Some(Usage { cumulative: false, ..usage.clone() });
            }
            return report;
        }
        match self.turn.take() {
            Some(_) if self.session.is_resumed() && self.session.named().is_none() => {
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
        let mut report = if self.session.named().is_none() {
            // Without an id nobody knows which conversation this was.
            Report::ambiguous(Code::Uncertain, "the turn completed, but it never named its session")
        } else {
            completed(seen)
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
            let named_only = self.events == 0 && self.output.unread == 0 && self.session.named().is_some();
            if self.output.bytes == 0 || (named_only && failure::is_too_large(&line)) {
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

/// The running totals of the session. All zero is what codex prints when the service told it nothing.
fn usage(value: &Value) -> Option<Usage> {
    let usage = Usage {
        input: number(value, "input_tokens"),
        cached: number(value, "cached_input_tokens"),
        output: number(value, "output_tokens"),
        reasoning: number(value, "reasoning_output_tokens"),
        calls: 0,
        cost_nano: None,
        cumulative: true,
    };
    let told = usage.input != 0 || usage.cached != 0 || usage.output != 0 || usage.reasoning != 0;
    told.then_some(usage)
}
