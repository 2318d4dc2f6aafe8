//! A database that is not ours, or of another version, is told by its code and not changed by a byte.

use crate::harness::Lab;
use crate::stock::Stock;
use std::fs;

/// A store whose database says something else about itself; with all of it in the main file.
fn with(pragma: &str) -> Stock {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    let db = stock.db();
    db.execute_batch(&format!("{pragma}; PRAGMA wal_checkpoint(TRUNCATE)")).expect("tampered");
    stock
}

#[test]
fn other_versions_are_refused_and_left_alone() {
    for (pragma, status, code) in [
        ("PRAGMA user_version = 2", 6, "ARES_SCHEMA_NEW"),
        ("PRAGMA user_version = 2147483647", 6, "ARES_SCHEMA_NEW"),
        ("PRAGMA user_version = 0", 6, "ARES_SCHEMA_OLD"),
        ("PRAGMA user_version = -1", 6, "ARES_SCHEMA_OLD"),
        ("PRAGMA application_id = 7", 6, "ARES_STORE_DAMAGED"),
    ] {
        let stock = with(pragma);
        let file = stock.root().join("ares.db");
        let before = fs::read(&file).expect("a database");
        for (name, args) in [
            ("ares-list", &[][..]),
            ("ares-submit", &["--", "true"]),
            ("ares-run", &[]),
            ("ares-init", &[]),
            ("ares-init", &["--adopt"]),
        ] {
            stock.fails(name, args, status, code);
        }
        if code == "ARES_SCHEMA_OLD" {
            // The way out that is named must not name itself.
            stock.fails("ares-init", &["--upgrade"], 6, "ARES_STORE_DAMAGED");
        }
        assert!(fs::read(&file).expect("a database") == before, "{pragma}: the database was changed");
    }
}

#[test]
fn what_is_no_database_is_damage_and_left_alone() {
    let lab = Lab::new();
    assert_eq!(lab.run("ares-init", &[]).status, 0);
    let (file, wal) = (lab.path().join(".ares/ares.db"), lab.path().join(".ares/ares.db-wal"));
    fs::remove_file(&wal).expect("removed");
    for text in ["not a database, but longer than a header would be: ".repeat(40), "SQLite format 3\0".repeat(300)] {
        fs::write(&file, &text).expect("written");
        for (name, args) in [("ares-list", &[][..]), ("ares-init", &[]), ("ares-submit", &["--", "true"])] {
            let ran = lab.run(name, args);
            assert!(ran.status == 6 && ran.err.contains("ARES_STORE_DAMAGED"), "{name}: {} {}", ran.status, ran.err);
        }
        assert_eq!(fs::read_to_string(&file).expect("there"), text);
    }
}

#[test]
fn a_store_that_was_never_finished_is_no_store_and_can_be_finished() {
    let lab = Lab::new();
    assert_eq!(lab.run("ares-init", &[]).status, 0);
    for ending in ["", "-wal", "-shm"] {
        fs::remove_file(lab.path().join(format!(".ares/ares.db{ending}"))).expect("removed");
    }
    fs::write(lab.path().join(".ares/ares.db"), "").expect("written");
    let ran = lab.run("ares-list", &[]);
    assert!(ran.status == 5 && ran.err.contains("ARES_NO_STORE"), "{}", ran.err);
    assert_eq!(lab.run("ares-init", &[]).status, 0);
    assert_eq!(lab.run("ares-submit", &["--", "true"]).out, "1\n");
}

#[test]
fn what_no_ares_wrote_is_damage_and_no_mistake_of_ours() {
    for (sql, command, args) in [
        ("DROP TRIGGER jobs_frozen; UPDATE jobs SET dir = CAST(x'ff' AS TEXT)", "ares-list", &[][..]),
        ("DROP TRIGGER jobs_frozen; UPDATE jobs SET dir = CAST(x'ff' AS TEXT)", "ares-run", &[]),
        ("ALTER TABLE permits RENAME COLUMN attempt_n TO other", "ares-run", &[]),
        ("ALTER TABLE labels RENAME TO other", "ares-list", &[]),
        // A broken schema is quoted in what SQLite says, with the words of our own refusals.
        (
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'BEGIN', 'BEGINS') WHERE name = 'jobs_move'",
            "ares-list",
            &[],
        ),
    ] {
        let stock = Stock::new();
        stock.submit(&[], &["true"]);
        let db = stock.db();
        db.execute_batch("PRAGMA foreign_keys = OFF").expect("settings");
        db.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        drop(db);
        stock.fails(command, args, 6, "ARES_STORE_DAMAGED");
    }
}
