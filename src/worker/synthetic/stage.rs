//! What a scene of the synthetic worker may do: print events, write the session's file in codex's order, wait, fail,
//! end. It knows no scene.

use super::rollout::Thread;
use crate::domain::outcome::Usage;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Why a scene ends early.
#[derive(Debug)]
pub(super) enum Cut {
    /// Nobody reads standard output any more.
    Unread,
    /// The process ends with this status.
    Exit(u8),
    /// The session's file could not be written.
    Store(io::Error),
}

/// How a scene ends: with an exit status, or cut short.
pub(super) type Play<T = u8> = Result<T, Cut>;

/// The place of one turn.
pub(super) struct Stage<'a> {
    /// Standard output.
    pub(super) out: &'a mut dyn Write,
    /// The session.
    pub(super) thread: Thread,
    /// What the user says in this turn.
    pub(super) prompt: String,
    /// What follows the scene's name.
    pub(super) arg: Option<String>,
    /// Whether it speaks as versions before 0.125 did.
    pub(super) old: bool,
    /// What is in force in this turn: sandbox, model, settings.
    pub(super) context: Value,
    /// Set by SIGINT.
    pub(super) interrupted: Arc<AtomicBool>,
    /// How many items were printed.
    pub(super) items: u32,
}

impl Stage<'_> {
    /// The argument as a number.
    pub(super) fn number(&self, otherwise: u64) -> u64 {
        self.arg.as_deref().and_then(|arg| arg.parse().ok()).unwrap_or(otherwise)
    }

    /// Prints these bytes at once.
    pub(super) fn print(&mut self, bytes: &[u8]) -> Play<()> {
        self.out.write_all(bytes).and_then(|()| self.out.flush()).map_err(|_| Cut::Unread)
    }

    /// Prints one event.
    pub(super) fn emit(&mut self, event: &Value) -> Play<()> {
        self.print(format!("{event}\n").as_bytes())
    }

    /// Names the session.
    pub(super) fn name(&mut self) -> Play<()> {
        self.emit(&json!({ "type": "thread.started", "thread_id": self.thread.id }))
    }

    /// Begins the turn, and writes down what the user says.
    pub(super) fn begin(&mut self) -> Play<()> {
        if !self.old {
            self.store(&json!({ "type": "task_started" }))?;
        }
        let context = self.context.clone();
        self.thread.append("turn_context", &context).map_err(Cut::Store)?;
        self.emit(&json!({ "type": "turn.started" }))?;
        self.store(&json!({ "type": "user_message", "message": self.prompt }))
    }

    /// Writes an event into the session's file.
    pub(super) fn store(&mut self, event: &Value) -> Play<()> {
        self.thread.event(event).map_err(Cut::Store)
    }

    /// Prints an item, begun or completed.
    pub(super) fn item(&mut self, when: &str, kind: &str, mut fields: Value) -> Play<()> {
        let mut item = json!({ "id": format!("item_{}", self.items), "type": kind });
        if let (Some(item), Some(fields)) = (item.as_object_mut(), fields.as_object_mut()) {
            item.append(fields);
        }
        if when == "completed" {
            self.items += 1;
        }
        self.emit(&json!({ "type": format!("item.{when}"), "item": item }))
    }

    /// A message of the agent: first into the file, then printed.
    pub(super) fn message(&mut self, text: &str) -> Play<()> {
        self.store(&json!({ "type": "agent_message", "message": text }))?;
        self.item("completed", "agent_message", json!({ "text": text }))
    }

    /// A warning that is no failure.
    pub(super) fn warn(&mut self, text: &str) -> Play<()> {
        self.emit(&json!({ "type": "error", "message": text }))
    }

    /// The two tries to connect again that come before most failures.
    pub(super) fn reconnecting(&mut self, cause: &str) -> Play<()> {
        for n in 1..=2 {
            self.wait(Duration::from_millis(20))?;
            self.warn(&format!("Reconnecting... {n}/2 ({cause})"))?;
        }
        Ok(())
    }

    /// What the agent says when nothing else is asked of it: how the conversation stands, and what the prompt holds.
    pub(super) fn answer(&self) -> String {
        let before = if self.thread.said.is_empty() {
            String::new()
        } else {
            let said: Vec<String> = self.thread.said.iter().map(|words| format!("{words:?}")).collect();
            format!("; you said before: {}", said.join(" | "))
        };
        format!(
            "turn {} of this conversation{before}\nthis message has {} lines, {} words, {} bytes: {}",
            self.thread.said.len() + 1,
            self.prompt.lines().count(),
            self.prompt.split_whitespace().count(),
            self.prompt.len(),
            self.prompt.lines().next().unwrap_or_default(),
        )
    }

    /// The normal way: says it and completes the turn.
    pub(super) fn say_and_complete(&mut self, text: &str) -> Play {
        self.message(text)?;
        self.complete(Some(text))
    }

    /// Saves the end of the turn without printing it.
    pub(super) fn save(&mut self, text: Option<&str>) -> Play<()> {
        let words = |text: &str| i64::try_from(text.split_whitespace().count()).unwrap_or(i64::MAX);
        let history: i64 = self.thread.said.iter().map(|said| words(said)).sum();
        let totals = &mut self.thread.totals;
        totals.input += 1000 + history + words(&self.prompt);
        totals.cached += history;
        totals.output += 10 + words(text.unwrap_or_default());
        totals.reasoning += 5;
        let total = usage(&self.thread.totals, self.old);
        self.store(&json!({ "type": "token_count", "info": { "total_token_usage": total } }))?;
        if self.old {
            return Ok(());
        }
        self.store(&json!({ "type": "task_complete", "last_agent_message": text }))
    }

    /// Saves and prints the end of the turn.
    pub(super) fn complete(&mut self, text: Option<&str>) -> Play {
        self.save(text)?;
        let event = json!({ "type": "turn.completed", "usage": usage(&self.thread.totals, self.old) });
        self.emit(&event)?;
        Ok(0)
    }

    /// Fails the turn.
    pub(super) fn fail(&mut self, message: &str) -> Play {
        if !self.old {
            self.store(
                &json!({ "type": "task_complete", "last_agent_message": null, "error": { "message": message } }),
            )?;
        }
        self.warn(message)?;
        self.emit(&json!({ "type": "turn.failed", "error": { "message": message } }))?;
        Ok(1)
    }

    /// Waits, and ends as codex does when it is interrupted meanwhile.
    pub(super) fn wait(&mut self, time: Duration) -> Play<()> {
        const STEP: Duration = Duration::from_millis(10);
        let mut left = time;
        loop {
            if self.interrupted.load(Ordering::SeqCst) {
                self.store(&json!({ "type": "turn_aborted", "reason": "interrupted" }))?;
                return Err(Cut::Exit(if self.old { 0 } else { 1 }));
            }
            if left.is_zero() {
                return Ok(());
            }
            let step = left.min(STEP);
            std::thread::sleep(step);
            left -= step;
        }
    }

    /// Waits for the scene's argument in seconds, or for ever.
    pub(super) fn wait_long(&mut self) -> Play<()> {
        let seconds = self.number(u64::from(u32::MAX));
        self.wait(Duration::from_secs(seconds))
    }
}

/// The totals as the event has them; the kinds that came later are missing in old versions.
pub(super) fn usage(totals: &Usage, old: bool) -> Value {
    let mut usage = json!({ "input_tokens": totals.input, "cached_input_tokens": totals.cached });
    if !old {
        usage["cache_write_input_tokens"] = 0.into();
    }
    usage["output_tokens"] = totals.output.into();
    if !old {
        usage["reasoning_output_tokens"] = totals.reasoning.into();
    }
    usage
}
