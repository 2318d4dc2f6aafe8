//! Reads what `claude -p --output-format stream-json` prints and says what happened. Success is a result without an error
//! in the session that was asked for, from a process that ended with status 0; never a subtype, which says `success` of
//! failures too, and never a message or a status alone.

use super::failure;
use crate::domain::outcome::{Cause, Report, Seen, Usage, clean};
use crate::domain::time::Time;
use crate::error::Code;
use crate::worker::events::{Events, Item, completed, number, text};
use crate::worker::session::Session;
use crate::worker::{Said, note};
use serde_json::Value;

/// Who speaks when no model answered.
pub(super) const SYNTHETIC: &str = "<synthetic>";

/// What was read so far, in bounded memory: ids, the last failure, and the result without its lists.
#[derive(Debug)]
pub(in crate::worker) struct Reader {
    output: Events,
    session: Session,
    /// Whether a model, or a tool, was heard of.
    acted: bool,
    /// The model that answered.
    model: Option<String>,
    /// The class of the last failure, as the message in the model's place names it.
    failure: Option<String>,
    /// When a used-up quota is open again.
    reset: Option<Time>,
    /// The last warning, which explains an end without a result best.
    warning: Option<String>,
    result: Option<Turn>,
}

/// How it says that its turn ended.
#[derive(Debug)]
enum Turn {
    Ended(Box<Ended>),
    /// It said so twice, and not the same.
    Contradicted,
}

#[derive(Debug)]
pub(super) struct Ended {
    pub(super) error: bool,
    pub(super) reason: String,
    pub(super) status: Option<i64>,
    /// The answer, or the words of the failure.
    pub(super) words: String,
    session: String,
    stopped: bool,
    /// How many turns it counts; none for a command of its own.
    turns: Option<i64>,
    denied: usize,
    usage: Option<Usage>,
}

impl Reader {
    /// A reader of a turn that continues this session, or begins one.
    pub(in crate::worker) fn new(resume: Option<&str>) -> Self {
        Self {
            output: Events::default(),
            session: Session::new(resume),
            acted: false,
            model: None,
            failure: None,
            reset: None,
            warning: None,
            result: None,
        }
    }

    /// Takes the next bytes.
    pub(in crate::worker) fn feed(&mut self, bytes: &[u8]) -> Vec<Said> {
        let mut said = Vec::new();
        for item in self.output.feed(bytes) {
            self.item(item, &mut said);
        }
        said
    }

    fn item(&mut self, item: Item, said: &mut Vec<Said>) {
        if let Item::Event(event) = item {
            self.event(&event, said);
            said.push(Said::Event(event));
        }
    }

    fn event(&mut self, event: &Value, said: &mut Vec<Said>) {
        match (text(event, "type").unwrap_or_default(), text(event, "subtype").unwrap_or_default()) {
            ("system", "init") => {
                // One process plays one turn. Should it begin another, its end is open again.
                self.result = None;
                self.session.reported(text(event, "session_id").unwrap_or_default(), said);
            }
            ("system", "api_retry") => {
                let (status, why) = (number(event, "error_status"), text(event, "error").unwrap_or_default());
                self.warning = Some(clean(&format!("it tried again after status {status}, {why}")));
            }
            ("assistant", _) => self.message(event),
            // What a tool answered.
            ("user", _) => self.acted = true,
            ("rate_limit_event", _) => self.limit(event.get("rate_limit_info").unwrap_or(&Value::Null)),
            ("result", _) => self.ended(event, said),
            _ => {}
        }
    }

    fn message(&mut self, event: &Value) {
        let model = event.get("message").and_then(|message| text(message, "model")).unwrap_or_default();
        if model == SYNTHETIC {
            self.failure = text(event, "error").map(clean);
        } else {
            self.acted = true;
            self.model = Some(clean(model)).filter(|model| !model.is_empty());
        }
    }

    fn limit(&mut self, info: &Value) {
        let rejected = text(info, "status") == Some("rejected");
        self.reset =
            Some(number(info, "resetsAt")).filter(|at| rejected && *at > 0).map(|at| Time(at.saturating_mul(1000)));
    }

    fn ended(&mut self, event: &Value, said: &mut Vec<Said>) {
        let ended = ended(event);
        self.result = Some(match self.result.take() {
            None => {
                said.push(Said::Terminal);
                Turn::Ended(Box::new(ended))
            }
            Some(Turn::Ended(before)) if before.error == ended.error => Turn::Ended(Box::new(ended)),
            Some(_) => Turn::Contradicted,
        });
    }

    /// What happened.
    pub(in crate::worker) fn finish(mut self, seen: &Seen, stderr_tail: &[u8]) -> Report {
        if let Some(rest) = self.output.rest() {
            self.item(rest, &mut Vec::new());
        }
        let mut report = self.outcome(seen, stderr_tail);
        // An id that only a result names may be one that never was.
        report.session = self.session.id();
        report.model_served = self.model;
        self.output.remark(&mut report);
        report
    }

    fn outcome(&mut self, seen: &Seen, stderr_tail: &[u8]) -> Report {
        if let Some(report) = self.session.mismatch() {
            return report;
        }
        match self.result.take() {
            Some(Turn::Ended(ended)) if ended.error => self.failed(*ended, seen),
            Some(Turn::Ended(ended)) => self.succeeded(*ended, seen),
            Some(Turn::Contradicted) => {
                Report::ambiguous(Code::Uncertain, "it said both that its turn completed and that it failed")
            }
            None => self.no_result(seen, stderr_tail),
        }
    }

    fn succeeded(&self, ended: Ended, seen: &Seen) -> Report {
        let mut report = match self.session.named() {
            // Without an id nobody knows which conversation this was.
            None => Report::ambiguous(Code::Uncertain, "the turn completed, but it never named its session"),
            Some(session) if session != ended.session => {
                Report::ambiguous(Code::ResumeMismatch, "its result names another session than its beginning")
            }
            // An older version says so of an answer that was cut off.
            Some(_) if !ended.stopped && ended.turns != Some(0) => {
                Report::ambiguous(Code::NoTerminal, "it says success, and not that the model came to an end")
            }
            Some(_) => completed(seen),
        };
        if ended.denied > 0 {
            note(&mut report, &format!("{} of its tool calls were denied", ended.denied));
        }
        Report { usage: ended.usage, answer: Some(ended.words.into_bytes()), ..report }
    }

    fn failed(&self, ended: Ended, seen: &Seen) -> Report {
        // Before it began, a result that counts no turn is how it refuses.
        if self.session.named().is_none()
            && !self.acted
            && ended.turns == Some(0)
            && let Some(lasting) = failure::refusal(&ended.words)
        {
            return Report::void(Code::WorkerSaidNo, ended.words, lasting);
        }
        if ended.reason.starts_with("aborted") || seen.cause == Cause::Stopped {
            let code = seen.unknown_end().unwrap_or(Code::NoTerminal);
            return Report { usage: ended.usage, ..Report::ambiguous(code, "its turn was interrupted") };
        }
        let report = failure::failed(&ended, self.failure.as_deref(), self.reset, Time(seen.ended));
        Report { usage: ended.usage, ..report }
    }

    fn no_result(&mut self, seen: &Seen, stderr_tail: &[u8]) -> Report {
        if let Some(code) = seen.unknown_end() {
            return Report::ambiguous(code, self.warning.take().unwrap_or_default());
        }
        // A refusal is a proof only as long as nothing was begun.
        if self.output.bytes == 0 && seen.exit == Some(1) {
            let text = String::from_utf8_lossy(stderr_tail);
            let refused = text.lines().find_map(|line| Some((line.trim(), failure::refusal(line)?)));
            if let Some((line, lasting)) = refused {
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

fn ended(event: &Value) -> Ended {
    let errors = || event["errors"].as_array().into_iter().flatten().filter_map(Value::as_str).next();
    let words = text(event, "result").or_else(errors).unwrap_or_default();
    Ended {
        // What is no plain `false` is no word of success.
        error: event["is_error"] != false,
        reason: text(event, "terminal_reason").unwrap_or_default().to_owned(),
        status: event["api_error_status"].as_i64(),
        words: words.to_owned(),
        session: text(event, "session_id").unwrap_or_default().to_owned(),
        stopped: event["stop_reason"].is_string(),
        turns: event["num_turns"].as_i64(),
        denied: event["permission_denials"].as_array().map_or(0, Vec::len),
        usage: usage(event),
    }
}

/// Tokens of this turn, and its cost. Newer versions print the cost of the whole session and, beside it, of each model
/// since the last result; older ones that of their own process, which is one turn.
fn usage(event: &Value) -> Option<Usage> {
    let told = event.get("usage")?;
    let cached = number(told, "cache_read_input_tokens");
    let usage = Usage {
        input: number(told, "input_tokens") + number(told, "cache_creation_input_tokens") + cached,
        cached,
        output: number(told, "output_tokens"),
        reasoning: told.get("output_tokens_details").map_or(0, |details| number(details, "thinking_tokens")),
        calls: 0,
        cost_nano: cost(event),
        cumulative: false,
    };
    (usage != Usage { cost_nano: usage.cost_nano, ..Usage::default() } || usage.cost_nano.is_some_and(|cost| cost > 0))
        .then_some(usage)
}

fn cost(event: &Value) -> Option<i64> {
    let dollars = match event.get("model_usage_since_last_result").and_then(Value::as_object) {
        Some(models) => models.values().map(|model| model["costUSD"].as_f64()).sum::<Option<f64>>(),
        None => event["total_cost_usd"].as_f64(),
    };
    // Nano-dollars of a turn are far below what a float holds exactly.
    dollars.filter(|dollars| dollars.is_finite() && *dollars >= 0.0).map(|dollars| (dollars * 1e9).round() as i64)
}
