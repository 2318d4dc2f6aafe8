//! `ares-list` and `ares-log`: nothing is left out in a pipe, and a terminal says what it leaves out.

use crate::harness::has;
use crate::stock::{Stock, bash};

/// A store with so many jobs of three priorities.
fn filled(jobs: usize) -> Stock {
    let stock = Stock::new();
    let record = r#"{"argv":["true"],"label":"l","priority":%d}\n"#;
    let script = format!("for n in $(seq {jobs}); do printf '{record}' $((n % 3)); done | ares-submit --stdin | wc -l");
    assert_eq!(stock.bash(&script, 0), jobs.to_string());
    stock
}

#[test]
fn a_pipe_is_given_all_in_every_order_and_form() {
    // More than are read at once.
    let stock = filled(700);
    stock.ok("ares-stop", &["--label", "l"]);
    stock.db().execute("UPDATE jobs SET ended_at = ended_at + id % 7", []).expect("ends");
    let order =
        |sort: &str| stock.value(&format!("SELECT group_concat(id, ' ') FROM (SELECT id FROM jobs ORDER BY {sort})"));
    for (sort, sql) in [
        ("id", "id"),
        ("-id", "id DESC"),
        ("ended", "ended_at, id"),
        ("-ended", "ended_at DESC, id DESC"),
        ("priority", "priority DESC, id"),
    ] {
        let listed = stock.ok("ares-list", &["--sort", sort, "--format", "%(job)"]);
        assert_eq!(listed.replace('\n', " "), order(sql), "{sort}");
    }
    assert_eq!(stock.ok("ares-list", &["--json"]).lines().count(), 700);
    assert_eq!(stock.run("ares-list", &["-z"]).out.matches('\0').count(), 700);
    assert_eq!(stock.ok("ares-list", &["--limit", "600"]).lines().count(), 600);
    assert_eq!(stock.ok("ares-list", &["--limit", "600", "--after", "300"]).lines().count(), 400);
    assert_eq!(stock.ok("ares-list", &["--count"]), "700");
    assert_eq!(stock.run("ares-list", &[]).err, "");
    assert_eq!(bash(&stock, "set -o pipefail; ares-list | head -1 >/dev/null").status, 0, "a reader that goes away");
}

#[test]
fn an_agents_turn_is_told_by_its_worker_and_its_prompt() {
    let stock = Stock::new();
    let long = format!("Fix the failing\u{1b}[2J test\nand more {}", "x".repeat(40_000));
    std::fs::write(stock.path().join("long"), long).expect("a prompt");
    stock.ok("ares-submit", &["-w", "synthetic", "--", "say hello"]);
    stock.ok("ares-submit", &["-w", "synthetic", "--file", "long"]);
    stock.ok("ares-submit", &["--file", "long", "--", "/bin/cat", "-"]);
    let wanted =
        "synthetic: say hello\nsynthetic: Fix the failing\\x1b[2J test…\n/bin/cat - < Fix the failing\\x1b[2J test…";
    assert_eq!(stock.ok("ares-list", &["--format", "%(command)"]), wanted);
    assert_eq!(stock.ok("ares-show", &["1", "--format", "%(command)"]), "synthetic: say hello");
}

#[test]
fn the_log_is_whole_in_a_pipe() {
    let stock = Stock::new();
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
               INSERT INTO operations (verb, subject, by, note, at) SELECT 'submit', i, '0:1', '', i FROM n";
    stock.db().execute(sql, []).expect("a long log");
    let subjects = stock.ok("ares-log", &["--verb", "submit", "--format", "%(subject)"]);
    assert_eq!(subjects, (1..=600).map(|n| n.to_string()).collect::<Vec<_>>().join("\n"));
    assert_eq!(stock.ok("ares-log", &["--verb", "submit", "--limit", "2", "--format", "%(subject)"]), "599\n600");
    assert_eq!(stock.ok("ares-log", &["--limit", "9999", "--subject", "7"]).lines().count(), 1);
}

#[test]
fn a_terminal_is_given_a_hundred_and_told_of_the_rest() {
    if !has("script") {
        return;
    }
    let stock = filled(301);
    let shown = |command: &str| stock.bash(&format!("script -qec '{command}' /dev/null </dev/null 2>&1"), 0);
    let jobs = |text: &str| text.lines().filter(|line| line.contains(" queued ")).count();
    let text = shown("ares-list");
    assert_eq!(jobs(&text), 100, "{text}");
    assert!(text.contains("showing the first 100 of 301 jobs; --all shows all"), "{text}");
    for (options, count) in [("--all", 301), ("--limit 150", 150)] {
        let text = shown(&format!("ares-list {options}"));
        assert!(jobs(&text) == count && !text.contains("showing"), "{text}");
    }
    assert!(!shown("ares-list --limit 1").contains("showing"));
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
               INSERT INTO operations (verb, subject, by, note, at) SELECT 'stop', i, '0:1', '', i FROM n";
    stock.db().execute(sql, []).expect("a long log");
    assert!(shown("ares-log --verb stop").contains("showing the latest 100 of 600 operations; --all shows all"));
}
