//! A removal that is killed at each of its steps: the store is whole, nothing that had to stay is missing, and the next
//! call finishes what is left, files too.

use crate::stock::Stock;

/// Finished jobs with large output, one that waits, and content that nothing names.
fn store() -> Stock {
    let stock = Stock::new();
    let script = "for n in $(seq 6); do ares-submit -q -- sh -c \"head -c 30000 /dev/zero; echo $n\" >/dev/null; done
        ares-run --drain -q; ares-submit --after 6 --not-before +1h -- true
        yes '{\"argv\":[\"true\"],\"label\":\"l\"}' | head -600 | ares-submit --stdin >/dev/null; ares-stop --label l >/dev/null
        mkdir seg .ares/objects/00; chmod 700 .ares/objects/00; (umask 077; echo x >.ares/objects/00/.1.1.tmp)";
    stock.bash(script, 0);
    stock
}

const POINTS: &[&str] = &[
    "store.before_commit:1",
    "store.after_commit:1",
    "gc.part",
    "gc.exported",
    "store.began:2",
    "store.before_commit:2",
    "gc.committed",
    "store.began:3",
    "store.after_commit:3",
    "gc.cleaned",
    "store.after_commit:4",
    "gc.vacuumed",
];

#[test]
fn killed_anywhere_it_leaves_a_whole_store_and_the_next_one_goes_on() {
    if !cfg!(debug_assertions) {
        return crate::harness::skipped("a release build has no fault points");
    }
    let args = ["--keep", "0", "--export", "seg"];
    for point in POINTS {
        let stock = store();
        let killed = stock.command(crate::stock::program("ares-gc")).args(args).env("ARES_FAULT", point).output();
        assert!(!killed.expect("it starts").status.success(), "{point}: it was not killed");
        let ran = stock.run("ares-fsck", &["--full"]);
        assert_eq!((ran.status, ran.out.as_str()), (0, ""), "{point}: {}", ran.err);
        assert_eq!(stock.bash("ares-show 6 --output stdout | wc -c", 0), "30002", "{point}");
        stock.ok("ares-gc", &args);
        // The job that is waited for, the one that waits, the last one.
        assert_eq!(stock.ok("ares-list", &["--format", "%(job)"]), "6\n7\n607", "{point}");
        assert_eq!(stock.bash("find .ares/objects -type f | wc -l; ls -A .ares/attempts", 0), "1", "{point}");
        assert_eq!(stock.value("PRAGMA freelist_count"), "0", "{point}");
        let ran = stock.run("ares-fsck", &["--full", "--exported", "seg"]);
        assert_eq!((ran.status, ran.out.as_str()), (0, ""), "{point}: {}", ran.err);
        assert_eq!(stock.value("SELECT min(seq) FROM receipts"), "11", "{point}");
    }
}
