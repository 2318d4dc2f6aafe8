//! What crashes leave around the database: directories of attempts whose evidence is stored, lock files of owners that
//! ended. A lock or the record proves that nobody needs them; how old something is proves nothing.

use super::collect;
use crate::domain::attempt::State;
use crate::domain::id::AttemptId;
use crate::error::{Code, Result};
use crate::host::{clock, dir, keeper, lock};
use crate::store::{Done, Ledger, Store};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An owner file that nobody holds is left alone for so long: a shell may be about to open it. Nothing but tidiness
/// depends on this.
const STALE: Duration = Duration::from_secs(3600);

/// Something that nobody needs any more.
#[derive(Clone, Debug)]
pub struct Leftover {
    what: What,
    /// How many files it is.
    pub files: i64,
    /// How many bytes they have.
    pub bytes: i64,
}

#[derive(Clone, Debug)]
enum What {
    Attempt(PathBuf),
    Unclaimed(AttemptId),
    Lock(PathBuf, Duration),
}

/// Removes what no open attempt needs any more.
pub fn tidy(store: &mut Store) -> Result<usize> {
    // Whoever recorded an end may have ended before it removed what is not to be kept.
    for attempt in store.read(|view| view.uncertain_attempts())? {
        if !store.read(|view| view.job(attempt.id.job))?.spec.limits.capture {
            collect::forget(&store.attempt_dir(attempt.id));
        }
    }
    let found = leftovers(store)?;
    found.iter().try_for_each(|leftover| remove(store, leftover))?;
    Ok(found.len())
}

/// What no open attempt needs any more: of an attempt that has ended, which is for good, or of one that nobody claimed. The
/// latter may be about to be claimed by whoever holds the write lock, and is looked at again under it.
pub fn leftovers(store: &Store) -> Result<Vec<Leftover>> {
    for folder in ["attempts", "locks", "tmp"] {
        dir::expect(&store.root().join(folder))?;
    }
    let (folders, locks) = (dir::names(&store.root().join("attempts"))?, dir::names(&store.locks())?);
    crate::fault::point("tidy.listed");
    let mut found = Vec::new();
    for id in folders.iter().filter_map(|name| name.parse::<AttemptId>().ok()) {
        match standing(store, id)? {
            Standing::Open => {}
            // What lives on holds its lock there, and whoever still waits for it needs the rest.
            Standing::Over if keeper::worker_lock_held(&store.attempt_dir(id))? => {}
            Standing::Over => found.push(folder(What::Attempt(store.attempt_dir(id)), store, id)?),
            Standing::Unclaimed => found.push(folder(What::Unclaimed(id), store, id)?),
        }
    }
    let tmp = store.root().join("tmp");
    for path in dir::names(&tmp)?.iter().filter(|name| name.starts_with("lock-")).map(|name| tmp.join(name)) {
        // It was made by a store that was being made, which holds it until it removes it, and makes another if it must.
        found.extend(stale(path, Duration::ZERO)?);
    }
    let open = store.read(|view| view.open_attempts())?;
    let owned = |name: &str| open.iter().any(|attempt| attempt.owner_lock == name);
    for name in locks.iter().filter(|name| name.starts_with("owner-") && !owned(name)) {
        found.extend(stale(store.locks().join(name), STALE)?);
    }
    Ok(found)
}

fn folder(what: What, store: &Store, id: AttemptId) -> Result<Leftover> {
    let path = store.attempt_dir(id);
    let names = dir::names(&path)?;
    let bytes = names.iter().map(|name| size(&path.join(name))).sum();
    let files = i64::try_from(names.len()).unwrap_or(i64::MAX).max(1);
    Ok(Leftover { what, files, bytes })
}

fn stale(path: PathBuf, untouched: Duration) -> Result<Option<Leftover>> {
    if !lock::is_stale(&path, untouched)? {
        return Ok(None);
    }
    let bytes = size(&path);
    Ok(Some(Leftover { what: What::Lock(path, untouched), files: 1, bytes }))
}

fn size(path: &Path) -> i64 {
    path.symlink_metadata().map_or(0, |meta| i64::try_from(meta.len()).unwrap_or(i64::MAX))
}

/// What the record says of an attempt, in one look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its files are needed.
    Open,
    /// It has ended, which is for good.
    Over,
    /// There is none of this name, or there is not yet one.
    Unclaimed,
}

pub(super) fn standing(store: &Store, id: AttemptId) -> Result<Standing> {
    match store.read(|view| view.attempt(id)) {
        Ok(attempt) if attempt.state == State::Ended => Ok(Standing::Over),
        Ok(_) => Ok(Standing::Open),
        Err(error) if error.code == Code::NotFound => Ok(Standing::Unclaimed),
        Err(error) => Err(error),
    }
}

/// Whether a directory that is there belongs to no attempt and to nobody who is about to claim one.
pub(super) fn is_unclaimed(store: &Store, id: AttemptId) -> Result<bool> {
    let there = || store.attempt_dir(id).symlink_metadata().is_ok();
    store.alone(|| Ok(standing(store, id)? == Standing::Unclaimed && there()))
}

/// Removes one of them, if it is one still.
pub fn remove(store: &mut Store, leftover: &Leftover) -> Result<()> {
    match &leftover.what {
        What::Attempt(path) => dir::clear_attempt_dir(path),
        // Whoever laid it out may have died inside its commit, which comes back when the log is read anew, unless something
        // was written in its place. So this writes, and removes only what its own commit has made nobody's.
        What::Unclaimed(id) => {
            let folder = store.attempt_dir(*id);
            let disown = |ledger: &mut Ledger<'_>| match ledger.attempt(*id) {
                Err(error) if error.code == Code::NotFound => {
                    let note = "removed what was laid out and never claimed".to_owned();
                    ledger.record("reconcile", None, &Done { note, ..Done::new(id.to_string(), ()) })?;
                    Ok(true)
                }
                other => other.map(|_| false),
            };
            let clear = |unclaimed: &bool| {
                if *unclaimed {
                    dir::clear_attempt_dir(&folder)
                }
            };
            store.write_then(clock::now(), disown, clear)?;
        }
        What::Lock(path, untouched) => drop(lock::remove_if_stale(path, *untouched)?),
    }
    Ok(())
}
