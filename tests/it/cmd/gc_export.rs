//! Receipts that leave a store: only from the beginning of the chain, only of jobs that are gone, and accounted for.

use crate::stock::Stock;

fn finished(count: usize) -> Stock {
    let stock = Stock::new();
    stock.bash(
        &format!("for n in $(seq {count}); do ares-submit -q -- echo $n >/dev/null; done; ares-run --drain -q"),
        0,
    );
    stock
}

fn receipts(stock: &Stock) -> String {
    stock.value("SELECT min(seq) || ' to ' || max(seq) FROM receipts")
}

fn findings(stock: &Stock, args: &[&str]) -> (i32, String) {
    let ran = stock.run("ares-fsck", &[&["--format", "%(rule)"], args].concat());
    (ran.status, ran.out)
}

#[test]
fn receipts_stay_unless_they_are_exported() {
    let stock = finished(5);
    stock.ok("ares-gc", &["--keep", "2"]);
    assert_eq!(receipts(&stock), "1 to 10");
    // Later on its own: those that are gone have nothing else left.
    stock.ok("ares-gc", &["--export", "."]);
    assert_eq!(receipts(&stock), "7 to 10");
    assert_eq!(stock.value("SELECT first || ' ' || last FROM segments"), "1 6");
    assert_eq!(findings(&stock, &["--full", "--exported", "."]), (0, String::new()));
    // The chain goes on, and its next segment after the first.
    stock.bash("mkdir more; ares-submit -- true; ares-run -q; ares-gc --keep 1 --export more/second", 0);
    assert_eq!(receipts(&stock), "11 to 12");
    assert_eq!(findings(&stock, &["--exported", ".", "--exported", "more/second"]), (0, String::new()));
    assert_eq!(stock.bash("stat -c %a more/second receipts-*", 0), "600\n600");
}

#[test]
fn the_last_receipt_stays_and_so_does_all_after_a_job_that_does() {
    let stock = finished(3);
    stock.submit(&[], &["true"]);
    stock.ok("ares-gc", &["--keep", "0", "--export", "."]);
    assert_eq!(receipts(&stock), "6 to 6", "the next one follows it");
    stock.bash("ares-run -q", 0);
    assert_eq!(receipts(&stock), "6 to 8");
    assert_eq!(findings(&stock, &["--exported", "."]), (0, String::new()));
    let stock = Stock::new();
    stock.bash("ares-submit -- true; ares-submit --after 1 --not-before +1h -- true; ares-run -q; ares-submit -- true; ares-run --drain -q", 0);
    stock.submit(&[], &["true"]);
    stock.ok("ares-gc", &["--keep", "0", "--export", "."]);
    assert_eq!(receipts(&stock), "1 to 4", "the first job is still needed");
}

#[test]
fn an_exported_file_that_changed_is_missing_or_is_another_is_told() {
    let stock = finished(4);
    stock.ok("ares-gc", &["--keep", "1", "--export", "file"]);
    let change = |script: &str| {
        stock.bash(&format!("cp file copy; {script}"), 0);
        findings(&stock, &["--exported", "copy"])
    };
    assert_eq!(change(":"), (0, String::new()));
    let changed = (6, "segment-file\nsegment-file\n".to_owned());
    assert_eq!(change("sed -i 's/\"1.1\"/\"9.1\"/' copy"), changed, "changed, so there is no whole one");
    assert_eq!(change("sed -i '$d' copy"), changed);
    assert_eq!(change("echo nonsense >copy"), changed);
    stock.bash("mkdir empty", 0);
    assert_eq!(findings(&stock, &["--exported", "empty"]), (1, "segment-file\n".to_owned()));
    stock.fails("ares-fsck", &["--exported", "no-such"], 14, "ARES_NOT_FOUND");
}

#[test]
fn a_chain_that_begins_elsewhere_than_after_its_segment_is_damage() {
    let stock = finished(4);
    stock.ok("ares-gc", &["--keep", "1", "--export", "file"]);
    let db = stock.db();
    assert!(db.execute("DELETE FROM receipts WHERE seq > 6", []).is_err(), "receipts leave only with a segment");
    db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false).expect("a setting");
    db.execute("DELETE FROM receipts WHERE seq = 7", []).expect("behind the back");
    let (status, rules) = findings(&stock, &[]);
    assert!(status == 6 && rules.contains("segment") && rules.contains("receipt"), "{rules}");
}
