//! The list of invariants in `src/lib.rs` and the marks at the places that keep them are one list, and the files that the
//! map names are there.

use crate::harness::{ROOT, files, no_complaints, short, text};
use std::collections::BTreeSet;
use std::path::Path;

/// What stands between backticks, in order.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn every_invariant_is_marked_where_it_is_kept() {
    let map = text("src/lib.rs");
    let part = map.split("# Invariants").nth(1).and_then(|rest| rest.split("//! # ").next()).expect("a list");
    let mut listed = BTreeSet::new();
    for line in part.lines().filter(|line| line.starts_with("//! * `")) {
        let mut words = quoted(line);
        let (name, place) = (words.next().expect("a name"), words.next().expect("a place"));
        listed.insert((format!("src/{place}"), name.to_owned()));
    }
    let mut marked = BTreeSet::new();
    for path in files(&["src"], &[".rs", ".sql"]).iter().filter(|path| short(path) != "src/lib.rs") {
        let text = text(path);
        let marks = text.split("INVARIANT `").skip(1).filter_map(|rest| rest.split('`').next());
        marked.extend(marks.map(|name| (short(path), name.to_owned())));
    }
    assert!(listed.len() > 10);
    assert_eq!(listed, marked);
}

#[test]
fn what_the_map_names_is_there() {
    let mut complaints = Vec::new();
    for page in ["src/lib.rs", "README.md"] {
        for word in text(page).lines().flat_map(|line| quoted(line).map(str::to_owned).collect::<Vec<_>>()) {
            let path = word.contains('/') && !word.contains(['*', '…', ' ', '<', '$', '~', '%', '(']);
            if !path || word.contains("NAME") || word.contains("NNNN") || word.starts_with(['/', '.']) {
                continue;
            }
            // Files of a store are no files of the source.
            let of_a_store =
                ["locks", "attempts", "objects", "tmp", "42.1"].iter().any(|begin| word.starts_with(begin));
            let known = ["", "src/", "src/cli/", "tests/it/"]
                .iter()
                .any(|folder| Path::new(ROOT).join(folder).join(&word).exists());
            if !known && !of_a_store {
                complaints.push(format!("{page}: there is no {word}"));
            }
        }
    }
    no_complaints(&complaints);
}
