//! The pages of section 7: what holds for all commands.

use super::roff::{head, item, plain, section, see, text, verbatim};
use ares::cli::{COMMANDS, statuses};
use ares::error::{Class, Code};
use ares::worker::base_env_names;

/// Their names, what they are about, and their text.
pub(super) fn all() -> Vec<(&'static str, String)> {
    vec![
        ("ares-errors", errors()),
        ("ares-output", output()),
        ("ares-store", page("ares-store", "the directory that holds everything", include_str!("pages/store.txt"))),
        ("ares-workers", page("ares-workers", "workers, and how config.toml describes them", &workers())),
    ]
}

/// Every page of section 7 but this one, and the front.
fn others(name: &str) -> String {
    let pages = ["ares-errors", "ares-output", "ares-store", "ares-workers"].map(|page| (page, 7));
    see([("ares", 1)].into_iter().chain(pages.into_iter().filter(|(page, _)| *page != name)))
}

fn page(name: &str, about: &str, source: &str) -> String {
    head(name, 7, about) + &section("DESCRIPTION") + &text(source) + &others(name)
}

fn workers() -> String {
    let mut lines = vec![String::from("   ")];
    for name in base_env_names() {
        if lines.last().is_some_and(|line| line.len() + name.len() > 96) {
            lines.push(String::from("   "));
        }
        lines.last_mut().expect("never empty").push_str(&format!(" {name}"));
    }
    include_str!("pages/workers.txt").replace("@BASE@", &lines.join("\n"))
}

fn errors() -> String {
    let mut page = head("ares-errors", 7, "the error codes of ares and their exit statuses");
    page += &section("DESCRIPTION");
    page += &plain(
        "A failure is one line on standard error: the command, the code, what happened. A line that begins with hint:\n\
         says what to do next. With --json an object follows on standard error:",
    );
    page += "\n.PP\n";
    page += &verbatim(r#"{"error":{"code":"ARES_STORE_BUSY","exit":4,"message":"...","hint":"..."}}"#);
    page += ".PP\n";
    page += &plain("Codes and their exit statuses are stable: none is removed, none changes its status.");
    page += "\n";
    page += &section("EXIT STATUS");
    statuses().iter().for_each(|(status, meaning)| page += &item(&status.to_string(), meaning));
    for class in Class::ALL {
        let codes: Vec<&Code> = Code::ALL.iter().filter(|code| code.class() == *class).collect();
        if codes.is_empty() {
            continue;
        }
        page += &section(&format!("CODES OF STATUS {}", class.exit()));
        for code in codes {
            let hint = if code.hint().is_empty() { String::new() } else { format!("\nHint: {}.", code.hint()) };
            page += &item(code.name(), &format!("{}{hint}", code.meaning()));
        }
    }
    page + &others("ares-errors")
}

fn output() -> String {
    let mut page = head("ares-output", 7, "what the commands of ares print");
    page += &section("DESCRIPTION");
    page += &text(include_str!("pages/output.txt"));
    page += &section("FIELDS");
    for command in COMMANDS.iter().filter(|command| !command.fields.is_empty()) {
        page += &format!(".SS {}\n", plain(command.name));
        for (name, meaning) in command.fields {
            let column = if command.columns.contains(name) { "; a column" } else { "" };
            page += &item(name, &format!("{meaning}{column}"));
        }
    }
    page + &others("ares-output")
}

/// The names that an error lists as those that are known.
fn named(message: &str, begin: &str) -> Vec<String> {
    let list = message.split(begin).nth(1).expect("a list of what is known");
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_key_of_the_configuration_is_described() {
    use ares::host::config::{GroupEntry, WorkerEntry};
    let source = include_str!("pages/workers.txt");
    for message in [
        serde_json::from_str::<WorkerEntry>(r#"{"?":1}"#).expect_err("unknown").to_string(),
        serde_json::from_str::<GroupEntry>(r#"{"?":1}"#).expect_err("unknown").to_string(),
    ] {
        let keys = named(&message, "expected");
        assert!(!keys.is_empty(), "{message}");
        keys.iter().for_each(|key| assert!(source.contains(&format!("* {key}: ")), "{key} is not described"));
    }
}

#[test]
fn every_key_of_a_batch_is_described() {
    let message = serde_json::from_str::<ares::ops::ask::Ask>(r#"{"?":1}"#).expect_err("unknown").to_string();
    let submit = COMMANDS.iter().find(|command| command.name == "ares-submit").expect("a command");
    let list = submit.notes.split("The keys are").nth(1).expect("a list of keys");
    let words: Vec<&str> = list.split([' ', ',', '\n', '.']).collect();
    let keys = named(&message, "expected one of");
    assert!(keys.len() > 20, "{message}");
    keys.iter().for_each(|key| assert!(words.contains(&key.as_str()), "{key} is not described"));
}
