//! What agents print: one JSON object a line, read tolerantly and in bounded memory. It knows nothing of what the events
//! say. Unknown types and keys, keys in any order or twice, numbers with a fraction, bytes that are not UTF-8, and a torn
//! last line all occur or may come.

use super::lines::{Line, Lines};
use super::note;
use crate::domain::outcome::{Cause, Report, Seen};
use crate::error::Code;
use serde_json::Value;

/// One line of output.
#[derive(Debug)]
pub(super) enum Item {
    /// An event.
    Event(Value),
    /// No event; its text, unless it was too long to be kept.
    Unread(Option<String>),
}

/// A stream of events whose bytes come in pieces of any size.
#[derive(Debug, Default)]
pub(super) struct Events {
    lines: Lines,
    /// Bytes that came.
    pub(super) bytes: u64,
    /// Lines that are no event.
    pub(super) unread: u64,
}

impl Events {
    /// Takes the next bytes and gives the lines that they end, without empty ones.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Item> {
        self.bytes += bytes.len() as u64;
        let lines = self.lines.feed(bytes);
        lines.into_iter().filter_map(|line| self.item(line)).collect()
    }

    /// A last line without an end. It counts when it is a whole event: no event is the beginning of another one.
    pub(super) fn rest(&mut self) -> Option<Item> {
        let line = self.lines.rest()?;
        self.item(line)
    }

    fn item(&mut self, line: Line) -> Option<Item> {
        let item = match line {
            Line::TooLong(_) => Item::Unread(None),
            Line::Whole(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let text = text.trim();
                if text.is_empty() {
                    return None;
                }
                match serde_json::from_str::<Value>(text) {
                    Ok(event) if event.is_object() => Item::Event(event),
                    _ => Item::Unread(Some(text.to_owned())),
                }
            }
        };
        self.unread += u64::from(matches!(item, Item::Unread(_)));
        Some(item)
    }

    /// Tells in a report how many lines were no event.
    pub(super) fn remark(&self, report: &mut Report) {
        if self.unread > 0 {
            note(report, &format!("{} lines of its output could not be read", self.unread));
        }
    }
}

/// The text under a key.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// The whole number under a key; 0 where there is none, or less.
pub(super) fn number(value: &Value, key: &str) -> i64 {
    let value = value.get(key);
    let whole = value.and_then(Value::as_i64);
    // `as` saturates, which is what a number beyond all reason deserves.
    whole.or_else(|| value.and_then(Value::as_f64).map(|float| float as i64)).unwrap_or(0).max(0)
}

/// The report on a turn that said it completed, by how its process ended.
pub(super) fn completed(seen: &Seen) -> Report {
    let ended_by_us = matches!(
        seen.cause,
        Cause::Finished | Cause::TimeoutFirst | Cause::TimeoutIdle | Cause::TimeoutWhole | Cause::Stopped
    );
    if seen.cause == Cause::Exited && seen.exit == Some(0) && seen.signal.is_none() {
        return Report::ok();
    }
    if ended_by_us {
        let mut report = Report::ok();
        note(&mut report, "it was ended by us after its turn had completed");
        return report;
    }
    match seen.unknown_end() {
        Some(code) => Report::ambiguous(code, "after its turn had completed"),
        None => {
            let status = seen.exit.unwrap_or(-1);
            Report::ambiguous(Code::Uncertain, format!("its turn completed, but its exit status is {status}"))
        }
    }
}
