//! The synthetic worker as claude: what `claude -p --output-format stream-json` takes, prints and keeps, without a model.

use super::args::Refusal;
use super::scenes::complain;
use super::{scenario, variable};
use crate::host::clock;
use serde_json::{Value, json};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options with a value that are taken and change nothing here.
const VALUES: &[&str] = &[
    "--add-dir",
    "--agents",
    "--allowedTools",
    "--append-system-prompt",
    "--betas",
    "--effort",
    "--fallback-model",
    "--max-turns",
    "--mcp-config",
    "--output-format",
    "--permission-mode",
    "--setting-sources",
    "--settings",
    "--tools",
];
/// Options without a value.
const SWITCHES: &[&str] = &["-p", "--verbose", "--strict-mcp-config", "--disable-slash-commands", "--bare"];

/// How a turn fails: its name, its class, the HTTP status, the words.
const FAILURES: &[(&str, &str, u16, &str)] = &[
    ("401", "authentication_failed", 401, "Invalid API key · Fix external API key"),
    ("login", "", 0, "Not logged in · Please run /login"),
    ("404", "model_not_found", 404, "There's an issue with the selected model (m). It may not exist."),
    ("context", "invalid_request", 400, "Prompt is too long · use a shorter one"),
    ("credit", "billing_error", 400, "Credit balance is too low"),
    ("usage", "rate_limit", 429, "You've hit your 5-hour limit"),
    ("rate", "rate_limit", 429, "API Error: Request rejected (429) · too many requests"),
    ("500", "server_error", 500, "API Error: 500 Internal server error"),
    ("529", "rate_limit", 529, "API Error: Repeated 529 Overloaded errors."),
    ("other", "unknown", 400, "API Error: 400 something else"),
];

/// One turn of one conversation.
#[derive(Clone)]
struct Turn {
    id: String,
    model: String,
    /// The file of the conversation, and what the user said in it before.
    file: PathBuf,
    said: Vec<String>,
    prompt: String,
    arg: Option<String>,
}

/// What a scene is played by; its end is an exit status.
type Play = fn(&Turn) -> io::Result<u8>;

/// Name, argument, what it plays.
type Scene = (&'static str, &'static str, Play);

const SCENES: &[Scene] = &[
    ("ok", "", |turn| turn.answer().and_then(|text| turn.succeed(&text))),
    ("fail", "CAUSE[=MINUTES]", Turn::fail),
    ("elsewhere", "", Turn::elsewhere),
    ("cut", "", |turn| turn.answer().and_then(|text| turn.result(&text, &json!({ "stop_reason": null })))),
    ("both", "", |turn| turn.answer().and_then(|text| turn.succeed(&text)).and_then(|_| turn.fail())),
    ("interrupted", "", |turn| turn.result("", &json!({ "is_error": true, "terminal_reason": "aborted_streaming" }))),
    ("silent", "", |_| linger(None)),
    ("linger", "SECONDS", |turn| {
        turn.answer().and_then(|text| turn.succeed(&text)).and_then(|_| linger(turn.number()))
    }),
    ("late-exit", "N", |turn| {
        turn.answer().and_then(|text| turn.succeed(&text))?;
        Ok(turn.number().and_then(|n| u8::try_from(n).ok()).unwrap_or(1))
    }),
    ("killed", "", |_| killed()),
    ("killed-saved", "", |turn| turn.answer().and_then(|_| killed())),
    ("torn", "", |turn| {
        turn.answer()?;
        print(b"{\"is_error\":false,\"subtype\":\"succ")?;
        killed()
    }),
    ("nothing", "", |_| Ok(0)),
];

/// The names of the scenes, with their arguments.
pub(super) fn scenes() -> impl Iterator<Item = String> {
    SCENES.iter().map(|(name, arg, _)| if arg.is_empty() { (*name).to_owned() } else { format!("{name}:{arg}") })
}

/// Whether these arguments are claude's.
pub(super) fn are_for(args: &[String]) -> bool {
    args.first().is_some_and(|arg| arg == "-p")
}

/// The whole program: its exit status.
pub(super) fn main(args: &[String]) -> u8 {
    let played = begin(args).and_then(|(turn, scene)| {
        let played = turn.begin(scene).and_then(|()| scene.2(&turn));
        played.map_err(|error| (1, format!("Error: {error}")))
    });
    played.unwrap_or_else(|(status, text)| {
        complain(&text);
        status
    })
}

fn begin(args: &[String]) -> Result<(Turn, &'static Scene), Refusal> {
    let (mut id, mut resumed, mut model) = (None, false, "model-a".to_owned());
    for arg in args {
        let (name, value) = arg.split_once('=').map_or((arg.as_str(), None), |(name, value)| (name, Some(value)));
        match (name, value) {
            ("--session-id", Some(value)) => id = Some(value.to_owned()),
            ("--resume", Some(value)) => (id, resumed) = (Some(value.to_owned()), true),
            ("--model", Some(value)) => model = value.to_owned(),
            ("stream-json", None) => {}
            _ if VALUES.contains(&name) || (SWITCHES.contains(&name) && value.is_none()) => {}
            _ => return Err((1, format!("error: unknown option '{name}'"))),
        }
    }
    let mut bytes = Vec::new();
    let read = io::stdin().read_to_end(&mut bytes);
    read.map_err(|error| (1, format!("Error: {error}")))?;
    let input = String::from_utf8_lossy(&bytes).into_owned();
    if input.trim().is_empty() {
        let words = "Error: Input must be provided either through stdin or as a prompt argument when using --print";
        return Err((1, words.to_owned()));
    }
    let (name, arg, prompt) = scenario(input, variable("ARES_SYNTHETIC"));
    let name = if name.is_empty() { "ok" } else { &name };
    let scene = SCENES.iter().find(|scene| scene.0 == name);
    let scene =
        scene.ok_or_else(|| (2, format!("error: there is no scenario '{name}'\n\nSee ares-synthetic --help.")))?;
    let id = id.unwrap_or_else(|| super::rollout::new_id(clock::now().0));
    let file = file(&id).map_err(|error| (1, format!("Error: {error}")))?;
    let kept = std::fs::read_to_string(&file).ok();
    match (&kept, resumed) {
        (Some(_), false) => return Err((1, format!("Error: Session ID {id} is already in use."))),
        (None, true) => {
            let words = format!("No conversation found with session ID: {id}");
            let result = json!({ "type": "result", "subtype": "error_during_execution", "is_error": true,
                "num_turns": 0, "stop_reason": null, "session_id": id, "errors": [words] });
            let _gone = print(format!("{result}\n").as_bytes());
            return Err((1, words));
        }
        _ => {}
    }
    let said = kept.iter().flat_map(|text| text.lines()).filter_map(said).collect();
    Ok((Turn { id, model, file, said, prompt, arg }, scene))
}

/// The conversation's file: in the folder of the directory that it is called in.
fn file(id: &str) -> io::Result<PathBuf> {
    let named = variable("ARES_SYNTHETIC_HOME").or_else(|| variable("CLAUDE_CONFIG_DIR")).map(PathBuf::from);
    let home = named.unwrap_or_else(|| Path::new(&variable("HOME").unwrap_or_default()).join(".ares-synthetic"));
    let cwd = std::env::current_dir()?.to_string_lossy().into_owned();
    let folder: String = cwd.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let folder = home.join("projects").join(folder);
    std::fs::create_dir_all(&folder)?;
    Ok(folder.join(format!("{id}.jsonl")))
}

fn said(line: &str) -> Option<String> {
    let entry: Value = serde_json::from_str(line).ok()?;
    (entry["type"] == "user").then(|| entry["message"]["content"].as_str().unwrap_or_default().to_owned())
}

impl Turn {
    fn number(&self) -> Option<u64> {
        self.arg.as_deref()?.parse().ok()
    }

    /// Names the conversation, and writes down what the user says.
    fn begin(&self, scene: &Scene) -> io::Result<()> {
        if scene.0 == "nothing" || scene.0 == "elsewhere" {
            return Ok(());
        }
        self.init(&self.id)?;
        self.keep("user", &json!({ "role": "user", "content": self.prompt }))
    }

    fn init(&self, id: &str) -> io::Result<()> {
        emit(&json!({ "type": "system", "subtype": "init", "cwd": std::env::current_dir()?, "session_id": id,
            "tools": [], "mcp_servers": [], "model": self.model, "permissionMode": "default" }))
    }

    fn keep(&self, kind: &str, message: &Value) -> io::Result<()> {
        let line =
            json!({ "type": kind, "sessionId": self.id, "timestamp": clock::now().to_string(), "message": message });
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&self.file)?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Says how the conversation stands: first into the file, then printed.
    fn answer(&self) -> io::Result<String> {
        let said: Vec<String> = self.said.iter().map(|words| format!("{words:?}")).collect();
        let before = if said.is_empty() { String::new() } else { format!("; you said before: {}", said.join(" | ")) };
        let text = format!("turn {} of this conversation{before}", said.len() + 1);
        let message = |reason: Value| {
            json!({ "id": format!("msg_{}", said.len()), "role": "assistant", "model": self.model,
                "content": [{ "type": "text", "text": text }], "stop_reason": reason })
        };
        self.keep("assistant", &message(json!("end_turn")))?;
        emit(&json!({ "type": "assistant", "message": message(Value::Null), "session_id": self.id }))?;
        Ok(text)
    }

    fn succeed(&self, text: &str) -> io::Result<u8> {
        self.result(text, &json!({}))
    }

    /// The result, with these fields in the place of those of a success; its kind comes late in the line, as it does.
    fn result(&self, text: &str, more: &Value) -> io::Result<u8> {
        let words = |text: &str| text.split_whitespace().count();
        let turns = self.said.len() + 1;
        let mut result = json!({ "stop_reason": "end_turn", "session_id": self.id,
            "total_cost_usd": 0.001 * f64::from(u32::try_from(turns).unwrap_or(u32::MAX)),
            "usage": { "input_tokens": words(&self.prompt), "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 10 * self.said.len(), "output_tokens": words(text),
                "output_tokens_details": { "thinking_tokens": 0 } },
            "permission_denials": [], "terminal_reason": "completed", "is_error": false, "num_turns": 1,
            "subtype": "success", "api_error_status": null, "result": text, "type": "result",
            "model_usage_since_last_result": { self.model.as_str(): { "costUSD": 0.001 } } });
        for (key, value) in more.as_object().into_iter().flatten() {
            result[key] = value.clone();
        }
        emit(&result)?;
        Ok(0)
    }

    fn fail(&self) -> io::Result<u8> {
        let (name, minutes) = self.arg.as_deref().unwrap_or("other").split_once('=').map_or_else(
            || (self.arg.as_deref().unwrap_or("other"), None),
            |(name, minutes)| (name, minutes.parse::<i64>().ok()),
        );
        let found = FAILURES.iter().find(|failure| failure.0 == name);
        let (_, class, status, words) = found.ok_or_else(|| io::Error::other(format!("there is no cause '{name}'")))?;
        if let Some(minutes) = minutes {
            let at = (clock::now().0 + minutes * 60_000) / 1000;
            emit(&json!({ "type": "rate_limit_event", "rate_limit_info": { "status": "rejected", "resetsAt": at } }))?;
        }
        let message = json!({ "id": "msg_e", "role": "assistant", "model": "<synthetic>",
            "content": [{ "type": "text", "text": words }], "stop_reason": "stop_sequence" });
        self.keep("assistant", &message)?;
        emit(&json!({ "type": "assistant", "message": message, "error": class, "session_id": self.id }))?;
        let status = if *status == 0 { Value::Null } else { json!(status) };
        self.result(
            words,
            &json!({ "is_error": true, "terminal_reason": "api_error", "api_error_status": status,
            "stop_reason": "stop_sequence" }),
        )?;
        Ok(1)
    }

    fn elsewhere(&self) -> io::Result<u8> {
        let id = super::rollout::new_id(clock::now().0);
        let other =
            Self { file: self.file.with_file_name(format!("{id}.jsonl")), id, said: Vec::new(), ..self.clone() };
        other.init(&other.id)?;
        // Long enough to be stopped before it answers.
        std::thread::sleep(Duration::from_millis(300));
        other.answer().and_then(|text| other.succeed(&text))
    }
}

/// Does not end for these seconds, or for ever.
fn linger(seconds: Option<u64>) -> io::Result<u8> {
    std::thread::sleep(Duration::from_secs(seconds.unwrap_or(u64::from(u32::MAX))));
    Ok(0)
}

/// Ends as when it is killed in the middle.
fn killed() -> io::Result<u8> {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
    linger(None)
}

fn emit(event: &Value) -> io::Result<()> {
    print(format!("{event}\n").as_bytes())
}

fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(bytes).and_then(|()| out.flush())
}
