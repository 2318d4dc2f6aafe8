//! What exit 0 promises: synced before it is told, objects before the rows that name them, a log that stays short, and
//! nobody but SQLite at SQLite's files.

use crate::harness::{files, no_complaints, short, text};
use crate::harness::{has, skipped};
use crate::stock::{Stock, value};

#[test]
fn the_settings_hold() {
    let stock = Stock::new();
    let db = stock.db();
    assert_eq!(value(&db, "PRAGMA journal_mode"), "wal");
    assert_eq!(value(&db, "PRAGMA application_id"), "1095910739");
    assert_eq!(value(&db, "PRAGMA integrity_check"), "ok");
    // Another mode is noticed by the next command, not lived with.
    drop(db);
    assert_eq!(value(&stock.db(), "PRAGMA journal_mode = delete"), "delete");
    stock.fails("ares-submit", &["--", "true"], 5, "journal_mode=delete");
}

/// The system calls of a command, one a line, with descriptors as paths.
fn trace(stock: &Stock, calls: &str, command: &str) -> Option<Vec<String>> {
    if !has("strace") {
        return None;
    }
    let script = format!("strace -f -qq -y -s 64 -e trace={calls} -o trace {command} >/dev/null");
    let ran = crate::stock::bash(stock, &script);
    if ran.status != 0 && ran.err.contains("strace") {
        skipped("strace may not trace here");
        return None;
    }
    assert_eq!(ran.status, 0, "{}", ran.err);
    let lines = std::fs::read_to_string(stock.path().join("trace")).expect("a trace");
    Some(lines.lines().map(str::to_owned).collect())
}

fn at(lines: &[String], what: &str, words: &[&str]) -> usize {
    let found = lines.iter().rposition(|line| words.iter().all(|word| line.contains(word)));
    found.unwrap_or_else(|| panic!("never: {what}\n{}", lines.join("\n")))
}

#[test]
fn the_log_is_synced_before_the_id_is_printed() {
    let stock = Stock::new();
    let calls = "write,pwrite64,fsync,fdatasync";
    let Some(lines) = trace(&stock, calls, "ares-submit -- true") else { return };
    let written = at(&lines, "the log is written", &["pwrite64(", "ares.db-wal>"]);
    let synced = at(&lines, "the log is synced", &["sync(", "ares.db-wal>"]);
    let printed = at(&lines, "the id is printed", &["write(1<"]);
    assert!(written < synced && synced < printed, "{}", lines.join("\n"));
}

#[test]
fn a_large_object_is_synced_and_in_place_before_its_row() {
    let stock = Stock::new();
    stock.bash("head -c 40000 /dev/zero >large", 0);
    let calls = "pwrite64,fsync,fdatasync,rename,renameat,renameat2";
    let Some(lines) = trace(&stock, calls, "ares-submit --file large -- cat") else { return };
    let synced = at(&lines, "the object is synced", &["sync(", "/objects/", ".tmp>"]);
    let renamed = at(&lines, "the object is put in place", &["rename", "/objects/"]);
    let named =
        lines.iter().rposition(|line| line.contains("sync(") && line.contains("/objects/") && !line.contains(".tmp>"));
    let named = named.expect("the object's directory is synced");
    let row = lines.iter().position(|line| line.contains("pwrite64(") && line.contains("ares.db-wal>")).expect("a row");
    assert!(synced < renamed && renamed < named && named < row, "{}", lines.join("\n"));
}

/// A queue of commands costs one commit each: it settles one, and claims and dispatches the next.
#[test]
fn a_job_costs_one_commit_and_one_that_is_handed_something_two() {
    for (options, commits) in [(&[][..], 1), (&["--file", "words"], 2)] {
        let stock = Stock::new();
        std::fs::write(stock.path().join("words"), "some").unwrap();
        for _ in 0..20 {
            stock.submit(options, &["true"]);
        }
        let Some(lines) = trace(&stock, "fdatasync", "ares-run --drain") else { return };
        let synced = lines.iter().filter(|line| line.contains("fdatasync(") && line.contains("ares.db-wal>")).count();
        // A few more are the first claim and its dispatch, and the log that is begun anew.
        assert!((20 * commits..20 * commits + 6).contains(&synced), "{synced} for {commits} a job");
    }
}

#[test]
fn case_47_only_sqlite_opens_its_files() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    let Some(lines) = trace(&stock, "open,openat,creat", "ares-run --drain") else { return };
    let opened: Vec<&String> = lines.iter().filter(|line| line.contains("/ares.db")).collect();
    assert!(opened.len() >= 3, "{opened:?}");
    // SQLite opens to read and write and never through a link; nothing else of ours does both.
    for line in opened {
        assert!(line.contains("O_RDWR") && line.contains("O_NOFOLLOW"), "{line}");
    }
}

#[test]
fn no_source_reads_the_database_by_hand() {
    let mut complaints = Vec::new();
    for path in files(&["src"], &[".rs"]) {
        let name = short(&path);
        let text = text(&path);
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//") && line.contains("ares.db"));
        for line in lines {
            // Its name is needed to open it, to tell whether it is there, and to say which one is meant.
            let known = ["open.rs", "place.rs", "mod.rs"].iter().any(|file| name == format!("src/store/{file}"));
            if !known {
                complaints.push(format!("{name}: {}", line.trim()));
            }
        }
    }
    for file in ["src/store/open.rs", "src/store/place.rs", "src/store/mod.rs"] {
        for door in ["File::open", "OpenOptions", "fs::read(", "fs::copy", "fs::write"] {
            if text(file).contains(door) {
                complaints.push(format!("{file}: {door} beside the database"));
            }
        }
    }
    no_complaints(&complaints);
}

#[test]
fn the_write_ahead_log_stays_short() {
    let stock = Stock::new();
    // A process each, as a script would; the last of them leaves the log as it is.
    let script = "for i in 1 2 3 4; do (for n in $(seq 500); do ares-submit -- true >/dev/null || exit 1; done) & done
        for j in $(jobs -p); do wait $j || exit 1; done; stat -c %s .ares/ares.db-wal";
    let length: u64 = stock.bash(script, 0).parse().expect("a length");
    assert_eq!(stock.value("SELECT count(*) FROM jobs"), "2000");
    assert!(length < 3 << 19, "the log has {length} bytes");
}
