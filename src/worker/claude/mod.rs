//! Claude Code in print mode, `claude -p --output-format stream-json`: how it is called. Reading what it prints is in
//! `read`, how its failures are told apart in `failure`, what it keeps of a conversation in `kept`, and what can be known
//! of one that a plain command ran in `told`.
//!
//! claude takes mode, tools and servers from the arguments of *this* process, never from the session's first turn, so
//! every call repeats every restriction. Three facts shape the arguments:
//!
//! * The id of a new session is given to it beforehand, so that it is known even when nothing was ever printed. It comes
//!   of the attempt's name, and so nobody has to store it before the worker starts.
//! * Options with lists swallow what follows them; so each stands in one word, `--tools=LIST`, and the prompt comes on
//!   standard input.
//! * A prompt that begins with `/` is a command to claude itself, and one that older versions do not know ends as a
//!   success without a call. Such a prompt is refused unless `commands=on`.

mod failure;
pub(super) mod kept;
mod read;
#[cfg(test)]
mod read_tests;
mod told;

pub(super) use read::Reader;
pub(super) use told::{is, session};

use super::command::no_terminal;
use super::given::{Choices, Free, check_options, check_prompt, on, option};
use super::{Plan, env, is_uuid, refused};
use crate::domain::digest::Digest;
use crate::domain::spec::Spec;
use crate::error::Result;
use std::path::PathBuf;

/// Options with a closed set of values.
const CHOICES: Choices = &[
    ("mode", &["default", "plan", "dontAsk", "acceptEdits", "bypassPermissions"]),
    ("mcp", &["on", "off"]),
    ("commands", &["on", "off"]),
    ("effort", &["low", "medium", "high", "xhigh", "max"]),
];

/// Options whose values are lists, names or numbers.
const FREE: Free = &[
    ("tools", check_tools),
    ("allow", |rules| check_list("list of tool rules", rules)),
    ("settings", check_sources),
    ("max_turns", check_turns),
];

/// What a worker's entry may fix: options with a value each, and switches.
const ENTRY_VALUES: &[&str] =
    &["--add-dir", "--agents", "--append-system-prompt", "--betas", "--fallback-model", "--mcp-config", "--settings"];
const ENTRY_SWITCHES: &[&str] = &["--bare"];

/// Keeps claude from calling anybody but the model, and from changing itself.
const QUIET: &[&str] = &[
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_TELEMETRY",
];

/// Where claude keeps its conversations.
pub(super) fn home(var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    var("CLAUDE_CONFIG_DIR").or_else(|| Some(var("HOME")?.join(".claude")))
}

/// Refuses what claude can never do.
pub(super) fn check(spec: &Spec, prompt: Option<&[u8]>) -> Result<()> {
    check_prompt("claude", prompt)?;
    check_options("claude", spec, CHOICES, FREE)?;
    if prompt.unwrap_or_default().trim_ascii_start().starts_with(b"/") && !on(spec, "commands") {
        return Err(refused("the prompt begins with '/', which claude takes for one of its own commands")
            .hint("begin it with other words, or add --option commands=on"));
    }
    entry(&spec.argv).map(|_| ())
}

fn check_list(what: &str, list: &str) -> Result<()> {
    if list.trim().is_empty() || list.starts_with('-') || list.chars().any(char::is_control) {
        return Err(refused(format!("'{}' is no {what}", list.escape_debug())));
    }
    Ok(())
}

/// Names of tools, or `default` for all of them.
fn check_tools(names: &str) -> Result<()> {
    let bare = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match names.split(',').find(|name| !bare(name)) {
        Some(bad) => Err(refused(format!("'{}' is no name of a tool", bad.escape_debug()))
            .hint("write tools=Read,Grep, or tools=default for all of them")),
        None => Ok(()),
    }
}

fn check_sources(names: &str) -> Result<()> {
    match names.split(',').find(|name| !["user", "project", "local"].contains(name)) {
        Some(bad) => Err(refused(format!("'{}' is no source of settings", bad.escape_debug()))
            .hint("write settings=user,project,local, or some of them")),
        None => Ok(()),
    }
}

fn check_turns(number: &str) -> Result<()> {
    // 0 is taken for no bound.
    match number.parse::<u32>() {
        Ok(1..) => Ok(()),
        _ => Err(refused(format!("'{}' is no number of turns", number.escape_debug())).hint("write max_turns=N")),
    }
}

/// The arguments that the worker's entry fixes, each in one word.
fn entry(argv: &[String]) -> Result<Vec<String>> {
    let (mut args, mut words) = (Vec::new(), argv.iter());
    while let Some(word) = words.next() {
        if ENTRY_SWITCHES.contains(&word.as_str()) {
            args.push(word.clone());
            continue;
        }
        if !ENTRY_VALUES.contains(&word.as_str()) {
            return Err(refused(format!("'{word}' cannot be an argument of a claude worker")).hint(format!(
                "write one of {}",
                ENTRY_VALUES.iter().chain(ENTRY_SWITCHES).copied().collect::<Vec<_>>().join(", ")
            )));
        }
        let value = words.next().ok_or_else(|| refused(format!("'{word}' needs a value")))?;
        check_list(&format!("value of '{word}'"), value)?;
        args.push(format!("{word}={value}"));
    }
    Ok(args)
}

/// The id that a session begun by this attempt is given: a UUID that comes of the attempt's unique name.
pub(super) fn fresh_id(attempt: &str) -> String {
    let digest = Digest::of("claude session", &[attempt.as_bytes()]);
    let mut bytes = *digest.bytes();
    // Version 8 and its variant: made by a rule of our own, by RFC 9562.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// The call of one turn; the prompt comes on standard input.
pub(super) fn plan(spec: &Spec, resume: Option<&str>, attempt: &str) -> Result<Plan> {
    check_options("claude", spec, CHOICES, FREE)?;
    let mut args: Vec<String> = super::synthetic::before(&spec.program).map(str::to_owned).into_iter().collect();
    args.extend(["-p", "--output-format", "stream-json", "--verbose"].map(str::to_owned));
    args.extend(entry(&spec.argv)?);
    args.push(format!("--permission-mode={}", option(spec, "mode").unwrap_or("default")));
    args.push(format!("--tools={}", option(spec, "tools").unwrap_or_default()));
    args.extend(option(spec, "allow").map(|rules| format!("--allowedTools={rules}")));
    args.push(format!("--setting-sources={}", option(spec, "settings").unwrap_or_default()));
    if !on(spec, "mcp") {
        args.push("--strict-mcp-config".to_owned());
    }
    if !on(spec, "commands") {
        args.push("--disable-slash-commands".to_owned());
    }
    args.extend(option(spec, "effort").map(|effort| format!("--effort={effort}")));
    args.extend(option(spec, "max_turns").map(|turns| format!("--max-turns={turns}")));
    args.extend(spec.model.iter().map(|model| format!("--model={model}")));
    args.push(match resume {
        Some(id) if is_uuid(id) => format!("--resume={id}"),
        Some(id) => return Err(refused(format!("'{}' is no id of a claude session", id.escape_debug()))),
        None => format!("--session-id={}", fresh_id(attempt)),
    });
    Ok(Plan { args, env: variables(spec), pass: passed(spec) })
}

/// claude prints the reset of a quota as the time on a wall clock, in the zone of its own environment.
fn variables(spec: &Spec) -> Vec<(String, String)> {
    let mut variables = no_terminal(spec);
    variables.push(("TZ".to_owned(), "UTC".to_owned()));
    variables.extend(QUIET.iter().map(|name| ((*name).to_owned(), "1".to_owned())));
    variables
}

/// Where claude finds its home and the certificates to trust; keys, and whom to call instead of its own service, are
/// passed only when a job or an entry names them.
fn passed(spec: &Spec) -> Vec<&'static str> {
    let mut names = vec!["CLAUDE_CONFIG_DIR", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];
    if super::synthetic::is(&spec.program) {
        names.extend(env::SYNTHETIC);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::worker::sample;
    use std::path::Path;

    const ID: &str = "0190d3a1-0000-4000-8000-000000000001";

    fn words(spec: &Spec, resume: Option<&str>) -> String {
        plan(spec, resume, "s 1.1").unwrap().args.join(" ")
    }

    #[test]
    fn a_first_turn_is_restricted_and_its_session_named() {
        let mut spec = sample::spec("claude", &["--add-dir", "/srv/more", "--bare"]);
        spec.model = Some("m-1".to_owned());
        let expected = "-p --output-format stream-json --verbose --add-dir=/srv/more --bare --permission-mode=default \
             --tools= --setting-sources= --strict-mcp-config --disable-slash-commands --model=m-1 --session-id=";
        let id = fresh_id("s 1.1");
        assert_eq!(words(&spec, None), format!("{expected}{id}"));
        assert!(is_uuid(&id) && id != fresh_id("s 1.2"), "{id}");
        let plan = plan(&spec, None, "s 1.1").unwrap();
        assert!(plan.env.contains(&("TZ".to_owned(), "UTC".to_owned())));
        assert!(plan.pass.contains(&"CLAUDE_CONFIG_DIR") && !plan.pass.iter().any(|name| name.contains("KEY")));
    }

    #[test]
    fn a_resume_repeats_every_restriction() {
        let mut spec = sample::spec("claude", &[]);
        spec.options = [("mode", "plan"), ("tools", "Read,Grep"), ("max_turns", "3")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let (first, resumed) = (words(&spec, None), words(&spec, Some(ID)));
        let same = |line: &str| line.rsplit_once(' ').unwrap().0.to_owned();
        assert_eq!(same(&first), same(&resumed));
        assert!(resumed.ends_with(&format!("--max-turns=3 --resume={ID}")), "{resumed}");
        assert!(!resumed.contains("--continue") && !resumed.contains("--fork-session"));
        for bad in ["", "x", "--continue", &ID.to_uppercase()] {
            assert_eq!(plan(&spec, Some(bad), "").unwrap_err().code, Code::WorkerRefused, "{bad}");
        }
    }

    #[test]
    fn options_lift_restrictions_one_by_one() {
        let mut spec = sample::spec("claude", &[]);
        for (name, value) in [
            ("mode", "acceptEdits"),
            ("tools", "default"),
            ("allow", "Bash(git log *),Read"),
            ("settings", "user,project"),
            ("mcp", "on"),
            ("commands", "on"),
            ("effort", "high"),
        ] {
            spec.options.insert(name.to_owned(), value.to_owned());
        }
        check(&spec, Some(b"/compact")).unwrap();
        let expected = "-p --output-format stream-json --verbose --permission-mode=acceptEdits --tools=default \
             --allowedTools=Bash(git log *),Read --setting-sources=user,project --effort=high";
        assert_eq!(words(&spec, Some(ID)), format!("{expected} --resume={ID}"));
    }

    #[test]
    fn what_it_cannot_take_is_refused_at_submission() {
        let spec = sample::spec("claude", &[]);
        check(&spec, Some("für dich".as_bytes())).unwrap();
        for bad in [&b""[..], b" \n", b"a\0b", b"\xff\xfe", b"/cost", b" /cost"] {
            assert_eq!(check(&spec, Some(bad)).unwrap_err().code, Code::WorkerRefused, "{bad:?}");
        }
        for (name, value) in [
            ("nosuch", "x"),
            ("mode", "yolo"),
            ("tools", "Read;rm"),
            ("tools", ""),
            ("allow", "--resume"),
            ("settings", "mine"),
            ("max_turns", "0"),
        ] {
            let mut spec = spec.clone();
            spec.options.insert(name.to_owned(), value.to_owned());
            assert_eq!(check(&spec, Some(b"p")).unwrap_err().code, Code::WorkerRefused, "{name}={value}");
        }
        for argv in [&["--dangerously-skip-permissions"][..], &["--continue"], &["--add-dir"], &["--add-dir", "-p"]] {
            let refused = check(&sample::spec("claude", argv), Some(b"p")).unwrap_err();
            assert_eq!(refused.code, Code::WorkerRefused, "{argv:?}");
        }
    }

    #[test]
    fn its_home_is_told_or_below_the_callers() {
        let told = |name: &str| (name == "HOME" || name == "CLAUDE_CONFIG_DIR").then(|| Path::new("/").join(name));
        assert_eq!(home(told), Some("/CLAUDE_CONFIG_DIR".into()));
        assert_eq!(home(|name| told(name).filter(|_| name == "HOME")), Some("/HOME/.claude".into()));
    }
}
