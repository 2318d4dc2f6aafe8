//! Processes as `/proc` tells of them: who is whose child, who carries the mark of a store, who has been stopped. Only
//! what was identified gets a signal.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::thread::sleep;
use std::time::Duration;

/// How long a process may take until it has stopped; one that waits for the disk takes as long as the disk.
const STOP_TRIES: u32 = 2000;

/// What one line of the kernel says of a process.
pub(crate) struct Stat {
    pub(crate) state: u8,
    pub(crate) parent: i32,
    pub(crate) ticks: u64,
}

impl Stat {
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut words = text.rsplit_once(')')?.1.split_whitespace();
        let state = *words.next()?.as_bytes().first()?;
        Some(Self { state, parent: words.next()?.parse().ok()?, ticks: words.nth(17)?.parse().ok()? })
    }

    /// Whether it has not ended, reaped or not.
    pub(crate) fn lives(&self) -> bool {
        !matches!(self.state, b'Z' | b'X')
    }
}

/// Whether a process of this number lives.
pub(crate) fn lives(pid: i32) -> bool {
    Stat::of(pid).is_some_and(|stat| stat.lives())
}

fn all() -> Vec<i32> {
    let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}

/// The children of a process that live.
pub(crate) fn children(parent: i32) -> Vec<i32> {
    // Not every kernel tells it at once.
    if let Ok(text) = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")) {
        return text.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(|pid| lives(*pid)).collect();
    }
    let child = |pid: &i32| Stat::of(*pid).is_some_and(|stat| stat.parent == parent && stat.lives());
    all().into_iter().filter(child).collect()
}

/// The processes that carry all of these in their environment.
pub(crate) fn marked(marks: &[String]) -> Vec<i32> {
    let carries = |pid: &i32| {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|env| {
            let parts: Vec<&[u8]> = env.split(|byte| *byte == 0).collect();
            marks.iter().all(|mark| parts.contains(&mark.as_bytes()))
        })
    };
    all().into_iter().filter(carries).collect()
}

/// Sends a signal; the process may have ended by itself in between.
pub(crate) fn send(pid: i32, signal: Signal) {
    let _gone = Pid::from_raw(pid).map(|pid| kill_process(pid, signal));
}

/// Kills these and waits until they are gone: until then a lock of theirs is held.
pub(crate) fn kill(pids: &[i32]) {
    pids.iter().for_each(|pid| send(*pid, Signal::KILL));
    let gone = |pid: &i32| {
        (0..STOP_TRIES).any(|_| {
            !lives(*pid) || {
                sleep(Duration::from_micros(50));
                false
            }
        })
    };
    assert!(pids.iter().all(gone), "what is killed ends");
}

/// Stops a process and waits until it stands; whether it does.
pub(crate) fn stop(pid: i32) -> bool {
    send(pid, Signal::STOP);
    for _ in 0..STOP_TRIES {
        match Stat::of(pid) {
            Some(stat) if stat.state == b'T' => return true,
            Some(stat) if stat.lives() => sleep(Duration::from_micros(50)),
            _ => return false,
        }
    }
    send(pid, Signal::CONT);
    false
}
