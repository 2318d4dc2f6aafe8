//! The manual and the completions are checked in, and are what the commands say of themselves now.

use super::{manual, pages};
use crate::harness::{no_complaints, same_file};
use ares::cli::{COMMANDS, front};
use clap_complete::{Shell, generate};

#[test]
fn the_manual_is_current() {
    let commands = COMMANDS.iter().map(|command| (format!("man/{}.1", command.name), manual::command(command)));
    let pages = commands.chain(pages::all().into_iter().map(|(name, page)| (format!("man/{name}.7"), page)));
    let stale: Vec<String> = pages.filter_map(|(path, page)| same_file(&path, &page).err()).collect();
    no_complaints(&stale);
}

#[test]
fn the_completions_are_current() {
    let files = [("ares.bash", Shell::Bash), ("_ares", Shell::Zsh), ("ares.fish", Shell::Fish)];
    let stale: Vec<String> = files
        .into_iter()
        .filter_map(|(name, shell)| {
            let mut script = Vec::new();
            generate(shell, &mut front::whole(), "ares", &mut script);
            let script = String::from_utf8(script).expect("text");
            same_file(&format!("completions/{name}"), &script).err()
        })
        .collect();
    no_complaints(&stale);
}
