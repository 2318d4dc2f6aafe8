//! The storm of `benches/crash`, small and upon what was just built; and that it sees what is wrong.
//!
//! `ARES_STORM=N` asks for N kills; `ARES_SEED=N` repeats one storm's choices, though not the machine's timing.

#[path = "../../benches/storm/mod.rs"]
mod kills;

use crate::harness::{bin_dir, same_file, text};
use kills::{Plan, Plant, Told, storm};

/// Kills in an ordinary run of the tests.
const KILLS: usize = 30;

/// Kills where something was made wrong on purpose.
const FEW: usize = 3;

#[expect(clippy::disallowed_methods, reason = "the tests' own switch")]
fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn told(kills: usize, plant: Option<Plant>) -> Told {
    let dir = tempfile::tempdir().unwrap();
    let seed = asked("ARES_SEED").unwrap_or(u64::from(std::process::id()) * 7919);
    storm(&Plan { bin: &bin_dir(), dir: dir.path(), kills, seed, plant })
}

#[test]
fn nothing_is_lost_or_doubled_in_a_storm() {
    let kills = asked("ARES_STORM").map_or(KILLS, |count| count as usize);
    let told = told(kills, None);
    assert!(told.good(), "{told}");
    assert_eq!(told.scarce(), Vec::<&str>::new(), "{told}");
}

#[test]
fn a_storm_sees_what_is_wrong() {
    let planted = [
        (Plant::Double, "effects doubled"),
        (Plant::Lost, "acknowledged submissions lost"),
        (Plant::Uncertain, "uncertain, although only its owner was killed, or nothing"),
        (Plant::Failed, "failed or succeeded, although it was not so"),
    ];
    for (plant, name) in planted {
        let told = told(FEW, Some(plant));
        let wrong: Vec<&str> =
            told.wrong.iter().filter(|(_, found)| !found.is_empty()).map(|(name, _)| *name).collect();
        assert_eq!(wrong, [name], "{plant:?}: {told}");
        assert_eq!(told.wrong[name].len(), 1, "{plant:?}: {told}");
    }
}

const BEGIN: &str = "<!-- crash: begin -->\n";
const END: &str = "<!-- crash: end -->\n";

/// The first table of what was counted.
fn counted() -> String {
    let text = text("benches/results/crash.md");
    let from = text.find("| what |").expect("a table");
    let table = &text[from..];
    table.split_inclusive('\n').take_while(|line| line.starts_with('|')).collect()
}

#[test]
fn the_numbers_of_the_readme_are_those_that_were_counted() {
    let readme = text("README.md");
    let (head, rest) = readme.split_once(BEGIN).expect("where they stand");
    let (_, tail) = rest.split_once(END).expect("their end");
    let wanted = format!("{head}{BEGIN}{}{END}{tail}", counted());
    same_file("README.md", &wanted).unwrap();
}
