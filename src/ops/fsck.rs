//! Verifying a store: the database's own rules and digests, and the files around it. Nothing is changed, except that
//! leftovers which no row needs are removed where that is asked.

use super::tidy;
use crate::domain::attempt::State;
use crate::domain::id::AttemptId;
use crate::error::Result;
use crate::host::{dir, keeper, lock};
use crate::store::{Fault, Store};
use std::path::{Path, PathBuf};

/// Everything that does not hold. With `repair`, what cannot lose anything is put right first: leftovers are removed,
/// and our own files are closed to others.
pub fn fsck(store: &mut Store, full: bool, repair: bool) -> Result<Vec<Fault>> {
    if repair {
        tidy::tidy(store)?;
        for path in ours(store.root())? {
            dir::close_to_others(&path)?;
        }
    }
    // A file that is removed while we look, with the row that named it, would be told as lost.
    let folders = folders(store.root());
    let kept = match store.hold_objects() {
        // Without its own locks nothing else in it can be trusted.
        Err(_) if !folders.is_empty() => return Ok(folders),
        other => other?,
    };
    let mut faults = store.check(full)?;
    drop(kept);
    faults.extend(folders);
    faults.extend(modes(store.root())?);
    // What belongs to an attempt cannot be told where its row does not read.
    if !faults.iter().any(|fault| fault.damage) {
        faults.extend(leftovers(store)?);
    }
    Ok(faults)
}

/// The store's directory and everything that must be private in it.
fn ours(root: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = vec![root.to_owned()];
    for name in dir::names(root)? {
        paths.push(root.join(name));
    }
    for folder in ["locks", "attempts", "objects"] {
        let folder = root.join(folder);
        for name in dir::names(&folder)? {
            paths.push(folder.join(name));
        }
    }
    Ok(paths)
}

/// A folder of the store that is gone, or that something else stands for.
fn folders(root: &Path) -> Vec<Fault> {
    let fault = |name: &&str| {
        let error = dir::expect(&root.join(name)).err()?;
        Some(Fault::broken("folder", (*name).to_owned(), error.message))
    };
    ["locks", "attempts", "objects", "tmp"].iter().filter_map(fault).collect()
}

fn modes(root: &Path) -> Result<Vec<Fault>> {
    let mut faults = Vec::new();
    let (us, _) = dir::owner_and_mode(root)?;
    for path in ours(root)? {
        // What goes while we look is no fault.
        let Ok((owner, mode)) = dir::owner_and_mode(&path) else { continue };
        let shown = path.display().to_string();
        if mode & 0o077 != 0 {
            faults.push(Fault::broken("mode", shown.clone(), format!("has mode {mode:04o}; others may use it")));
        }
        if owner != us {
            faults.push(Fault::broken("owner", shown, format!("belongs to user {owner}")));
        }
    }
    Ok(faults)
}

/// Files of open attempts that do not read, and attempt directories that no open attempt needs: a crash between a settlement and the tidying leaves one. What a
/// living owner settled just now it tidies itself.
fn leftovers(store: &Store) -> Result<Vec<Fault>> {
    let folder = store.root().join("attempts");
    let names = dir::names(&folder)?;
    let mut left = Vec::new();
    for name in names {
        let needed = match name.parse::<AttemptId>() {
            Ok(id) => is_in_hand(store, id)?,
            Err(_) => false,
        };
        if needed && folder.join(&name).is_dir() {
            let file = |file: &&str| Fault::broken("attempt-file", format!("attempts/{name}/{file}"), "does not read");
            left.extend(keeper::damaged(&folder.join(&name))?.iter().map(file));
        }
        if !needed && folder.join(&name).symlink_metadata().is_ok() {
            left.push(Fault::broken("leftover", format!("attempts/{name}"), "belongs to no open attempt"));
        }
    }
    Ok(left)
}

/// Whether it is open, or a living owner is about to tidy it, or to claim it.
fn is_in_hand(store: &Store, id: AttemptId) -> Result<bool> {
    match store.read(|view| view.attempt(id)) {
        Ok(attempt) if attempt.state != State::Ended => Ok(true),
        Ok(attempt) if attempt.owner_lock.is_empty() => Ok(false),
        Ok(attempt) => Ok(lock::is_held(&store.locks().join(&attempt.owner_lock)).unwrap_or(false)),
        Err(_) => Ok(!tidy::is_unclaimed(store, id)?),
    }
}

/// Files of exported receipts that do not hold together, or are not what was exported. A directory stands for all files in
/// it that are named as ares-gc names them.
pub fn exported(store: &Store, named: &[PathBuf]) -> Result<Vec<Fault>> {
    let mut files = Vec::new();
    for path in named {
        if path.is_dir() {
            let mut names = dir::names(path)?;
            names.retain(|name| name.starts_with("receipts-") && name.ends_with(".jsonl"));
            names.sort();
            files.extend(names.iter().map(|name| path.join(name)));
        } else {
            files.push(path.clone());
        }
    }
    store.check_segment_files(&files)
}
