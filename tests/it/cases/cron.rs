//! Jobs that are queued by a clock. ares has none of its own: a tick is an `ares-submit` under a key or a label.

use crate::harness::has;
use crate::stock::{Stock, bash, faketime};

#[test]
fn a_skip_says_what_was_skipped_and_why() {
    let stock = Stock::new();
    let twice = ["--label", "x", "--key", "k\u{1b}[m", "--if-active", "night", "skip", "--json", "--", "echo", "a b"];
    stock.submit(&["--label", "night"], &["true"]);
    stock.fails("ares-submit", &twice, 2, "is not a name");
    let twice = twice.map(|word| if word.starts_with("k\u{1b}") { "daily" } else { word });
    let skipped = stock.run("ares-submit", &twice);
    assert_eq!((skipped.status, skipped.out.as_str()), (0, "{\"job\":null,\"skipped\":1}\n"), "{}", skipped.err);
    let log = stock.ok("ares-log", &["--verb", "submit", "--format", "%(subject) %(detail)"]);
    let said = log.lines().last().expect("a line");
    let begin = "night skipped 1: job 1 has not ended (label 'night', key 'daily', /";
    assert!(said.starts_with(begin) && said.ends_with("/echo a b)"), "{said}");
    // Nothing is printed without fields, and the key is still free.
    assert_eq!(stock.submit(&["--if-active", "night", "skip", "--key", "daily"], &["echo", "a b"]), "");
    stock.ok("ares-run", &["--quiet"]);
    let queued = stock.ok("ares-submit", &twice);
    assert_eq!(queued, "{\"job\":2,\"skipped\":null}");
    let batch = "for n in 1 2; do echo '{\"argv\":[\"true\"],\"if-active\":[\"night\",\"skip\"]}'; done;
        echo '{\"argv\":[\"true\"]}'";
    assert_eq!(stock.bash(&format!("({batch}) | ares-submit --stdin --quiet"), 0), "3");
    let log = stock.ok("ares-log", &["--subject", "3", "--format", "%(detail)"]);
    assert!(log.starts_with("skipped 2: job 2 has not ended (label 'night', /"), "{log}");
}

#[test]
fn case_32_a_slot_is_a_key_and_fires_once_whoever_ticks() {
    let stock = Stock::new();
    let tick = "for i in 1 2 3 4 5 6 7 8; do ares-submit --key nightly-2031-05-01 -- true & done; wait";
    assert_eq!(stock.bash(tick, 0), ["1"; 8].join("\n"));
    stock.ok("ares-run", &["--drain", "--quiet"]);
    // Also after it ended, and after the scheduler was started anew.
    assert_eq!(stock.bash(tick, 0), ["1"; 8].join("\n"));
    assert_eq!(stock.value("SELECT count(*) FROM jobs"), "1");
}

#[test]
fn case_33_a_slot_that_killed_its_own_scheduler_is_not_fired_again() {
    let stock = Stock::new();
    let tick = "ares-submit --quiet --if-active nightly skip --key \"slot-$1\" -- sh -c 'echo fired >>fired'";
    let script = format!(
        "tick() {{ {tick}; }}; tick 1; ares-claim -- sh -c 'echo fired >>fired; kill -9 $PPID' 2>/dev/null; sleep 0.2
        for slot in 1 2 3; do tick $slot; ares-run --drain --quiet >/dev/null; done; cat fired; ares-list --format '%(state)'"
    );
    let ran = bash(&stock, &script);
    // Uncertain counts as active: later slots are skipped until someone decides.
    assert_eq!(ran.out, "1\n1\nfired\nuncertain\n", "{}", ran.err);
    stock.ok("ares-reconcile", &["1", "--decide", "ok", "--because", "it fired"]);
    assert_eq!(stock.ok("ares-submit", &["--if-active", "nightly", "skip", "--key", "slot-4", "--", "true"]), "2");
}

#[test]
fn case_34_a_clock_that_jumps_fires_nothing_twice_and_skips_nothing() {
    let Some(library) = faketime() else { return clock_moved_by_hand() };
    let stock = Stock::new();
    let script = format!(
        "at() {{ LD_PRELOAD={library} FAKETIME=\"$1\" \"${{@:2}}\"; }}
        at -1d ares-submit --key slot-1 -- true; at +1d ares-submit --key slot-1 -- true; at -40d ares-submit --key slot-1 -- true
        ares-submit --not-before +1h -- true; at -1d ares-claim --quiet --job 2 --owner $$; echo $?
        at +2h ares-claim --job 2 --owner $$ | cut -d- -f1; at -1d ares-reconcile --format '%(found)'"
    );
    let ran = bash(&stock, &script);
    assert_eq!(ran.out, "1\n1\n1\n2\n1\n2.1\nalive\n", "{}", ran.err);
}

/// Where the clock cannot be moved, what it left behind can: rows from the future and from long ago.
fn clock_moved_by_hand() {
    let stock = Stock::new();
    let id = stock.submit(&["--key", "slot-1"], &["true"]);
    stock.submit(&["--not-before", "+1h"], &["true"]);
    let handle = stock.claim(&[]);
    for at in ["1", "9000000000000"] {
        stock
            .db()
            .execute_batch(&format!("UPDATE attempts SET claimed_at = {at}, dispatched_at = {at}"))
            .expect("moved");
        assert_eq!(stock.submit(&["--key", "slot-1"], &["true"]), id);
        assert_eq!(stock.ok("ares-reconcile", &["--format", "%(found)"]), "alive");
        let me = std::process::id().to_string();
        stock.fails("ares-claim", &["--owner", &me], 1, "ARES_NOTHING_TO_CLAIM");
    }
    // Ended before it began, as the clock has it: recorded all the same, and no time is negative where it is told.
    stock.ok("ares-settle", &[&handle, "ok"]);
    assert_eq!(stock.state("1"), "succeeded");
    assert!(has("date"), "a machine has a clock");
}

#[test]
fn case_35_the_latest_slot_takes_the_place_of_those_that_wait() {
    let stock = Stock::new();
    let slot = |n: &str| stock.submit(&["--if-active", "night", "latest"], &["echo", n]);
    slot("1");
    let running = stock.claim(&[]);
    assert!(running.starts_with("1.1-"), "{running}");
    slot("2");
    stock.submit(&["--after", "2"], &["true"]);
    stock.submit(&["--label", "other"], &["true"]);
    assert_eq!(slot("3"), "5");
    let states = stock.ok("ares-list", &["--format", "%(job) %(state) %(detail)"]);
    let wanted = "1 running \n2 cancelled replaced by job 5\n3 cancelled job 2 was cancelled\n4 queued \n5 queued ";
    assert_eq!(states, wanted.trim_end());
    assert_eq!(stock.ok("ares-log", &["--subject", "5", "--format", "%(detail)"]), "cancelled: 2, 3");
    // It does not wait for the one that runs.
    assert!(stock.claim(&["--job", "5"]).starts_with("5.1-"));
    stock.fails("ares-submit", &["--if-active", "night", "newest", "--", "true"], 2, "skip, queue, latest or fail");
}

#[test]
fn case_35_a_catch_up_is_chosen_and_what_is_skipped_says_so() {
    let stock = Stock::new();
    // Ten slots were missed. skip: one of them; queue: all, one after the other, each by its key.
    let script = "for slot in $(seq 10); do ares-submit --quiet --if-active a skip --key a-$slot -- true; done
        for slot in $(seq 10); do ares-submit --if-active b queue --key b-$slot -- true >/dev/null; done
        ares-list --label a --format x | wc -l; ares-list --label b --format x | wc -l
        ares-log --verb submit --limit 100 --format '%(detail)' | grep -c 'skipped 1: job 1 has not ended'";
    assert_eq!(stock.bash(script, 0), "1\n1\n10\n9");
    assert_eq!(stock.value("SELECT count(*) FROM jobs WHERE hold = '' AND state = 'queued'"), "2", "a burst may run");
    stock.ok("ares-run", &["--drain", "--quiet"]);
    assert_eq!(stock.value("SELECT count(*) FROM jobs WHERE state = 'succeeded'"), "11");
    // A slot that was skipped was not used up: its key is free.
    assert_eq!(stock.ok("ares-submit", &["--key", "a-7", "--", "true"]), "12");
}

#[test]
fn case_36_while_the_last_one_goes_on_the_next_is_skipped_queued_or_refused() {
    let stock = Stock::new();
    let active = |what: &str| stock.run("ares-submit", &["--if-active", "l", what, "--", "true"]);
    assert_eq!(active("skip").out, "1\n");
    // Queued, running and uncertain all count.
    let handle = stock.claim(&[]);
    for (say, state) in [(None, "running"), (Some("ambiguous"), "uncertain")] {
        if let Some(outcome) = say {
            stock.ok("ares-settle", &[&handle, outcome]);
        }
        assert_eq!(stock.state("1"), state);
        let skipped = active("skip");
        assert_eq!((skipped.status, skipped.out.as_str()), (0, ""));
        assert!(skipped.err.contains("not queued: job 1 has not ended"), "{}", skipped.err);
        let refused = active("fail");
        assert!(refused.status == 3 && refused.err.contains("ARES_ACTIVE"), "{}", refused.err);
    }
    assert_eq!(active("queue").out, "2\n");
    assert_eq!(stock.value("SELECT hold FROM jobs WHERE id = 2"), "dependency");
    stock.ok("ares-reconcile", &["1", "--decide", "error", "--because", "so"]);
    assert_eq!(stock.value("SELECT state || hold FROM jobs WHERE id = 2"), "queued");
    assert_eq!(active("never").status, 2);
}
