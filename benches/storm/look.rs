//! What can be seen from outside of what a runner is doing: the record, the attempt's directory and the kernel's locks.
//! It is read by SQLite and from plain files, and by nothing of ares, which is what is being judged.

use super::Lab;
use super::process::{self, Stat};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

/// How far whoever was killed had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    Submit,
    BeforeClaim,
    Claimed,
    Dispatched,
    Starting,
    Running,
    Ended,
    Settling,
    Settled,
    Reconcile,
}

impl Moment {
    pub(crate) const ALL: [Self; 10] = [
        Self::Submit,
        Self::BeforeClaim,
        Self::Claimed,
        Self::Dispatched,
        Self::Starting,
        Self::Running,
        Self::Ended,
        Self::Settling,
        Self::Settled,
        Self::Reconcile,
    ];

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Submit => "while it is submitted",
            Self::BeforeClaim => "before the claim, and in its commit",
            Self::Claimed => "claimed, not dispatched",
            Self::Dispatched => "dispatched, the keeper has not begun",
            Self::Starting => "the keeper is about to start the worker",
            Self::Running => "the worker runs",
            Self::Ended => "the worker has ended, its end is not settled",
            Self::Settling => "in the commit that settles",
            Self::Settled => "settled, its files are not removed",
            Self::Reconcile => "in a reconcile",
        }
    }
}

/// An open attempt as it is seen.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    /// `JOB.N`.
    pub(crate) name: String,
    pub(crate) running: bool,
    pub(crate) owner: Option<i32>,
    pub(crate) keeper: Option<i32>,
    pub(crate) notes: Notes,
}

/// What the keeper has written of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// It said that it is about to start the worker.
    pub(crate) begun: bool,
    /// The worker's number, where it said that.
    pub(crate) worker: Option<i32>,
    /// It wrote down how the worker ended.
    pub(crate) ended: bool,
    /// And that was by itself, with an exit status.
    pub(crate) exited: bool,
}

impl Notes {
    pub(crate) fn read(folder: &Path) -> Self {
        let mark = fs::read_to_string(folder.join("mark")).unwrap_or_default();
        let whole = mark.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let lines: Vec<serde_json::Value> = whole.filter_map(|line| serde_json::from_str(line).ok()).collect();
        let worker = lines.iter().find_map(|line| i32::try_from(line["pid"].as_i64()?).ok());
        let end = fs::read(folder.join("exit")).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let end: Option<serde_json::Value> = end;
        let exited = end.as_ref().is_some_and(|end| end["seen"]["exit"].is_i64());
        Self { begun: !lines.is_empty(), worker, ended: end.is_some(), exited }
    }
}

/// The record, opened for one look. It must not be the last one that closes it: that would be a checkpoint.
pub(crate) fn record(lab: &Lab) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let record = Connection::open_with_flags(lab.store.join("ares.db"), flags)?;
    record.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    record.busy_timeout(Duration::from_millis(50))?;
    Ok(record)
}

/// The number in an identity, if the process that it names still lives.
fn named(identity: Option<String>) -> Option<i32> {
    let identity: serde_json::Value = serde_json::from_str(&identity?).ok()?;
    let pid = i32::try_from(identity["pid"].as_i64()?).ok()?;
    Stat::of(pid).filter(|stat| stat.lives() && Some(stat.ticks) == identity["ticks"].as_u64()).map(|_| pid)
}

/// Every attempt that is claimed or running.
pub(crate) fn open(lab: &Lab) -> rusqlite::Result<Vec<Open>> {
    let record = record(lab)?;
    let text =
        "SELECT job || '.' || n, state, owner, keeper FROM attempts WHERE state <> 'ended' AND state <> 'uncertain'";
    let mut query = record.prepare(text)?;
    let rows = query.query_map([], |row| {
        let name: String = row.get(0)?;
        let running = row.get::<_, String>(1)? == "running";
        let notes = Notes::read(&lab.folder(&name));
        Ok(Open { name, running, owner: named(row.get(2)?), keeper: named(row.get(3)?), notes })
    })?;
    rows.collect()
}

/// Whether an attempt of this owner is settled and its directory is still there.
fn leaves(lab: &Lab, owner: i32) -> rusqlite::Result<bool> {
    let record = record(lab)?;
    let names = fs::read_dir(lab.store.join("attempts")).unwrap().flatten();
    for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
        let Some((job, n)) = name.split_once('.') else { continue };
        let text = "SELECT owner FROM attempts WHERE job = ?1 AND n = ?2 AND state = 'ended'";
        let ours = record.query_row(text, params![job, n], |row| row.get::<_, String>(0));
        if ours.is_ok_and(|identity| named(Some(identity)) == Some(owner)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether this process holds the store's write lock.
fn writes(lab: &Lab, pid: i32) -> bool {
    let inode = fs::metadata(lab.store.join("locks/write.lock")).map_or(0, |meta| meta.ino());
    let end = format!(":{inode}");
    let pid = pid.to_string();
    fs::read_to_string("/proc/locks").unwrap_or_default().lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(1) == Some(&"FLOCK")
            && words.get(4) == Some(&pid.as_str())
            && words.get(5).is_some_and(|file| file.ends_with(&end))
    })
}

/// How far the runner of this number has come. It and its keeper stand still.
pub(crate) fn moment(lab: &Lab, owner: i32, open: &[Open]) -> rusqlite::Result<Moment> {
    let Some(own) = open.iter().find(|open| open.owner == Some(owner)) else {
        return Ok(if leaves(lab, owner)? { Moment::Settled } else { Moment::BeforeClaim });
    };
    if !own.running {
        return Ok(Moment::Claimed);
    }
    Ok(match &own.notes {
        Notes { ended: true, .. } if writes(lab, owner) => Moment::Settling,
        Notes { ended: true, .. } => Moment::Ended,
        Notes { worker: Some(worker), .. } if process::lives(*worker) => Moment::Running,
        Notes { worker: Some(_), .. } => Moment::Ended,
        Notes { begun: true, .. } => Moment::Starting,
        // What is dispatched in the commit that settles the one before it: that one's files are still there.
        _ if leaves(lab, owner)? => Moment::Settled,
        _ => Moment::Dispatched,
    })
}
