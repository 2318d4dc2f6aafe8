//! What goes on when the owner is gone, and when the keeper is.

use super::{Attempt, eventually, exit_file, gone, kill, runs};
use ares::domain::outcome::Cause;
use ares::host::keeper::{Mark, ask_stop, read_exit, read_mark, worker_lock_held};
use ares::host::process::{self, Life};
use rustix::process::Signal;

#[test]
fn a_worker_outlives_its_owner_and_leaves_a_record() {
    let attempt = Attempt::shell("echo $$ > pid; sleep 0.2; echo done");
    let keeper = attempt.go();
    let identity = keeper.identity().clone();
    attempt.pid("pid");
    drop(keeper);
    assert!(worker_lock_held(attempt.dir()).unwrap());
    let seen = exit_file(attempt.dir());
    assert_eq!((seen.cause, seen.exit), (Cause::Exited, Some(0)));
    assert_eq!(attempt.output(), "done\n");
    eventually("the keeper ends", || (process::life(&identity).unwrap() == Life::Dead).then_some(()));
}

#[test]
fn limits_hold_without_an_owner() {
    let mut attempt = Attempt::shell("echo $$ > pid; exec sleep 60");
    attempt.start.timeout_ms = Some(100);
    drop(attempt.go());
    assert_eq!(exit_file(attempt.dir()).cause, Cause::TimeoutWhole);
}

#[test]
fn the_stop_file_works_without_an_owner() {
    for (hard, signal) in [(false, None), (true, Some(9))] {
        let mut attempt = Attempt::shell("trap 'exit 6' TERM; echo $$ > pid; while :; do sleep 0.01; done");
        attempt.start.grace_ms = 60_000;
        drop(attempt.go());
        attempt.pid("pid");
        ask_stop(attempt.dir(), hard).unwrap();
        let seen = exit_file(attempt.dir());
        assert_eq!((seen.cause, seen.signal), (Cause::Stopped, signal), "hard: {hard}");
        assert_eq!(seen.exit, if hard { None } else { Some(6) });
    }
}

#[test]
fn a_worker_dies_with_its_keeper() {
    let attempt = Attempt::shell("echo $$ > pid; exec sleep 60");
    let keeper = attempt.go();
    let pid = attempt.pid("pid");
    eventually("it is marked", || (read_mark(attempt.dir()).unwrap() == Mark::Started { pid }).then_some(()));
    kill(keeper.pid(), Signal::KILL);
    gone(pid);
    assert_eq!(read_exit(attempt.dir()).unwrap(), None);
    assert_eq!(read_mark(attempt.dir()).unwrap(), Mark::Started { pid });
    eventually("the lock is free", || (!worker_lock_held(attempt.dir()).unwrap()).then_some(()));
}

#[test]
fn the_lock_tells_of_a_grandchild_that_lives_on() {
    let attempt = Attempt::shell("setsid sleep 60 & echo $! > pid; wait");
    let keeper = attempt.go();
    let pid = attempt.pid("pid");
    let started = || if let Mark::Started { pid } = read_mark(attempt.dir()).unwrap() { Some(pid) } else { None };
    let worker = eventually("it is marked as started", started);
    kill(keeper.pid(), Signal::KILL);
    gone(keeper.pid());
    gone(worker);
    assert!(runs(pid) && worker_lock_held(attempt.dir()).unwrap());
    kill(pid, Signal::KILL);
    gone(pid);
    eventually("the lock is free", || (!worker_lock_held(attempt.dir()).unwrap()).then_some(()));
}
