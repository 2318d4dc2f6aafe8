//! Processes that were taken for others, and work that came back.

use crate::harness::skipped;
use crate::run::{Running, Shop, eventually, runs, send};
use crate::stock::db;
use rustix::process::Signal;
use std::path::Path;

#[test]
fn case_39_a_number_that_another_process_has_by_now_blocks_nothing_and_is_no_target() {
    let shop = Shop::new();
    let job = shop.script(&["--max-tries", "3", "--grace", "100ms"], "echo $$ > pid; exec sleep 300");
    let run = shop.start(&[], "ares-run", &[]);
    shop.pid("pid");
    // Strangers, one with the mark of the same attempt of another store, and one of another attempt of this one.
    let stranger = shop.survivor("9.9");
    let other = Shop::new();
    let elsewhere = other.survivor(&format!("{job}.1"));
    shop.crash(run);
    let sql = "UPDATE attempts SET owner = json_set(owner, '$.pid', ?1), keeper = json_set(keeper, '$.pid', ?1)";
    assert_eq!(db(shop.root()).execute(sql, [stranger.pid()]).unwrap(), 1);
    // The number is alive, and is not the keeper: nothing waits for it, and no order to stop reaches it.
    assert_eq!(shop.run("ares-stop", &[&job, "--hard", "--decide", "hold"]).status, 0);
    assert_eq!(shop.run("ares-reconcile", &["--quiet"]).status, 10);
    assert_eq!(shop.run("ares-reconcile", &[&job, "--stop-survivors"]).status, 10);
    assert_eq!(shop.run("ares-reconcile", &[&job, "--decide", "retry", "--because", "x"]).status, 0);
    assert!(runs(stranger.pid()) && runs(elsewhere.pid()), "a stranger was killed");
    // What dead owners left with numbers in it is in nobody's way.
    std::fs::write(shop.root().join("locks/owner-left"), format!("{}\n", stranger.pid())).unwrap();
    std::fs::write(shop.path().join("pid"), "").unwrap();
    let next = shop.script(&[], "true");
    assert_eq!(shop.run("ares-run", &["--job", &next]).status, 0);
    assert_eq!(shop.state(&next), "succeeded");
    assert!(runs(stranger.pid()) && runs(elsewhere.pid()));
}

/// A process that the kernel gave this number, which another one had.
fn with_number(shop: &Shop, pid: i32) -> Option<Running> {
    // The number is free once whoever adopted its process has looked after it.
    eventually("the number is free", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
    for _ in 0..500 {
        if std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).is_err() {
            skipped("this user may not choose the number of a process");
            return None;
        }
        // Whoever else starts one just then gets the number.
        let process = shop.survivor("9.9");
        if process.pid() == pid {
            return Some(process);
        }
    }
    panic!("number {pid} was never to be had");
}

#[test]
fn case_39_a_number_that_the_kernel_gave_again_is_not_the_keeper() {
    let shop = Shop::new();
    let job = shop.script(&["--grace", "100ms"], "echo $$ > pid; exec sleep 300");
    let run = shop.start(&[], "ares-run", &[]);
    shop.pid("pid");
    let keeper = shop.keeper();
    shop.crash(run);
    let Some(stranger) = with_number(&shop, keeper) else { return };
    assert_eq!(shop.run("ares-stop", &[&job, "--hard", "--decide", "hold"]).status, 0);
    assert_eq!(shop.run("ares-reconcile", &["--quiet"]).status, 10);
    assert_eq!(shop.state(&job), "uncertain", "who has the number now does not keep it alive");
    assert_eq!(shop.run("ares-reconcile", &[&job, "--stop-survivors"]).status, 10);
    assert!(runs(stranger.pid()), "a stranger was killed");
}

#[test]
fn case_41_what_was_stopped_does_not_come_back() {
    let shop = Shop::new();
    let options = ["--max-tries", "9", "--if-uncertain", "retry", "--retry-delay", "1ms", "--grace", "300s"];
    let script = "trap '' TERM; echo $ARES_ATTEMPT >> runs; echo $$ > pid; while :; do sleep 0.05; done";
    let job = shop.script(&options, script);
    let run = shop.start(&[], "ares-run", &[]);
    let worker = shop.pid("pid");
    assert_eq!(shop.run("ares-stop", &[&job]).status, 0);
    // Everything dies before the order has come to anything; the order does not.
    let keeper = shop.keeper();
    run.kill();
    send(keeper, Signal::KILL);
    send(worker, Signal::KILL);
    eventually("nothing of it lives", || shop.alive().is_empty().then_some(()));
    for _ in 0..3 {
        assert_eq!(shop.run("ares-run", &["--drain"]).status, 0);
        let claimed = shop.run("ares-claim", &["--owner", &std::process::id().to_string(), "--job", &job]);
        assert_eq!((claimed.status, claimed.out.as_str()), (1, ""), "{}", claimed.err);
    }
    assert_eq!(shop.state(&job), "cancelled");
    assert_eq!(shop.file("runs"), format!("{job}.1\n"));
    // Of those that wait, claimed or not, none begins either.
    let waiting = [shop.script(&options, "echo came back >> runs"), shop.script(&options, "echo came back >> runs")];
    let run = shop.start(&[("ARES_FAULT", "run.claimed:sleep=700")], "ares-run", &["--drain"]);
    shop.until(&waiting[0], "claimed");
    assert_eq!(shop.run("ares-stop", &[&waiting[0], &waiting[1]]).status, 0);
    run.end();
    shop.run("ares-run", &["--drain"]);
    assert!(waiting.iter().all(|job| shop.state(job) == "cancelled"));
    assert_eq!(shop.file("runs"), format!("{job}.1\n"));
    assert_eq!(shop.reconciled(), 0);
}
