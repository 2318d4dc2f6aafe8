//! Processes that are found by looking through all of them: those of an attempt by the mark in their environment, and
//! the children of this one.

use super::{Identity, Signal, Stat, signal, unless_limit};
use crate::error::{Code, OrCode as _, Result};
use crate::host::clock;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

/// The numbers of the processes that `/proc` shows.
fn all() -> io::Result<impl Iterator<Item = i32>> {
    let entries = unless_limit(std::fs::read_dir("/proc"))?.into_iter().flatten().flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

/// The caller's own processes, except the calling one, that were started for this attempt of this store, as far as their
/// environment still says so.
pub fn marked(attempt: &str, store: &str) -> Result<Vec<i32>> {
    let wanted = [format!("ARES_ATTEMPT={attempt}"), format!("ARES_DIR={store}")];
    let user = rustix::process::geteuid().as_raw();
    let has = |pid: i32| -> io::Result<bool> {
        if std::fs::metadata(format!("/proc/{pid}")).map_or(true, |meta| meta.uid() != user) {
            return Ok(false);
        }
        // One that ended meanwhile, or that is not ours to look into, is none of them.
        let environment = unless_limit(std::fs::read(format!("/proc/{pid}/environ")))?.unwrap_or_default();
        Ok(wanted.iter().all(|entry| environment.split(|byte| *byte == 0).any(|part| part == entry.as_bytes())))
    };
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let look = || -> io::Result<Vec<i32>> {
        let mut marked = Vec::new();
        for pid in all()?.filter(|pid| *pid != own) {
            if has(pid)? {
                marked.push(pid);
            }
        }
        Ok(marked)
    };
    look().or_code(Code::Internal, || format!("cannot look for processes of attempt {attempt}"))
}

/// How long processes that were killed may take to go.
const END_MAX: Duration = Duration::from_secs(2);

/// Kills what [`marked`] finds until nothing is left; a keeper does this for the processes that it is the parent of.
pub fn end_marked(attempt: &str, store: &str) -> Result<()> {
    let began = clock::mark();
    loop {
        let left = marked(attempt, store)?;
        if left.is_empty() || began.elapsed() > END_MAX {
            return Ok(());
        }
        for identity in left.into_iter().filter_map(|pid| Identity::of(pid).ok().flatten()) {
            // One that has gone meanwhile needs no signal, and one that we may not send to survives.
            let _gone = signal(&identity, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The children of this process, those that ended and were not waited for included.
pub fn children_of_self() -> Vec<i32> {
    listed_children().unwrap_or_else(|| {
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let all = all().into_iter().flatten();
        all.filter(|pid| Stat::of(*pid).is_ok_and(|stat| stat.parent == own)).collect()
    })
}

/// As the kernel lists them, thread by thread; not every kernel does.
fn listed_children() -> Option<Vec<i32>> {
    let mut children = Vec::new();
    for thread in std::fs::read_dir("/proc/self/task").ok()? {
        let text = match std::fs::read_to_string(thread.ok()?.path().join("children")) {
            Ok(text) => text,
            // A thread that ended meanwhile has handed its children on; a kernel without the file has it for none.
            Err(_) if std::fs::exists("/proc/thread-self/children").unwrap_or(false) => continue,
            Err(_) => return None,
        };
        children.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Some(children)
}
