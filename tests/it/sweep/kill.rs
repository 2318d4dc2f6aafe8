//! A kill at every system call of every command that changes something.

use super::bench::Bench;
use super::cases::{self, Case, Kind};
use super::{full, only, share};

/// How many points of one command an ordinary run of the tests tries.
const SHARE: usize = 8;

/// Calls that leave something behind, around which a kill is most telling.
pub(super) const TELLING: &[&str] = &[
    "pwrite64",
    "write",
    "fdatasync",
    "fsync",
    "ftruncate",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "fchmod",
    "chmod",
    "linkat",
    "sendto",
    "clone",
    "clone3",
    "vfork",
    "exit_group",
];

/// Calls that only look, or that change nothing outside of the process. The kill comes before its call is made, so one at
/// such a call leaves what one at the next call leaves.
pub(super) const SILENT: &[&str] = &[
    "newfstatat",
    "statx",
    "statfs",
    "fstatfs",
    "access",
    "readlink",
    "getcwd",
    "pread64",
    "read",
    "lseek",
    "getdents64",
    "getpid",
    "gettid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getrandom",
    "brk",
    "mprotect",
    "munmap",
    "rt_sigaction",
    "rt_sigprocmask",
    "sigaltstack",
    "prlimit64",
    "sched_getaffinity",
    "ioctl",
];

/// What a kill at one point showed; `None` where the command ended before it.
fn kill(bench: &Bench, call: &str, n: usize) -> Option<Result<(), String>> {
    let struck = bench.strike(call, &format!("signal=KILL:when={n}"));
    (struck.ran.status == 137).then(|| account(bench, &struck.ran.out))
}

/// Whether what a killed command left is a true account of what it answered, and its repetition completes it.
fn account(bench: &Bench, out: &str) -> Result<(), String> {
    let (seen, known) = bench.left();
    if bench.is_answer(out) && !bench.is_applied(&seen) {
        return Err(format!("{out:?} was acknowledged and is not there:\n{seen}"));
    }
    if bench.case().kind == Kind::Once && !bench.is_applied(&seen) && !bench.is_untouched(&seen) {
        return Err(format!("half of it is there:\n{seen}"));
    }
    if known {
        return Ok(());
    }
    bench.again()?;
    let repeated = bench.repeated();
    if bench.is_answer(out) && bench.case().call.contains("--op-id") && out != repeated {
        return Err(format!("first it said {out:?}, repeated {repeated:?}"));
    }
    Ok(())
}

/// The points to try: all, a share, or the one that is asked for.
fn points(bench: &Bench) -> Vec<(String, usize)> {
    let all = bench.calls();
    if let Some(only) = only() {
        return all.iter().filter(|(call, n)| format!("{call}:{n}") == only).cloned().collect();
    }
    if full() {
        return all.iter().filter(|(call, _)| !SILENT.contains(&call.as_str())).cloned().collect();
    }
    let telling: Vec<_> = all.iter().filter(|(call, _)| TELLING.contains(&call.as_str())).cloned().collect();
    share(&telling, SHARE)
}

/// Sweeps one command; gives what does not hold, and how many points were tried.
fn sweep(case: &'static Case) -> Option<(Vec<String>, usize)> {
    let bench = Bench::new(case)?;
    let (mut bad, mut tried) = (Vec::new(), 0);
    for (call, n) in points(&bench) {
        if let Some(found) = kill(&bench, &call, n) {
            tried += 1;
            bad.extend(found.err().map(|why| format!("{call}:{n}: {why}")));
        }
    }
    Some((bad, tried))
}

fn holds(case: &'static Case) {
    let Some((bad, tried)) = sweep(case) else { return };
    assert!(bad.is_empty(), "{}: {} of {tried} points:\n{}", case.name, bad.len(), bad.join("\n"));
    assert!(tried > 0 || only().is_some(), "{}: nothing was killed", case.name);
}

every_case!(holds);

/// Says what it will have done before it is committed.
static EARLY: Case = Case {
    call: "echo 2; $TRACE ares-submit --op-id o --key k --file words -- sh -c 'echo $ARES_ATTEMPT >>runs' >/dev/null",
    again: cases::SUBMIT.call,
    ..cases::SUBMIT
};

#[test]
fn an_early_acknowledgement_is_seen() {
    let Some(bench) = Bench::new(&EARLY) else { return };
    let writes = bench.calls().iter().filter(|(call, _)| call == "pwrite64");
    let last = writes.map(|(_, n)| *n).max().expect("it writes");
    let found = kill(&bench, "pwrite64", last).expect("it is killed");
    assert!(found.as_ref().is_err_and(|why| why.contains("is not there")), "{found:?}");
}
