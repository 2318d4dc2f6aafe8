//! `ares`: the front of the suite. It runs our commands in its own process and finds those of others; it knows nothing
//! of a store.

use super::fail::Voice;
use super::output::table::{Look, Table};
use super::output::{Answer, Row};
use super::{COMMANDS, Command, Env, begin, print_text};
use crate::error::{Code, Error, Result};
use crate::host::program;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

/// The name of the front, and what the names of all commands begin with.
const NAME: &str = "ares";

/// The pages of the manual that belong to no command.
const PAGES: [&str; 4] = ["errors", "output", "store", "workers"];

/// The front's row of the table.
pub(super) const COMMAND: Command = Command {
    name: NAME,
    purpose: "",
    mutates: false,
    repeats: false,
    columns: &[],
    fields: &[],
    errors: &[Code::Usage],
    examples: EXAMPLES,
    notes: "",
    usage,
    main: run,
};

const EXAMPLES: &str = "\
$ ares --version
ares [..]
$ ares help submit
Queue one job, or many
...
$ ares sumbit
ares: ARES_USAGE: 'sumbit' is not an ares command
hint: did you mean ares submit?
? 2
";

/// Durable jobs for coding agents and commands
///
/// ares NAME runs ares-NAME. Commands of this suite are run in the same process; any other ares-NAME is looked for
/// beside ares itself, then on PATH, where relative and empty entries and directories that others may write are
/// skipped. Its exit status is passed on.
///
/// Without a name, the commands are listed. ares help NAME explains a command; ares help errors, output, store or
/// workers opens that page of the manual.
#[derive(clap::Args)]
struct Args {
    /// The command
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Its arguments
    #[arg(value_name = "ARG", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

fn usage() -> clap::Command {
    <Args as clap::Args>::augment_args(clap::Command::new(NAME))
        .version(env!("CARGO_PKG_VERSION"))
        .after_long_help(super::more("", EXAMPLES))
        .max_term_width(100)
}

/// The whole suite as one command with subcommands, for completions.
pub fn whole() -> clap::Command {
    let subcommands = COMMANDS.iter().filter_map(|command| {
        let name = command.name.strip_prefix("ares-")?;
        Some((command.usage)().name(name))
    });
    clap::Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .about("Durable jobs for coding agents and commands")
        .subcommands(subcommands)
}

/// The main function of `ares`.
pub fn main() -> ExitCode {
    match begin() {
        Ok(args) => run(args),
        Err(status) => status,
    }
}

fn run(args: Vec<OsString>) -> ExitCode {
    let env = Env::read();
    let voice = Voice { name: NAME, json: false, color: env.color(&std::io::stderr()), wraps: false };
    let Some((first, rest)) = args.split_first() else { return print_text(&voice, &overview()) };
    if first.as_encoded_bytes().starts_with(b"-") {
        return options(&voice, &env, &args);
    }
    if let (Some("help"), Some(more)) = (first.to_str(), rest.get(1)) {
        let said = format!("help explains one command, and '{}' is one too many", more.to_string_lossy());
        return voice.error(&Error::new(Code::Usage, said).hint("write ares help NAME"));
    }
    let (name, rest) = match (first.to_str(), rest.first()) {
        (Some("help"), None) => return print_text(&voice, &overview()),
        (Some("help"), Some(name)) if name == "ares" => return options(&voice, &env, &["--help".into()]),
        (Some("help"), Some(name)) if PAGES.iter().any(|page| name == page) => return page(&voice, name),
        (Some("help"), Some(name)) => (name.as_os_str(), vec![OsString::from("--help")]),
        _ => (first.as_os_str(), rest.to_vec()),
    };
    if let Some(command) = ours(name) {
        return (command.main)(rest);
    }
    if name == "synthetic" {
        return ExitCode::from(crate::worker::synthetic::main(rest.into_iter()));
    }
    match external(&env, name, &rest) {
        Ok(Answer::Status(status)) => ExitCode::from(status),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => voice.error(&error),
    }
}

/// Opens a page of the manual that belongs to no command.
fn page(voice: &Voice, name: &OsStr) -> ExitCode {
    let page = OsString::from(format!("{NAME}-{}", name.to_string_lossy()));
    match crate::host::spawn::run_inherited(OsStr::new("man"), &["7".into(), page], &[]) {
        Ok(status) => ExitCode::from(status.passed_on()),
        Err(error) => voice.error(&error),
    }
}

fn ours(name: &OsStr) -> Option<&'static Command> {
    let name = name.to_str()?;
    COMMANDS.iter().find(|command| command.name.strip_prefix("ares-") == Some(name))
}

/// `--help` and `--version`; options of a command come after its name.
fn options(voice: &Voice, env: &Env, args: &[OsString]) -> ExitCode {
    match usage().try_get_matches_from(std::iter::once(NAME.into()).chain(args.iter().cloned())) {
        Err(error) => voice.usage(&error, args, env.color(&std::io::stdout())),
        Ok(_) => print_text(voice, &overview()),
    }
}

/// The commands by purpose, a line each.
fn overview() -> String {
    let mut text = String::from("usage: ares NAME [ARG...]\n");
    let mut purpose = "";
    let rows: Vec<Row> = COMMANDS
        .iter()
        .map(|command| {
            let about = (command.usage)().get_about().map(ToString::to_string).unwrap_or_default();
            Row::new().with("name", command.name.trim_start_matches("ares-")).with("about", about)
        })
        .collect();
    let look = Look { color: false, width: None };
    let mut table = Table::new(&["name", "about"]);
    table.fit(&rows, look);
    // The header of the table is no line of an overview.
    let lines = table.lines(&rows, look);
    for (command, line) in COMMANDS.iter().zip(lines.lines().skip(1)).skip(1) {
        if command.purpose != purpose {
            purpose = command.purpose;
            text.push_str(&format!("\n{purpose}\n"));
        }
        text.push_str(&format!("  {line}\n"));
    }
    text + "\nares help NAME explains a command; ares help errors, output, store or workers opens that page\n"
}

/// Runs a command of someone else.
fn external(env: &Env, name: &OsStr, args: &[OsString]) -> Result<Answer> {
    let unknown = |name: &str| Error::new(Code::Usage, format!("'{name}' is not an ares command"));
    let text = name.to_string_lossy();
    let clean = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !clean {
        return Err(unknown(&text).hint("the name of a command has lower-case letters, digits and -"));
    }
    let own = std::env::current_exe().ok();
    let path = env.get("PATH").unwrap_or_default();
    let search = program::find(&format!("{NAME}-{text}"), own.as_deref().and_then(Path::parent), path);
    match (search.found, search.passed_over) {
        (Some(program), _) => start(&program, args),
        (None, Some(program)) => {
            let why = format!("'{}' was passed over: others may write its directory", program.display());
            Err(unknown(&text).hint(why))
        }
        (None, None) => {
            let hint = near(&text).map_or_else(
                || "ares alone lists the commands".to_owned(),
                |near| format!("did you mean ares {near}?"),
            );
            Err(unknown(&text).hint(hint))
        }
    }
}

/// Starts a program with the caller's standard streams and waits for it; gives `Answer::Status`.
fn start(program: &Path, args: &[OsString]) -> Result<Answer> {
    let status = crate::host::spawn::run_inherited(program.as_os_str(), args, &[])?;
    Ok(Answer::Status(status.passed_on()))
}

/// Our command whose name is nearest, if one is near.
fn near(name: &str) -> Option<&'static str> {
    let names = COMMANDS.iter().filter_map(|command| command.name.strip_prefix("ares-"));
    let near = names.map(|known| (distance(name, known), known)).min()?;
    (near.0 <= 1 + near.1.len() / 4).then_some(near.1)
}

/// How many letters must be changed, added, removed or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let changed = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                let swap = if swapped { table[i - 2][j - 2] + 1 } else { usize::MAX };
                changed.min(swap).min(table[i - 1][j] + 1).min(table[i][j - 1] + 1)
            };
        }
    }
    table[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let check = |name: &str, near_name: Option<&str>| assert_eq!(near(name), near_name, "{name}");
        check("sumbit", Some("submit"));
        check("lst", Some("list"));
        check("reconsile", Some("reconcile"));
        check("frobnicate", None);
    }
}
