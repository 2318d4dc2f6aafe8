//! Removing beside everything else: what is being written is not taken for a leftover, nobody is kept waiting, and a store
//! that is tended does not grow.

use crate::stock::{Stock, bash};

#[test]
fn a_file_that_is_about_to_be_named_is_never_removed() {
    let stock = Stock::new();
    // The content lies in its file, and its transaction has not begun; then it has been written and is not committed.
    for point in ["store.began:sleep=1500", "store.before_commit:sleep=1500"] {
        let script = format!(
            "head -c 50000 /dev/urandom >big; touch -d '3 years ago' big
             (flock 8; ARES_FAULT={point} ares-submit --file big -- cat 8>&- & while ! [ -n \"$(find .ares/objects -type f)\" ]; do sleep 0.02; done
              find .ares/objects -type f -exec touch -d '3 years ago' {{}} +) 8>>.ares/locks/write.lock
             ares-gc --quiet; wait"
        );
        stock.bash(&script, 0);
        stock.bash("ares-run --drain -q; ares-fsck; for j in $(ares-list --format '%(job)'); do ares-show $j --output stdout; done | cmp - big", 0);
        stock.bash("ares-submit -- true; ares-run --drain -q; ares-gc --keep 0 --quiet; [ -z \"$(find .ares/objects -type f)\" ]", 0);
        stock.bash("ares-submit -- true; ares-run --drain -q; ares-gc --keep 0 --quiet", 0);
    }
    // Who holds it for long keeps the files, and is told of.
    let script = "echo x >x; (umask 077; mkdir -p .ares/objects/00; echo x >.ares/objects/00/.1.1.tmp)
        flock -s .ares/locks/objects.lock ares-gc --format '%(files)'; ls -A .ares/objects/00; ares-gc --quiet >/dev/null; ls -A .ares/objects/00";
    let ran = bash(&stock, script);
    assert_eq!(ran.out, "1\n.1.1.tmp\n", "{}", ran.err);
    assert!(ran.err.contains("1 files stay for now"), "{}", ran.err);
}

#[test]
fn a_removal_beside_submitters_claimers_and_runners_loses_nothing() {
    let stock = Stock::new();
    // Conversations, dependencies and large prompts are made and finished while three removals go round.
    let script = "head -c 20000 /dev/zero >big; : >stop-gc
        for g in 1 2 3; do (while [ -e stop-gc ]; do ares-gc --keep 5 --quiet >/dev/null 2>>gc.err || echo $? >>gc.bad; done) & done
        (while [ -e stop-gc ]; do ares-fsck >>fsck.out 2>&1 || :; ares-reconcile -q >/dev/null 2>>gc.err; done) &
        workers=
        for w in 1 2; do (for n in $(seq 12); do
            a=$(ares-submit -- echo $w.$n) || exit 9
            ares-submit --after $a -- true >/dev/null || [ $? = 14 ] || exit 9
            (cat big; echo $w.$n) | ares-submit --file - -- wc -c >>told || exit 9
            b=$(ares-submit -w synthetic -- hello) || exit 9
            ares-submit -w synthetic --continue $b -- again >/dev/null || [ $? = 14 ] || exit 9
            ares-wait -q --timeout 60 $a >/dev/null 2>&1; s=$?; [ $s = 0 ] || [ $s = 14 ] || exit 8
        done) & workers=\"$workers $!\"; done
        (while [ -e stop-gc ]; do ares-run --drain -q >/dev/null 2>>run.err || echo $? >>run.bad; sleep 0.02; done) & runner=$!
        for w in $workers; do wait $w || echo worker $?; done
        rm stop-gc; wait; ares-run --drain -q >/dev/null; cat gc.bad run.bad gc.err run.err fsck.out 2>/dev/null; sort -u told | wc -l";
    let ran = bash(&stock, script);
    assert_eq!(ran.out, "24\n", "{}", ran.err);
    stock.ok("ares-gc", &["--keep", "5"]);
    let states = stock.value("SELECT group_concat(DISTINCT state) FROM jobs");
    assert_eq!(states, "succeeded");
    let ran = stock.run("ares-fsck", &["--full"]);
    assert_eq!((ran.status, ran.out.as_str()), (0, ""), "{}", ran.err);
}

#[test]
fn what_came_to_refer_to_an_old_job_in_between_keeps_it() {
    if !cfg!(debug_assertions) {
        return crate::harness::skipped("a release build has no fault points");
    }
    let stock = Stock::new();
    // Looked for, and then waited for by others before its transaction begins.
    let script = "ares-submit -- echo same; ares-submit -w synthetic -- hello; ares-submit -- true; ares-submit -- true; ares-run --drain -q >/dev/null
        ARES_FAULT=gc.exported:sleep=1500 ares-gc --keep 0 --format '%(jobs)' >gone & sleep 0.7
        ares-submit --after 1 --not-before +1h -- true; ares-submit -w synthetic --continue 2 --not-before +1h -- more
        ares-submit -- echo same >/dev/null; ares-run -q >/dev/null; wait; cat gone
        ares-list --format '%(job)'; ares-show 7 --output stdout; ares-show 1 --output stdout; ares-fsck";
    assert_eq!(
        stock.bash(script, 0).lines().skip(4).collect::<Vec<_>>(),
        ["5", "6", "1", "1", "2", "4", "5", "6", "7", "same", "same"]
    );
}

#[test]
fn a_store_that_is_tended_does_not_grow() {
    let stock = Stock::new();
    let size = || {
        stock.bash("cat .ares/ares.db .ares/ares.db-wal | wc -c; find .ares/objects .ares/attempts .ares/locks -type f | wc -l", 0)
    };
    let round = "for n in $(seq 200); do echo '{\"argv\":[\"echo\",\"'$RANDOM.$n'\"]}'; done | ares-submit --stdin >/dev/null
        ares-run --drain -q >/dev/null; ares-gc --keep 20 --export seg --quiet >/dev/null; ares-gc --keep 20 --quiet >/dev/null";
    stock.bash("mkdir seg", 0);
    let mut sizes = Vec::new();
    for _ in 0..5 {
        stock.bash(round, 0);
        let (bytes, files) =
            size().split_once('\n').map(|(a, b)| (a.parse::<u64>().unwrap(), b.trim().to_owned())).unwrap();
        sizes.push((bytes, files));
    }
    assert_eq!(stock.ok("ares-list", &["--count"]), "20");
    let (first, last) = (&sizes[0], &sizes[4]);
    assert!(last.0 <= first.0 + 3 * 4096 && last.1 == first.1, "{sizes:?}");
    assert_eq!(stock.ok("ares-fsck", &["--full", "--exported", "seg"]), "");
}
