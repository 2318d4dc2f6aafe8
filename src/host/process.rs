//! Who a process is, and whether it still lives. `/proc` and pidfds for the truth, sysinfo for display and where there
//! is no `/proc`; no other file knows sysinfo. It refuses to guess: what cannot be decided is `Unknown`, and a process
//! that cannot be told apart from a stranger gets no signal.

mod others;

pub use others::{children_of_self, end_marked, marked};

pub use super::setup::{own_user, parent, prepare};
use crate::error::{Code, Error, OrCode, Result, is_limit};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

pub use rustix::process::Signal;

/// The magic number of the file system whose inode numbers tell processes apart, since Linux 6.9.
const PIDFS: u32 = 0x5049_4446;

/// What tells one process from every other one, also from a later one of the same number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The boot that it lives in; empty where there is no `/proc`.
    pub boot: String,
    /// The inode of its PID namespace: two containers share a boot but not their numbers.
    pub pid_ns: u64,
    /// Its number.
    pub pid: i32,
    /// When it started, in clock ticks since the boot; in seconds since 1970 where there is no `/proc`.
    pub ticks: u64,
    /// The inode of its pidfd, where the kernel never gives the same one twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pidfd_ino: Option<u64>,
}

/// Whether a process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It does.
    Alive,
    /// It does not; its number may belong to another one.
    Dead,
    /// It cannot be told from here.
    Unknown,
}

/// What a process uses, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Resident memory in bytes.
    pub memory_bytes: u64,
    /// Processor time so far, in milliseconds.
    pub cpu_ms: u64,
}

/// The fields of `/proc/PID/stat` that matter here.
pub(super) struct Stat {
    /// `Z` and `X` are dead.
    state: u8,
    parent: i32,
    started: u64,
    /// Processor time of the process and of the children that it waited for, in milliseconds.
    pub(super) cpu_ms: i64,
}

impl Stat {
    /// Reads them; the name in the second field may hold anything, so what follows its last bracket counts.
    pub(super) fn of(pid: i32) -> io::Result<Self> {
        // One read gets it whole: some fifty numbers and a name of at most 64 bytes.
        let mut text = [0_u8; 2048];
        let length = File::open(format!("/proc/{pid}/stat"))?.read(&mut text)?;
        Self::parse(&text[..length]).ok_or_else(|| ErrorKind::InvalidData.into())
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let rest = &text[text.iter().rposition(|byte| *byte == b')')? + 1..];
        let fields: Vec<&str> = std::str::from_utf8(rest).ok()?.split_ascii_whitespace().collect();
        // The first of these fields is the third of the file.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let used = (14..=17).map_while(number).sum::<u64>();
        let second = rustix::param::clock_ticks_per_second().max(1);
        Some(Self {
            state: *fields.first()?.as_bytes().first()?,
            parent: i32::try_from(number(4)?).ok()?,
            started: number(22)?,
            cpu_ms: i64::try_from(used.saturating_mul(1000) / second).unwrap_or(i64::MAX),
        })
    }

    fn dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// The id of this boot; `None` where there is no `/proc`. That it cannot be read just now is not that.
pub(super) fn boot_id() -> io::Result<Option<&'static str>> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    if let Some(known) = BOOT.get() {
        return Ok(known.as_deref());
    }
    let read = unless_limit(std::fs::read_to_string("/proc/sys/kernel/random/boot_id"))?;
    Ok(BOOT.get_or_init(|| read.map(|text| text.trim().to_owned())).as_deref())
}

fn pid_namespace() -> io::Result<Option<u64>> {
    Ok(unless_limit(std::fs::metadata("/proc/self/ns/pid"))?.map(|meta| meta.ino()))
}

/// What could be read, or `None` where it is not there or is not for us. That a limit of the system is reached is told
/// apart: taken for an answer, it would make what lives dead.
fn unless_limit<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if Errno::from_io_error(&error).is_some_and(is_limit) => Err(error),
        Err(_) => Ok(None),
    }
}

fn inode(pidfd: &OwnedFd) -> Option<u64> {
    let magic = u32::try_from(i128::from(rustix::fs::fstatfs(pidfd).ok()?.f_type) & 0xFFFF_FFFF).ok()?;
    if magic == PIDFS { rustix::fs::fstat(pidfd).ok().map(|stat| stat.st_ino) } else { None }
}

/// Whether the process of this pidfd has ended, reaped or not.
pub(super) fn ended(pidfd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1))
}

impl Identity {
    /// Of this process.
    pub fn own() -> Result<Self> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Self::of(pid)?.ok_or_else(|| Error::new(Code::Internal, "this process cannot be found"))
    }

    /// Of the process that has this number now; `None` when there is none, or it has ended.
    pub fn of(pid: i32) -> Result<Option<Self>> {
        let what = || format!("cannot identify process {pid}");
        let Some(number) = Pid::from_raw(pid).filter(|_| pid > 0) else { return Ok(None) };
        let pidfd = match pidfd_open(number, PidfdFlags::empty()) {
            Ok(pidfd) => Some(pidfd),
            // A number that belongs to a thread only is no process.
            Err(Errno::SRCH | Errno::INVAL) => return Ok(None),
            Err(error) if is_limit(error) => return Err(error).or_code(Code::Internal, what),
            Err(_) => None,
        };
        let Some(boot) = boot_id().or_code(Code::Internal, what)? else {
            let ticks = seconds(pid);
            return Ok(ticks.map(|ticks| Self { boot: String::new(), pid_ns: 0, pid, ticks, pidfd_ino: None }));
        };
        let stat = match Stat::of(pid) {
            Ok(stat) => stat,
            Err(_) if pidfd.as_ref().is_some_and(ended) => return Ok(None),
            Err(error) if pidfd.is_none() && error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).or_code(Code::Internal, what),
        };
        // It was still running after its file was read, so the file was not that of a successor.
        if stat.dead() || pidfd.as_ref().is_some_and(ended) {
            return Ok(None);
        }
        let pid_ns = pid_namespace().and_then(|ns| ns.ok_or_else(|| ErrorKind::NotFound.into()));
        let pid_ns = pid_ns.or_code(Code::Internal, what)?;
        let pidfd_ino = pidfd.as_ref().and_then(inode);
        Ok(Some(Self { boot: boot.to_owned(), pid_ns, pid, ticks: stat.started, pidfd_ino }))
    }
}

/// What was found under a recorded number.
enum Found {
    /// The very process, held by a descriptor that cannot come to mean another one.
    Held(OwnedFd),
    /// It lives or not, but there is nothing to hold it by.
    Seen(Life),
}

fn find(identity: &Identity) -> io::Result<Found> {
    let (Some(boot), false) = (boot_id()?, identity.boot.is_empty()) else {
        return Ok(Found::Seen(by_seconds(identity)));
    };
    if boot != identity.boot {
        return Ok(Found::Seen(Life::Dead));
    }
    if pid_namespace()? != Some(identity.pid_ns) {
        return Ok(Found::Seen(Life::Unknown));
    }
    let Some(number) = Pid::from_raw(identity.pid).filter(|_| identity.pid > 0) else {
        return Ok(Found::Seen(Life::Dead));
    };
    match pidfd_open(number, PidfdFlags::empty()) {
        Ok(pidfd) => held(identity, pidfd),
        Err(Errno::SRCH | Errno::INVAL) => Ok(Found::Seen(Life::Dead)),
        Err(error) if is_limit(error) => Err(error.into()),
        Err(_) => by_ticks(identity).map(Found::Seen),
    }
}

fn held(identity: &Identity, pidfd: OwnedFd) -> io::Result<Found> {
    let same = match (identity.pidfd_ino, inode(&pidfd)) {
        (Some(recorded), Some(found)) => Some(recorded == found),
        _ => unless_limit(Stat::of(identity.pid))?.map(|stat| stat.started == identity.ticks),
    };
    // The end is looked for last, so that what was read before was read of a process that still had its number.
    Ok(match (same, ended(&pidfd)) {
        (_, true) | (Some(false), _) => Found::Seen(Life::Dead),
        (Some(true), false) => Found::Held(pidfd),
        (None, false) => Found::Seen(Life::Unknown),
    })
}

/// Without pidfds: the start time alone.
fn by_ticks(identity: &Identity) -> io::Result<Life> {
    Ok(match unless_limit(Stat::of(identity.pid))? {
        Some(stat) if stat.dead() || stat.started != identity.ticks => Life::Dead,
        Some(_) => Life::Alive,
        // With hidepid the files of others are missing, too.
        None => Life::Unknown,
    })
}

/// Without `/proc`: what sysinfo can tell, if it can tell anything at all.
fn by_seconds(identity: &Identity) -> Life {
    let own = i32::try_from(std::process::id()).ok().and_then(seconds);
    match (own, seconds(identity.pid)) {
        (Some(_), None) => Life::Dead,
        (Some(_), Some(started)) if identity.boot.is_empty() && started == identity.ticks => Life::Alive,
        _ => Life::Unknown,
    }
}

/// Whether the process of this identity lives. A zombie is dead.
pub fn life(identity: &Identity) -> Result<Life> {
    let found = find(identity).or_code(Code::Internal, || format!("cannot look for process {}", identity.pid))?;
    Ok(match found {
        Found::Held(_) => Life::Alive,
        Found::Seen(life) => life,
    })
}

/// INVARIANT `no-signal-to-strangers`: a number alone never gets a signal; what is found under it is identified first.
///
/// Sends a signal to the very process of this identity, never to a stranger; `false` when it is gone. One that cannot be
/// told apart is `ARES_UNCERTAIN` and gets nothing.
pub fn signal(identity: &Identity, signal: Signal) -> Result<bool> {
    let what = || format!("cannot send a signal to process {}", identity.pid);
    match find(identity).or_code(Code::Internal, what)? {
        Found::Held(pidfd) => match pidfd_send_signal(&pidfd, signal) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(error) => Err(Error::new(Code::StoreForeign, format!("{}: {error}", what()))),
        },
        Found::Seen(Life::Dead) => Ok(false),
        Found::Seen(_) => Err(Error::new(Code::Uncertain, format!("{}: it cannot be identified", what()))),
    }
}

fn system(pid: i32, what: sysinfo::ProcessRefreshKind) -> Option<sysinfo::System> {
    let mut system = sysinfo::System::new().ok()?;
    let pids = [sysinfo::Pid::from_u32(u32::try_from(pid).ok()?)];
    // Without this, threads would appear as processes.
    let what = what.without_tasks();
    system.refresh_processes_specifics(sysinfo::ProcessesToUpdate::Some(&pids), true, what);
    Some(system)
}

/// When a process started, in seconds since 1970, as sysinfo has it.
fn seconds(pid: i32) -> Option<u64> {
    let system = system(pid, sysinfo::ProcessRefreshKind::nothing())?;
    Some(system.process(sysinfo::Pid::from_u32(u32::try_from(pid).ok()?))?.start_time())
}

/// What a process uses; `None` when there is none.
pub fn load(pid: i32) -> Option<Load> {
    let system = system(pid, sysinfo::ProcessRefreshKind::nothing().with_memory().with_cpu())?;
    let process = system.process(sysinfo::Pid::from_u32(u32::try_from(pid).ok()?))?;
    Some(Load { memory_bytes: process.memory(), cpu_ms: process.accumulated_cpu_time() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_its_identity_survives_json() {
        let own = Identity::own().unwrap();
        assert_eq!(life(&own).unwrap(), Life::Alive);
        let text = serde_json::to_string(&own).unwrap();
        assert_eq!(serde_json::from_str::<Identity>(&text).unwrap(), own);
        assert_eq!(by_ticks(&own).unwrap(), Life::Alive);
        assert_eq!(Identity::of(0).unwrap(), None);
        assert_eq!(Identity::of(i32::MAX).unwrap(), None);
    }

    #[test]
    fn every_rung_of_the_ladder_decides() {
        let own = Identity::own().unwrap();
        let other_boot = Identity { boot: "another".to_owned(), ..own.clone() };
        assert_eq!(life(&other_boot).unwrap(), Life::Dead);
        let other_ns = Identity { pid_ns: own.pid_ns + 1, ..own.clone() };
        assert_eq!(life(&other_ns).unwrap(), Life::Unknown);
        assert!(signal(&other_ns, Signal::KILL).is_err(), "what cannot be identified gets no signal");
        let no_such = Identity { pid: i32::MAX, ..own.clone() };
        assert_eq!(life(&no_such).unwrap(), Life::Dead);
        let reused = Identity { ticks: own.ticks + 1, pidfd_ino: None, ..own.clone() };
        assert_eq!(life(&reused).unwrap(), Life::Dead);
        assert_eq!(by_ticks(&reused).unwrap(), Life::Dead);
        // Were it sent, this test would not survive it.
        assert!(!signal(&reused, Signal::KILL).unwrap());
        if let Some(ino) = own.pidfd_ino {
            let same_tick = Identity { pidfd_ino: Some(ino + 1), ..own };
            assert_eq!(life(&same_tick).unwrap(), Life::Dead);
            assert!(!signal(&same_tick, Signal::KILL).unwrap());
        }
    }

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let line = b"7 (a) R 1 ) x) S 5 7 7 0 -1 4194304 1 1 0 0 10 20 30 40 20 0 1 0 4242 1 1";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.state, stat.parent, stat.started), (b'S', 5, 4242));
        assert_eq!(stat.cpu_ms, 100 * 1000 / i64::try_from(rustix::param::clock_ticks_per_second()).unwrap());
    }

    #[test]
    fn without_proc_only_a_match_in_seconds_is_alive() {
        let own = Identity::own().unwrap();
        let started = seconds(own.pid).unwrap();
        let recorded = Identity { boot: String::new(), ticks: started, ..own };
        assert_eq!(life(&recorded).unwrap(), Life::Alive);
        assert_eq!(life(&Identity { ticks: started + 100, ..recorded.clone() }).unwrap(), Life::Unknown);
        assert_eq!(life(&Identity { pid: i32::MAX, ..recorded }).unwrap(), Life::Dead);
    }

    #[test]
    fn load_is_that_of_the_process() {
        let load = load(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(load.memory_bytes > 100_000, "{load:?}");
        assert!(super::load(i32::MAX).is_none());
    }
}
