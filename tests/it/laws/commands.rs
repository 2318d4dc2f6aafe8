//! One list of commands: the table, the mains, cargo's list and the manual agree. To add a command, add its file, its
//! row, its main and its `[[bin]]`; this names whichever is missing.

use crate::harness::{files, no_complaints, text};
use ares::cli::COMMANDS;
use std::collections::BTreeSet;

fn stems(folder: &str, ending: &str) -> BTreeSet<String> {
    let name = |path: std::path::PathBuf| path.file_name().expect("a name").to_string_lossy().replace(ending, "");
    files(&[folder], &[ending]).into_iter().map(name).collect()
}

#[test]
fn every_command_has_its_row_its_main_and_its_manual() {
    let table: BTreeSet<String> = COMMANDS.iter().map(|command| command.name.to_owned()).collect();
    assert_eq!(table.len(), COMMANDS.len(), "a command has two rows");
    let cargo = text("Cargo.toml");
    let bins = cargo.split("[[bin]]").skip(1).filter_map(|part| part.split('"').nth(1)).map(str::to_owned).collect();
    let mut complaints = Vec::new();
    let mut compare = |what: &str, mut found: BTreeSet<String>| {
        // A worker that ships is a program, but no command.
        found.remove("ares-synthetic");
        complaints.extend(table.difference(&found).map(|name| format!("{name}: not in {what}")));
        complaints.extend(found.difference(&table).map(|name| format!("{name}: in {what}, not in COMMANDS")));
    };
    compare("bin/", stems("bin", ".rs"));
    compare("[[bin]] of Cargo.toml", bins);
    compare("man/", stems("man", ".1"));
    no_complaints(&complaints);
}

#[test]
fn every_main_runs_its_own_command() {
    for command in COMMANDS.iter().filter(|command| command.name != "ares") {
        let module = command.name.trim_start_matches("ares-");
        let main = text(format!("bin/{}.rs", command.name));
        assert!(main.contains(&format!("ares::cli::main::<ares::cli::{module}::Args>()")), "{}", command.name);
        let file = text(format!("src/cli/{module}.rs"));
        assert!(file.contains(&format!("const NAME: &'static str = \"{}\";", command.name)), "{}", command.name);
    }
}

#[test]
fn every_command_parses_and_describes_itself() {
    for command in COMMANDS {
        let usage = (command.usage)();
        usage.clone().debug_assert();
        let about = usage.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(!about.is_empty() && !about.ends_with('.'), "{}: '{about}'", command.name);
        for arg in usage.get_arguments() {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.is_empty() && !help.ends_with('.'), "{} {}: '{help}'", command.name, arg.get_id());
        }
        let ids: BTreeSet<&str> = usage.get_arguments().map(|arg| arg.get_id().as_str()).collect();
        assert_eq!(ids.contains("op_id"), command.repeats, "{}: --op-id", command.name);
        assert!(command.mutates || !command.repeats, "{}: nothing to repeat", command.name);
        if command.name != "ares" {
            for common in ["store", "wait_lock", "json", "null", "format", "quiet"] {
                assert!(ids.contains(common), "{}: {common}", command.name);
            }
        }
    }
}

#[test]
fn every_column_is_a_field() {
    for command in COMMANDS {
        let fields: BTreeSet<&str> = command.fields.iter().map(|(name, _)| *name).collect();
        assert_eq!(fields.len(), command.fields.len(), "{}: a field is listed twice", command.name);
        for column in command.columns {
            assert!(fields.contains(column), "{}: column {column} is no field", command.name);
        }
    }
}
