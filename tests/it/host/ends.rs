//! How workers end while their owner is there.

use super::{Attempt, ended, eventually, file, gone, keeper, kill, runs};
use ares::domain::outcome::Cause;
use ares::host::dir::owner_and_mode;
use ares::host::keeper::{Mark, Word, read_mark, worker_lock_held};
use ares::host::process::{self, Life};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

#[test]
fn one_keeper_sees_attempts_end_by_themselves() {
    let mut keeper = keeper();
    for exit in [0, 3] {
        let attempt = Attempt::shell(&format!("echo out; echo err >&2; exit {exit}"));
        keeper.go(&attempt.start).unwrap();
        let seen = ended(&mut keeper);
        assert_eq!((seen.cause, seen.exit, seen.signal), (Cause::Exited, Some(exit), None));
        assert!(seen.leaked.is_empty() && seen.survivors.is_empty() && seen.cut.is_empty());
        assert!(seen.started <= seen.ended);
        assert_eq!(attempt.output(), "out\n");
        assert!(matches!(read_mark(attempt.dir()).unwrap(), Mark::Started { .. }));
        assert!(!worker_lock_held(attempt.dir()).unwrap());
        for name in ["stdout", "stderr", "mark", "exit", "worker.lock"] {
            assert_eq!(owner_and_mode(&attempt.dir().join(name)).unwrap().1, 0o600, "{name}");
        }
    }
    assert_eq!(process::life(keeper.identity()).unwrap(), Life::Alive);
    let identity = keeper.identity().clone();
    drop(keeper);
    eventually("the keeper ends", || (process::life(&identity).unwrap() == Life::Dead).then_some(()));
}

#[test]
fn a_signal_and_processor_time_are_seen() {
    let seen = Attempt::shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; kill -SEGV $$").run();
    assert_eq!((seen.cause, seen.exit, seen.signal), (Cause::Exited, None, Some(11)));
    assert!(seen.cpu_ms > 0, "{seen:?}");
}

#[test]
fn the_worker_gets_the_given_environment_and_nothing_else() {
    let mut attempt = Attempt::new("/usr/bin/env", &[]);
    attempt.start.env = vec![("ONE".to_owned(), "1".to_owned()), ("TWO".to_owned(), "a b\nc".to_owned())];
    attempt.run();
    let mut lines: Vec<String> = attempt.output().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["ONE=1", "TWO=a b", "c"]);
}

#[test]
fn the_worker_starts_clean() {
    // No terminal, an own session and group, nothing ignored or blocked, no descriptor but its streams and the lock.
    let script = "read -r x; echo \"in=$x\"; cut -d' ' -f5,6 /proc/self/stat; echo $$; grep -E 'Sig(Blk|Ign)' \
                  /proc/self/status; ls -l /proc/$$/fd | grep -vc -e pipe -e total; pwd";
    let attempt = Attempt::shell(script);
    attempt.run();
    let text = attempt.output();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "in=", "standard input is empty");
    assert_eq!(lines[1], format!("{0} {0}", lines[2]));
    for line in &lines[3..=4] {
        let set = u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap();
        // The C library keeps signals 32 and 33 for itself.
        assert_eq!(set & 0x7FFF_FFFF, 0, "{text}");
    }
    assert_eq!(lines[5], "4", "{text}");
    assert_eq!(lines[6], attempt.start.cwd);
}

#[test]
fn standard_input_is_the_given_file() {
    let mut attempt = Attempt::new("/bin/cat", &[]);
    attempt.start.stdin = Some(file(&attempt.base, "prompt", "hello\n"));
    assert_eq!(attempt.run().exit, Some(0));
    assert_eq!(attempt.output(), "hello\n");
}

#[test]
fn what_cannot_be_executed_never_ran() {
    let no_program = Attempt::new("/no/such/program", &[]);
    let not_executable = Attempt::new("/etc/passwd", &[]);
    let mut no_directory = Attempt::new("/bin/true", &[]);
    no_directory.start.cwd = "/no/such/directory".to_owned();
    let mut no_input = Attempt::new("/bin/true", &[]);
    no_input.start.stdin = Some("/no/such/input".into());
    let nul = Attempt::new("/bin/echo", &["a\0b"]);
    for (attempt, errno, what) in [
        (no_program, 2, "cannot execute '/no/such/program'"),
        (not_executable, 13, "cannot execute '/etc/passwd'"),
        (no_directory, 2, "cannot enter directory '/no/such/directory'"),
        (no_input, 2, "cannot open its standard input"),
        (nul, 22, "cannot execute '/bin/echo'"),
    ] {
        let seen = attempt.run();
        assert_eq!((seen.cause, seen.errno, seen.exit), (Cause::NotExecuted, Some(errno), None), "{what}");
        assert_eq!(read_mark(attempt.dir()).unwrap(), Mark::NotExecuted { errno });
        let mark = std::fs::read_to_string(attempt.dir().join("mark")).unwrap();
        assert!(mark.contains(&format!("\"what\":\"{what}\"")), "{mark}");
        assert!(!worker_lock_held(attempt.dir()).unwrap());
    }
}

#[test]
fn an_attempt_is_never_started_twice() {
    let attempt = Attempt::shell("echo once");
    let seen = attempt.run();
    let mut again = attempt.go();
    assert_eq!(again.wait(super::PATIENCE).unwrap(), Some(Word::Gone));
    assert_eq!(attempt.output(), "once\n");
    assert_eq!(super::exit_file(attempt.dir()), seen);
}

#[test]
fn a_worker_that_ignores_the_request_is_killed_after_its_grace() {
    let attempt = Attempt::shell("trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done");
    let mut keeper = attempt.go();
    attempt.pid("pid");
    let asked = ares::host::clock::mark();
    keeper.stop(Cause::Stopped, false);
    let seen = ended(&mut keeper);
    assert_eq!((seen.cause, seen.signal), (Cause::Stopped, Some(9)));
    assert!(asked.elapsed() >= Duration::from_millis(300), "it had its time of grace");
}

#[test]
fn a_hard_stop_gives_no_time() {
    let mut attempt = Attempt::shell("trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done");
    attempt.start.grace_ms = 60_000;
    let mut keeper = attempt.go();
    attempt.pid("pid");
    assert!(keeper.go(&attempt.start).is_err(), "it takes one at a time");
    keeper.stop(Cause::Finished, false);
    keeper.stop(Cause::Stopped, true);
    let seen = ended(&mut keeper);
    assert_eq!((seen.cause, seen.signal), (Cause::Finished, Some(9)), "the first cause stays");
}

#[test]
fn a_worker_that_heeds_the_request_ends_in_its_own_way() {
    let attempt = Attempt::shell("trap 'echo bye; exit 5' TERM; echo $$ > pid; while :; do sleep 0.01; done");
    let mut keeper = attempt.go();
    attempt.pid("pid");
    keeper.stop(Cause::Finished, false);
    let seen = ended(&mut keeper);
    assert_eq!((seen.cause, seen.exit), (Cause::Finished, Some(5)));
    assert_eq!(attempt.output(), "bye\n");
}

#[test]
fn a_stopped_process_ends_too() {
    let mut attempt = Attempt::shell("echo $$ > pid; exec sleep 60");
    attempt.start.grace_ms = 60_000;
    let mut keeper = attempt.go();
    kill(attempt.pid("pid"), Signal::STOP);
    keeper.stop(Cause::Stopped, false);
    assert_eq!(ended(&mut keeper).signal, Some(15));
}

#[test]
fn a_flood_is_cut_and_the_keeper_stays_small() {
    let attempt = Attempt::new("/usr/bin/yes", &[]);
    let mut keeper = attempt.go();
    let seen = ended(&mut keeper);
    assert_eq!(seen.cause, Cause::OutputLimit);
    assert_eq!(seen.cut, ["stdout"]);
    assert_eq!(std::fs::metadata(attempt.dir().join("stdout")).unwrap().len(), 1 << 20);
    let load = process::load(keeper.pid()).unwrap();
    assert!(load.memory_bytes < 20 << 20, "{load:?}");
}

#[test]
fn each_time_out_has_its_own_cause() {
    let mut first = Attempt::shell("sleep 60");
    first.start.timeout_first_ms = Some(60);
    first.start.timeout_idle_ms = Some(1);
    let mut idle = Attempt::shell("echo begun; sleep 60");
    idle.start.timeout_first_ms = Some(10_000);
    idle.start.timeout_idle_ms = Some(80);
    let mut whole = Attempt::shell("while :; do echo on; sleep 0.02; done");
    whole.start.timeout_ms = Some(150);
    whole.start.timeout_idle_ms = Some(10_000);
    for (attempt, cause, least) in
        [(first, Cause::TimeoutFirst, 60), (idle, Cause::TimeoutIdle, 80), (whole, Cause::TimeoutWhole, 150)]
    {
        let seen = attempt.run();
        assert_eq!((seen.cause, seen.exit, seen.signal), (cause, None, Some(15)));
        assert!(seen.ended - seen.started >= least, "{seen:?}");
        assert!(seen.ended - seen.started < 5_000, "{seen:?}");
    }
}

#[test]
fn what_is_left_behind_is_ended_and_listed() {
    for (name, script) in [
        ("in the group", "sleep 60 & echo $! > pid"),
        ("in its own session", "setsid sh -c 'echo $$ > pid; exec sleep 60' & while [ ! -s pid ]; do sleep 0.01; done"),
        (
            "twice forked, deaf",
            "(setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 0.05; done' &) ; \
             while [ ! -s pid ]; do sleep 0.01; done",
        ),
        ("stopped", "sleep 60 & echo $! > pid; kill -STOP $!"),
    ] {
        let attempt = Attempt::shell(&format!("{script}; exit 4"));
        let seen = attempt.run();
        assert_eq!((seen.cause, seen.exit), (Cause::Exited, Some(4)), "{name}");
        assert!(seen.leaked.contains(&attempt.pid("pid")), "{name}: {seen:?}");
        assert!(seen.survivors.is_empty(), "{name}");
        assert!(!runs(attempt.pid("pid")), "{name}");
    }
}

#[test]
fn what_ends_by_itself_right_after_is_not_called_a_leak() {
    let attempt = Attempt::shell("(sleep 0.005; echo late) & exit 0");
    let seen = attempt.run();
    assert!(seen.leaked.is_empty(), "{seen:?}");
    assert_eq!(attempt.output(), "late\n");
}

#[test]
fn processes_of_an_attempt_are_found_by_their_mark() {
    let mut attempt = Attempt::shell("echo $$ > pid; exec sleep 60");
    let store = attempt.start.store.clone();
    attempt.start.env.push(("ARES_ATTEMPT".to_owned(), "42.1".to_owned()));
    attempt.start.env.push(("ARES_DIR".to_owned(), store.clone()));
    let mut keeper = attempt.go();
    let pid = attempt.pid("pid");
    eventually("it is found", || (process::marked("42.1", &store).unwrap() == [pid]).then_some(()));
    assert!(process::marked("42.10", &store).unwrap().is_empty());
    assert!(process::marked("42.1", "/other").unwrap().is_empty());
    let worker = process::Identity::of(pid).unwrap().unwrap();
    assert!(process::signal(&worker, Signal::KILL).unwrap());
    assert_eq!(ended(&mut keeper).signal, Some(9));
    assert!(!process::signal(&worker, Signal::KILL).unwrap(), "gone");
}

#[test]
fn the_umask_is_that_of_the_owner() {
    let attempt = Attempt::shell("umask; exit 0");
    attempt.run();
    // The test itself never called prepare(), so the keeper was told the default.
    assert_eq!(attempt.output().trim(), "0022");
}

#[test]
fn interrupts_do_not_end_the_keeper() {
    let mut keeper = keeper();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        kill(keeper.pid(), signal);
    }
    let attempt = Attempt::shell("exit 0");
    std::fs::set_permissions(attempt.base.path(), PermissionsExt::from_mode(0o700)).unwrap();
    keeper.go(&attempt.start).unwrap();
    assert_eq!(ended(&mut keeper).exit, Some(0));
    kill(keeper.pid(), Signal::KILL);
    assert_eq!(keeper.wait(super::PATIENCE).unwrap(), Some(Word::Gone));
    gone(keeper.pid());
}
