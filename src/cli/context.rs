//! What a command knows of its surroundings: the only reader of the environment, and the options of every command.
//! It opens nothing by itself.

use super::args::Common;
use super::output::table::Look;
use super::output::template::Template;
use super::output::{self, Mode, Printer, escape};
use crate::domain::time::{Span, Time, moment};
use crate::error::{Code, Error, OrCode, Result};
use crate::host::{clock, terminal};
use crate::ops::Caller;
use crate::store::{self, Store};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many records a terminal is given without asking.
const SCREENFUL: i64 = 100;

/// The environment, read once. It is never printed: some of it is secret.
pub struct Env(BTreeMap<OsString, OsString>);

impl Env {
    /// The environment of this process.
    #[expect(clippy::disallowed_methods, reason = "the one place that asks")]
    pub fn read() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// The value of a variable; an empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// All variables, for workers that are given some of them by name.
    pub fn all(&self) -> &BTreeMap<OsString, OsString> {
        &self.0
    }

    /// Whether a stream may be coloured.
    pub fn color(&self, stream: &impl IsTerminal) -> bool {
        let dumb = self.get("TERM").is_none_or(|term| term == "dumb");
        stream.is_terminal() && !dumb && self.get("NO_COLOR").is_none()
    }
}

/// Where the store is to be looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this directory, as `--store` or `ARES_DIR` say.
    Named(PathBuf),
    /// In the nearest `.ares` upward from this directory, if it belongs to the caller.
    Upward(PathBuf),
}

/// What a command's `run` is given.
pub struct Context {
    /// The environment.
    pub env: Env,
    printer: Printer,
    store: Option<PathBuf>,
    wait_lock: Span,
    quiet: bool,
    null: bool,
    fields: bool,
    op_id: Option<String>,
    changes: bool,
}

impl Context {
    /// The context of one command, whose records have these fields. Refuses a format that names others.
    pub fn new(env: Env, common: Common, op_id: Option<String>, changes: bool, fields: &[&str]) -> Result<Self> {
        let stdout = std::io::stdout();
        let mode = match &common.format {
            _ if common.json => Mode::Json,
            Some(format) => Mode::Format(Template::parse(format, fields)?, common.null),
            None if common.null => Mode::Nul,
            None if stdout.is_terminal() => {
                Mode::Table(Look { color: env.color(&stdout), width: terminal::width(&stdout) })
            }
            None => Mode::Lines,
        };
        let store = common.store.or_else(|| env.get("ARES_DIR").map(PathBuf::from));
        let (wait_lock, quiet, null) = (common.wait_lock, common.quiet, common.null);
        let fields = matches!(mode, Mode::Json | Mode::Format(..));
        Ok(Self { env, printer: Printer::stdout(mode), store, wait_lock, quiet, null, fields, op_id, changes })
    }

    /// Where the store is to be looked for.
    pub fn place(&self) -> Result<Place> {
        match &self.store {
            Some(dir) => Ok(Place::Named(dir.clone())),
            None => Ok(Place::Upward(here()?)),
        }
    }

    /// How long to wait for the store.
    pub fn wait_lock(&self) -> Duration {
        self.wait_lock.duration()
    }

    /// Opens the store for as long as this process lives. It is never closed: everything that was answered is committed,
    /// and the kernel closes files and frees memory faster than SQLite does.
    pub fn store(&self) -> Result<&'static mut Store> {
        let root = match self.place()? {
            Place::Named(dir) => store::find(Some(&dir), &dir)?,
            Place::Upward(from) => store::find(None, &from)?,
        };
        Ok(Box::leak(Box::new(Store::open(&root, Some(self.wait_lock()))?)))
    }

    /// The environment as text; what is no text is left out.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let text =
            |(name, value): (&OsString, &OsString)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()));
        self.env.all().iter().filter_map(text).collect()
    }

    /// Who calls: what workers may be given of our environment, and the attempt that we run inside of.
    pub fn caller(&self, store: &Store) -> Caller {
        // An attempt of another store is nobody's parent here.
        let inside = self.env.get("ARES_DIR").is_some_and(|dir| Path::new(dir) == store.root());
        let attempt = self.env.get("ARES_ATTEMPT").and_then(OsStr::to_str).filter(|_| inside);
        Caller { env: self.environment(), cwd: here().ok(), attempt: attempt.and_then(|name| name.parse().ok()) }
    }

    /// Whether records are printed for a terminal.
    pub fn on_terminal(&self) -> bool {
        std::io::stdout().is_terminal()
    }

    /// How many records to print at most: what was asked for, and without that all, except where a person reads them.
    pub fn limit(&self, asked: Option<i64>, all: bool) -> Option<i64> {
        asked.or_else(|| (!all && self.on_terminal()).then_some(SCREENFUL))
    }

    /// Says that the limit of a terminal has left something out.
    pub fn note_more(&self, name: &str, which: &str, total: i64, what: &str) {
        if total > SCREENFUL {
            self.note(&format!("{name}: showing {which} {SCREENFUL} of {total} {what}; --all shows all"));
        }
    }

    /// Whether fields were asked for, by --json or --format, of a command that by itself prints an id or nothing.
    pub fn wants_fields(&self) -> bool {
        self.fields
    }

    /// The operation id, where one was given.
    pub fn op_id(&self) -> Option<&str> {
        self.op_id.as_deref()
    }

    /// The time now.
    pub fn now(&self) -> Time {
        clock::now()
    }

    /// Whether records, in and out, end with NUL.
    pub fn null(&self) -> bool {
        self.null
    }

    /// The printer, for a command that prints while it works.
    pub fn out(&mut self) -> &mut Printer {
        &mut self.printer
    }

    /// Says that this call changes nothing, so that lost output is no lost answer to a change.
    pub fn reads_only(&mut self) {
        self.changes = false;
    }

    /// Whether this call may have changed something.
    pub fn changes(&self) -> bool {
        self.changes
    }

    /// Whether notes and plain noes are wanted.
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// One line for people on standard error, unless quiet.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            output::say(&escape::message(text));
        }
    }

    /// One line for people on standard error that is said also when quiet: someone has to act on it.
    pub fn warn(&self, text: &str) {
        output::say(&escape::message(text));
    }

    /// Gives up the printer, to be finished.
    pub fn into_printer(self) -> Printer {
        self.printer
    }

    /// Reads a moment, or a length of time before now.
    pub fn since(&self, text: &str) -> Result<Time> {
        let now = self.now();
        match text.parse::<Span>() {
            Ok(span) => Ok(Time(now.0.saturating_sub(span.0))),
            Err(_) => moment(text, now)
                .map_err(|error| error.hint("write 2031-05-01T06:00:00Z, @1935468000, or 90m for 90 minutes ago")),
        }
    }
}

/// This path as an absolute one; the current directory is asked for only where it is not.
pub fn absolute(path: &Path) -> Result<PathBuf> {
    if path.is_absolute() { Ok(path.to_owned()) } else { Ok(here()?.join(path)) }
}

/// The current directory.
pub fn here() -> Result<PathBuf> {
    let here = std::env::current_dir().or_code(Code::Usage, || "cannot tell the current directory".to_owned());
    here.map_err(|error| error.hint("go to one that is there, or name the store with --store or ARES_DIR"))
}

/// Reads a file, or standard input for `-`, of this size at most.
pub fn read(source: &Path, max: usize) -> Result<Vec<u8>> {
    let name = if source == Path::new("-") { "standard input".to_owned() } else { format!("'{}'", source.display()) };
    let stream: Box<dyn Read> = match source {
        path if path == Path::new("-") => Box::new(std::io::stdin()),
        path => Box::new(std::fs::File::open(path).or_code(Code::BadInput, || format!("cannot open {name}"))?),
    };
    let mut bytes = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    stream.take(limit).read_to_end(&mut bytes).or_code(Code::BadInput, || format!("cannot read {name}"))?;
    if bytes.len() > max {
        return Err(Error::new(Code::InputTooLarge, format!("{name} is larger than {max} bytes")));
    }
    Ok(bytes)
}

/// Sends what the program logs to standard error, when `ARES_LOG` asks for it: error, warn, info, debug or trace.
pub fn log(env: &Env) -> Result<()> {
    let Some(level) = env.get("ARES_LOG") else { return Ok(()) };
    let level = level.to_string_lossy();
    let filter: tracing_subscriber::filter::LevelFilter = level.parse().map_err(|_| {
        Error::new(Code::Usage, format!("'{level}' is not a level for ARES_LOG"))
            .hint("write off, error, warn, info, debug or trace")
    })?;
    // Without ANSI on terminals too: what is logged holds names that others chose.
    tracing_subscriber::fmt().with_max_level(filter).with_ansi(false).with_writer(std::io::stderr).init();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        Env(pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect())
    }

    #[test]
    fn the_store_is_named_or_looked_for_upward() {
        let common = |store: Option<&str>| Common {
            store: store.map(PathBuf::from),
            wait_lock: Span(0),
            json: true,
            null: false,
            format: None,
            quiet: false,
        };
        let place = |store, vars: &[(&str, &str)]| {
            Context::new(env(vars), common(store), None, false, &[]).unwrap().place().unwrap()
        };
        assert_eq!(place(Some("a"), &[("ARES_DIR", "b")]), Place::Named("a".into()));
        assert_eq!(place(None, &[("ARES_DIR", "b")]), Place::Named("b".into()));
        assert_eq!(place(None, &[("ARES_DIR", "")]), Place::Upward(here().unwrap()));
    }

    #[test]
    fn input_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("prompt");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(read(&path, 4).unwrap_err().code, Code::InputTooLarge);
        assert_eq!(read(&dir.path().join("none"), 4).unwrap_err().code, Code::BadInput);
    }
}
