//! `ares-gc`: what goes and what stays, what is told of what is gone, and that nothing else changes.

use crate::stock::{Stock, bash};

/// What a gc says, as one object.
fn gc(stock: &Stock, args: &[&str]) -> serde_json::Value {
    let out = stock.ok("ares-gc", &[&["--json"], args].concat());
    serde_json::from_str(&out).expect("an object")
}

fn jobs(stock: &Stock) -> String {
    stock.ok("ares-list", &["--format", "%(job)"]).replace('\n', " ")
}

fn clean(stock: &Stock) {
    let ran = stock.run("ares-fsck", &["--full"]);
    assert_eq!((ran.status, ran.out.as_str()), (0, ""), "{}", ran.err);
}

/// So many finished jobs, each with output of its own.
fn finished(count: usize) -> Stock {
    let stock = Stock::new();
    let script = format!(
        "for n in $(seq {count}); do echo '{{\"argv\":[\"echo\",\"'$n'\"],\"prompt\":\"p'$n'\"}}'; done |
         ares-submit --stdin >/dev/null; ares-run --drain --quiet >/dev/null"
    );
    stock.bash(&script, 0);
    stock
}

/// Tables whose rows belong to jobs, and how many rows are about jobs that are not there.
const OF_JOBS: &[(&str, &str)] = &[
    ("attempts", "job"),
    ("labels", "job"),
    ("dependencies", "job"),
    ("permits", "job"),
    ("events", "job"),
    ("runs", "job"),
    ("findings", "CAST(subject AS INTEGER)"),
    ("stops", "CAST(subject AS INTEGER)"),
    (
        "operations",
        "CASE WHEN verb IN ('gc', 'decide') OR note LIKE 'and % more' OR op_id IS NOT NULL OR at >= (SELECT min(ended_at) FROM jobs) OR subject = '' THEN NULL ELSE CAST(subject AS INTEGER) END",
    ),
];

/// No table holds more than its last row about jobs that are gone.
fn nothing_about_gone_jobs(stock: &Stock) {
    for (table, job) in OF_JOBS {
        let id = if ["permits", "events", "findings", "stops", "operations"].contains(table) {
            format!("AND id < (SELECT max(id) FROM {table})")
        } else {
            String::new()
        };
        let sql = format!(
            "SELECT count(*) FROM {table} WHERE ({job}) IS NOT NULL AND ({job}) NOT IN (SELECT id FROM jobs) {id}"
        );
        assert_eq!(stock.value(&sql), "0", "{table}: {}", stock.picture());
    }
    assert_eq!(stock.value("SELECT count(*) FROM sessions WHERE id NOT IN (SELECT session FROM jobs)"), "0");
}

#[test]
fn without_a_retention_nothing_of_the_record_goes() {
    let stock = finished(4);
    stock.bash(
        "mkdir .ares/attempts/1.1 .ares/objects/ab; echo x >.ares/attempts/1.1/stdout; echo x >.ares/tmp/lock-1
         echo half >.ares/objects/ab/.cd.1.tmp; head -c 40000 /dev/zero >big; printf x >>big
         f=$(sha256sum big); cp big .ares/objects/ab/$(echo $f | cut -c 3-64); echo mine >.ares/objects/ab/note
         chmod 700 .ares/objects/ab .ares/attempts/1.1; chmod 600 .ares/objects/ab/*  .ares/objects/ab/.*.tmp",
        0,
    );
    let picture = stock.picture();
    let told = gc(&stock, &["--dry-run"]);
    assert_eq!(stock.picture(), picture);
    assert_eq!((&told["jobs"], &told["files"]), (&0.into(), &4.into()), "{told}");
    let done = gc(&stock, &[]);
    assert_eq!((&done["files"], &done["bytes"]), (&told["files"], &told["bytes"]));
    let left = stock.bash("ls -A .ares/attempts .ares/tmp; ls -A .ares/objects/ab", 0);
    assert_eq!(left, ".ares/attempts:\n\n.ares/tmp:\nnote", "what is not ours stays");
    let only_the_log = |line: &&str| !line.starts_with("operations ");
    let rows = |picture: &str| picture.lines().filter(only_the_log).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rows(&stock.picture()), rows(&picture));
    clean(&stock);
}

#[test]
fn the_newest_or_the_young_are_kept_and_both_protect() {
    let stock = finished(6);
    let count = |args: &[&str]| gc(&stock, &[args, &["--dry-run"]].concat())["jobs"].as_i64().unwrap();
    assert_eq!(count(&["--keep", "2"]), 4);
    assert_eq!(count(&["--keep", "100"]), 0);
    // The last job is always kept, whatever is asked for.
    assert_eq!(count(&["--keep", "0"]), 5);
    assert_eq!(count(&["--older-than", "1h"]), 0);
    assert_eq!(count(&["--older-than", "1h", "--keep", "2"]), 0);
    assert_eq!(count(&["--older-than", "0"]), 5);
    assert_eq!(count(&["--older-than", "0", "--keep", "4"]), 2);
    gc(&stock, &["--keep", "2"]);
    assert_eq!(jobs(&stock), "5 6");
    nothing_about_gone_jobs(&stock);
    clean(&stock);
}

#[test]
fn a_dry_run_tells_what_is_then_done() {
    let stock = finished(8);
    stock.submit(&[], &["head", "-c", "30000", "/dev/zero"]);
    stock.ok("ares-run", &["--drain"]);
    stock.submit(&[], &["true"]);
    let files = || stock.bash("find .ares -type f ! -name '*-shm' ! -name objects.lock | sort | xargs sha256sum", 0);
    let before = files();
    let told = gc(&stock, &["--keep", "0", "--export", ".", "--dry-run"]);
    assert_eq!(files(), before, "a dry run writes nothing");
    let done = gc(&stock, &["--keep", "0", "--export", "."]);
    for field in ["jobs", "objects", "files", "bytes", "frames", "receipts", "segment"] {
        assert_eq!(told[field], done[field], "{field}");
    }
    assert_eq!((&done["jobs"], &done["files"]), (&9.into(), &1.into()));
    assert_eq!(stock.value("PRAGMA freelist_count"), "0");
    // Only what is free already is known beforehand.
    assert!(told["pages"].as_i64().is_some_and(|free| Some(free) <= done["pages"].as_i64()), "{told} {done}");
    clean(&stock);
}

#[test]
fn what_is_unfinished_stays_with_all_that_it_refers_to() {
    let stock = Stock::new();
    let script = "me=$$; ares-submit --label old -- true; ares-submit -- true; ares-submit --after 2 --not-before +1h -- true
        ares-submit -w synthetic -- one; ares-submit -w synthetic --continue 4 -- two
        ares-submit -w synthetic --continue 5 --not-before +1h -- three
        ares-submit -- sh -c 'ares-submit -q --not-before +1h -- true'
        ares-submit --timeout 50ms --grace 50ms -- sh -c 'ares-submit -q -- true; sleep 9'
        ares-run --drain -q; ares-submit -- true; ares-claim --owner $me --job $(ares-list --sort -id --limit 1 --format '%(job)')";
    bash(&stock, script);
    let all = stock.ok("ares-list", &["--format", "%(job) %(state)"]);
    let uncertain = stock.ok("ares-list", &["--state", "uncertain", "--format", "%(job)"]);
    assert_eq!(uncertain, "8", "{all}");
    gc(&stock, &["--keep", "0"]);
    let left = stock.ok("ares-list", &["--format", "%(job) %(state)"]);
    // Only the first: it is waited for by none, began nothing, and belongs to no conversation that goes on.
    assert_eq!(left, all.split_once('\n').unwrap().1);
    clean(&stock);
    // Nothing of it is missing to those who go on.
    stock.bash(
        "ares-reconcile 8 --decide abandon --because x; ares-run --drain -q >/dev/null; ares-show 5 --output result",
        0,
    );
}

#[test]
fn a_conversation_goes_as_a_whole() {
    let stock = Stock::new();
    stock.bash(
        "ares-submit -w synthetic -- one; ares-submit -w synthetic --continue 1 -- two; ares-submit -- true
         ares-run --drain -q; ares-submit -- true; ares-run -q",
        0,
    );
    gc(&stock, &["--keep", "3"]);
    assert_eq!(jobs(&stock), "1 2 3 4", "its last turn is among the newest");
    gc(&stock, &["--keep", "2"]);
    assert_eq!(jobs(&stock), "3 4");
    assert_eq!(stock.value("SELECT count(*) FROM runs"), "0");
    nothing_about_gone_jobs(&stock);
    clean(&stock);
}

#[test]
fn a_kept_job_still_says_what_it_waited_for() {
    let stock = Stock::new();
    stock.bash("ares-submit -- true; ares-submit -- false; ares-submit --after 1 --after 2 --after-failed run -- true; ares-run --drain -q; true", 0);
    let after = || stock.ok("ares-show", &["3", "--format", "%(after)"]);
    let before = after();
    assert!(before.contains("failed"), "{before}");
    gc(&stock, &["--keep", "1"]);
    assert_eq!((jobs(&stock).as_str(), after()), ("3", before));
    clean(&stock);
    stock.bash("ares-submit -- true; ares-run -q", 0);
    gc(&stock, &["--keep", "1"]);
    gc(&stock, &["--keep", "1"]);
    assert_eq!(jobs(&stock), "4");
    assert_eq!(stock.value("SELECT count(*) FROM findings WHERE id < (SELECT max(id) FROM findings)"), "0");
}

#[test]
fn numbers_go_on_upwards_after_everything_went() {
    let stock = finished(3);
    stock.bash(
        "ares-submit --timeout 50ms --grace 50ms -- sleep 9; ares-run -q; ares-reconcile 4 --decide ok --because x
         ares-stop $(ares-submit -- true); h=$(ares-submit -- true; ares-claim --owner $$); true",
        0,
    );
    let tables = ["jobs", "sessions", "operations", "events", "permits", "findings", "resolutions", "stops"];
    let highest = || tables.map(|table| stock.value(&format!("SELECT coalesce(max(id), 0) FROM {table}")));
    bash(&stock, "ares-reconcile -q; ares-reconcile 6 --decide ok --because y; true");
    let before = highest();
    for _ in 0..3 {
        gc(&stock, &["--keep", "0", "--older-than", "0"]);
    }
    assert_eq!(jobs(&stock), "6");
    let after = highest();
    assert!(
        before.iter().zip(&after).all(|(a, b)| a.parse::<i64>().unwrap() <= b.parse().unwrap()),
        "{before:?} {after:?}"
    );
    // The last job goes on with an earlier session than the last one.
    let other = Stock::new();
    other.bash("ares-submit -w synthetic -- one; ares-submit -- true; ares-submit -w synthetic --continue 1 -- two; ares-submit --after 2 -- true; ares-run --drain -q; ares-gc --keep 0", 0);
    assert_eq!(jobs(&other), "4");
    let other = Stock::new();
    other.bash("ares-submit -- true; ares-submit -w synthetic -- one; ares-submit -- true; ares-submit -w synthetic --continue 2 -- two; ares-run --drain -q; ares-gc --keep 0", 0);
    assert_eq!(jobs(&other), "2 3 4");
    assert_eq!(stock.submit(&[], &["true"]), "7");
    clean(&stock);
}

#[test]
fn what_is_gone_is_told_as_gone() {
    let stock = finished(3);
    stock.bash("ares-submit --timeout 50ms --grace 50ms -- sleep 9; ares-run -q; ares-reconcile 4 --decide abandon --because 'it slept'", 0);
    stock.submit(&[], &["true"]);
    gc(&stock, &["--keep", "0"]);
    let day = stock.bash("date -u +%F", 0);
    let gone = |name: &str, args: &[&str]| {
        let ran = stock.fails(name, args, 14, "ARES_NOT_FOUND");
        assert!(ran.err.contains(&format!("is gone: removed by the ares-gc of {day}")), "{}", ran.err);
        assert!(ran.err.contains("ares-log --verb gc"), "{}", ran.err);
        ran.err
    };
    gone("ares-show", &["3"]);
    gone("ares-show", &["3.1", "--output", "stdout"]);
    gone("ares-wait", &["2"]);
    gone("ares-submit", &["--after", "1", "--", "true"]);
    gone("ares-submit", &["-w", "synthetic", "--continue", "1", "--", "x"]);
    let told = gone("ares-show", &["4.1"]);
    assert!(told.contains("4.1 was decided 'abandon' because: it slept"), "{told}");
    let ran = stock.fails("ares-show", &["99"], 14, "ARES_NOT_FOUND");
    assert!(ran.err.contains("no job 99"), "{}", ran.err);
    assert!(stock.ok("ares-log", &["--verb", "gc"]).contains("removed 4 jobs of 1 to 4"));
    assert_eq!(stock.ok("ares-log", &["--verb", "decide", "--format", "%(subject)"]), "4.1");
    assert_eq!(stock.ok("ares-log", &["--subject", "3"]), "");
    // What was decided on is kept, with the decision.
    let kept = "SELECT count(*) FROM resolutions r JOIN objects o ON o.digest = r.evidence";
    assert_eq!(stock.value(kept), "1");
    clean(&stock);
}

#[test]
fn a_key_and_an_operation_outlive_their_job() {
    let stock = Stock::new();
    let submit = |what: &str| stock.run("ares-submit", &["--key", "k", "--op-id", "o", "--", what]);
    assert_eq!(submit("true").out, "1\n");
    stock.bash("ares-submit -- true; ares-run --drain -q", 0);
    gc(&stock, &["--keep", "0"]);
    assert_eq!(jobs(&stock), "2");
    let again = submit("true");
    assert_eq!((again.status, again.out.as_str()), (0, "1\n"), "{}", again.err);
    let keyed = stock.run("ares-submit", &["--key", "k", "--", "true"]);
    assert_eq!((keyed.status, keyed.out.as_str()), (0, "1\n"), "{}", keyed.err);
    stock.fails("ares-submit", &["--key", "k", "--", "false"], 3, "ARES_KEY_CONFLICT");
    clean(&stock);
}

#[test]
fn a_line_of_a_batch_stays_while_one_of_its_jobs_does() {
    let stock = finished(4);
    let lines = || stock.ok("ares-log", &["--verb", "submit", "--format", "%(subject) %(detail)"]);
    gc(&stock, &["--keep", "2"]);
    gc(&stock, &["--keep", "2"]);
    assert_eq!(lines(), "1 and 3 more");
    stock.bash("ares-submit -- true; ares-run -q", 0);
    gc(&stock, &["--keep", "1"]);
    assert_eq!(lines(), "5");
}

#[test]
fn many_go_in_parts_with_a_line_each() {
    let stock = Stock::new();
    // Cancelled jobs are finished, and soon made.
    let script =
        "yes '{\"argv\":[\"true\"],\"label\":\"l\",\"prompt\":\"same\"}' | head -1203 | ares-submit --stdin >/dev/null
        ares-submit -- true >/dev/null; ares-stop --label l >/dev/null";
    stock.bash(script, 0);
    let size = || std::fs::metadata(stock.root().join("ares.db")).expect("a file").len();
    let log = || std::fs::metadata(stock.root().join("ares.db-wal")).map_or(0, |meta| meta.len());
    stock.db().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("it runs");
    let before = size();
    let done = gc(&stock, &["--keep", "3"]);
    assert_eq!((&done["jobs"], &done["objects"]), (&1200.into(), &0.into()), "the prompt is still used");
    let lines = stock.ok("ares-log", &["--verb", "gc", "--format", "%(detail)"]);
    assert_eq!(
        lines.lines().map(|line| line.split(';').next().unwrap()).collect::<Vec<_>>(),
        ["removed 500 jobs of 1 to 500", "removed 500 jobs of 501 to 1000", "removed 200 jobs of 1001 to 1200"]
    );
    assert!(done["pages"].as_i64().unwrap() > 100 && size() < before / 2, "{done} {before} {}", size());
    assert_eq!(log(), 0);
    assert_eq!(stock.value("PRAGMA freelist_count"), "0");
    nothing_about_gone_jobs(&stock);
    clean(&stock);
}

#[test]
fn a_backup_of_what_is_left_is_whole() {
    let stock = finished(5);
    stock.submit(&[], &["head", "-c", "30000", "/dev/zero"]);
    stock.ok("ares-run", &["--drain"]);
    gc(&stock, &["--keep", "2", "--export", "."]);
    stock.bash("ares-backup copy; ares-backup --restore copy again", 0);
    assert_eq!(stock.bash("export ARES_DIR=$PWD/again; ares-fsck --full --exported .; ares-list --format '%(job)'; ares-submit -- true; ares-run -q >/dev/null; ares-gc --keep 0 --quiet --format '%(jobs)'", 0), "5\n6\n7\n2");
    assert!(stock.bash("ares-show 3 --store again 2>&1 | head -1", 0).contains("is gone"));
}

#[test]
fn what_is_called_wrongly_is_refused_before_anything_goes() {
    let stock = finished(2);
    stock.fails("ares-gc", &["--keep", "-1"], 2, "ARES_USAGE");
    stock.fails("ares-gc", &["--keep", "0", "--export", "no/such/file"], 2, "ARES_BAD_INPUT");
    stock.fails("ares-gc", &["--dry-run", "--op-id", "x"], 2, "ARES_USAGE");
    stock.bash("echo mine >there", 0);
    stock.fails("ares-gc", &["--keep", "0", "--export", "there"], 2, "ARES_USAGE");
    assert_eq!((jobs(&stock).as_str(), stock.bash("cat there", 0).as_str()), ("1 2", "mine"));
}
