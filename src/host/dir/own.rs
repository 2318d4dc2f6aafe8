//! The folders of a store, which are no links and are reached through none.

use crate::domain::id::AttemptId;
use crate::error::{Code, Error, OrCode, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::io::ErrorKind;
use std::path::Path;

/// Opens what is at this absolute path without following a link anywhere on the way, unlike `O_NOFOLLOW`, which only
/// looks at its end: a folder of a store may have been swapped for one.
pub(in crate::host) fn open_unlinked(path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
    loop {
        match openat2(CWD, path, flags | OFlags::CLOEXEC, mode, ResolveFlags::NO_SYMLINKS) {
            Err(Errno::INTR) => {}
            // A sandbox that does not know the call; then the end of the path is all that is looked at.
            Err(Errno::NOSYS | Errno::PERM) => {
                return rustix::fs::open(path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, mode);
            }
            opened => return opened,
        }
    }
}

/// What to do about a link in a store.
pub(in crate::host) const LINKED: &str = "put the directory itself in its place: no link is followed inside of a store";

/// Whether this directory of a store is there. A link in its place, or on the way to it, is refused.
pub fn is_there(path: &Path) -> Result<bool> {
    match open_unlinked(path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error @ (Errno::LOOP | Errno::NOTDIR)) => {
            let said = format!("'{}' is no directory of the store's own: {error}", path.display());
            Err(Error::new(Code::StoreUnusable, said).hint(LINKED))
        }
        Err(error) => Err(error).or_code(Code::StoreUnusable, || format!("cannot look at '{}'", path.display())),
    }
}

/// The same, for one that every store has.
pub fn expect(path: &Path) -> Result<()> {
    if is_there(path)? {
        return Ok(());
    }
    Err(Error::new(Code::StoreUnusable, format!("'{}' is gone", path.display()))
        .hint("make it again, with mode 0700, or take it from a backup"))
}

/// Removes an attempt's directory with the files in it. A directory that has no attempt's name, or that holds another
/// directory, is refused; a link in it is removed, never followed. One that is gone already is fine.
pub fn remove_attempt_dir(path: &Path) -> Result<()> {
    let what = || format!("cannot remove '{}'", path.display());
    let named = path.file_name().is_some_and(|name| name.to_string_lossy().parse::<AttemptId>().is_ok());
    if !named {
        return Err(Error::new(Code::Internal, format!("'{}' is no attempt's directory", path.display())));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match open_unlinked(path, flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(Error::new(Code::StoreUnusable.fitting(&error), format!("{}: {error}", what()))),
    };
    for entry in Dir::read_from(&folder).or_code(Code::StoreUnusable, what)? {
        let entry = entry.or_code(Code::StoreUnusable, what)?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            // unlinkat without AT_REMOVEDIR refuses directories, so nothing below this one can be lost.
            match rustix::fs::unlinkat(&folder, entry.file_name(), AtFlags::empty()) {
                // Others tidy at the same time.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(Error::new(Code::StoreUnusable, format!("{}: {error}", what()))),
            }
        }
    }
    match std::fs::remove_dir(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).or_code(Code::StoreUnusable, what),
        _ => Ok(()),
    }
}

/// Removes an attempt's directory that no row needs any more. What it was kept for is committed, so a failure changes
/// nothing of it: what stays is found and removed by the next tidying.
pub fn clear_attempt_dir(path: &Path) {
    if let Err(error) = remove_attempt_dir(path) {
        tracing::warn!(%error, "a leftover stays");
    }
}

/// Removes a file of ours that nothing depends on, or the link in its place; one that is gone already is fine.
pub fn clear_file(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => tracing::warn!(%error, "a leftover stays"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::private_dir;
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn removing_an_attempt_follows_no_link_and_needs_its_name() {
        let base = tempfile::tempdir().unwrap();
        let kept = base.path().join("kept");
        std::fs::create_dir(&kept).unwrap();
        std::fs::write(kept.join("precious"), "").unwrap();
        assert!(remove_attempt_dir(&kept).is_err());
        let attempt = base.path().join("42.1");
        private_dir(&attempt).unwrap();
        std::fs::write(attempt.join("stdout"), "x").unwrap();
        symlink(&kept, attempt.join("link")).unwrap();
        remove_attempt_dir(&attempt).unwrap();
        remove_attempt_dir(&attempt).unwrap();
        assert!(!attempt.exists() && kept.join("precious").exists());
        symlink(&kept, &attempt).unwrap();
        assert!(remove_attempt_dir(&attempt).is_err(), "a link is no attempt's directory");
        assert!(kept.join("precious").exists());
    }
}
