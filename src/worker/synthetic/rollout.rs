//! The sessions of the synthetic worker, kept as codex keeps its own: one file of JSON lines a session, appended to by
//! every turn, under a folder for each day.

use crate::domain::digest::Digest;
use crate::domain::outcome::Usage;
use crate::host::clock;
use crate::host::lock::{Lock, try_lock};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions, create_dir_all, read_dir};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// One session.
#[derive(Debug)]
pub(super) struct Thread {
    /// Its id.
    pub(super) id: String,
    /// What the user said in earlier turns, failed ones included.
    pub(super) said: Vec<String>,
    /// The running totals.
    pub(super) totals: Usage,
    /// `None` for a session that is not kept.
    file: Option<File>,
    /// Held until the process ends.
    _writer: Option<Lock>,
}

/// Why a session cannot be continued.
#[derive(Debug)]
pub(super) enum NoThread {
    /// There is none of this id.
    Unknown,
    /// Another process writes it.
    Busy,
    /// Its file is empty.
    Empty,
    /// The store failed.
    Io(io::Error),
}

impl From<io::Error> for NoThread {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Thread {
    /// A new session; `kept` says whether it leaves a file.
    pub(super) fn begin(home: &Path, kept: bool) -> io::Result<Self> {
        let now = clock::now();
        let id = new_id(now.0);
        let stamp = now.to_string();
        let (day, time) = (stamp.get(..10).unwrap_or_default(), stamp.get(..19).unwrap_or_default());
        let folder = home.join("sessions").join(day.replace('-', "/"));
        let file = if kept {
            create_dir_all(&folder)?;
            let path = folder.join(format!("rollout-{}-{id}.jsonl", time.replace(':', "-")));
            Some(OpenOptions::new().append(true).create_new(true).open(path)?)
        } else {
            None
        };
        let writer =
            if kept { writer(home, &id).map_err(|_| io::Error::other("the session is locked"))? } else { None };
        let mut thread = Self { id, said: Vec::new(), totals: zero(), file, _writer: writer };
        thread.append("session_meta", &json!({ "id": thread.id, "timestamp": stamp, "originator": "codex_exec" }))?;
        Ok(thread)
    }

    /// The session of this id, locked against other writers where `locked`.
    pub(super) fn resume(home: &Path, id: &str, locked: bool) -> Result<Self, NoThread> {
        let path = find(&home.join("sessions"), &format!("-{id}.jsonl"), 3).ok_or(NoThread::Unknown)?;
        let writer = if locked { writer(home, id)? } else { None };
        let bytes = std::fs::read(&path)?;
        if bytes.is_empty() {
            return Err(NoThread::Empty);
        }
        let mut thread = Self { id: id.to_owned(), said: Vec::new(), totals: zero(), file: None, _writer: writer };
        // A torn last line is skipped, as codex does.
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Ok(entry) = serde_json::from_slice::<Value>(line) {
                thread.recall(&entry["payload"]);
            }
        }
        let mut file = OpenOptions::new().append(true).open(&path)?;
        if bytes.last() != Some(&b'\n') {
            file.write_all(b"\n")?;
        }
        thread.file = Some(file);
        Ok(thread)
    }

    fn recall(&mut self, payload: &Value) {
        match payload["type"].as_str() {
            Some("user_message") => self.said.extend(payload["message"].as_str().map(str::to_owned)),
            Some("token_count") => {
                let total = &payload["info"]["total_token_usage"];
                let number = |key: &str| total[key].as_i64().unwrap_or(0);
                self.totals.input = number("input_tokens");
                self.totals.cached = number("cached_input_tokens");
                self.totals.output = number("output_tokens");
                self.totals.reasoning = number("reasoning_output_tokens");
            }
            _ => {}
        }
    }

    /// Appends one line, whole.
    pub(super) fn append(&mut self, kind: &str, payload: &Value) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let line = json!({ "timestamp": clock::now().to_string(), "type": kind, "payload": payload });
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Appends an event.
    pub(super) fn event(&mut self, payload: &Value) -> io::Result<()> {
        self.append("event_msg", payload)
    }
}

fn zero() -> Usage {
    Usage { cumulative: true, ..Usage::default() }
}

/// The lock that the one writer of a session holds.
fn writer(home: &Path, id: &str) -> Result<Option<Lock>, NoThread> {
    let folder = home.join("thread-writer-locks");
    create_dir_all(&folder)?;
    match try_lock(&folder.join(format!("{id}.lock"))) {
        Ok(Some(lock)) => Ok(Some(lock)),
        Ok(None) => Err(NoThread::Busy),
        Err(error) => Err(NoThread::Io(io::Error::other(error.to_string()))),
    }
}

fn find(folder: &Path, end: &str, depth: u8) -> Option<PathBuf> {
    for entry in read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if depth > 0 && path.is_dir() {
            if let Some(found) = find(&path, end, depth - 1) {
                return Some(found);
            }
        } else if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(end)) {
            return Some(path);
        }
    }
    None
}

/// A UUID of version 7: the time, and bytes that no other process makes at the same time.
pub(super) fn new_id(now_ms: i64) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static MADE: AtomicU64 = AtomicU64::new(0);
    let seed = format!("{now_ms} {} {}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let random = Digest::of("ares.synthetic.thread", &[seed.as_bytes()]).to_string();
    let time = format!("{now_ms:012x}");
    format!("{}-{}-7{}-8{}-{}", &time[..8], &time[8..12], &random[..3], &random[3..6], &random[6..18])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_found_again_with_what_was_said() {
        let home = tempfile::tempdir().unwrap();
        let mut first = Thread::begin(home.path(), true).unwrap();
        assert!(crate::worker::is_uuid(&first.id), "{}", first.id);
        first.event(&json!({ "type": "user_message", "message": "hello" })).unwrap();
        first.event(&json!({ "type": "token_count", "info": { "total_token_usage": { "input_tokens": 5 } } })).unwrap();
        let id = first.id.clone();
        assert!(matches!(Thread::resume(home.path(), &id, true), Err(NoThread::Busy)));
        drop(first);
        let again = Thread::resume(home.path(), &id, true).unwrap();
        assert_eq!((again.said, again.totals.input), (vec!["hello".to_owned()], 5));
    }

    #[test]
    fn sessions_that_are_not_there_are_told_apart() {
        let home = tempfile::tempdir().unwrap();
        let unkept = Thread::begin(home.path(), false).unwrap();
        assert!(matches!(Thread::resume(home.path(), &unkept.id, true), Err(NoThread::Unknown)));
        let kept = Thread::begin(home.path(), true).unwrap();
        let path = find(&home.path().join("sessions"), &format!("-{}.jsonl", kept.id), 3).unwrap();
        let id = kept.id.clone();
        drop(kept);
        std::fs::write(path, "").unwrap();
        assert!(matches!(Thread::resume(home.path(), &id, true), Err(NoThread::Empty)));
    }

    #[test]
    fn a_torn_last_line_is_skipped_and_never_joined() {
        let home = tempfile::tempdir().unwrap();
        let mut thread = Thread::begin(home.path(), true).unwrap();
        thread.event(&json!({ "type": "user_message", "message": "one" })).unwrap();
        thread.file.as_mut().unwrap().write_all(b"{\"type\":\"event_m").unwrap();
        let id = thread.id.clone();
        drop(thread);
        let mut thread = Thread::resume(home.path(), &id, true).unwrap();
        thread.event(&json!({ "type": "user_message", "message": "two" })).unwrap();
        drop(thread);
        assert_eq!(Thread::resume(home.path(), &id, true).unwrap().said, ["one", "two"]);
    }
}
