//! Codes and exit statuses are promises: a name once given keeps its status for ever, so the list only grows.

use crate::harness::{ROOT, blessing, text};
use ares::error::{Class, Code};
use std::path::Path;

#[test]
fn no_code_is_lost_and_none_changes_its_status() {
    let list = text("fixtures/errors.txt");
    for line in list.lines() {
        let (name, status) = line.split_once(' ').expect("a name and a status");
        let code = Code::parse(name).unwrap_or_else(|| panic!("{name} was promised and is gone"));
        assert_eq!(code.class().exit().to_string(), status, "{name} was promised with another status");
    }
    let known = |code: &Code| list.lines().any(|line| line.split(' ').next() == Some(code.name()));
    let new: Vec<&Code> = Code::ALL.iter().filter(|code| !known(code)).collect();
    if blessing() {
        let lines: String = new.iter().map(|code| format!("{code} {}\n", code.class().exit())).collect();
        std::fs::write(Path::new(ROOT).join("fixtures/errors.txt"), list + &lines).expect("it can be written");
        return;
    }
    assert!(new.is_empty(), "not in fixtures/errors.txt: {new:?}; run ARES_BLESS=1 cargo test");
}

#[test]
fn every_class_has_its_own_status() {
    let statuses: Vec<u8> = Class::ALL.iter().map(|class| class.exit()).collect();
    assert_eq!(statuses, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 70]);
}

#[test]
fn texts_follow_one_form() {
    for code in Code::ALL {
        let (meaning, hint) = (code.meaning(), code.hint());
        assert!(meaning.ends_with('.'), "{code}: '{meaning}'");
        assert!(!hint.ends_with('.') && !hint.starts_with(|c: char| c.is_uppercase()), "{code}: '{hint}'");
    }
}
