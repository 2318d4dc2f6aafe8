//! The commands: arguments in, answers out. One file per command, one table of them all, one `main`. No rule of the
//! domain is here.

pub mod args;
pub mod context;
pub mod fields;
pub mod front;
pub mod output;

pub mod backup;
pub mod claim;
pub mod demo;
pub mod fsck;
pub mod gc;
pub mod init;
pub mod list;
pub mod log;
pub mod reconcile;
pub mod run;
pub mod settle;
pub mod show;
pub mod stop;
pub mod submit;
pub mod wait;

mod fail;

pub use context::Context;
pub use output::{Answer, Row, Value};

use crate::error::{Class, Code, Error, Result};
use clap::FromArgMatches as _;
use context::Env;
use fail::Voice;
use output::{Mode, Printer};
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

/// A field of a command's records: its name and what it means, with its unit.
pub type Field = (&'static str, &'static str);

/// A command. Its doc comments are its manual.
pub trait Run: clap::Args {
    /// Its name, as it is called.
    const NAME: &'static str;
    /// Whether it changes something, so that lost output is `ARES_OUTPUT_LOST`.
    const MUTATES: bool;
    /// Whether it takes `--op-id`. A command that changes something does, unless what it does cannot be given again.
    const REPEATS: bool = Self::MUTATES;
    /// Whether it runs a program for the caller after `--`; then the program's status is its own, and every failure of
    /// ours is 125.
    const WRAPS: bool = false;
    /// The columns that are shown without asking; new ones are added at the end only.
    const COLUMNS: &'static [&'static str] = &[];
    /// Every field that its records may have; `--format` may name these only.
    const FIELDS: &'static [Field] = &[];
    /// The codes of its own failures, beside those of every command that uses a store.
    const ERRORS: &'static [Code] = &[];
    /// A shell session, run as a test.
    const EXAMPLES: &'static str;
    /// What is worth knowing before it is used in earnest: paragraphs, and indented text that stays as it is.
    const NOTES: &'static str = "";

    /// Does it.
    fn run(self, cx: &mut Context) -> Result<Answer>;
}

/// What is known of a command without running it.
pub struct Command {
    /// Its name, as it is called.
    pub name: &'static str,
    /// What people use it for, as a heading.
    pub purpose: &'static str,
    /// Whether it changes something.
    pub mutates: bool,
    /// Whether it takes `--op-id`.
    pub repeats: bool,
    /// The columns that are shown without asking.
    pub columns: &'static [&'static str],
    /// Every field of its records.
    pub fields: &'static [Field],
    /// The codes of its own failures.
    pub errors: &'static [Code],
    /// A shell session, run as a test.
    pub examples: &'static str,
    /// What is worth knowing before it is used in earnest.
    pub notes: &'static str,
    /// Its arguments.
    pub usage: fn() -> clap::Command,
    /// Its main function over the arguments that follow its name.
    pub main: fn(Vec<OsString>) -> ExitCode,
}

impl Command {
    const fn of<C: Run>(purpose: &'static str) -> Self {
        Self {
            name: C::NAME,
            purpose,
            mutates: C::MUTATES,
            repeats: C::REPEATS,
            columns: C::COLUMNS,
            fields: C::FIELDS,
            errors: C::ERRORS,
            examples: C::EXAMPLES,
            notes: C::NOTES,
            usage: usage::<C>,
            main: start::<C>,
        }
    }
}

/// All commands, by purpose.
pub static COMMANDS: &[Command] = &[
    front::COMMAND,
    Command::of::<demo::Args>("begin"),
    Command::of::<init::Args>("begin"),
    Command::of::<submit::Args>("queue and run"),
    Command::of::<run::Args>("queue and run"),
    Command::of::<wait::Args>("queue and run"),
    Command::of::<stop::Args>("queue and run"),
    Command::of::<claim::Args>("run from a script"),
    Command::of::<settle::Args>("run from a script"),
    Command::of::<list::Args>("look"),
    Command::of::<show::Args>("look"),
    Command::of::<log::Args>("look"),
    Command::of::<reconcile::Args>("mend"),
    Command::of::<fsck::Args>("mend"),
    Command::of::<backup::Args>("mend"),
    Command::of::<gc::Args>("mend"),
];

/// The first argument of the hidden command that our own executable is started with, to be a keeper.
pub const KEEPER_WORD: &str = "__keeper";

/// What the hidden command does.
const KEEPER: fn() -> ExitCode = crate::host::keep::keeper_main;

/// The main function of a command's own binary.
pub fn main<C: Run>() -> ExitCode {
    let args = match begin() {
        Ok(args) => args,
        Err(status) => return status,
    };
    start::<C>(args)
}

/// What every process of ours does first; gives the arguments, or the status of the hidden command.
fn begin() -> std::result::Result<Vec<OsString>, ExitCode> {
    fail::guard();
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let limit = crate::host::signals::survive_file_limit();
    if args.first().is_some_and(|first| first == KEEPER_WORD) {
        return Err(KEEPER());
    }
    // Files of ours are private whatever the caller's umask, which its own programs get back.
    if let Err(error) = limit.and_then(|()| crate::host::process::prepare()) {
        let voice = Voice { name: "ares", json: false, color: false, wraps: false };
        return Err(voice.error(&error));
    }
    Ok(args)
}

/// A command's arguments, with those of every command, and what help adds to them.
fn usage<C: Run>() -> clap::Command {
    arguments::<C>().after_long_help(more(C::NOTES, C::EXAMPLES))
}

/// A command's arguments, as far as they are parsed by.
fn arguments<C: Run>() -> clap::Command {
    let own = C::augment_args(clap::Command::new(C::NAME));
    let (about, long) = (own.get_about().cloned(), own.get_long_about().cloned());
    let mut all = own;
    if C::REPEATS {
        all = <args::Operation as clap::Args>::augment_args(all);
    }
    // Flattening arguments brings their description along; the command's own is put back.
    <args::Common as clap::Args>::augment_args(all)
        .about(about.unwrap_or_default())
        .long_about(clap::builder::Resettable::from(long))
        .version(env!("CARGO_PKG_VERSION"))
        .max_term_width(100)
}

/// What help adds to the options.
fn more(notes: &str, examples: &str) -> String {
    let indent = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") };
    let indent = |text: &str| text.trim_end().lines().map(indent).collect::<String>();
    let notes = if notes.is_empty() { String::new() } else { format!("Notes:\n{}\n", indent(notes)) };
    format!("{notes}Examples:\n{}", indent(examples))
}

/// Parses, runs, prints, and says it all in the exit status.
fn start<C: Run>(given: Vec<OsString>) -> ExitCode {
    let env = Env::read();
    let options = given.split(|arg| arg == "--").next().unwrap_or_default();
    let wraps = C::WRAPS && options.len() < given.len();
    let json = options.iter().any(|arg| arg == OsStr::new("--json"));
    let voice = Voice { name: C::NAME, json, color: env.color(&std::io::stderr()), wraps };
    voice.guard();
    let parse = |usage: clap::Command| usage.try_get_matches_from(std::iter::once(C::NAME.into()).chain(given.clone()));
    // Almost nobody reads the help, and to put it together costs a good part of what parsing does.
    let matches = match parse(arguments::<C>()).or_else(|_| parse(usage::<C>())) {
        Ok(matches) => matches,
        Err(error) => {
            let takes_words = arguments::<C>().get_arguments().any(clap::Arg::is_last_set);
            return voice.usage_of(&error, &given, env.color(&std::io::stdout()), takes_words);
        }
    };
    let prepared = context::log(&env).and_then(|()| prepare::<C>(env, &matches));
    let (command, mut cx) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return voice.error(&error),
    };
    let answer = command.run(&mut cx);
    end(&voice, cx, answer)
}

fn prepare<C: Run>(env: Env, matches: &clap::ArgMatches) -> Result<(C, Context)> {
    let bad = |error: clap::Error| Error::new(Code::Internal, format!("arguments do not fit: {}", error.kind()));
    let common = args::Common::from_arg_matches(matches).map_err(bad)?;
    let op_id = if C::REPEATS { args::Operation::from_arg_matches(matches).map_err(bad)?.op_id } else { None };
    let command = C::from_arg_matches(matches).map_err(bad)?;
    let fields: Vec<&str> = C::FIELDS.iter().map(|(name, _)| *name).collect();
    Ok((command, Context::new(env, common, op_id, C::MUTATES, &fields)?))
}

/// Prints the answer and chooses the status: a failure of the command itself comes before lost output, lost output
/// before a plain no.
fn end(voice: &Voice, mut cx: Context, answer: Result<Answer>) -> ExitCode {
    let (changes, quiet) = (cx.changes(), cx.quiet());
    if let Ok(answer) = &answer {
        cx.out().answer(answer);
    }
    let printed = cx.into_printer().finish(changes);
    let lost = printed.as_ref().err().map(|error| voice.error(error));
    match answer {
        Err(error) => voice.error(&error),
        Ok(Answer::No(error)) => {
            let status = if quiet { voice.status(&error) } else { voice.error(&error) };
            lost.unwrap_or(status)
        }
        Ok(Answer::Status(status)) => lost.unwrap_or(ExitCode::from(status)),
        Ok(_) => lost.unwrap_or(ExitCode::SUCCESS),
    }
}

/// Prints a text that is no record, such as help.
fn print_text(voice: &Voice, text: &str) -> ExitCode {
    let mut printer = Printer::stdout(Mode::Lines);
    printer.answer(&Answer::Raw(text.as_bytes().to_vec()));
    match printer.finish(false) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => voice.error(&error),
    }
}

/// Exit statuses with their meanings, for the manual: the classes of failures after success.
pub fn statuses() -> Vec<(u8, &'static str)> {
    let done = (0, "Done; what was to be changed is committed.");
    std::iter::once(done).chain(Class::ALL.iter().map(|class| (class.exit(), class.meaning()))).collect()
}
