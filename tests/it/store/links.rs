//! The folders of a store swapped for links, and lock files that go while they are held: nothing is followed, and
//! nothing is taken for a proof that is none.

use crate::run::{Shop, eventually, send, text};
use crate::stock::{Stock, bash};
use rustix::process::Signal;

#[test]
fn a_folder_that_was_swapped_for_a_link_is_refused() {
    for folder in ["locks", "attempts", "objects", "tmp"] {
        let stock = Stock::new();
        stock.bash("seq 9000 >big", 0);
        stock.submit(&["--file", "big"], &["cat"]);
        let script = format!(
            "mv .ares/{folder} away; mkdir -m 700 other; ln -s ../other .ares/{folder}; mkdir other/1.9
            ares-submit --quiet --file big -- wc >/dev/null; echo $?; ares-run --quiet >/dev/null; echo $?
            ares-reconcile --quiet; echo $?; ares-fsck --quiet --format '%(rule) %(subject)'; echo $?; ls other"
        );
        let ran = bash(&stock, &script);
        let lines: Vec<&str> = ran.out.lines().collect();
        // What does not need the folder does not look at it.
        let wanted = match folder {
            "locks" => ["5", "5", "5"],
            "attempts" => ["0", "5", "5"],
            "objects" => ["5", "5", "0"],
            _ => ["0", "0", "5"],
        };
        assert_eq!(lines[..3], wanted, "{folder}: {} {}", ran.out, ran.err);
        assert!(lines.contains(&format!("folder {folder}").as_str()), "{folder}: {}", ran.out);
        assert_eq!(lines.last(), Some(&"1.9"), "nothing was made or removed behind the link: {folder}: {}", ran.out);
        assert!(ran.err.contains("no link is followed inside of a store"), "{folder}: {}", ran.err);
        stock.bash(&format!("rm .ares/{folder}; mv away .ares/{folder}; ares-run --drain --quiet >/dev/null"), 0);
    }
}

#[test]
fn a_directory_that_is_gone_proves_nothing() {
    let shop = Shop::new();
    let job = shop.script(&["--max-tries", "9"], "echo $$ > pid; echo run >> runs; exec sleep 60");
    let run = shop.start(&[], "ares-run", &[]);
    let (worker, keeper) = (shop.pid("pid"), shop.keeper());
    run.kill();
    std::fs::remove_dir_all(shop.root().join(format!("attempts/{job}.1"))).unwrap();
    for pid in [keeper, worker] {
        send(pid, Signal::KILL);
    }
    eventually("nothing of it is left", || shop.alive().is_empty().then_some(()));
    assert_eq!(shop.run("ares-reconcile", &[]).status, 10);
    let attempt = shop.latest(&job);
    assert_eq!((shop.state(&job).as_str(), text(&attempt["outcome"]).as_str()), ("uncertain", "ambiguous"));
    assert!(text(&attempt["detail"]).contains("its directory is gone"), "{attempt}");
}

/// Two may hold the lock then: it gives the order, and the transactions still exclude each other.
#[test]
fn a_lock_file_that_was_removed_costs_no_commit() {
    let stock = Stock::new();
    let script = "ares-submit -- true >/dev/null
        ARES_FAULT=store.began:sleep=600 ares-submit -- true >/dev/null & sleep 0.2
        ares-submit -- true >/dev/null & sleep 0.1; rm .ares/locks/write.lock
        for i in 1 2 3 4 5; do ares-submit -- true >/dev/null & done; wait; ares-list --count; ares-fsck && echo fine";
    assert_eq!(stock.bash(script, 0), "8\nfine");
}
