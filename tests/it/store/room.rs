//! No room, and no right to write: status 5, nothing applied, and it works again afterwards.

use crate::harness::skipped;
use crate::stock::{Stock, bash, on_tmpfs, root};

#[test]
fn a_full_disk_applies_nothing_and_heals() {
    let stock = Stock::new();
    let script = "export ARES_DIR=$PWD/m/s; ares-init >/dev/null; seq 9000 >text
        ares-submit -- true >/dev/null; ares-submit -- true >/dev/null; H=$(ares-claim --owner $$)
        before=$(ares-list | wc -l); fail() { echo \"$@\"; exit 1; }
        dd if=/dev/zero of=m/filler bs=1k 2>/dev/null
        full() { \"$@\" >out 2>err; s=$?; [ $s = 5 ] && grep -q ARES_STORE_FULL err || fail \"$s: $* $(cat err)\"; }
        for i in 1 2 3 4 5 6 7 8; do ares-submit --file text -- cat >out 2>err; s=$?; [ $s = 0 ] || break; done
        [ $s = 5 ] || fail \"$s $(cat err)\"
        for i in $(seq 200); do ares-submit -- true >out 2>err; s=$?; [ $s = 0 ] || break; before=$((before+1)); done
        [ $s = 5 ] || fail \"$s $(cat err)\"; cat err >&2; grep -q ARES_STORE_FULL err || fail \"$(cat err)\"
        full ares-submit -- true; full ares-claim --owner $$; full ares-settle $H ok; full ares-stop 2; full ares-run
        [ $(ares-list | wc -l) = $before ] || fail 'something was applied'
        ares-list --format '%(job) %(state)' | head -2 | tr '\\n' ' '
        rm m/filler; ares-settle $H ok || fail settle; ares-submit -- true >/dev/null || fail submit
        ares-run --drain --quiet >/dev/null || fail run; ares-list --format '%(state)' | sort | uniq -c | tr -s ' '";
    let Some(out) = on_tmpfs(&stock, "2m", script) else { return };
    assert!(out.starts_with("1 running 2 queued ") && out.trim_end().ends_with("succeeded"), "{out}");
    assert_eq!(out.lines().count(), 1, "{out}");
}

#[test]
fn gc_says_why_the_log_stays() {
    let stock = Stock::new();
    let script = "export ARES_DIR=$PWD/m/s; ares-init >/dev/null
        for i in 1 2 3 4 5 6 7 8; do ares-submit -- true >/dev/null; done
        dd if=/dev/zero of=m/filler bs=1k 2>/dev/null; ares-gc >/dev/null 2>err; echo $?; cat err
        rm m/filler; ares-gc >/dev/null 2>err; echo $?; cat err";
    let Some(out) = on_tmpfs(&stock, "1m", script) else { return };
    assert!(out.starts_with("0\n") && out.contains("the write-ahead log stays for now: ARES_STORE_FULL"), "{out}");
    assert!(!out.contains("someone reads") && out.ends_with("\n0\n"), "{out}");
}

#[test]
fn without_a_mount_a_bound_on_files_does_the_same() {
    let stock = Stock::new();
    // The bound is below what the log already has, so that every write of it fails.
    let script = "for i in 1 2 3 4; do ares-submit -- true >/dev/null; done
        (ulimit -f 8; trap '' XFSZ; ares-submit -- true); echo $?; ares-list | wc -l; ares-submit -- true";
    let ran = bash(&stock, script);
    let out: Vec<&str> = ran.out.lines().collect();
    assert_eq!(out, ["5", "4", "5"], "{}", ran.err);
}

#[test]
fn a_store_that_cannot_be_written_says_so() {
    let stock = Stock::new();
    let script = "export ARES_DIR=$PWD/m/s; ares-init >/dev/null; ares-submit -- true >/dev/null
        mount -o remount,ro m || exit 77
        ares-submit -- true 2>err; echo $?; ares-run 2>>err; echo $?; ares-stop 1 2>>err; echo $?
        ares-claim --owner $$ 2>>err; echo $?; grep -c ARES_INTERNAL err
        mount -o remount,rw m; ares-submit -- true; ares-run --drain --quiet >/dev/null; echo $?";
    let Some(out) = on_tmpfs(&stock, "4m", script) else { return };
    assert_eq!(out.lines().collect::<Vec<_>>(), ["5", "5", "5", "5", "0", "2", "0"]);
}

#[test]
fn a_store_whose_files_may_not_be_written_says_so() {
    if !root() {
        return skipped("only root can become someone else");
    }
    let stock = Stock::new();
    let programs = crate::harness::bin_dir();
    // Our programs may lie where nobody else may go.
    let script = format!(
        "cp '{}'/ares-* . ; rm -r .ares; mkdir -m 700 .ares; chmod 755 . ares-*; chown 65534 .ares
        nobody() {{ setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"; }}
        nobody ./ares-init >/dev/null; nobody ./ares-submit -- true; chmod 0400 .ares/ares.db .ares/ares.db-*
        nobody ./ares-submit -- true 2>err; echo $?; chmod 0600 .ares/ares.db*; chmod 0500 .ares/locks .ares
        nobody ./ares-list | wc -l; chmod 0400 .ares/locks/write.lock
        nobody ./ares-submit -- true 2>>err; echo $?; cat err",
        programs.display()
    );
    let ran = bash(&stock, &script);
    let out: Vec<&str> = ran.out.lines().collect();
    assert_eq!(&out[..4], ["1", "5", "1", "5"], "{}{}", ran.out, ran.err);
    assert!(!ran.out.contains("ARES_INTERNAL"), "{}", ran.out);
}

#[test]
fn a_failing_disk_is_not_a_full_one() {
    if !crate::harness::has("strace") {
        return;
    }
    let stock = Stock::new();
    // The first write of a process that comes alone is into the shared memory of the log, of which SQLite says the same
    // whether the disk is full or fails.
    let script = "for e in EIO ENOSPC EDQUOT; do
        strace -f -qq -o trace -e trace=pwrite64 -e inject=pwrite64:error=$e:when=1 ares-submit -- true 2>err
        echo $? $(grep -o 'ARES_[A-Z_]*' err); tail -1 err; done";
    let ran = bash(&stock, script);
    if ran.err.contains("strace:") || ran.out.contains("strace:") {
        return skipped("strace may not trace here");
    }
    let full = "5 ARES_STORE_FULL\nhint: free some space, then repeat\n";
    let failing = "5 ARES_STORE_UNUSABLE\nhint: look whether the disk fails or is full: dmesg, df\n";
    assert_eq!(ran.out, format!("{failing}{full}{full}"), "{}", ran.err);
}
