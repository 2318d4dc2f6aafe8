//! How failures are told: one line and a hint for people, an object for programs, an exit status for scripts.

use super::output::{escape, say};
use super::print_text;
use crate::error::{Code, Error};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};

/// The exit status of every failure of ours where a program is run for the caller, as `env` and `timeout` have it.
const WRAPPER: u8 = 125;

/// The exit status of a panic.
static PANIC: AtomicU8 = AtomicU8::new(70);

/// Who speaks, and how.
pub(super) struct Voice {
    /// The name that lines begin with.
    pub(super) name: &'static str,
    /// Whether failures are also printed as objects.
    pub(super) json: bool,
    /// Whether standard error may be coloured.
    pub(super) color: bool,
    /// Whether a program is run for the caller.
    pub(super) wraps: bool,
}

impl Voice {
    /// The exit status of a failure.
    pub(super) fn status(&self, error: &Error) -> ExitCode {
        ExitCode::from(self.exit(error))
    }

    fn exit(&self, error: &Error) -> u8 {
        if self.wraps { WRAPPER } else { error.code.class().exit() }
    }

    /// Prints a failure and gives its exit status.
    pub(super) fn error(&self, error: &Error) -> ExitCode {
        let (message, advice) = (escape::message(&bounded(&error.message)), error.advice());
        let (red, dim, off) = if self.color { ("\u{1b}[31m", "\u{1b}[2m", "\u{1b}[0m") } else { ("", "", "") };
        say(&format!("{}: {red}{}{off}: {message}", self.name, error.code));
        if !advice.is_empty() {
            say(&format!("{dim}hint:{off} {}", escape::message(advice)));
        }
        if self.json {
            say(&object(error, self.exit(error)));
        }
        self.status(error)
    }

    /// Prints help where it was asked for, and otherwise what is wrong with the command line.
    pub(super) fn usage(&self, error: &clap::Error, given: &[OsString], color: bool) -> ExitCode {
        self.usage_of(error, given, color, false)
    }

    /// The same of a command that may take words after `--`.
    pub(super) fn usage_of(&self, error: &clap::Error, given: &[OsString], color: bool, takes_words: bool) -> ExitCode {
        let text = error.render();
        if !error.use_stderr() {
            return print_text(self, &if color { text.ansi().to_string() } else { text.to_string() });
        }
        if error.kind() == ErrorKind::InvalidUtf8 {
            return self.error(&not_text(given));
        }
        let text = text.to_string();
        let text = text.trim_end().strip_prefix("error: ").unwrap_or(&text);
        // What clap sets in paragraphs becomes one line, and what it advises the hint.
        let body = |line: &&str| !line.is_empty() && !line.starts_with("Usage:") && !line.starts_with("For more");
        let (tips, lines): (Vec<&str>, Vec<&str>) =
            text.lines().filter(body).map(str::trim).partition(|line| line.starts_with("tip: "));
        let hint = match (self.misplaced(error, takes_words), tips.first()) {
            (Some(hint), _) => hint,
            (None, Some(tip)) => tip.trim_start_matches("tip: ").to_owned(),
            (None, None) => format!("{} --help tells its options", self.name),
        };
        self.error(&Error::new(Code::Usage, lines.join(" ")).hint(hint))
    }

    /// The hint for what was written in the wrong place, which clap takes for unknown.
    fn misplaced(&self, error: &clap::Error, takes_words: bool) -> Option<String> {
        if error.kind() != ErrorKind::UnknownArgument {
            return None;
        }
        let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
        match (self.name, word.starts_with('-')) {
            (_, true) if word[1..].starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                Some(format!("a value that begins with - follows its option with =, as in --name={word}"))
            }
            ("ares", true) => Some("options come after the command's name, as in ares list --store DIR".to_owned()),
            (name, false) if takes_words => Some(format!("its words come after --, as in {name} -- {word}")),
            _ => None,
        }
    }

    /// Makes a panic end with the status of this command's failures.
    pub(super) fn guard(&self) {
        PANIC.store(if self.wraps { WRAPPER } else { 70 }, Ordering::Relaxed);
    }
}

/// How much of a message is printed, in characters: its beginning, which says what happened, and its end, which says why.
const BEGINNING: usize = 1500;
const END: usize = 500;

/// The message with its middle left out where it is long, as what it repeats of what was given may be of any length.
fn bounded(message: &str) -> String {
    let length = message.chars().count();
    if length <= BEGINNING + END {
        return message.to_owned();
    }
    let (beginning, end) = (message.chars().take(BEGINNING), message.chars().skip(length - END));
    beginning.chain(" … ".chars()).chain(end).collect()
}

/// The arguments that are no text, by their places: which of them was to be text the parser does not say.
fn not_text(given: &[OsString]) -> Error {
    let bad = given.iter().enumerate().filter(|(_, arg)| arg.to_str().is_none());
    let bad: Vec<String> = bad.map(|(at, arg)| format!("{} ('{}')", at + 1, arg.to_string_lossy())).collect();
    Error::new(Code::Usage, format!("not UTF-8: argument {}", bad.join(", ")))
        .hint("only paths and what follows -- may be other bytes")
}

/// A failure as an object on one line, for `--json` and for report files.
pub(super) fn object(error: &Error, exit: u8) -> String {
    let hint = Some(error.advice()).filter(|hint| !hint.is_empty());
    escape::json(&serde_json::json!({
        "error": { "code": error.code.name(), "exit": exit, "message": bounded(&error.message), "hint": hint }
    }))
}

/// Makes a panic in any thread end the process, saying where and nothing of what: a panic's own words may hold a
/// prompt or a secret. The next command recovers as it would after a crash.
pub(super) fn guard() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        say(&format!("ares: {}: a bug{place}\nhint: {}", Code::Internal, Code::Internal.hint()));
        end(PANIC.load(Ordering::Relaxed));
    }));
}

#[expect(clippy::exit, clippy::disallowed_methods, reason = "a panic has no main to return to")]
fn end(status: u8) -> ! {
    std::process::exit(i32::from(status))
}
