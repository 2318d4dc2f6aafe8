//! Stored words and JSON that do not read are damage, whoever reads them: the row and the column are named, and no default
//! stands in for them.

use crate::stock::{Stock, column};

/// A store with a job that waits, one that is uncertain, one that is stopped while a script runs it, one that was
/// decided, one of a worker with a session.
fn stock() -> Stock {
    let stock = Stock::new();
    stock.bash(
        "ares-submit --key k -- true; ares-submit --after 1 -- true; ares-run --job 1 -q
         ares-submit --timeout 50ms --grace 50ms --label u -- sleep 60; ares-submit --timeout 50ms --grace 50ms -- sleep 61
         ares-submit --not-before +1h -- true; ares-submit -w synthetic -- hello; ares-run --drain -q
         ares-reconcile 4 --decide abandon --because x -q; ares-submit --after 5 -- true; ares-submit --env NOT_SET -- true
         ares-run -q",
        0,
    );
    let running = stock.submit(&[], &["sleep", "1"]);
    stock.claim(&["--job", &running]);
    stock.ok("ares-stop", &[&running, "--because", "enough"]);
    stock
}

/// What reads each of them: the table, the row, the column, and a command that has to read it.
const READERS: &[(&str, &str, &str, &str)] = &[
    ("jobs", "id = 5", "argv", "ares-list"),
    ("jobs", "id = 5", "options", "ares-show 5"),
    ("jobs", "id = 5", "env", "ares-show 5"),
    ("jobs", "id = 5", "limits", "ares-list --all"),
    ("jobs", "id = 5", "if_uncertain", "ares-list --json"),
    ("jobs", "id = 5", "state", "ares-show 5"),
    ("jobs", "id = 5", "hold", "ares-list"),
    ("jobs", "id = 5", "spec_digest", "ares-list"),
    ("jobs", "id = 5", "submitted_by", "ares-show 5"),
    ("jobs", "id = 3", "prompt", "ares-reconcile 3"),
    ("jobs", "id = 3", "config_digest", "ares-reconcile 3"),
    ("dependencies", "job = 7", "on_failed", "ares-show 7"),
    ("dependencies", "job = 7", "on_cancelled", "ares-show 7"),
    ("dependencies", "job = 7", "on_uncertain", "ares-stop 5"),
    ("attempts", "job = 3", "state", "ares-show 3.1"),
    ("attempts", "job = 3", "outcome", "ares-reconcile 3"),
    ("attempts", "job = 3", "seen", "ares-show 3 --output stdout"),
    ("attempts", "job = 3", "owner", "ares-reconcile"),
    ("attempts", "job = 1", "keeper", "ares-show 1.1"),
    ("attempts", "job = 1", "nonce_digest", "ares-show 1"),
    ("attempts", "job = 1", "stdout", "ares-show 1"),
    ("sessions", "id = (SELECT session FROM jobs WHERE id = 6)", "state", "ares-show 6"),
    ("resolutions", "subject = '4.1'", "decision", "ares-show 4.1"),
    ("resolutions", "subject = '4.1'", "by", "ares-show 4.1"),
    ("resolutions", "subject = '4.1'", "evidence", "ares-show 4.1"),
    ("findings", "subject = '8.1'", "body", "ares-show 8.1"),
    ("stops", "id > 0", "decision", "ares-show 9"),
    ("keys", "key = 'k'", "request", "ares-submit --key k -- true"),
    ("receipts", "seq = 1", "digest", "ares-show 1.1"),
];

#[test]
fn what_does_not_read_is_damage_by_whoever_reads_it() {
    let stock = stock();
    let db = stock.db();
    db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false).unwrap();
    db.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON").unwrap();
    for (table, row, name, command) in READERS {
        let kind = column(&db, &format!("SELECT type FROM pragma_table_info('{table}') WHERE name = '{name}'"));
        let value = if kind == ["BLOB"] { "x'07'" } else { "'{\"x'" };
        let before: Vec<rusqlite::types::Value> = db
            .prepare(&format!("SELECT \"{name}\" FROM {table} WHERE {row}"))
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(before.len(), 1, "{table}: {row}");
        let changed = db.execute(&format!("UPDATE {table} SET \"{name}\" = {value} WHERE {row}"), []).unwrap();
        assert_eq!(changed, 1);
        for command in [*command, "ares-fsck"] {
            let words: Vec<&str> = command.split(' ').collect();
            let ran = stock.run(words[0], &words[1..]);
            assert_eq!(ran.status, 6, "{table}.{name}: {command}: {}{}", ran.out, ran.err);
            let told = ran.err + &ran.out;
            assert!(told.contains("ARES_STORE_DAMAGED"), "{table}.{name}: {command}: {told}");
            let named = told.contains(&format!("'{name}'")) || command == "ares-fsck";
            assert!(named, "{table}.{name}: {command}: {told}");
        }
        db.execute(&format!("UPDATE {table} SET \"{name}\" = ?1 WHERE {row}"), [&before[0]]).unwrap();
    }
    assert_eq!(stock.ok("ares-fsck", &[]), "", "everything was put back");
}
