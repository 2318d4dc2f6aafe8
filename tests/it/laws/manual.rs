//! Writes the page of each command: what clap knows of it, and what only the tables know: exit statuses, codes, fields,
//! notes, examples.

use super::roff::{head, item, plain, section, see, text, verbatim};
use ares::cli::{COMMANDS, Command, statuses};
use ares::error::{Class, Code};
use clap::{Arg, ArgGroup};

/// The codes that every command which uses a store may end with.
const COMMON: &[Code] = &[
    Code::StoreBusy,
    Code::NoStore,
    Code::StoreUnusable,
    Code::StoreFull,
    Code::StoreReadOnly,
    Code::StoreForeign,
    Code::StoreDamaged,
];

/// The page of a command.
pub(super) fn command(command: &Command) -> String {
    let mut usage = (command.usage)();
    usage.build();
    let about = usage.get_about().map(ToString::to_string).unwrap_or_default();
    let long = usage.get_long_about().map(ToString::to_string).unwrap_or_default();
    // The first line of the long description is the short one again.
    let body = long.split_once("\n\n").map_or("", |(_, body)| body);
    let mut page = head(command.name, 1, &about) + &synopsis(command, &usage);
    page += &format!("{}{}", section("DESCRIPTION"), text(if body.is_empty() { &about } else { body }));
    page += &options(&usage);
    if command.name == "ares" {
        page += &commands();
    }
    page += &fields(command);
    page += &exit_status(command);
    page += &errors(command);
    if !command.notes.is_empty() {
        page += &format!("{}{}", section("NOTES"), text(command.notes));
    }
    page += &format!("{}{}", section("EXAMPLES"), verbatim(command.examples));
    let others = COMMANDS.iter().filter(|other| other.name != command.name).map(|other| (other.name, 1));
    page + &see(others.chain(["ares-errors", "ares-output", "ares-store", "ares-workers"].map(|page| (page, 7))))
}

/// Every option of its own with its value; of a required group one must be chosen.
fn synopsis(command: &Command, usage: &clap::Command) -> String {
    let own = |arg: &&Arg| arg.get_help_heading().is_none() && !["help", "version"].contains(&arg.get_id().as_str());
    let groups: Vec<&ArgGroup> = usage.get_groups().filter(|group| group.is_required_set()).collect();
    let chosen = |arg: &Arg| groups.iter().any(|group| group.get_args().any(|id| id == arg.get_id()));
    let (options, rest): (Vec<&Arg>, Vec<&Arg>) =
        usage.get_arguments().filter(own).partition(|arg| !arg.is_positional());
    let mut words: Vec<String> = Vec::new();
    words.extend(options.iter().filter(|arg| !chosen(arg)).map(|arg| format!("[{}]", one(arg))));
    for group in &groups {
        let members = usage.get_arguments().filter(|arg| group.get_args().any(|id| id == arg.get_id()));
        words.push(format!("({})", members.map(one).collect::<Vec<_>>().join(" | ")));
    }
    words.extend((command.name != "ares").then(|| "[common options]".to_owned()));
    let free = |arg: &&&Arg| !chosen(arg);
    words.extend(rest.iter().filter(free).map(|a| if a.is_required_set() { one(a) } else { format!("[{}]", one(a)) }));
    format!("{}\\fB{}\\fR {}\n", section("SYNOPSIS"), plain(command.name), plain(&words.join(" ")))
}

fn one(arg: &Arg) -> String {
    let values = values(arg);
    let many = arg.get_num_args().is_some_and(|range| range.max_values() == usize::MAX);
    let dots = if many { "..." } else { "" };
    if arg.is_positional() {
        let dashes = if arg.is_last_set() { "-- " } else { "" };
        return format!("{dashes}{values}{dots}");
    }
    let short = arg.get_short().map(|short| format!("-{short}|")).unwrap_or_default();
    let value = if takes_value(arg) { format!(" {values}") } else { String::new() };
    format!("{short}--{}{value}", arg.get_long().unwrap_or_default())
}

fn values(arg: &Arg) -> String {
    arg.get_value_names().map(|names| names.join(" ")).unwrap_or_default()
}

fn takes_value(arg: &Arg) -> bool {
    arg.is_positional() || arg.get_num_args().is_some_and(|range| range.takes_values())
}

/// What each option means, those of every command last.
fn options(usage: &clap::Command) -> String {
    let mut page = section("OPTIONS");
    let mut heading = None;
    for arg in usage.get_arguments() {
        if arg.get_help_heading() != heading {
            heading = arg.get_help_heading();
            page += &heading.map(|heading| format!(".SS {}\n", plain(heading))).unwrap_or_default();
        }
        page += &item(&term(arg), &meaning(arg));
    }
    page
}

fn term(arg: &Arg) -> String {
    let value = if takes_value(arg) { values(arg) } else { String::new() };
    let names = arg.get_short().map(|short| format!("-{short}")).into_iter();
    let names: Vec<String> = names.chain(arg.get_long().map(|long| format!("--{long}"))).collect();
    format!("{} {value}", names.join(", ")).trim().to_owned()
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = help.trim_end().trim_end_matches('.').to_owned() + ".";
    if takes_value(arg) {
        let words: Vec<String> = arg.get_possible_values().iter().map(|word| word.get_name().to_owned()).collect();
        let default: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        text += &if words.is_empty() { String::new() } else { format!("\n\nOne of {}.", words.join(", ")) };
        let default = default.join(" ");
        text += &if default.is_empty() { String::new() } else { format!("\n\nDefault: {default}.") };
    }
    // clap sets the first paragraph without a full stop.
    match text.split_once("\n\n") {
        Some((first, rest)) => format!("{}.\n\n{rest}", first.trim_end_matches('.')),
        None => text,
    }
}

fn commands() -> String {
    let mut page = section("COMMANDS");
    let mut purpose = "";
    for command in COMMANDS.iter().filter(|command| command.name != "ares") {
        if command.purpose != purpose {
            purpose = command.purpose;
            page += &format!(".SS {}\n", plain(purpose));
        }
        let about = (command.usage)().get_about().map(ToString::to_string).unwrap_or_default();
        page += &item(&format!("{}(1)", command.name), &about);
    }
    page += &section("ENVIRONMENT");
    page += &item("ARES_DIR", "The store, where --store does not name one.");
    page +=
        &item("ARES_LOG", "Log to standard error at this level: error, warn, info, debug or trace. Off by default.");
    page += &item("NO_COLOR", "If it is set and not empty, nothing is coloured.");
    page += &item("TERM", "If it is not set, or dumb, nothing is coloured.");
    page + &item("PATH", "Where commands of others are looked for, and programs by ares-submit.")
}

fn fields(command: &Command) -> String {
    if command.fields.is_empty() {
        return String::new();
    }
    let columns = command.columns.join(", ");
    let mut page = section("OUTPUT");
    page += &match columns.as_str() {
        "" => plain("Fields, for --json and --format:") + "\n",
        _ => plain(&format!("Columns: {columns}. Fields, for --json and --format:")) + "\n",
    };
    page + &command.fields.iter().map(|(name, meaning)| item(name, meaning)).collect::<String>()
}

fn exit_status(command: &Command) -> String {
    let mut classes: Vec<Class> = vec![Class::Usage, Class::Bug, Class::Output];
    if command.name != "ares" {
        classes.extend([Class::Busy, Class::Store, Class::Damaged]);
        classes.extend(command.errors.iter().map(|code| code.class()));
    }
    if command.mutates {
        classes.push(Class::Unknown);
        classes.extend(command.repeats.then_some(Class::Conflict));
    }
    let used = |status: u8| status == 0 || classes.iter().any(|class| class.exit() == status);
    let mut page = section("EXIT STATUS");
    for (status, meaning) in statuses().into_iter().filter(|(status, _)| used(*status)) {
        // Without an operation id there is nothing to repeat with.
        let once = status == Class::Unknown.exit() && !command.repeats;
        let meaning =
            if once { "Whether it was committed is not known: look with ares-show or ares-list." } else { meaning };
        page += &item(&status.to_string(), meaning);
    }
    if command.name == "ares-claim" {
        page +=
            &item("125", "With a command: any failure of ares itself; its code is on standard error and in --report.");
        page += &item("126, 127", "With a command: it could not be executed, or not be found.");
        page += &item("128+N", "With a command: signal N ended it.");
        page += &item("other", "With a command: its own status.");
    }
    if command.name == "ares" {
        page += &item("other", "The status of the command that was run.");
    }
    page
}

fn errors(command: &Command) -> String {
    let mut codes = command.errors.to_vec();
    if command.name != "ares" {
        codes.extend(COMMON);
    }
    if command.mutates {
        codes.extend([Code::CommitUnknown, Code::OutputLost]);
        codes.extend(command.repeats.then_some(Code::OperationConflict));
    }
    codes.sort_by_key(|code| Code::ALL.iter().position(|other| other == code));
    codes.dedup();
    let mut page = section("ERRORS");
    for code in codes {
        page += &item(&format!("{code} ({})", code.class().exit()), code.meaning());
    }
    page + ".PP\nAll codes are in \\fBares\\-errors\\fR(7).\n"
}
