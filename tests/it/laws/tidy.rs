//! Limits that keep the source readable, and marks that must not be left in it.

use crate::harness::{ROOT, files, no_complaints, short, text};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A file that is longer has more than one subject.
const FILE_MAX: usize = 450;

/// A function that is longer tells more than one story.
const FUNCTION_MAX: usize = 80;

fn sources() -> Vec<PathBuf> {
    files(
        &["src", "bin", "tests", "benches"]
            .map(|f| f)
            .as_slice()
            .iter()
            .copied()
            .filter(|f| Path::new(ROOT).join(f).exists())
            .collect::<Vec<_>>(),
        &[".rs"],
    )
}

#[test]
fn files_and_functions_are_short() {
    let mut complaints = Vec::new();
    for path in sources() {
        let (name, text) = (short(&path), text(&path));
        let lines = text.lines().count();
        if lines > FILE_MAX {
            complaints.push(format!("{name}: {lines} lines, {FILE_MAX} at most"));
        }
        let long = functions(&text).into_iter().filter(|(_, length)| *length > FUNCTION_MAX);
        complaints.extend(
            long.map(|(at, length)| format!("{name}:{at}: a function of {length} lines, {FUNCTION_MAX} at most")),
        );
    }
    no_complaints(&complaints);
}

/// The line and the length of each function. The source is formatted, so a function ends at the brace of its own depth.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let head = line.trim_start().split('(').next().unwrap_or_default();
        if !head.split(' ').any(|word| word == "fn") || head.starts_with("//") || head.contains('"') {
            continue;
        }
        let end = format!("{}}}", " ".repeat(indent));
        let length = lines[at..].iter().position(|line| **line == end).map_or(1, |length| length + 1);
        found.push((at + 1, if line.ends_with('}') || line.ends_with(';') { 1 } else { length }));
    }
    found
}

#[test]
fn every_file_says_what_it_owns() {
    let bad: Vec<String> = sources()
        .iter()
        .filter(|path| !text(path).starts_with("//! "))
        .map(|path| format!("{}: no //! header", short(path)))
        .collect();
    no_complaints(&bad);
}

#[test]
fn nothing_is_left_for_later() {
    // Written in two halves, so that this file is not its own finding.
    let marks = [("TO", "DO"), ("FIX", "ME"), ("to", "do!("), ("unimpl", "emented!("), ("#[ign", "ore"), ("XX", "X")];
    let marks = marks.map(|(a, b)| format!("{a}{b}"));
    let mut complaints = Vec::new();
    for path in sources() {
        for (at, line) in text(&path).lines().enumerate() {
            let found = marks.iter().filter(|mark| line.contains(mark.as_str()));
            complaints.extend(found.map(|mark| format!("{}:{}: {mark}", short(&path), at + 1)));
        }
    }
    no_complaints(&complaints);
}

#[test]
fn nothing_depends_on_where_it_was_written() {
    let root = Path::new(ROOT).canonicalize().expect("a root");
    let mut words = vec![["/wo", "rk/"].concat(), ["/ro", "ot/"].concat(), ["../sh", "ared"].concat()];
    // A short root such as /src would be found everywhere.
    words.extend(Some(root.display().to_string()).filter(|root| root.len() > 8));
    let folders =
        ["src", "bin", "tests", "fixtures", "man", "completions", "README.md", ".ci", "Cargo.toml", "benches"];
    let folders: Vec<&str> = folders.into_iter().filter(|folder| Path::new(ROOT).join(folder).exists()).collect();
    let mut complaints = Vec::new();
    for path in files(&folders, &[""]) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).expect("it can be read")).into_owned();
        let found = words.iter().filter(|word| text.contains(word.as_str()));
        complaints.extend(found.map(|word| format!("{}: {word}", short(&path))));
    }
    no_complaints(&complaints);
}

#[test]
fn no_file_of_tests_is_forgotten() {
    let mut complaints = Vec::new();
    for folder in ["tests/it", "src", "src/domain", "src/store", "src/host", "src/worker", "src/ops", "src/cli"] {
        let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
        if Path::new(ROOT).join(folder).exists() {
            folders.extend(files(&[folder], &[".rs"]).iter().filter_map(|path| path.parent().map(Path::to_owned)));
        }
        for folder in folders {
            complaints.extend(forgotten(&folder));
        }
    }
    complaints.sort();
    complaints.dedup();
    no_complaints(&complaints);
}

/// The files of a folder that its own module does not name.
fn forgotten(folder: &Path) -> Vec<String> {
    let heads = ["main.rs", "lib.rs", "mod.rs"].map(|name| folder.join(name));
    let beside = folder.with_extension("rs");
    let head = heads.iter().chain([&beside]).find(|path| path.exists()).expect("a module");
    let head = std::fs::read_to_string(head).expect("it can be read");
    let entries = std::fs::read_dir(folder).expect("it can be read").map(|entry| entry.expect("an entry").path());
    let source = |path: &Path| path.extension().is_some_and(|ending| ending == "rs");
    let within =
        |path: &Path| std::fs::read_dir(path).is_ok_and(|mut all| all.any(|e| source(&e.expect("an entry").path())));
    let names = entries.filter(|path| source(path) || within(path));
    let stem = |path: &PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let own = |name: &String| matches!(name.as_str(), "main" | "lib" | "mod");
    let named = |name: &String| {
        head.lines().any(|line| line.starts_with(['m', 'p']) && line.ends_with(&format!("mod {name};")))
    };
    names
        .map(|path| stem(&path))
        .filter(|name| !own(name) && !named(name))
        .map(|name| format!("{}: {name} is not a module", short(folder)))
        .collect()
}

#[test]
fn long_functions_are_seen() {
    let text = "fn a() {\n    x\n}\nimpl B {\n    fn b(&self) -> C {\n        y\n    }\n    fn c() {}\n}\n";
    assert_eq!(functions(text), [(1, 3), (5, 3), (8, 1)]);
}
