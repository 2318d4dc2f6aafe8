//! `ares-fsck`: what was changed behind its back is named, what only lies about is a plain no, and a store in use is
//! clean.

use crate::harness::Lab;
use std::os::unix::fs::PermissionsExt as _;

/// A store in which something of every kind has happened.
fn lab() -> Lab {
    let lab = Lab::new();
    let ran = lab.sh("ares init -q >/dev/null; ares submit -- echo hello; ares submit --after 1 --label x -- false; \
         ares submit --timeout 50ms --grace 50ms -- sleep 60; ares submit -- head -c 100000 /dev/zero; \
         ares submit -w synthetic -- hello; ares run --drain -q; \
         ares reconcile 3 --decide abandon --because 'it slept' >/dev/null");
    assert_eq!(ran.out.lines().count(), 10, "{ran:?}");
    lab
}

/// Changes the database as someone with a shell of SQLite would, with every trigger out of the way.
#[expect(clippy::disallowed_methods, reason = "behind the commands' back is the point")]
fn change(lab: &Lab, sql: &str) {
    let connection = rusqlite::Connection::open(lab.path().join(".ares/ares.db")).unwrap();
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false).unwrap();
    connection.pragma_update(None, "foreign_keys", false).unwrap();
    connection.execute_batch(sql).unwrap();
}

#[test]
fn a_store_in_use_is_clean() {
    let ran = lab().run("ares-fsck", &["--full"]);
    assert_eq!((ran.status, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
}

#[test]
fn what_was_changed_is_named() {
    let cases = [
        ("UPDATE attempts SET outcome = 'error' WHERE job = 1", "outcome-receipt"),
        ("UPDATE attempts SET code = 'ARES_QUOTA' WHERE job = 2", "outcome-receipt"),
        ("UPDATE attempts SET seen = '{}' WHERE job = 1", "unread"),
        ("UPDATE attempts SET seen = json_set(seen, '$.exit', 3) WHERE job = 1", "outcome-receipt"),
        ("UPDATE attempts SET owner = '{' WHERE job = 1", "unread"),
        ("UPDATE runs SET input = input + 1", "outcome-receipt"),
        ("UPDATE resolutions SET because = 'it ran'", "receipt"),
        ("UPDATE jobs SET state = 'succeeded' WHERE id = 2", "state-told"),
        ("UPDATE objects SET size = size + 1 WHERE bytes IS NULL", "object"),
        ("DELETE FROM moves WHERE old = 'uncertain'", "moves"),
        ("UPDATE attempts SET result = NULL WHERE job = 1", "outcome-receipt"),
        ("UPDATE jobs SET argv = '[\"rm\"]' WHERE id = 1", "spec-digest"),
        ("UPDATE jobs SET max_tries = 9 WHERE id = 1", "spec-digest"),
        ("DELETE FROM labels", "spec-digest"),
        ("UPDATE receipts SET subject = '9.9' WHERE seq = 2", "receipt"),
        ("DELETE FROM receipts WHERE seq = 3", "receipt"),
        ("UPDATE receipts SET bytes = x'00' WHERE seq = 1", "receipt"),
        ("UPDATE objects SET bytes = x'68656c6c6f21' WHERE size = 6", "object"),
        ("DELETE FROM resolutions", "resolution"),
        ("UPDATE jobs SET attempt = 7 WHERE id = 1", "fence"),
        ("UPDATE permits SET outcome = 'void' WHERE job = 1", "permit-outcome"),
        ("DELETE FROM events WHERE subject = '1.1'", "event"),
        ("UPDATE jobs SET tries = 5 WHERE id = 2", "tries"),
    ];
    for (sql, rule) in cases {
        let lab = lab();
        change(&lab, sql);
        let ran = lab.run("ares-fsck", &["--format", "%(rule)"]);
        assert!(ran.out.lines().any(|found| found == rule), "{sql}: {ran:?}");
        assert!([1, 6].contains(&ran.status), "{sql}: {ran:?}");
    }
}

#[test]
fn a_large_object_that_changed_is_damage() {
    let lab = lab();
    let ran = lab.sh("f=$(find .ares/objects -type f | head -n 1); printf x >>\"$f\"; ares fsck --format '%(rule)'");
    assert_eq!((ran.status, ran.out.as_str()), (6, "object\n"), "{ran:?}");
}

#[test]
fn leftovers_and_modes_are_mended_and_nothing_else() {
    let lab = lab();
    std::fs::create_dir(lab.path().join(".ares/attempts/1.1")).unwrap();
    let lock = lab.path().join(".ares/locks/write.lock");
    std::fs::set_permissions(&lock, std::fs::Permissions::from_mode(0o644)).unwrap();
    let ran = lab.run("ares-fsck", &["--format", "%(rule)"]);
    let mut rules: Vec<&str> = ran.out.lines().collect();
    rules.sort_unstable();
    assert_eq!((ran.status, rules.as_slice()), (1, ["leftover", "mode", "mode"].as_slice()), "{ran:?}");
    assert_eq!(lab.run("ares-fsck", &["--repair"]).status, 0);
    assert_eq!(lab.run("ares-fsck", &[]).status, 0);
}

#[test]
fn what_waits_and_continues_reads_back_as_it_was_frozen() {
    let lab = lab();
    let ran = lab.sh("ares submit -w synthetic --continue 5 --after 4 --after 1 -- more; ares submit --label x --if-active x queue -- true;
        ares submit --label x --after 7 --if-active x queue -- true; ares submit -w synthetic --continue 5 --after 7 -- x; ares fsck");
    assert_eq!((ran.status, ran.out.as_str()), (0, "6\n7\n8\n9\n"), "{ran:?}");
}

#[test]
fn a_schema_that_was_changed_is_damage_and_no_bug() {
    // One letter of a trigger's condition; a function that is none; a trigger that is gone; another index.
    for (kind, name, sql) in [
        ("trigger", "jobs_fence", "UPDATE sqlite_schema SET sql = replace(sql, 'OLD.attempt', 'ODD.attempt')"),
        ("trigger", "permits_begin", "UPDATE sqlite_schema SET sql = replace(sql, 'issued', 'isrued')"),
        ("trigger", "jobs_frozen", "DELETE FROM sqlite_schema"),
        ("table", "objects", "UPDATE sqlite_schema SET sql = replace(sql, 'length', 'lejgth')"),
        ("index", "jobs_worker", "UPDATE sqlite_schema SET sql = replace(sql, 'worker, id', 'worker, due')"),
    ] {
        let lab = lab();
        change(&lab, &format!("PRAGMA writable_schema = ON; {sql} WHERE type = '{kind}' AND name = '{name}'"));
        for options in [&["--full"][..], &[]] {
            let ran = lab.run("ares-fsck", &[options, &["--format", "%(rule) %(subject)"]].concat());
            assert_eq!(ran.status, 6, "{kind} {name}: {ran:?}");
            assert!(ran.out.contains(&format!("schema {kind} {name}")), "{kind} {name}: {ran:?}");
        }
    }
}

#[test]
fn a_line_of_the_log_that_does_not_read_is_damage() {
    let lab = lab();
    change(&lab, "UPDATE operations SET subject = CAST(x'ff' AS TEXT) WHERE id = 1");
    assert_eq!((lab.run("ares-log", &[]).status, lab.run("ares-fsck", &[]).status), (6, 6));
}
