//! Removing beside everything else: what is being written is not taken for a leftover, nobody is kept waiting, and a store
//! that is tended does not grow.

use crate::stock::{Stock, bash};

#[test]
fn a_file_that_is_about_to_be_named_is_never_removed() {
    let stock = Stock::new();
    // The content lies in its file and nothing asks for the write lock yet; then it has been written and is not committed.
    for point in ["submit.prepared", "store.began", "store.before_commit"].iter().filter(|_| cfg!(debug_assertions)) {
        let script = format!(
            "head -c 50000 /dev/urandom >big; ARES_FAULT={point}:sleep=1500 ares-submit --file big -- cat &
             while ! [ -n \"$(find .ares/objects -type f)\" ]; do sleep 0.02; done
             find .ares/objects -type f -exec touch -d '3 years ago' {{}} +; ares-gc --quiet >/dev/null; wait
             ares-run --drain -q >/dev/null; ares-fsck || exit 9
             ares-show $(ares-list --limit 1 --sort -id --format '%(job)') --output stdout | cmp - big || exit 9
             ares-submit -- true; ares-run --drain -q; ares-gc --keep 0 --quiet; [ -z \"$(find .ares/objects -type f)\" ]"
        );
        stock.bash(&script, 0);
    }
    // A runner has made a file of what its worker printed, and has not recorded the end.
    if cfg!(debug_assertions) {
        let script = "ares-submit -q -- head -c 50000 /dev/urandom >/dev/null; ARES_FAULT=run.ended:sleep=1500 ares-run -q >/dev/null &
            while ! [ -n \"$(find .ares/objects -type f)\" ]; do sleep 0.02; done; ares-gc --quiet --format '%(files)'; wait
            find .ares/objects -type f | wc -l; ares-fsck; ares-submit -- true >/dev/null; ares-run -q >/dev/null; ares-gc --keep 0 -q >/dev/null";
        assert_eq!(stock.bash(script, 0), "1\n1");
    }
    // Who holds it for long keeps the files, and is told of.
    let script = "echo x >x; (umask 077; mkdir -p .ares/objects/00; echo x >.ares/objects/00/.1.1.tmp)
        umask 077; flock -s .ares/locks/objects.lock ares-gc --format '%(files)'; ls -A .ares/objects/00; ares-gc --quiet >/dev/null; ls -A .ares/objects/00";
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

#[test]
fn who_reads_files_by_what_the_database_said_finds_them_or_hears_that_they_are_gone() {
    if !cfg!(debug_assertions) {
        return crate::harness::skipped("a release build has no fault points");
    }
    let removed = |reader: &str, fault: &str| {
        let stock = Stock::new();
        let script = format!(
            "for n in 1 2; do ares-submit -q -- sh -c \"head -c 30000 /dev/zero; echo $n\" >/dev/null; done; ares-run --drain -q >/dev/null
             ARES_FAULT={fault}:sleep=1500 {reader} >told 2>&1 & sleep 0.7
             ares-gc --keep 1 --format '%(jobs) %(files)' 2>err; grep -v write-ahead err; wait $!; echo $?; cat told
             ares-gc >/dev/null; find .ares/objects -type f | wc -l"
        );
        stock.bash(&script, 0).replace(&*stock.path().canonicalize().unwrap().to_string_lossy(), "")
    };
    let kept = "1 1\n1 files stay for now: content is being written\n0\n";
    assert_eq!(removed("ares-backup copy", "backup.copied"), format!("{kept}/copy\n1"));
    assert_eq!(removed("ares-fsck", "check.objects"), format!("{kept}1"));
    let shown = removed("ares-show 1 --output stdout", "object.named");
    assert!(shown.starts_with("1 1\n14\n") && shown.contains("ARES_NOT_FOUND"), "{shown}");
}

#[test]
fn who_waits_for_many_is_told_of_one_that_ended_and_is_gone() {
    let stock = Stock::new();
    let script = "ares-submit -q -- true; ares-submit -q -- sh -c 'while ! [ -e go ]; do sleep 0.05; done'; ares-run -q
        ares-wait 1 2 --format '%(job) %(state)' >told & ares-run -q & while ! grep -q 1 told; do sleep 0.05; done
        ares-gc --keep 0 --format '%(jobs)'; : >go; wait; cat told";
    let out = stock.bash(script, 0);
    assert!(out.ends_with("1\n2.1\tok\tsucceeded\t\t\n1 succeeded\n2 succeeded"), "{out}");
}
