//! Time-outs and bounds of output: whatever they end is uncertain, and a worker that does not listen is killed.

use super::{Running, Shop, eventually, text};

#[test]
fn a_worker_that_ignores_sigterm_is_killed_after_its_grace() {
    let shop = Shop::new();
    let job = shop.turn(&["--timeout", "300ms", "--grace", "100ms"], "scenario: stubborn\nhello");
    assert_eq!(shop.run("ares-run", &[]).status, 10);
    let attempt = shop.latest(&job);
    assert_eq!((text(&attempt["code"]), attempt["seen"]["signal"].as_i64()), ("ARES_TIMED_OUT".to_owned(), Some(9)));
    assert_eq!(shop.state(&job), "uncertain");
    assert!(shop.alive().is_empty());
}

#[test]
fn silence_is_ended_before_the_first_output_and_between_two() {
    let shop = Shop::new();
    let cases = [
        ("--timeout-first", "sleep 60", "timeout-first"),
        ("--timeout-idle", "echo begun; sleep 60", "timeout-idle"),
        ("--timeout", "while :; do echo more; sleep 0.05; done", "timeout-whole"),
    ];
    for (option, script, cause) in cases {
        let job = shop.script(&[option, "300ms", "--grace", "100ms"], script);
        assert_eq!(shop.run("ares-run", &[]).status, 10);
        let attempt = shop.latest(&job);
        assert_eq!(attempt["seen"]["cause"], cause);
        let detail = text(&attempt["detail"]);
        assert!(detail.contains("300ms; ended with signal 15"), "{option}: {detail}");
        assert_eq!(attempt["outcome"], "ambiguous");
    }
    assert!(shop.alive().is_empty());
}

/// The most memory that a process ever had, in KiB.
fn peak(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse().ok()
}

/// The peaks of owner and keeper while a run goes on.
pub(super) fn peaks(shop: &Shop, run: &Running) -> (u64, u64) {
    let (mut owner_peak, mut keeper_peak, mut keeper) = (0, 0, None);
    eventually("the run ends", || {
        // The worker may be over before it is seen; the keeper is there for as long as its owner.
        keeper = keeper.or_else(|| shop.keeper_of(run.pid()));
        owner_peak = peak(run.pid()).unwrap_or(0).max(owner_peak);
        keeper_peak = keeper.and_then(peak).unwrap_or(0).max(keeper_peak);
        (!super::runs(run.pid())).then_some(())
    });
    (owner_peak, keeper_peak)
}

#[test]
fn a_flood_is_cut_and_costs_no_memory() {
    let shop = Shop::new();
    let options = ["--output-max", "8M", "--grace", "100ms"];
    let jobs = [
        shop.turn(&options, "scenario: flood:60\nhello"),
        shop.script(&options, "sleep 0.2; exec yes"),
        shop.script(&options, "sleep 0.2; yes 1>&2; sleep 60"),
    ];
    for (job, stream) in jobs.iter().zip(["stdout", "stdout", "stderr"]) {
        let run = shop.start(&[], "ares-run", &["--job", job]);
        let (owner, keeper) = peaks(&shop, &run);
        assert_eq!(run.end().status, 10);
        assert!(owner > 0 && owner < 20 << 10 && keeper < 20 << 10, "owner {owner} KiB, keeper {keeper} KiB");
        let attempt = shop.latest(job);
        assert_eq!(text(&attempt["code"]), "ARES_OUTPUT_LIMIT");
        assert_eq!((&attempt["outcome"], &attempt["seen"]["cut"][0]), (&"ambiguous".into(), &stream.into()));
        let shown = shop.run("ares-show", &[job, "--output", stream]);
        assert_eq!(shown.out.len(), 8 << 20);
        assert_eq!(shown.err, "ares-show: ARES_OUTPUT_LIMIT: output was cut at 8388608 bytes\n");
        assert!(text(&attempt["detail"]).contains("printed more than 8388608 bytes; ended with signal"));
    }
    assert!(shop.alive().is_empty());
}

#[test]
fn output_within_the_bound_costs_no_memory_either() {
    let shop = Shop::new();
    let job = shop.script(&[], "sleep 0.2; head -c 60000000 /dev/zero");
    let run = shop.start(&[], "ares-run", &[]);
    let (owner, keeper) = peaks(&shop, &run);
    assert_eq!(run.end().status, 0);
    assert!(owner > 0 && owner < 20 << 10 && keeper < 20 << 10, "owner {owner} KiB, keeper {keeper} KiB");
    assert_eq!(shop.output(&job, "stdout").len(), 60_000_000);
    shop.clean();
}

const RUNAWAY: &str = "echo $$ >pid; trap '' TERM; while :; do sleep 1; done";

#[test]
fn a_runaway_is_ended_by_its_time_out_when_the_store_is_lost_meanwhile() {
    let shop = Shop::new();
    shop.script(&["--timeout", "2s", "--grace", "100ms"], RUNAWAY);
    let run = shop.start(&[], "ares-run", &["--drain"]);
    let worker = shop.pid("pid");
    for file in ["ares.db", "ares.db-wal"] {
        std::fs::write(shop.root().join(file), [0x5a; 9000]).unwrap();
    }
    super::gone(worker);
    let ran = run.end();
    // Damaged, or run without a receipt; never a success, and no mistake of its own.
    assert!([6, 9].contains(&ran.status), "{ran:?}");
}

#[test]
fn a_runaway_is_ended_by_a_signal_while_nobody_can_write_to_the_store() {
    let shop = Shop::new();
    let job = shop.script(&["--grace", "100ms"], RUNAWAY);
    let run = shop.start(&[], "ares-run", &["--drain", "--grace", "0s"]);
    let worker = shop.pid("pid");
    let lock = ares::host::lock::lock(&shop.root().join("locks/write.lock"), None).unwrap();
    run.send(rustix::process::Signal::TERM);
    super::gone(worker);
    assert!(super::runs(run.pid()), "what it saw is to be recorded first");
    drop(lock);
    assert_eq!(run.end().status, 10);
    assert_eq!(shop.state(&job), "uncertain");
}
