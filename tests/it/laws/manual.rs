//! Writes the manual: what clap knows of a command, and what only the tables know: exit statuses, codes, fields,
//! examples.

use ares::cli::{COMMANDS, Command, statuses};
use ares::error::{Class, Code};
use clap::{Arg, ArgGroup};
use clap_mangen::Man;

const VERSION: &str = concat!("ares ", env!("CARGO_PKG_VERSION"));

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

/// Text as roff wants it: no line begins with a command, hyphens stay what they are.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let line = |line: &str| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn verbatim(text: &str) -> String {
    format!(".nf\n{}\n.fi\n", roff(text.trim_end()))
}

fn item(term: &str, text: &str) -> String {
    format!(".TP\n\\fB{}\\fR\n{}\n", roff(term), roff(text))
}

fn head(name: &str, section: u8, about: &str) -> String {
    format!(".TH {name} {section} \"\" \"{VERSION}\" \"ares manual\"\n.SH NAME\n{name} \\- {}\n", roff(about))
}

/// The page of a command.
pub(super) fn command(command: &Command) -> String {
    let usage = (command.usage)().name(command.name).after_long_help("").after_help("");
    let man = Man::new(usage).title(command.name).section("1").date("").source(VERSION).manual("ares manual");
    let mut bytes = Vec::new();
    man.render_title(&mut bytes).expect("memory");
    man.render_name_section(&mut bytes).expect("memory");
    bytes.extend(synopsis(command).into_bytes());
    man.render_description_section(&mut bytes).expect("memory");
    man.render_options_section(&mut bytes).expect("memory");
    let mut page = String::from_utf8(bytes).expect("text");
    // Every section repeats this definition; once is enough.
    let define = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";
    page = define.to_owned() + &page.replace(define, "");
    if command.name == "ares" {
        page += &commands();
    }
    page += &fields(command);
    page += &exit_status(command);
    page += &errors(command);
    page += &format!(".SH EXAMPLES\n{}", verbatim(command.examples));
    page += ".SH \"SEE ALSO\"\n";
    let others = COMMANDS.iter().filter(|other| other.name != command.name).map(|other| (other.name, 1));
    page + &see(others.chain([("ares-errors", 7), ("ares-output", 7)]))
}

/// Every option of its own with its value; of a required group one must be chosen.
fn synopsis(command: &Command) -> String {
    let mut usage = (command.usage)();
    usage.build();
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
    format!(".SH SYNOPSIS\n\\fB{}\\fR {}\n", roff(command.name), roff(&words.join(" ")))
}

fn one(arg: &Arg) -> String {
    let values = arg.get_value_names().map(|names| names.join(" ")).unwrap_or_default();
    let many = arg.get_num_args().is_some_and(|range| range.max_values() == usize::MAX);
    let dots = if many { "..." } else { "" };
    if arg.is_positional() {
        let dashes = if arg.is_last_set() { "-- " } else { "" };
        return format!("{dashes}{values}{dots}");
    }
    let short = arg.get_short().map(|short| format!("-{short}|")).unwrap_or_default();
    let takes = arg.get_num_args().is_some_and(|range| range.takes_values());
    let value = if takes { format!(" {values}") } else { String::new() };
    format!("{short}--{}{value}", arg.get_long().unwrap_or_default())
}

fn see<'a>(pages: impl Iterator<Item = (&'a str, u8)>) -> String {
    let names: Vec<String> = pages.map(|(name, section)| format!("\\fB{}\\fR({section})", roff(name))).collect();
    names.join(",\n") + "\n"
}

fn commands() -> String {
    let mut text = String::from(".SH COMMANDS\n");
    let mut purpose = "";
    for command in COMMANDS.iter().filter(|command| command.name != "ares") {
        if command.purpose != purpose {
            purpose = command.purpose;
            text += &format!(".SS {}\n", roff(purpose));
        }
        let about = (command.usage)().get_about().map(ToString::to_string).unwrap_or_default();
        text += &item(&format!("{}(1)", command.name), &about);
    }
    text += ".SH ENVIRONMENT\n";
    text += &item("ARES_DIR", "The store, where --store does not name one.");
    text +=
        &item("ARES_LOG", "Log to standard error at this level: error, warn, info, debug or trace. Off by default.");
    text += &item("NO_COLOR", "If it is set and not empty, nothing is coloured.");
    text += &item("TERM", "If it is not set, or dumb, nothing is coloured.");
    text += &item("PATH", "Where commands of others are looked for.");
    text
}

fn fields(command: &Command) -> String {
    if command.fields.is_empty() {
        return String::new();
    }
    let mut text = String::from(".SH OUTPUT\n");
    let columns = command.columns.join(", ");
    text += &format!("Columns: {}. Fields, for \\-\\-json and \\-\\-format:\n", roff(&columns));
    text + &command.fields.iter().map(|(name, meaning)| item(name, meaning)).collect::<String>()
}

fn exit_status(command: &Command) -> String {
    let mut classes: Vec<Class> = vec![Class::Usage, Class::Bug, Class::Output];
    if command.name != "ares" {
        classes.extend([Class::Busy, Class::Store, Class::Damaged]);
        classes.extend(command.errors.iter().map(|code| code.class()));
    }
    if command.mutates {
        classes.extend([Class::Unknown, Class::Conflict]);
    }
    let used = |status: u8| status == 0 || classes.iter().any(|class| class.exit() == status);
    let mut text = String::from(".SH \"EXIT STATUS\"\n");
    for (status, meaning) in statuses().into_iter().filter(|(status, _)| used(*status)) {
        text += &item(&status.to_string(), meaning);
    }
    if command.name == "ares-claim" {
        text +=
            &item("125", "With a command: any failure of ares itself; its code is on standard error and in --report.");
        text += &item("126, 127", "With a command: it could not be executed, or not be found.");
        text += &item("128+N", "With a command: signal N ended it.");
        text += &item("other", "With a command: its own status.");
    }
    if command.name == "ares" {
        text += &item("other", "The status of the command that was run.");
    }
    text
}

fn errors(command: &Command) -> String {
    let mut codes = command.errors.to_vec();
    if command.name != "ares" {
        codes.extend(COMMON);
    }
    if command.mutates {
        codes.extend([Code::CommitUnknown, Code::OutputLost]);
    }
    if command.operates {
        codes.push(Code::OperationConflict);
    }
    codes.sort_by_key(|code| Code::ALL.iter().position(|other| other == code));
    codes.dedup();
    let mut text = String::from(".SH ERRORS\n");
    for code in codes {
        text += &item(&format!("{code} ({})", code.class().exit()), code.meaning());
    }
    text + "All codes are in \\fBares\\-errors\\fR(7).\n"
}

/// `ares-errors(7)`: every code.
pub(super) fn all_errors() -> String {
    let mut text = head("ares-errors", 7, "the error codes of ares and their exit statuses");
    text += ".SH DESCRIPTION\n";
    text += &roff(
        "A failure is one line on standard error: the command, the code, what happened. A line that begins with hint:\n\
         says what to do next. With --json an object follows on standard error:",
    );
    text += "\n.PP\n";
    text += &verbatim(r#"{"error":{"code":"ARES_STORE_BUSY","exit":4,"message":"...","hint":"..."}}"#);
    text += ".PP\n";
    text += &roff("Codes and their exit statuses are stable: none is removed, none changes its status.");
    text += "\n.SH \"EXIT STATUS\"\n";
    statuses().iter().for_each(|(status, meaning)| text += &item(&status.to_string(), meaning));
    for class in Class::ALL {
        let codes: Vec<&Code> = Code::ALL.iter().filter(|code| code.class() == *class).collect();
        if codes.is_empty() {
            continue;
        }
        text += &format!(".SH \"CODES OF STATUS {}\"\n", class.exit());
        for code in codes {
            let hint = if code.hint().is_empty() { String::new() } else { format!("\nHint: {}.", code.hint()) };
            text += &item(code.name(), &format!("{}{hint}", code.meaning()));
        }
    }
    text + ".SH \"SEE ALSO\"\n" + &see([("ares", 1), ("ares-output", 7)].into_iter())
}

const OUTPUT: &str = "\
Records are printed on standard output and nothing else is. Words for people, errors and logs are printed on
standard error. A terminal changes how records look, never which fields are there.
.SH FORMS
.TP
\\fBtable\\fR
On a terminal: aligned under a header, states in colour. A cell that does not fit is cut with a mark; no column is
left out. This form may change at any time.
.TP
\\fBlines\\fR
Elsewhere: the same columns in the same order with TAB between, LF after each record, no header. Columns are only ever
added at the end.
.TP
\\fB\\-z\\fR
As lines, but each record ends with NUL and nothing is escaped.
.TP
\\fB\\-\\-json\\fR
One object per line with all fields in order. Keys are only ever added.
.TP
\\fB\\-\\-format\\fR
%(field) is replaced by the field, %% by a percent sign; \\et, \\en, \\e0 and \\e\\e are read as in C. Each record ends
with LF. Fields are escaped as in lines; with \\-z they are not, and records end with NUL.
.PP
A command that makes a thing prints its id only, in the first three forms; \\-\\-json and \\-\\-format have more.
.SH VALUES
.TP
\\fBtext\\fR
In JSON a string.
.TP
\\fBbytes\\fR
In JSON a string where they are UTF\\-8, and otherwise an object {\"base64\":\"...\"}.
.TP
\\fBtime\\fR
RFC 3339 in UTC with milliseconds: 2031\\-05\\-01T06:00:00.000Z. In JSON a string.
.TP
\\fBspan\\fR
A length of time in milliseconds, an integer; in words in a table.
.TP
\\fBjson\\fR
JSON in every form.
.TP
\\fBnothing\\fR
An empty field; null in JSON; a dash in a table.
.SH ESCAPES
In tables and lines, stored text cannot end a field or a record and cannot act on a terminal: TAB is \\et, LF is \\en,
a backslash is \\e\\e, other controls, DEL and bytes that are no UTF\\-8 are \\exNN, C1 controls and the characters that turn
the direction of reading (U+202A to U+202E, U+2066 to U+2069) are \\eu{N}. JSON has \\eu00NN for the same.
.SH \"FAILED WRITES\"
A command that changes something has committed it before it prints. If the output cannot be written then, it ends with
ARES_OUTPUT_LOST and status 8, also when the reader went away; repeated with the same \\-\\-op\\-id it prints its first
answer. A command that only reads ends quietly with status 0 when the reader went away, and with ARES_OUTPUT_FAILED and
status 8 when the output cannot be written for another reason. A standard output that was closed before the command
started cannot be told from /dev/null.
";

/// `ares-output(7)`: the forms of output, and every command's fields.
pub(super) fn output() -> String {
    let mut text = head("ares-output", 7, "what the commands of ares print");
    text += ".SH DESCRIPTION\n";
    text += OUTPUT;
    text += ".SH FIELDS\n";
    for command in COMMANDS.iter().filter(|command| !command.fields.is_empty()) {
        text += &format!(".SS {}\n", roff(command.name));
        for (name, meaning) in command.fields {
            let column = if command.columns.contains(name) { "; a column" } else { "" };
            text += &item(name, &format!("{meaning}{column}"));
        }
    }
    text + ".SH \"SEE ALSO\"\n" + &see([("ares", 1), ("ares-errors", 7)].into_iter())
}
