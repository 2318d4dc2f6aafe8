//! Failures of what lies below: locks, room, file systems.

use crate::stock::{Stock, bash, on_tmpfs};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every file of a store with its content, except those that hold no truth: SQLite's shared memory, a log without
/// anything in it, locks.
fn files(stock: &Stock) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut open = vec![stock.root()];
    let mut files = BTreeMap::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        } else if !path.ends_with("ares.db-shm") && !path.to_string_lossy().contains("/locks/") {
            let content = std::fs::read(&path).expect("a file");
            if !(content.is_empty() && path.ends_with("ares.db-wal")) {
                files.insert(path, content);
            }
        }
    }
    files
}

/// Commands that must refuse the store, and change nothing in it.
fn refused(stock: &Stock, status: i32, code: &str) {
    let before = files(stock);
    let root = stock.root().to_string_lossy().into_owned();
    for command in [
        &["ares-list"][..],
        &["ares-init"],
        &["ares-init", "--adopt"],
        &["ares-init", "--upgrade"],
        &["ares-submit", "--", "true"],
        &["ares-run", "--drain"],
        &["ares-reconcile"],
        &["ares-gc"],
    ] {
        let args: Vec<&str> = match command[0] {
            "ares-init" => [&command[1..], &[root.as_str()]].concat(),
            _ => [&["--store", root.as_str()], &command[1..]].concat(),
        };
        let ran = stock.run(command[0], &args);
        assert!(ran.status == status && ran.err.contains(code), "{command:?}: {} {}", ran.status, ran.err);
        assert!(files(stock) == before, "{command:?} changed a file of a store that it refuses");
    }
}

#[test]
fn case_17_a_database_that_a_loss_of_power_emptied_is_never_taken_for_a_new_one() {
    type Damage = fn(&Path, &[u8]);
    let damages: [(&str, Damage); 4] = [
        ("empty", |file, _| std::fs::write(file, "").expect("written")),
        ("gone", |file, _| std::fs::remove_file(file).expect("removed")),
        ("zeros", |file, bytes| std::fs::write(file, vec![0; bytes.len()]).expect("written")),
        ("cut in its first page", |file, bytes| std::fs::write(file, &bytes[..600]).expect("written")),
    ];
    for (what, damage) in damages {
        let stock = Stock::new();
        stock.submit(&[], &["true"]);
        stock.ok("ares-run", &["--quiet"]);
        let db = stock.root().join("ares.db");
        let whole = std::fs::read(&db).expect("a database");
        let log = std::fs::read(stock.root().join("ares.db-wal")).expect("a log");
        assert!(!log.is_empty(), "the log holds what was not copied yet");
        damage(&db, &whole);
        refused(&stock, 6, "ARES_STORE_DAMAGED");
        // What was lost is put back, and everything is there: nobody has touched the log.
        std::fs::write(&db, &whole).expect("written");
        assert_eq!(stock.ok("ares-list", &["--format", "%(job) %(state)"]), "1 succeeded", "{what}");
    }
}

#[test]
fn case_17_a_record_that_lost_its_content_proves_nothing() {
    if !cfg!(debug_assertions) {
        return crate::harness::skipped("a release build has no fault points");
    }
    for (name, content) in [("exit", &[0_u8; 200][..]), ("exit", b""), ("mark", &[0; 90]), ("mark", b"")] {
        let stock = Stock::new();
        stock.submit(&["--max-tries", "3"], &["sh", "-c", "echo ran >>effects"]);
        bash(&stock, "ARES_FAULT=run.ended ares-run");
        let folder = stock.root().join("attempts/1.1");
        if name == "mark" {
            std::fs::remove_file(folder.join("exit")).expect("an end");
        }
        std::fs::write(folder.join(name), content).expect("written");
        crate::run::eventually("its keeper is gone, and it is uncertain", || {
            stock.run("ares-run", &["--drain"]);
            (stock.state("1") == "uncertain").then_some(())
        });
        assert_eq!(stock.bash("cat effects", 0), "ran", "{name}");
    }
}

#[test]
fn case_17_what_stands_in_the_place_of_an_attempts_file_holds_up_nothing_else() {
    if !cfg!(debug_assertions) {
        return crate::harness::skipped("a release build has no fault points");
    }
    let turned = "rm exit; sed -i 's/\"state\":\"s/\"state\":\"r/' mark";
    let kinds = ["mkdir", "mkfifo", "ln -s /etc/passwd"];
    let marks = kinds.map(|make| format!("rm exit mark; {make} mark"));
    let ends = kinds.map(|make| format!("rm exit; {make} exit"));
    let outputs = kinds.map(|make| format!("rm stdout; {make} stdout"));
    for wrong in marks.iter().chain(&ends).chain(&outputs).map(String::as_str).chain([turned]) {
        let stock = Stock::new();
        stock.submit(&[], &["sh", "-c", "echo ran >>effects; echo said"]);
        let next = stock.submit(&[], &["true"]);
        bash(&stock, "ARES_FAULT=run.ended ares-run");
        stock.bash(&format!("cd .ares/attempts/1.1 && {wrong}"), 0);
        let told = stock.run("ares-fsck", &["--format", "%(rule) %(subject)"]).out;
        let file = ["mark", "exit", "stdout"].into_iter().find(|name| wrong.ends_with(name)).expect("a file");
        assert!(told.contains(&format!("attempt-file attempts/1.1/{file}")), "{wrong}: {told}");
        crate::run::eventually("its keeper is gone, and the others go on", || {
            stock.run("ares-run", &["--drain"]);
            (stock.state(&next) == "succeeded").then_some(())
        });
        let state = if wrong.contains("stdout") { "succeeded" } else { "uncertain" };
        assert_eq!((stock.state("1").as_str(), stock.bash("cat effects", 0).as_str()), (state, "ran"), "{wrong}");
    }
}

#[test]
fn case_o7_another_version_is_refused_and_nothing_of_it_is_wiped() {
    let stock = Stock::new();
    stock.submit(&[], &["sh", "-c", "head -c 100000 /dev/zero"]);
    stock.ok("ares-run", &["--quiet"]);
    stock.submit(&[], &["true"]);
    let version = stock.value("PRAGMA user_version");
    for other in ["2", "99"] {
        stock.db().execute_batch(&format!("PRAGMA user_version = {other}")).expect("changed");
        refused(&stock, 6, "ARES_SCHEMA_NEW");
    }
    stock.db().execute_batch(&format!("PRAGMA user_version = {version}")).expect("changed");
    assert_eq!(stock.ok("ares-list", &["--all", "--format", "%(job) %(state)"]), "1 succeeded\n2 queued");
    assert_eq!(stock.bash("ares-show 1 --output stdout | wc -c", 0), "100000");
    // What a later version of the same schema adds beside it is no hindrance.
    stock
        .db()
        .execute_batch("CREATE TABLE later (x INTEGER) STRICT; ALTER TABLE jobs ADD COLUMN later TEXT")
        .expect("added");
    stock.ok("ares-run", &["--quiet"]);
    assert_eq!(stock.state("2"), "succeeded");
}

#[test]
fn case_47_a_foreign_reader_closing_the_database_loses_no_commit_of_ours() {
    let stock = Stock::new();
    // Copies, sums and a vacuum beside eight writers. What others do to the files cannot be helped; that we do nothing
    // of the kind in the process that writes is what keeps every commit.
    let script = "for w in 1 2 3 4 5 6 7 8; do (for n in $(seq 20); do ares-submit -- true; done >ids.$w) & done
        for n in $(seq 20); do cp .ares/ares.db copy; cat .ares/ares.db* | cksum; done >/dev/null &
        wait; cat ids.* | sort -n | uniq | wc -l; ares-list --count";
    let vacuum = std::thread::scope(|scope| {
        let writers = scope.spawn(|| stock.bash(script, 0));
        while !writers.is_finished() {
            // Busy is an answer; damage would not be.
            let db = stock.db();
            let done = db.execute_batch("VACUUM");
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(done.as_ref().map_or_else(|e| e.to_string().contains("locked"), |()| true), "{done:?}");
        }
        writers.join().expect("the writers")
    });
    assert_eq!(vacuum, "160\n160");
    assert_eq!(stock.value("PRAGMA integrity_check"), "ok");
}

#[test]
fn case_49_a_lock_that_is_not_free_in_time_is_busy_and_names_its_holder() {
    let stock = Stock::new();
    let script =
        "(flock -x 8; : >held; exec sleep 60) 8>>.ares/locks/write.lock & while ! [ -e held ]; do sleep 0.02; done
        ares-submit --wait-lock 50ms -- true; echo $?; ares-submit --wait-lock 0 -- true 2>/dev/null; echo $?
        ares-list >/dev/null; echo $?; kill $!; wait $! 2>/dev/null; ares-submit -- true";
    let ran = bash(&stock, script);
    assert_eq!(ran.out, "4\n4\n0\n1\n", "{}", ran.err);
    assert!(ran.err.contains("ARES_STORE_BUSY") && ran.err.contains("is held by process"), "{}", ran.err);
    // A writer that is no command of ours keeps SQLite's own lock: that is busy too, not a bug.
    let mut db = stock.db();
    let tx = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).expect("a writer");
    stock.fails("ares-submit", &["--", "true"], 4, "ARES_STORE_BUSY");
    stock.ok("ares-list", &[]);
    drop(tx);
    stock.submit(&[], &["true"]);
}

#[test]
fn case_49_a_foreign_writer_that_is_quick_is_waited_for() {
    let stock = Stock::new();
    // Whoever finds the lock held asks again until it is free; one that asks once only is refused.
    let mut db = stock.db();
    for command in [&["ares-submit", "--", "true"][..], &["ares-run"], &["ares-reconcile"]] {
        let tx = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).expect("a writer");
        let ran = std::thread::scope(|scope| {
            let ran = scope.spawn(|| stock.run(command[0], &command[1..]));
            // Long enough that it has come to the lock; where it has not, this proves nothing and fails nothing.
            std::thread::sleep(std::time::Duration::from_millis(700));
            drop(tx);
            ran.join().expect("an answer")
        });
        assert_eq!(ran.status, 0, "{command:?}: {}", ran.err);
    }
    assert_eq!(stock.state("1"), "succeeded");
}

#[test]
fn case_51_without_room_no_worker_is_started() {
    let stock = Stock::new();
    stock.submit(&[], &["sh", "-c", "echo ran >>effects"]);
    // The log cannot grow: neither a claim nor a dispatch can be written, so nothing may run.
    let script = "for i in 1 2 3; do ares-submit -- true >/dev/null; done
        (ulimit -f 8; trap '' XFSZ; ares-run --drain); echo $?; ls effects 2>/dev/null; ares-list --format '%(state) %(tries)' | sort -u
        ares-run --drain --quiet >/dev/null; echo $?; cat effects";
    let ran = bash(&stock, script);
    assert_eq!(ran.out, "5\nqueued 0\n0\nran\n", "{}", ran.err);
}

#[test]
fn case_51_a_disk_that_fills_up_meanwhile_costs_no_true_end() {
    let stock = Stock::new();
    // Once someone else fills it, once the job's own output.
    let script = "export ARES_DIR=$PWD/m/s; ares-init >/dev/null
        fill() { dd if=/dev/zero of=m/fill$1 bs=1k; dd if=/dev/zero of=m/rest$1 bs=1; } 2>/dev/null
        ares-submit -- sh -c 'echo begin; : >\"$0\"; while [ -e \"$0\" ]; do sleep 0.02; done; exit 7' $PWD/wait >/dev/null
        ares-run 2>err & while ! [ -e wait ]; do sleep 0.02; done; fill 1; rm wait; wait $!; echo $?; cat err
        ares-reconcile --quiet; echo $?; rm m/fill* m/rest*
        ares-reconcile --format '%(attempt) %(state)'; ares-show 1.1 --format '%(code) %(seen)' | tr ',' '\n' | grep exit
        ares-submit -- sh -c 'yes 2>/dev/null; exit 0' >/dev/null; ares-run 2>err; echo $?; cat err
        truncate -s 1k m/s/attempts/2.1/stdout
        ares-reconcile --format '%(attempt) %(state)'; ares-show 2.1 --format '%(outcome)'; ares-show 2 --output stdout | wc -c";
    let Some(out) = on_tmpfs(&stock, "1200k", script) else { return };
    let lines: Vec<&str> = out.lines().filter(|line| !line.starts_with("hint:")).collect();
    let unrecorded = |line: &str, attempt: &str| {
        line.starts_with(&format!("ares-run: ARES_EFFECT_RECEIPT_FAILED: attempt {attempt} ran and"))
    };
    assert!(unrecorded(lines[1], "1.1") && unrecorded(lines[7], "2.1"), "{out}");
    assert_eq!(
        (lines[0], &lines[2..7]),
        ("9", &["5", "1.1 failed", "ARES_EXIT_STATUS {\"cause\":\"exited\"", "\"exit\":7", "9"][..])
    );
    assert_eq!(lines[8..], ["2.1 succeeded", "ok", "1024"]);
}

#[test]
fn case_52_a_network_file_system_is_known_by_its_number() {
    // A mount of one is rarely to be had, so the decision is tested where it is made; here, that it is asked at all.
    let stock = Stock::new();
    let root = stock.root();
    assert_eq!(ares::host::dir::file_system(&root).expect("an answer"), None, "tests need a local disk");
    if !crate::harness::has("strace") {
        return;
    }
    for command in ["ares-list", "ares-init", "ares-submit -- true"] {
        let ran = bash(&stock, &format!("strace -f -qq -e trace=statfs,openat -o trace {command} && cat trace"));
        if ran.err.contains("strace:") {
            return crate::harness::skipped("strace may not trace here");
        }
        let asked = ran.out.find("statfs(").unwrap_or_else(|| panic!("{command}: never asked\n{}", ran.err));
        let opened = ran.out.find("ares.db\"").expect("it is opened");
        assert!(asked < opened, "{command}: it is opened before it is asked where it lies");
    }
    // The kernel's answer is made to say NFS: the eight bytes at its beginning are the number.
    let strace = "strace -f -qq -o trace -e trace=statfs -e inject=statfs:poke_exit=@arg2=6969000000000000";
    if !bash(&stock, &format!("{strace} true")).err.is_empty() {
        return crate::harness::skipped("this strace changes no answers");
    }
    for command in ["ares-list", "ares-submit -- true", "ares-init other"] {
        let ran = bash(&stock, &format!("{strace} {command}"));
        assert_eq!(ran.status, 5, "{command}: {}", ran.err);
        assert!(ran.err.contains("ARES_STORE_NETWORK") && ran.err.contains("nfs"), "{command}: {}", ran.err);
    }
    assert_eq!(
        bash(&stock, &format!("{strace} ares-init --unsafe-fs other && {strace} ares-list --store other")).status,
        0
    );
}
