//! Claude Code as what a plain command may run. What its conversation was, and what claude keeps of that, can be read all
//! the same when nobody saw how the command ended.

use crate::worker::is_uuid;
use crate::worker::lines::{Line, Lines};
use serde_json::Value;
use std::path::Path;

/// Options that name the conversation beforehand.
const NAMING: &[&str] = &["--session-id", "--resume", "-r"];

/// Whether the program is claude itself, so that its turn is all that is done.
pub(in crate::worker) fn is(program: &str) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == "claude")
}

/// The id of the conversation: as claude printed it last with `--output-format stream-json`, else as the command's own
/// arguments name it. It becomes the name of a file, so nothing but an id is taken for one. A fork has an id that only
/// claude tells.
pub(in crate::worker) fn session(argv: &[String], stdout: &[u8]) -> Option<String> {
    printed(stdout).or_else(|| named(argv))
}

fn printed(stdout: &[u8]) -> Option<String> {
    let mut lines = Lines::default();
    let all = lines.feed(stdout).into_iter().chain(lines.rest());
    let mut begun = all.filter_map(|line| match line {
        // Most lines are no beginning, and need not be parsed to see that.
        Line::Whole(bytes) if bytes.starts_with(b"{") && bytes.windows(6).any(|part| part == b"\"init\"") => {
            let event: Value = serde_json::from_slice(&bytes).ok()?;
            let init = event["type"] == "system" && event["subtype"] == "init";
            event["session_id"].as_str().filter(|id| init && is_uuid(id)).map(str::to_owned)
        }
        Line::Whole(_) | Line::TooLong(_) => None,
    });
    begun.next_back()
}

fn named(argv: &[String]) -> Option<String> {
    let options = argv.split(|word| word == "--").next().unwrap_or_default();
    if options.iter().any(|word| word == "--fork-session") {
        return None;
    }
    options.iter().enumerate().find_map(|(at, word)| {
        let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let value = value.or_else(|| options.get(at + 1).map(String::as_str))?;
        (NAMING.contains(&name) && is_uuid(value)).then(|| value.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4b1d3c52-0000-4000-8000-000000000001";
    const OTHER: &str = "4b1d3c52-0000-4000-8000-000000000002";

    #[test]
    fn the_conversation_is_the_one_that_was_begun_last() {
        let init = |id: &str| format!(r#"{{"type":"system","subtype":"init","session_id":"{id}"}}"#);
        let told = |out: &str| session(&[], out.as_bytes());
        assert_eq!(told(&format!("noise\n{}\n{}", init(OTHER), init(ID))).as_deref(), Some(ID));
        // The id of a result may be one that never began, and a path is no id.
        assert_eq!(told(&format!(r#"{{"type":"result","subtype":"init","session_id":"{ID}"}}"#)), None);
        assert_eq!(told(&init("../../../etc/passwd")), None);
        assert_eq!(told(r#"{"init": torn"#), None);
    }

    #[test]
    fn an_id_that_was_given_counts_where_none_was_printed() {
        let given = |words: &str| {
            let argv: Vec<String> = words.split(' ').map(str::to_owned).collect();
            session(&argv, b"")
        };
        for words in ["-p --session-id ID", "--session-id=ID -p", "-p --resume ID", "-r ID -p hello"] {
            assert_eq!(given(&words.replace("ID", ID)).as_deref(), Some(ID), "{words}");
        }
        for words in ["-p --continue ID", "-p -- --session-id ID", "--resume ID --fork-session", "-p --session-id x"] {
            assert_eq!(given(&words.replace("ID", ID)), None, "{words}");
        }
    }

    #[test]
    fn only_claude_itself_is_one() {
        assert!(is("/usr/bin/claude") && !is("/usr/bin/claude-all") && !is("sh"));
    }
}
