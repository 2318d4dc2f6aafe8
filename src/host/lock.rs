//! Kernel file locks: they vanish with their holder, so a held lock proves that something is alive. The only user of
//! fs2, always called by its full path, because the standard library has methods of the same names.
//!
//! INVARIANT `never-unlock`: a lock ends when its last descriptor closes, never before, so that a copy that a worker
//! inherited goes on holding it.

use super::dir;
use crate::error::{Code, Error, OrCode, Result};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// What is written into an owner's lock file when it is used.
const USED: &[u8] = b"used\n";

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Marks an owner's lock file as used: from now on it may be removed as soon as nobody holds it.
    pub fn mark_used(&self) {
        let _unmarked = (&self.file).write_all(USED);
    }

    /// The file that is locked.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Opens a lock file, making it where asked; a symbolic link is refused, also on the way: behind one others may lock
/// another file.
fn open(path: &Path, create: bool) -> Result<File> {
    open_with(path, if create { OFlags::CREATE } else { OFlags::empty() })
}

/// Makes a lock file that is not there yet, and that nobody holds.
pub fn make(path: &Path) -> Result<()> {
    open_with(path, OFlags::CREATE | OFlags::EXCL).map(drop)
}

fn open_with(path: &Path, made: OFlags) -> Result<File> {
    let mode = if made.is_empty() { Mode::empty() } else { Mode::from(0o600) };
    let opened = dir::open_unlinked(path, OFlags::RDWR | OFlags::NONBLOCK | made, mode);
    let linked = matches!(opened, Err(Errno::LOOP));
    let opened = opened.or_code(Code::StoreUnusable, || format!("cannot open the lock '{}'", path.display()));
    opened.map(File::from).map_err(|error| if linked { error.hint(dir::LINKED) } else { error })
}

/// Whether the file that was locked is still the one at this path.
fn same_file(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(ours), Ok(there)) => ours.dev() == there.dev() && ours.ino() == there.ino(),
        _ => false,
    }
}

/// Who else may hold the lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// Nobody.
    Alone,
    /// All who share it.
    Shared,
}

fn try_file(file: &File, path: &Path, how: How) -> Result<bool> {
    let tried = match how {
        How::Alone => fs2::FileExt::try_lock_exclusive(file),
        How::Shared => fs2::FileExt::try_lock_shared(file),
    };
    match tried {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) => {
            Err(Error::new(Code::StoreUnusable.fitting(&error), format!("cannot lock '{}': {error}", path.display())))
        }
    }
}

/// Takes the lock if it is free; `None` when someone holds it.
pub fn try_lock(path: &Path) -> Result<Option<Lock>> {
    try_as(path, How::Alone)
}

fn try_as(path: &Path, how: How) -> Result<Option<Lock>> {
    loop {
        let file = open(path, true)?;
        if !try_file(&file, path, how)? {
            return Ok(None);
        }
        if same_file(&file, path) {
            return Ok(Some(Lock { file, path: path.to_owned() }));
        }
    }
}

/// Takes the lock, waiting for it in the order of asking; `ARES_STORE_BUSY` after this long, which names the holder.
pub fn lock(path: &Path, wait: Option<Duration>) -> Result<Lock> {
    take(path, wait, How::Alone)
}

/// Takes the lock beside all others who share it, waiting in the same way for one who holds it alone.
pub fn share(path: &Path, wait: Option<Duration>) -> Result<Lock> {
    take(path, wait, How::Shared)
}

fn take(path: &Path, wait: Option<Duration>, how: How) -> Result<Lock> {
    if let Some(lock) = try_as(path, how)? {
        return Ok(lock);
    }
    let busy = || {
        let by = holder(path).map_or_else(String::new, |pid| format!(" by process {pid}"));
        Error::new(Code::StoreBusy, format!("'{}' is held{by}", path.display()))
    };
    if wait == Some(Duration::ZERO) {
        return Err(busy());
    }
    let Some(wait) = wait else { return blocking(path, how) };
    // A blocking flock keeps the order of asking but has no time-out: another thread waits, and we wait for it.
    let (sender, receiver) = mpsc::sync_channel(1);
    let asked = path.to_owned();
    std::thread::spawn(move || {
        let answer = blocking(&asked, how);
        // A receiver that went away gave up: the lock is dropped with the answer.
        let _gone = sender.send(answer);
    });
    receiver.recv_timeout(wait).map_err(|_| busy())?
}

fn blocking(path: &Path, how: How) -> Result<Lock> {
    loop {
        let file = open(path, true)?;
        let locked = match how {
            How::Alone => fs2::FileExt::lock_exclusive(&file),
            How::Shared => fs2::FileExt::lock_shared(&file),
        };
        match locked {
            Ok(()) if same_file(&file, path) => return Ok(Lock { file, path: path.to_owned() }),
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(Error::new(
                    Code::StoreUnusable.fitting(&error),
                    format!("cannot lock '{}': {error}", path.display()),
                ));
            }
        }
    }
}

/// Whether someone holds the lock; a lock file that is not there is held by nobody.
pub fn is_held(path: &Path) -> Result<bool> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        _ => Ok(!try_file(&open(path, false)?, path, How::Alone)?),
    }
}

/// Whether nobody needs this lock file of an owner any more: it is not held, and it was used, or not touched for so long.
pub fn is_stale(path: &Path, untouched: Duration) -> Result<bool> {
    Ok(may_be_stale(path, untouched) && !is_held(path)?)
}

fn may_be_stale(path: &Path, untouched: Duration) -> bool {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return false };
    let age = meta.modified().ok().and_then(|at| at.elapsed().ok());
    meta.len() > 0 || age.is_some_and(|age| age >= untouched)
}

/// Removes an owner's lock file that nobody holds: at once when it was used, else when it was not touched for so long.
/// It is removed under its own lock, so that an owner which opened it just now finds it gone when it compares. Says
/// whether it was removed.
pub fn remove_if_stale(path: &Path, untouched: Duration) -> Result<bool> {
    if !may_be_stale(path, untouched) {
        return Ok(false);
    }
    let Some(_held) = try_lock(path)? else { return Ok(false) };
    std::fs::remove_file(path).or_code(Code::StoreUnusable, || format!("cannot remove '{}'", path.display()))?;
    Ok(true)
}

/// Locks the open file description that the caller handed down as this descriptor, which must be of this folder.
/// It stays locked for as long as the caller, or a child of it, keeps the descriptor open. Gives the file's path.
pub fn lock_inherited(fd: i32, folder: &Path) -> Result<PathBuf> {
    let bad = |why: &str| {
        Error::new(Code::Usage, format!("descriptor {fd} {why}"))
            .hint("open it with: exec 9>>\"$(ares claim --owner-file)\"")
    };
    let what = || format!("cannot take descriptor {fd}");
    let path = std::fs::read_link(format!("/proc/self/fd/{fd}")).map_err(|_| bad("is not open"))?;
    let own = path.parent() == Some(folder)
        && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("owner-"));
    if fd < 3 || !own {
        return Err(bad("is not an owner file of this store"));
    }
    // The lock must belong to the caller's description, not to one of ours, so it is taken through a borrowed copy.
    let theirs = match rustix::io::fcntl_dupfd_cloexec(borrow(fd), 3) {
        Ok(theirs) => File::from(theirs),
        Err(Errno::BADF) => return Err(bad("is not open")),
        Err(error) => return Err(error).or_code(Code::StoreUnusable, what),
    };
    if !same_file(&theirs, &path) {
        return Err(bad("is an owner file that was removed"));
    }
    if !try_file(&theirs, &path, How::Alone)? {
        return Err(bad("is locked by another owner"));
    }
    // A file that was used can be removed as soon as nobody holds it. One that was opened to be read only stays longer.
    let _unmarked = (&theirs).write_all(USED);
    Ok(path)
}

#[expect(unsafe_code, reason = "a descriptor that was handed down as a number can only be borrowed this way")]
fn borrow(fd: i32) -> BorrowedFd<'static> {
    // SAFETY: the caller found the descriptor open in /proc/self/fd; it is duplicated at once and not kept.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Who holds the lock, as the kernel tells.
fn holder(path: &Path) -> Option<u32> {
    let meta = std::fs::metadata(path).ok()?;
    let dev = meta.dev();
    let file = format!("{:02x}:{:02x}:{}", rustix::fs::major(dev), rustix::fs::minor(dev), meta.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().filter(|line| !line.contains("->")).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields.get(5) == Some(&file.as_str())).then(|| fields.get(4)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_exclusive_and_ends_when_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = try_lock(&path).unwrap().expect("free");
        assert!(try_lock(&path).unwrap().is_none());
        assert!(is_held(&path).unwrap());
        let error = lock(&path, Some(Duration::from_millis(20))).unwrap_err();
        assert_eq!(error.code, Code::StoreBusy);
        assert!(error.message.contains(&std::process::id().to_string()), "{error}");
        drop(held);
        assert!(lock(&path, Some(Duration::from_secs(5))).is_ok());
        assert!(!is_held(&dir.path().join("none")).unwrap());
    }

    #[test]
    fn a_shared_lock_is_shared_and_keeps_out_who_wants_it_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let (one, two) = (share(&path, None).unwrap(), share(&path, Some(Duration::ZERO)).unwrap());
        assert!(try_lock(&path).unwrap().is_none());
        drop(one);
        assert!(try_lock(&path).unwrap().is_none(), "the other one still holds it");
        drop(two);
        let _alone = try_lock(&path).unwrap().expect("free");
        assert_eq!(share(&path, Some(Duration::from_millis(20))).unwrap_err().code, Code::StoreBusy);
    }

    #[test]
    fn who_waits_for_a_removed_file_waits_for_the_one_that_took_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let removed = try_lock(&path).unwrap().expect("free");
        let (asked, wait) = (path.clone(), Some(Duration::from_secs(30)));
        let waiter = std::thread::spawn(move || lock(&asked, wait).map(|lock| lock.file.metadata().unwrap().ino()));
        std::thread::sleep(Duration::from_millis(100));
        std::fs::remove_file(&path).unwrap();
        let there = try_lock(&path).unwrap().expect("another file");
        drop(removed);
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waiter.is_finished(), "it took a file that nobody else looks at");
        let ino = there.file.metadata().unwrap().ino();
        drop(there);
        assert_eq!(waiter.join().unwrap().unwrap(), ino);
    }

    #[test]
    fn a_link_on_the_way_is_not_followed() {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("real")).unwrap();
        std::os::unix::fs::symlink(base.path().join("real"), base.path().join("locks")).unwrap();
        let error = try_lock(&base.path().join("locks/lock")).unwrap_err();
        assert_eq!((error.code, error.advice()), (Code::StoreUnusable, dir::LINKED));
        assert!(!base.path().join("real/lock").exists());
    }

    #[test]
    fn a_symbolic_link_is_no_lock_file() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("real"), "").unwrap();
        std::os::unix::fs::symlink(dir.path().join("real"), dir.path().join("link")).unwrap();
        assert!(try_lock(&dir.path().join("link")).is_err());
    }
}
