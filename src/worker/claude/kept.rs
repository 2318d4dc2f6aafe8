//! What claude keeps of a conversation: its transcript, read and never written. A turn that it reported as complete may
//! be missing there, as the lines are written in batches; what stands there happened.

use crate::domain::time::{Time, moment};
use crate::error::{Code, Result};
use crate::host::dir;
use crate::worker::{Kept, Turn};
use serde_json::Value;
use std::path::Path;

/// How much of the end of a transcript is read. A turn whose beginning is further back is not recognized.
const READ_MAX: u64 = 64 << 20;

/// Who speaks when no model answered.
const SYNTHETIC: &str = "<synthetic>";

/// The latest turn that claude kept of this conversation, if it keeps it. It lies in the folder of the directory that
/// claude was called in; where there are several, the turn that began last is meant.
pub(in crate::worker) fn last_turn(home: &Path, session: &str) -> Result<Option<Kept>> {
    let projects = home.join("projects");
    let mut latest: Option<Kept> = None;
    for folder in dir::names(&projects)?.iter().map(|name| projects.join(name)) {
        // A link that someone planted is not followed, whether to a folder or to a file.
        if !std::fs::symlink_metadata(&folder).is_ok_and(|meta| meta.is_dir()) {
            continue;
        }
        let path = folder.join(format!("{session}.jsonl"));
        let bytes = match dir::tail(&path, READ_MAX) {
            Ok((bytes, _)) => bytes,
            Err(error) if error.code == Code::NotFound => continue,
            Err(error) => return Err(error),
        };
        let kept = read(&bytes, path.to_string_lossy().into_owned());
        latest = latest.filter(|latest| latest.began >= kept.began).or(Some(kept));
    }
    Ok(latest)
}

fn read(bytes: &[u8], path: String) -> Kept {
    let mut reader = Reader::default();
    // Lines that are torn at either end do not parse, and are skipped.
    for entry in bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok()) {
        reader.entry(&entry);
    }
    Kept { path, began: reader.began, turn: reader.turn }
}

struct Reader {
    began: Option<Time>,
    /// The answer that is being read: one answer may be many lines.
    message: Option<String>,
    text: String,
    turn: Turn,
}

impl Default for Reader {
    fn default() -> Self {
        Self { began: None, message: None, text: String::new(), turn: Turn::Open { answer: None } }
    }
}

impl Reader {
    fn entry(&mut self, entry: &Value) {
        // Another agent's words, and what claude says to itself, are no part of this turn.
        if entry["isSidechain"] == true || entry["isMeta"] == true {
            return;
        }
        let message = &entry["message"];
        match entry["type"].as_str() {
            Some("user") if is_tool_result(&message["content"]) => self.turn = Turn::Open { answer: None },
            Some("user") => {
                let at = entry["timestamp"].as_str().and_then(|text| moment(text, Time(0)).ok());
                *self = Self { began: at, ..Self::default() };
            }
            Some("assistant") => self.assistant(message),
            _ => {}
        }
    }

    fn assistant(&mut self, message: &Value) {
        let id = message["id"].as_str().map(str::to_owned);
        if id.is_none() || id != self.message {
            (self.message, self.text) = (id, String::new());
        }
        self.text += &text_of(&message["content"]);
        let text = self.text.clone();
        self.turn = match message["stop_reason"].as_str() {
            _ if message["model"] == SYNTHETIC => Turn::Failed { message: text },
            Some("end_turn" | "stop_sequence") => Turn::Completed { answer: text },
            Some("tool_use") => Turn::Open { answer: None },
            // Cut by a limit, refused, or not at its end yet.
            _ => Turn::Open { answer: Some(text).filter(|text| !text.is_empty()) },
        };
    }
}

fn is_tool_result(content: &Value) -> bool {
    content.as_array().is_some_and(|parts| parts.iter().any(|part| part["type"] == "tool_result"))
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        _ => content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4b1d3c52-0000-4000-8000-000000000001";
    const USER: &str =
        r#"{"type":"user","timestamp":"2031-05-01T06:00:00.000Z","message":{"role":"user","content":"do it"}}"#;
    const TOOL: &str =
        r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use"}],"stop_reason":"tool_use"}}"#;
    const RESULT: &str = r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"x"}]}}"#;
    const HALF: &str =
        r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"all "}],"stop_reason":null}}"#;
    const DONE: &str = r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"of it"}],"stop_reason":"end_turn"}}"#;
    const FAILED: &str = r#"{"type":"assistant","isApiErrorMessage":true,"message":{"id":"m3","model":"<synthetic>","content":[{"type":"text","text":"no credit"}],"stop_reason":"stop_sequence"}}"#;
    const AGENT: &str =
        r#"{"type":"assistant","isSidechain":true,"message":{"id":"m4","content":"other","stop_reason":"end_turn"}}"#;
    const STATE: &str = r#"{"type":"last-prompt","sessionId":"x"}"#;

    fn turn(lines: &[&str]) -> Turn {
        read(lines.join("\n").as_bytes(), String::new()).turn
    }

    #[test]
    fn the_last_turn_is_what_it_is() {
        let completed = Turn::Completed { answer: "all of it".into() };
        assert_eq!(turn(&[USER, TOOL, RESULT, HALF, DONE, STATE, ""]), completed);
        assert_eq!(turn(&[USER, HALF, DONE, AGENT, ""]), completed, "another agent's answer is not this one's");
        assert_eq!(turn(&[USER, AGENT]), Turn::Open { answer: None });
        assert_eq!(turn(&[USER, HALF]), Turn::Open { answer: Some("all ".into()) });
        assert_eq!(turn(&[USER, HALF, DONE, USER, ""]), Turn::Open { answer: None }, "an answer to the turn before");
        assert_eq!(turn(&[USER, TOOL]), Turn::Open { answer: None });
        assert_eq!(turn(&[USER, HALF, DONE, RESULT]), Turn::Open { answer: None });
        assert_eq!(turn(&[USER, FAILED, STATE]), Turn::Failed { message: "no credit".into() });
        assert_eq!(turn(&["torn\"}", USER, HALF, DONE, "{\"torn"]), completed);
        assert_eq!(read(format!("{USER}\n{DONE}").as_bytes(), String::new()).began, Some(Time(1_935_381_600_000)));
    }

    #[test]
    fn it_is_found_in_any_folder_and_no_link_is_followed() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(last_turn(home.path(), ID).unwrap(), None);
        let file = |folder: &str, text: &str| {
            let folder = home.path().join("projects").join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(format!("{ID}.jsonl")), text).unwrap();
        };
        file("-srv-a", &[USER, HALF, DONE, ""].join("\n"));
        file("-srv-b", &[&USER.replace("06:00", "05:00"), HALF, ""].join("\n"));
        let kept = last_turn(home.path(), ID).unwrap().unwrap();
        assert!(kept.path.ends_with(&format!("-srv-a/{ID}.jsonl")), "{kept:?}");
        let away = home.path().join("away");
        std::fs::rename(home.path().join("projects/-srv-a"), &away).unwrap();
        std::os::unix::fs::symlink(&away, home.path().join("projects/-srv-a")).unwrap();
        assert_eq!(last_turn(home.path(), ID).unwrap().unwrap().turn, Turn::Open { answer: Some("all ".into()) });
        std::fs::remove_file(home.path().join(format!("projects/-srv-b/{ID}.jsonl"))).unwrap();
        let link = home.path().join(format!("projects/-srv-b/{ID}.jsonl"));
        std::os::unix::fs::symlink(away.join(format!("{ID}.jsonl")), link).unwrap();
        assert!(last_turn(home.path(), ID).is_err(), "a link in its place is told, and not read");
    }
}
