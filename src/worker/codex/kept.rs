//! What codex keeps of a session: its rollout, read and never written. It tells how the last turn ended also when our
//! own files are gone, because codex writes the end of a turn there before it prints it.

use crate::domain::time::{Time, moment};
use crate::error::Result;
use crate::host::dir;
use crate::host::growing::Growing;
use crate::worker::lines::{Line, Lines};
use crate::worker::{Kept, Turn};
use serde_json::Value;
use std::path::Path;

/// How deep the sessions lie: year, month, day.
const DEPTH: usize = 4;

/// The latest turn that codex kept of this session, if it keeps the session.
pub(in crate::worker) fn last_turn(home: &Path, session: &str) -> Result<Option<Kept>> {
    let Some(path) = dir::find(&home.join("sessions"), &format!("-{session}.jsonl"), DEPTH)? else { return Ok(None) };
    let (mut reader, mut lines) = (Reader::default(), Lines::default());
    Growing::new(&path).read(&mut |bytes| {
        for line in lines.feed(bytes) {
            reader.line(&line);
        }
        Ok(true)
    })?;
    // A torn last line has no end and is skipped, as codex does.
    Ok(Some(Kept { path: path.to_string_lossy().into_owned(), began: reader.began, turn: reader.turn() }))
}

#[derive(Default)]
struct Reader {
    began: Option<Time>,
    answer: Option<String>,
    end: Option<Turn>,
    asked: bool,
    counted: bool,
}

impl Reader {
    fn line(&mut self, line: &Line) {
        let Line::Whole(bytes) = line else { return };
        let Ok(entry) = serde_json::from_slice::<Value>(bytes) else { return };
        let payload = &entry["payload"];
        let at = entry["timestamp"].as_str().and_then(|text| moment(text, Time(0)).ok());
        match (entry["type"].as_str(), payload["type"].as_str()) {
            (Some("event_msg"), Some("task_started")) => self.begin(at),
            // Old versions mark no beginning: there a turn begins with what the user says.
            (Some("event_msg"), Some("user_message")) if !self.asked || self.end.is_some() => self.begin(at),
            (Some("event_msg"), Some("task_complete")) => self.end = Some(complete(payload)),
            (Some("event_msg"), Some("turn_aborted")) => self.end = Some(Turn::Interrupted),
            (Some("event_msg"), Some("token_count")) => self.counted |= !payload["info"].is_null(),
            (Some("response_item"), Some("message")) if payload["role"] == "assistant" => {
                self.counted = false;
                self.answer = Some(text_of(&payload["content"]));
            }
            _ => {}
        }
    }

    fn begin(&mut self, at: Option<Time>) {
        *self = Self { began: at, asked: true, ..Self::default() };
    }

    /// Without a record of the end, an answer is only what it is: saved, its end not confirmed.
    fn turn(self) -> Turn {
        self.end.unwrap_or(Turn::Open { answer: self.answer })
    }
}

/// Failed turns are completed too: then there is no message, and newer versions say what was wrong.
fn complete(payload: &Value) -> Turn {
    match (payload["last_agent_message"].as_str(), &payload["error"]) {
        (Some(answer), Value::Null) => Turn::Completed { answer: answer.to_owned() },
        (_, error) => Turn::Failed { message: error["message"].as_str().unwrap_or("no message").to_owned() },
    }
}

fn text_of(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0190d3a1-0000-7000-8000-000000000001";

    fn kept(lines: &[&str]) -> Option<Kept> {
        let home = tempfile::tempdir().unwrap();
        let day = home.path().join("sessions/2031/05/01");
        std::fs::create_dir_all(&day).unwrap();
        std::fs::write(day.join(format!("rollout-2031-05-01T06-00-00-{ID}.jsonl")), lines.join("\n")).unwrap();
        last_turn(home.path(), ID).unwrap()
    }

    const BEGAN: &str =
        r#"{"timestamp":"2031-05-01T06:00:00.000Z","type":"event_msg","payload":{"type":"task_started"}}"#;
    const SAID: &str = r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"half"}]}}"#;
    const DONE: &str = r#"{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"all of it"}}"#;
    const FAILED: &str = r#"{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":null,"error":{"message":"no credit"}}}"#;

    #[test]
    fn the_last_turn_is_what_it_is() {
        let turn = |lines: &[&str]| kept(lines).unwrap().turn;
        assert_eq!(turn(&[BEGAN, SAID, DONE, ""]), Turn::Completed { answer: "all of it".into() });
        assert_eq!(turn(&[BEGAN, DONE, BEGAN, FAILED, ""]), Turn::Failed { message: "no credit".into() });
        assert_eq!(turn(&[BEGAN, DONE, BEGAN, SAID, ""]), Turn::Open { answer: Some("half".into()) });
        assert_eq!(turn(&[BEGAN, DONE, BEGAN, "{\"torn"]), Turn::Open { answer: None });
        let aborted = r#"{"type":"event_msg","payload":{"type":"turn_aborted"}}"#;
        assert_eq!(turn(&[BEGAN, SAID, aborted, ""]), Turn::Interrupted);
        assert_eq!(kept(&[BEGAN, DONE, ""]).unwrap().began, Some(Time(1_935_381_600_000)));
    }

    #[test]
    fn a_session_that_is_not_kept_is_none() {
        let home = tempfile::tempdir().unwrap();
        assert!(last_turn(home.path(), ID).unwrap().is_none());
    }
}
