//! A worker without a model: it speaks as `codex exec --json` does, needs no network, and really keeps its sessions, so
//! that everything around a worker can be tried and tested. By itself it tells how the conversation stands and counts
//! the prompt; a scenario makes it play any of the ways in which the real one ends.
//!
//! The scenario is the prompt's first line, `scenario: NAME[:ARG]`, or `$ARES_SYNTHETIC`; `@97` after the name plays
//! the older versions, which begin a new session where the newer ones refuse. Sessions are kept in
//! `$ARES_SYNTHETIC_HOME`, else `$CODEX_HOME`, else `~/.ares-synthetic`. Called as `claude -p` is, it speaks as that one.
//!
//! This is a foreign program that happens to ship with ares: it reads its own environment, prints, starts children and
//! kills itself. Nothing else in ares calls it but through its adapter.

mod args;
mod claude;
mod failures;
mod rollout;
mod scenes;
mod stage;

use self::args::{Call, Refusal};
use self::rollout::{NoThread, Thread};
use self::scenes::{From, Scene, complain};
use self::stage::{Cut, Stage};
use serde_json::json;
use std::ffi::OsString;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The most characters of a prompt.
const CHARS_MAX: usize = 1 << 20;

/// Whether this is the synthetic worker: its own program, or the front, which runs it as `ares synthetic`.
pub fn is(program: &str) -> bool {
    program.ends_with("/ares-synthetic") || before(program).is_some()
}

/// What stands before the arguments when the front is the program.
pub fn before(program: &str) -> Option<&'static str> {
    program.ends_with("/ares").then_some("synthetic")
}

/// The whole program: its arguments without its name, and its exit status.
pub fn main(args: impl Iterator<Item = OsString>) -> u8 {
    let Ok(args) = args.map(OsString::into_string).collect::<Result<Vec<_>, _>>() else {
        complain("error: invalid UTF-8 was detected in one or more arguments");
        return 2;
    };
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--help" | "-h"] => return print(&help()),
        [] => {
            complain(help().trim_end());
            return 2;
        }
        ["--version" | "-V"] => return print(concat!("ares-synthetic ", env!("CARGO_PKG_VERSION"), "\n")),
        ["--linger", place, seconds] => return linger(place, seconds),
        _ if claude::are_for(&args) => return claude::main(&args),
        _ => {}
    }
    exec(&args).unwrap_or_else(|(status, text)| {
        complain(&text);
        status
    })
}

/// What is played, and what the user says beside it.
struct Part {
    scene: String,
    arg: Option<String>,
    old: bool,
    prompt: String,
}

fn exec(args: &[String]) -> Result<u8, Refusal> {
    let call = args::parse(args)?;
    if !call.anywhere && !in_repository() {
        return Err(refuse("untrusted", ""));
    }
    let part = part(read_prompt(&call)?, variable("ARES_SYNTHETIC"))?;
    let id = call.resume.clone().unwrap_or_default();
    if let Some(refusal) = failures::refusal(&part.scene, &id) {
        return Err(refusal);
    }
    if part.scene == "replay" {
        return replay(part.arg.as_deref().unwrap_or_default());
    }
    let elsewhere = part.scene == "elsewhere";
    let name = if elsewhere { "ok" } else { &part.scene };
    let scene = scenes::find(name)
        .ok_or_else(|| (2, format!("error: there is no scenario '{}'\n\nSee ares-synthetic --help.", part.scene)))?;
    let thread = thread(&call, &part, elsewhere)?;
    Ok(play(scene, &call, part, thread))
}

/// The session of this call: the one that was asked for, or a new one where codex would begin one.
fn thread(call: &Call, part: &Part, elsewhere: bool) -> Result<Thread, Refusal> {
    let home = home()?;
    let begin = || Thread::begin(&home, !call.ephemeral).map_err(|error| (1, format!("Error: {error}")));
    let Some(id) = call.resume.as_deref().filter(|_| !elsewhere) else { return begin() };
    if !super::is_uuid(id) {
        return begin();
    }
    match Thread::resume(&home, id, !part.old) {
        Ok(thread) => Ok(thread),
        Err(NoThread::Unknown) if part.old => begin(),
        Err(NoThread::Unknown) => Err(refuse("unknown", id)),
        Err(NoThread::Busy) => Err(refuse("busy", id)),
        Err(NoThread::Empty) => Err(refuse("empty-session", id)),
        Err(NoThread::Io(error)) => Err((1, format!("Error: {error}"))),
    }
}

fn play(scene: &Scene, call: &Call, part: Part, thread: Thread) -> u8 {
    let interrupted = Arc::new(AtomicBool::new(false));
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&interrupted)) {
        complain(&format!("Error: {error}"));
        return 1;
    }
    let too_large = part.prompt.chars().count() > CHARS_MAX && !part.old;
    let context = json!({ "sandbox_policy": call.sandbox, "model": call.model, "settings": call.settings, "scenario": scene.name });
    let mut out: Box<dyn Write> = if call.json { Box::new(std::io::stdout()) } else { Box::new(std::io::sink()) };
    let Part { prompt, arg, old, .. } = part;
    let mut stage = Stage { out: &mut out, thread, prompt, arg, old, context, interrupted, items: 0 };
    let ended = match scenes::find("too-large").filter(|_| too_large) {
        Some(refusal) => act(refusal, &mut stage),
        None => act(scene, &mut stage),
    };
    match ended {
        Ok(status) | Err(Cut::Exit(status)) => status,
        Err(Cut::Unread) => {
            complain("thread 'main' panicked: failed printing to stdout: Broken pipe (os error 32)");
            101
        }
        Err(Cut::Store(error)) => {
            complain(&format!("Error: {error}"));
            1
        }
    }
}

fn act(scene: &Scene, stage: &mut Stage<'_>) -> stage::Play {
    if scene.from != From::Nothing {
        stage.name()?;
    }
    if scene.from == From::Begun {
        stage.begin()?;
    }
    (scene.play)(stage)
}

/// The prompt's bytes as codex takes them.
fn read_prompt(call: &Call) -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    let piped = !std::io::stdin().is_terminal();
    if call.prompt.is_none() || (call.resume.is_none() && piped) {
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|error| (1, format!("Failed to read prompt from stdin: {error}")))?;
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let input = std::str::from_utf8(bytes).map_err(|bad| {
        let at = bad.valid_up_to();
        (1, format!("Failed to read prompt from stdin: input is not valid UTF-8 (invalid byte at offset {at})"))
    })?;
    match &call.prompt {
        Some(prompt) if input.is_empty() => Ok(prompt.clone()),
        Some(prompt) => Ok(format!("{prompt}\n\n<stdin>\n{input}\n</stdin>")),
        None if input.trim().is_empty() => Err(refuse("no-prompt", "")),
        None => Ok(input.to_owned()),
    }
}

/// Takes the scenario out of the prompt, or from the variable; the prompt's own one counts. Gives its name, its argument,
/// and the rest of the prompt.
fn scenario(prompt: String, variable: Option<String>) -> (String, Option<String>, String) {
    let own = prompt.split_once('\n').unwrap_or((&prompt, ""));
    let own = own.0.strip_prefix("scenario:").map(|name| (name.trim().to_owned(), own.1.to_owned()));
    let (scenario, prompt) = own.unwrap_or_else(|| (variable.unwrap_or_default(), prompt));
    match scenario.split_once(':') {
        Some((name, arg)) => (name.to_owned(), Some(arg.to_owned()), prompt),
        None => (scenario, None, prompt),
    }
}

fn part(prompt: String, variable: Option<String>) -> Result<Part, Refusal> {
    let (name, arg, prompt) = scenario(prompt, variable);
    let (name, old) = match name.split_once('@') {
        Some((name, "97")) => (name, true),
        Some((_, "171")) | None => (name.trim_end_matches("@171"), false),
        Some((_, version)) => return Err((2, format!("error: version '{version}' is none of 97, 171"))),
    };
    let scene = if name.is_empty() { "ok" } else { name }.to_owned();
    if scene == "fail" && failures::find(arg.as_deref().unwrap_or("other").split('=').next().unwrap_or("")).is_none() {
        return Err((2, format!("error: there is no cause '{}'", arg.unwrap_or_default())));
    }
    Ok(Part { scene, arg, old, prompt })
}

/// Prints a recorded file as it is: `FILE[=STATUS]`.
fn replay(arg: &str) -> Result<u8, Refusal> {
    let (file, status) = match arg.rsplit_once('=').map(|(file, status)| (file, status.parse())) {
        Some((file, Ok(status))) => (file, status),
        _ => (arg, 0),
    };
    let bytes = std::fs::read(file).map_err(|error| (2, format!("error: cannot read '{file}': {error}")))?;
    let mut out = std::io::stdout();
    let printed = out.write_all(&bytes).and_then(|()| out.flush());
    printed.map_or(Ok(101), |()| Ok(status))
}

fn refuse(name: &str, id: &str) -> Refusal {
    failures::refusal(name, id).unwrap_or((1, format!("Error: {name}")))
}

#[expect(clippy::disallowed_methods, reason = "it plays a foreign program, which reads its own environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Where the sessions are. As codex does, it makes no `CODEX_HOME` that somebody named.
fn home() -> Result<PathBuf, Refusal> {
    let own = variable("ARES_SYNTHETIC_HOME").map(PathBuf::from);
    if let (None, Some(named)) = (&own, variable("CODEX_HOME")) {
        let missing = format!("Error: CODEX_HOME points to \"{named}\", but that path does not exist");
        return if Path::new(&named).is_dir() { Ok(named.into()) } else { Err((1, missing)) };
    }
    let default = || Some(Path::new(&variable("HOME")?).join(".ares-synthetic"));
    let home = own.or_else(default).ok_or((1, "Error finding codex home: HOME is not set".to_owned()))?;
    std::fs::create_dir_all(&home).map_err(|error| (1, format!("Error: {}: {error}", home.display())))?;
    Ok(home)
}

fn in_repository() -> bool {
    std::env::current_dir().is_ok_and(|dir| dir.ancestors().any(|folder| folder.join(".git").exists()))
}

/// The child of a scene: it only waits.
fn linger(place: &str, seconds: &str) -> u8 {
    if place == "session" && rustix::process::setsid().is_err() {
        return 1;
    }
    std::thread::sleep(Duration::from_secs(seconds.parse().unwrap_or(60)));
    0
}

fn print(text: &str) -> u8 {
    let mut out = std::io::stdout();
    u8::from(out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err())
}

fn help() -> String {
    let mut text = String::from(
        "Plays a coding agent without a model. It takes the arguments of `codex exec`.\n\n\
         Usage: ares-synthetic exec [OPTIONS] [--json] -\n       \
         ares-synthetic exec [OPTIONS] resume [--json] SESSION_ID -\n\n\
         The scenario is the first line of the prompt, `scenario: NAME[:ARG]`, or $ARES_SYNTHETIC.\n\
         `NAME@97` plays the older versions.\n\n",
    );
    let row = |name: &str, about: &str| format!("  {name:28} {about}\n");
    for scene in scenes::SCENES {
        let name = if scene.arg.is_empty() { scene.name.to_owned() } else { format!("{}:{}", scene.name, scene.arg) };
        text += &row(&name, scene.about);
    }
    text += &row("elsewhere", "continues another session than the one asked for");
    text += &row("replay:FILE[=STATUS]", "prints a recorded file and ends with STATUS (0)");
    for (name, status, words) in failures::REFUSALS {
        text += &row(name, &format!("status {status}: {}", words.lines().next().unwrap_or_default()));
    }
    let claude: Vec<String> = claude::scenes().collect();
    text += &format!("\nWith -p it takes the arguments of `claude` and plays: {}\n", claude.join(", "));
    let causes: Vec<&str> = failures::FAILURES.iter().map(|failure| failure.name).collect();
    text + "\nCauses of fail: " + &causes.join(", ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_of_the_prompt_counts_before_the_variable() {
        let own = part("scenario: fail:usage=5\nwords".to_owned(), Some("hang".to_owned())).unwrap();
        assert_eq!((own.scene.as_str(), own.arg.as_deref(), own.old), ("fail", Some("usage=5"), false));
        assert_eq!(own.prompt, "words");
        let from_variable = part("words\nmore".to_owned(), Some("ok@97".to_owned())).unwrap();
        assert_eq!((from_variable.scene.as_str(), from_variable.old), ("ok", true));
        assert_eq!(from_variable.prompt, "words\nmore");
        assert_eq!(part("words".to_owned(), None).unwrap().scene, "ok");
        for bad in ["ok@5", "fail:nosuch"] {
            assert_eq!(part("p".to_owned(), Some(bad.to_owned())).err().map(|(status, _)| status), Some(2), "{bad}");
        }
    }

    #[test]
    fn every_name_is_told_once() {
        let mut names: Vec<&str> = scenes::SCENES.iter().map(|scene| scene.name).collect();
        names.extend(failures::REFUSALS.iter().map(|(name, ..)| *name));
        names.extend(["elsewhere", "replay"]);
        let help = help();
        for name in &names {
            assert!(help.contains(&format!("\n  {name}")), "{name}");
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
