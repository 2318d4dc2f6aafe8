//! The scenes that the synthetic worker can play inside a turn, one row each. What happens before a turn, and in the
//! store, is in the parent.

use super::failures;
use super::stage::{Cut, Play, Stage};
use serde_json::json;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// One scene.
pub(super) struct Scene {
    /// Its name, as in `scenario: NAME`.
    pub(super) name: &'static str,
    /// What its argument is; empty when it takes none.
    pub(super) arg: &'static str,
    /// What it plays.
    pub(super) about: &'static str,
    /// How far the turn has begun when `play` is called.
    pub(super) from: From,
    /// Plays it.
    pub(super) play: fn(&mut Stage<'_>) -> Play,
}

/// Where a scene takes over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// Before anything is printed.
    Nothing,
    /// After the session was named.
    Named,
    /// After the turn was begun.
    Begun,
}

macro_rules! scenes {
    ($($from:ident $name:literal $arg:literal $about:literal $play:expr;)*) => {
        /// Every scene.
        pub(super) const SCENES: &[Scene] = &[
            $(Scene { name: $name, arg: $arg, about: $about, from: From::$from, play: $play },)*
        ];
    };
}

scenes! {
    Begun "ok" "" "answers with the turn's number, what was said before, and counts of the prompt" ok;
    Begun "reason" "" "a reasoning item, then the answer" reason;
    Begun "tool" "" "a command that ends with status 3, then the answer" tool;
    Begun "mcp" "" "a call of an MCP tool, then the answer" mcp;
    Begun "patch" "" "a change of a file, then the answer" patch;
    Begun "todo" "" "a list of things to do that is completed after the answer" todo;
    Begun "websearch" "" "a web search whose item has two ids, then the answer" websearch;
    Begun "commentary" "" "two messages; the second is the answer" commentary;
    Named "warning" "" "a warning item before the turn begins" warning;
    Begun "empty" "" "completes without a message" |stage| stage.complete(None);
    Begun "nousage" "" "completes with totals of zero" nousage;
    Begun "noise" "" "lines that are no events, bytes that are no text, and unknown events around the answer" noise;
    Begun "reconnect" "" "connects again twice, then answers" reconnect;
    Begun "cut-after-message" "" "a message, a cut stream, the message again" cut_after_message;
    Begun "fail" "CAUSE[=MINUTES]" "fails for one of the causes below; a quota is open again in MINUTES" fail;
    Named "too-large" "" "finds the prompt too long after it named the session" too_large;
    Begun "slow" "MS" "five messages with MS milliseconds between them (200)" slow;
    Begun "sleep" "SECONDS" "is silent for SECONDS, or for ever, then answers" sleep;
    Begun "hang" "" "is silent for ever" hang;
    Nothing "mute" "SECONDS" "prints nothing at all for SECONDS, or for ever, then ends with status 1" mute;
    Begun "endless" "" "waits for a network that never comes, with a line now and then" endless;
    Begun "linger" "SECONDS" "completes, then does not end for SECONDS, or for ever" linger;
    Begun "orphan" "SECONDS" "completes and ends while a child of it goes on for SECONDS (60)" |stage| left(stage, "group");
    Begun "daemon" "SECONDS" "the same, with the child in a session of its own" |stage| left(stage, "session");
    Begun "fork" "SECONDS" "starts children in its own group and in sessions of their own, then is silent" fork;
    Begun "stubborn" "SECONDS" "ignores SIGTERM, SIGINT and SIGHUP and is silent" stubborn;
    Begun "killed" "" "is killed in the middle of the turn" killed;
    Begun "killed-saved" "" "saves the whole turn, and is killed before it tells" killed_saved;
    Begun "torn" "" "is killed in the middle of its last line" torn;
    Begun "signal" "N" "sends itself signal N (15)" signal;
    Begun "exit" "N" "ends with status N (0) without saying how its turn ended" |stage| Ok(status(stage, 0));
    Begun "late-exit" "N" "completes, then ends with status N (1)" late_exit;
    Begun "panic" "" "ends as when nobody reads its output" |_| Err(Cut::Unread);
    Nothing "nameless" "" "never names its session, and answers" nameless;
    Begun "flood" "MIB" "prints MIB of output (80), then answers" flood;
    Begun "flood-stderr" "MIB" "prints MIB on standard error (80), then answers" flood_stderr;
    Begun "long-line" "MIB" "answers with one message of MIB (5)" long_line;
}

/// The scene of this name.
pub(super) fn find(name: &str) -> Option<&'static Scene> {
    SCENES.iter().find(|scene| scene.name == name)
}

fn ok(stage: &mut Stage<'_>) -> Play {
    let answer = stage.answer();
    stage.say_and_complete(&answer)
}

fn reason(stage: &mut Stage<'_>) -> Play {
    stage.item("completed", "reasoning", json!({ "text": "**Thinking**\n\nabout it" }))?;
    ok(stage)
}

fn tool(stage: &mut Stage<'_>) -> Play {
    let command = "/bin/bash -lc 'echo hello; exit 3'";
    let running = json!({ "command": command, "aggregated_output": "", "exit_code": null, "status": "in_progress" });
    stage.item("started", "command_execution", running)?;
    let ended = json!({ "command": command, "aggregated_output": "hello\n", "exit_code": 3, "status": "failed" });
    stage.item("completed", "command_execution", ended)?;
    ok(stage)
}

fn mcp(stage: &mut Stage<'_>) -> Play {
    let call = json!({ "server": "s", "tool": "echo", "arguments": { "text": "hi" }, "result": null, "error": null,
        "status": "in_progress" });
    stage.item("started", "mcp_tool_call", call)?;
    let done = json!({ "server": "s", "tool": "echo", "arguments": { "text": "hi" },
        "result": { "content": [{ "type": "text", "text": "hi" }], "structured_content": null }, "error": null,
        "status": "completed" });
    stage.item("completed", "mcp_tool_call", done)?;
    ok(stage)
}

fn patch(stage: &mut Stage<'_>) -> Play {
    let change = json!({ "changes": [{ "path": "notes.txt", "kind": "add" }], "status": "completed" });
    stage.item("completed", "file_change", change)?;
    ok(stage)
}

fn todo(stage: &mut Stage<'_>) -> Play {
    let list = |done: bool| json!({ "id": "item_9", "items": [{ "text": "one", "completed": done }] });
    stage.item("started", "todo_list", list(false))?;
    stage.item("updated", "todo_list", list(true))?;
    let answer = stage.answer();
    stage.message(&answer)?;
    stage.item("completed", "todo_list", list(true))?;
    stage.complete(Some(&answer))
}

fn websearch(stage: &mut Stage<'_>) -> Play {
    for when in ["started", "completed"] {
        let action = r#""query":"q","action":{"type":"search","query":"q"}"#;
        let line = format!(
            "{{\"type\":\"item.{when}\",\"item\":{{\"id\":\"item_0\",\"type\":\"web_search\",\"id\":\"ws_1\",{action}}}}}\n"
        );
        stage.print(line.as_bytes())?;
    }
    stage.items += 1;
    ok(stage)
}

fn commentary(stage: &mut Stage<'_>) -> Play {
    stage.message("I shall look at it first.")?;
    ok(stage)
}

fn warning(stage: &mut Stage<'_>) -> Play {
    let text = "Model metadata for `m` not found. Defaulting to fallback metadata.";
    stage.item("completed", "error", json!({ "message": text }))?;
    stage.begin()?;
    ok(stage)
}

fn nousage(stage: &mut Stage<'_>) -> Play {
    let answer = stage.answer();
    stage.message(&answer)?;
    let zero = super::stage::usage(&Default::default(), stage.old);
    stage.emit(&json!({ "type": "turn.completed", "usage": zero }))?;
    Ok(0)
}

fn noise(stage: &mut Stage<'_>) -> Play {
    stage.print(b"WARNING: this is no event\n\xff\xfe\x00\n{\"type\":\n[1,2]\n\n")?;
    stage.emit(&json!({ "type": "item.plan.delta", "delta": "x" }))?;
    stage.emit(&json!({ "retry_delay_ms": 1.5, "type": "error", "message": "Reconnecting... 1/5 (noise)" }))?;
    ok(stage)
}

fn reconnect(stage: &mut Stage<'_>) -> Play {
    stage.reconnecting("stream disconnected before completion: stream closed before response.completed")?;
    ok(stage)
}

fn cut_after_message(stage: &mut Stage<'_>) -> Play {
    stage.message("the beginning of an answer")?;
    stage
        .warn("Reconnecting... 1/2 (stream disconnected before completion: stream closed before response.completed)")?;
    ok(stage)
}

fn fail(stage: &mut Stage<'_>) -> Play {
    let arg = stage.arg.clone().unwrap_or_else(|| "other".to_owned());
    let (name, minutes) = arg.split_once('=').map_or((arg.as_str(), None), |(name, n)| (name, n.parse().ok()));
    let Some(failure) = failures::find(name) else { return Err(Cut::Exit(2)) };
    let message = failure.message(stage.old, minutes);
    if failure.name == "incomplete" {
        stage.message("the beginning of an answer")?;
    }
    // Old versions retry less: a limit of the rate ends the turn at once.
    if failure.retried && !(stage.old && failure.name == "rate") {
        stage.reconnecting(&message)?;
    }
    stage.fail(&message)
}

fn too_large(stage: &mut Stage<'_>) -> Play {
    complain(&failures::too_large(stage.prompt.chars().count().max(1_048_577)));
    Ok(1)
}

fn slow(stage: &mut Stage<'_>) -> Play {
    let pause = Duration::from_millis(stage.number(200));
    for n in 1..=5 {
        stage.wait(pause)?;
        stage.message(&format!("step {n} of 5"))?;
    }
    ok(stage)
}

fn sleep(stage: &mut Stage<'_>) -> Play {
    stage.wait_long()?;
    ok(stage)
}

fn hang(stage: &mut Stage<'_>) -> Play {
    stage.arg = None;
    stage.wait_long().map(|()| 1)
}

fn mute(stage: &mut Stage<'_>) -> Play {
    stage.wait_long().map(|()| 1)
}

fn endless(stage: &mut Stage<'_>) -> Play {
    loop {
        stage.warn("Reconnecting... waiting for network (Connection failed: error sending request)")?;
        stage.wait(Duration::from_secs(2))?;
    }
}

fn linger(stage: &mut Stage<'_>) -> Play {
    ok(stage)?;
    stage.wait_long().map(|()| 0)
}

/// Starts this program again as a child that only waits.
#[expect(clippy::disallowed_methods, reason = "it plays a foreign program, and leaves a child that no ares started")]
fn child(seconds: u64, place: &str) -> Play<()> {
    let program = std::env::current_exe().map_err(Cut::Store)?;
    let mut command = Command::new(program);
    command.args(["--linger", place, &seconds.to_string()]).stdin(Stdio::null());
    // A child of its own session keeps nothing of the worker's, like a daemon; the other one holds its output open.
    if place == "session" {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    command.spawn().map(|_| ()).map_err(Cut::Store)
}

fn left(stage: &mut Stage<'_>, place: &str) -> Play {
    child(stage.number(60), place)?;
    ok(stage)
}

fn fork(stage: &mut Stage<'_>) -> Play {
    let seconds = stage.number(u64::from(u32::MAX));
    for place in ["group", "group", "session"] {
        child(seconds, place)?;
    }
    stage.wait(Duration::from_secs(seconds))?;
    ok(stage)
}

fn stubborn(stage: &mut Stage<'_>) -> Play {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        // A flag that nobody looks at: the signal is taken and nothing comes of it.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).map_err(Cut::Store)?;
    }
    stage.interrupted = Default::default();
    stage.wait_long().map(|()| 1)
}

/// Ends this process by a signal, at once.
fn raise(number: i32) -> Play {
    let signal = rustix::process::Signal::from_named_raw(number).ok_or(Cut::Exit(2))?;
    let sent = rustix::process::kill_process(rustix::process::getpid(), signal);
    sent.map_err(|error| Cut::Store(error.into()))?;
    std::thread::sleep(Duration::from_secs(1));
    Ok(1)
}

fn killed(stage: &mut Stage<'_>) -> Play {
    stage.message("the beginning of an answer")?;
    raise(9)
}

fn killed_saved(stage: &mut Stage<'_>) -> Play {
    let answer = stage.answer();
    stage.message(&answer)?;
    stage.save(Some(&answer))?;
    raise(9)
}

fn torn(stage: &mut Stage<'_>) -> Play {
    let answer = stage.answer();
    stage.message(&answer)?;
    stage.print(b"{\"type\":\"turn.completed\",\"usage\":{\"input_tok")?;
    raise(9)
}

fn signal(stage: &mut Stage<'_>) -> Play {
    raise(i32::try_from(stage.number(15)).unwrap_or(15))
}

fn status(stage: &Stage<'_>, otherwise: u8) -> u8 {
    u8::try_from(stage.number(u64::from(otherwise))).unwrap_or(otherwise)
}

fn late_exit(stage: &mut Stage<'_>) -> Play {
    ok(stage)?;
    Ok(status(stage, 1))
}

fn nameless(stage: &mut Stage<'_>) -> Play {
    stage.begin()?;
    ok(stage)
}

fn flood(stage: &mut Stage<'_>) -> Play {
    let text = "x".repeat(64 << 10);
    for _ in 0..stage.number(80).saturating_mul(16) {
        stage.item("completed", "reasoning", json!({ "text": text }))?;
    }
    ok(stage)
}

fn flood_stderr(stage: &mut Stage<'_>) -> Play {
    let line = "x".repeat(1023);
    for _ in 0..stage.number(80).saturating_mul(1024) {
        complain(&line);
    }
    ok(stage)
}

fn long_line(stage: &mut Stage<'_>) -> Play {
    let mib = usize::try_from(stage.number(5)).unwrap_or(5);
    let text = "x".repeat(mib << 20);
    stage.say_and_complete(&text)
}

/// Prints a line on standard error; a reader that is gone does not matter.
pub(super) fn complain(text: &str) {
    let _gone = writeln!(std::io::stderr(), "{text}");
}
