//! Files and directories as the rest needs them: private, never through a symbolic link, durable where that is asked.
//! It does not know what the files mean, and opens nothing that belongs to the database.

mod network;
mod own;

pub use network::file_system;
pub(super) use own::{LINKED, open_unlinked};
pub use own::{clear_attempt_dir, clear_file, expect, is_there, remove_attempt_dir};

use crate::error::{Code, Error, OrCode, Result};
use rustix::fs::OFlags;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The flags for opening what may have been planted: no links, and no waiting for the other end of a pipe.
const CAREFUL: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK);

/// As the flag of an open of the standard library: no links.
pub(super) const NO_LINK: i32 = libc::O_NOFOLLOW;

fn bits(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).unwrap_or(0)
}

/// The user id and the permission bits of what is at this path, of the link itself if it is one.
pub fn owner_and_mode(path: &Path) -> Result<(u32, u32)> {
    let meta = std::fs::symlink_metadata(path)
        .or_code(Code::StoreUnusable, || format!("cannot look at '{}'", path.display()))?;
    Ok((meta.uid(), meta.mode() & 0o7777))
}

/// Takes from others whatever they may do with a file or directory of ours; a link is left alone.
pub fn close_to_others(path: &Path) -> Result<()> {
    let what = || format!("cannot change the mode of '{}'", path.display());
    let close = || {
        let meta = std::fs::symlink_metadata(path)?;
        if meta.is_symlink() || meta.mode() & 0o077 == 0 {
            return Ok(());
        }
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(meta.mode() & 0o7700))
    };
    match close() {
        // Others tidy at the same time.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.or_code(Code::StoreUnusable, what),
    }
}

/// Makes a directory that only its owner may enter, or finds that it is one already.
pub fn private_dir(path: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => {
            return Err(Error::new(
                Code::StoreUnusable.fitting(&error),
                format!("cannot make '{}': {error}", path.display()),
            ));
        }
    }
    let meta = std::fs::symlink_metadata(path)
        .or_code(Code::StoreUnusable, || format!("cannot look at '{}'", path.display()))?;
    let foreign = |why: &str| Err(Error::new(Code::StoreForeign, format!("'{}' {why}", path.display())));
    if !meta.is_dir() {
        return foreign("is not a directory");
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return foreign("belongs to someone else");
    }
    if meta.mode() & 0o077 != 0 {
        return foreign("may be entered by others");
    }
    Ok(())
}

/// Makes a new file that only its owner may read, with these bytes; it must not exist. It is not made durable.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let what = || format!("cannot write '{}'", path.display());
    let mut file = create_new(path).or_code(Code::StoreUnusable, what)?;
    file.write_all(bytes).or_code(Code::StoreUnusable, what)
}

/// Makes a new, private file and keeps it open; what is appended to it is never written elsewhere.
pub(super) fn create_new(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().append(true).create_new(true).mode(0o600).custom_flags(bits(OFlags::NOFOLLOW)).open(path)
}

/// Puts a file there whole or not at all, and so that it survives a loss of power.
pub fn write_durable(path: &Path, bytes: &[u8]) -> Result<()> {
    let what = || format!("cannot write '{}'", path.display());
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The process id keeps two writers apart; a file that an earlier process of this number left is in the way.
    let staged = folder.join(format!(".{name}.{}.tmp", std::process::id()));
    if staged.symlink_metadata().is_ok() {
        std::fs::remove_file(&staged).or_code(Code::StoreUnusable, what)?;
    }
    let written = create_new(&staged).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&staged, path)
    });
    if let Err(error) = written {
        // The write is what failed; a staged file that cannot be removed either is only in the way.
        let _left = std::fs::remove_file(&staged);
        return Err(Error::new(Code::StoreUnusable.fitting(&error), format!("{}: {error}", what())));
    }
    sync_dir(folder)
}

/// Makes a fresh directory in the system's temporary place that only its owner may enter.
pub fn temporary(name: &str) -> Result<std::path::PathBuf> {
    let random: String = super::random::bytes::<6>()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = std::env::temp_dir().join(format!("{name}-{random}"));
    let what = || format!("cannot make '{}'", path.display());
    DirBuilder::new().mode(0o700).create(&path).or_code(Code::StoreUnusable, what)?;
    path.canonicalize().or_code(Code::StoreUnusable, what)
}

/// Removes a directory of ours with everything in it, never through a link.
pub fn remove_tree(path: &Path) -> Result<()> {
    std::fs::remove_dir_all(path).or_code(Code::StoreUnusable, || format!("cannot remove '{}'", path.display()))
}

/// Removes a file, or a link and not what it leads to; one that is gone already is fine.
pub fn remove_file(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).or_code(Code::StoreUnusable, || format!("cannot remove '{}'", path.display()))
        }
        _ => Ok(()),
    }
}

/// The names in a directory that are UTF-8, as all of ours are; none when there is no directory.
pub fn names(path: &Path) -> Result<Vec<String>> {
    let what = || format!("cannot list '{}'", path.display());
    match std::fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::new(Code::StoreUnusable.fitting(&error), format!("{}: {error}", what()))),
        Ok(entries) => {
            let mut names = Vec::new();
            for entry in entries {
                names.extend(entry.or_code(Code::StoreUnusable, what)?.file_name().into_string());
            }
            Ok(names)
        }
    }
}

/// The absolute directory that is meant, seen from a base; it must exist and be UTF-8, as everything that is stored.
pub fn named(base: &Path, asked: Option<&str>) -> Result<String> {
    let path = asked.map_or_else(|| base.to_owned(), |dir| base.join(dir));
    let bad = |why: &str| Error::new(Code::BadInput, format!("'{}' {why}", path.display()));
    if !path.is_dir() {
        return Err(bad("is not a directory"));
    }
    path.to_str().map(str::to_owned).ok_or_else(|| bad("is not UTF-8"))
}

/// The first file whose name ends like this, at most so deep under a directory; links are not followed.
pub fn find(root: &Path, ending: &str, depth: usize) -> Result<Option<std::path::PathBuf>> {
    if depth == 0 {
        return Ok(None);
    }
    let mut names = names(root)?;
    // The latest day first, where folders are named by days.
    names.sort_unstable_by(|a, b| b.cmp(a));
    for path in names.iter().map(|name| root.join(name)) {
        let Ok(meta) = std::fs::symlink_metadata(&path) else { continue };
        if meta.is_file() && path.to_string_lossy().ends_with(ending) {
            return Ok(Some(path));
        }
        if meta.is_dir()
            && let Some(found) = find(&path, ending, depth - 1)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Makes a directory durable with every file and directory in it, none of which is the database of a store in use.
pub fn sync_tree(path: &Path) -> Result<()> {
    for name in names(path)? {
        let path = path.join(name);
        let meta = std::fs::symlink_metadata(&path);
        if meta.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
            sync_tree(&path)?;
        } else if meta.is_ok_and(|meta| meta.is_file()) {
            let sync = File::open(&path).and_then(|file| file.sync_all());
            sync.or_code(Code::StoreUnusable, || format!("cannot sync '{}'", path.display()))?;
        }
    }
    sync_dir(path)
}

/// Gives a directory its name, durably.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).or_code(Code::StoreUnusable, || format!("cannot make '{}'", to.display()))?;
    sync_dir(to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// Makes the names in a directory durable.
pub fn sync_dir(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|dir| dir.sync_all())
        .or_code(Code::StoreUnusable, || format!("cannot sync '{}'", path.display()))
}

/// Opens a regular file for reading, and nothing else that may be at this path.
fn open_regular(path: &Path) -> Result<File> {
    let what = || format!("cannot read '{}'", path.display());
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(bits(CAREFUL))
        .open(path)
        .map_err(|error| Error::new(missing_or(&error), format!("{}: {error}", what())))?;
    let meta = file.metadata().or_code(Code::StoreUnusable, what)?;
    if meta.is_file() {
        Ok(file)
    } else {
        Err(Error::new(Code::StoreUnusable, format!("'{}' is not a regular file", path.display())))
    }
}

/// Whether something stands here that is no file: a directory, a link, a pipe.
pub fn is_no_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| !meta.is_file())
}

fn missing_or(error: &std::io::Error) -> Code {
    if error.kind() == ErrorKind::NotFound { Code::NotFound } else { Code::StoreUnusable }
}

/// The bytes of a regular file, which must not be more than this. A missing one is `ARES_NOT_FOUND`.
pub fn read_bounded(path: &Path, max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?
        .take(max.saturating_add(1))
        .read_to_end(&mut bytes)
        .or_code(Code::StoreUnusable, || format!("cannot read '{}'", path.display()))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > max {
        return Err(Error::new(Code::InputTooLarge, format!("'{}' has more than {max} bytes", path.display())));
    }
    Ok(bytes)
}

/// The last bytes of a regular file, at most this many, and the length of the whole.
pub fn tail(path: &Path, max: u64) -> Result<(Vec<u8>, u64)> {
    let what = || format!("cannot read '{}'", path.display());
    let mut file = open_regular(path)?;
    let total = file.metadata().or_code(Code::StoreUnusable, what)?.len();
    file.seek(SeekFrom::Start(total.saturating_sub(max))).or_code(Code::StoreUnusable, what)?;
    let mut bytes = Vec::new();
    file.take(max.min(total)).read_to_end(&mut bytes).or_code(Code::StoreUnusable, what)?;
    Ok((bytes, total))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_private_directory_is_neither_a_link_nor_open_to_others() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("private");
        private_dir(&path).unwrap();
        private_dir(&path).unwrap();
        assert_eq!(owner_and_mode(&path).unwrap(), (rustix::process::geteuid().as_raw(), 0o700));
        symlink(&path, base.path().join("link")).unwrap();
        assert_eq!(private_dir(&base.path().join("link")).unwrap_err().code, Code::StoreForeign);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).unwrap();
        assert_eq!(private_dir(&path).unwrap_err().code, Code::StoreForeign);
        std::fs::write(base.path().join("file"), "").unwrap();
        assert_eq!(private_dir(&base.path().join("file")).unwrap_err().code, Code::StoreForeign);
    }

    #[test]
    fn private_files_are_new_and_durable_ones_replace() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("file");
        write_private(&path, b"one").unwrap();
        assert_eq!(owner_and_mode(&path).unwrap().1, 0o600);
        assert!(write_private(&path, b"two").is_err());
        write_durable(&path, b"three").unwrap();
        assert_eq!(read_bounded(&path, 5).unwrap(), b"three");
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 1, "nothing staged is left");
        assert_eq!(owner_and_mode(&path).unwrap().1, 0o600);
    }

    #[test]
    fn only_regular_files_within_bounds_are_read() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("file");
        std::fs::write(&path, "0123456789").unwrap();
        assert_eq!(read_bounded(&path, 9).unwrap_err().code, Code::InputTooLarge);
        assert_eq!(tail(&path, 4).unwrap(), (b"6789".to_vec(), 10));
        assert_eq!(tail(&path, 40).unwrap(), (b"0123456789".to_vec(), 10));
        symlink(&path, base.path().join("link")).unwrap();
        assert!(read_bounded(&base.path().join("link"), 100).is_err());
        assert_eq!(read_bounded(&base.path().join("none"), 100).unwrap_err().code, Code::NotFound);
        mknodat(CWD, base.path().join("pipe"), FileType::Fifo, Mode::from(0o600), 0).unwrap();
        assert!(read_bounded(&base.path().join("pipe"), 100).is_err(), "a pipe is refused, not waited for");
        assert!(read_bounded(base.path(), 100).is_err());
    }
}
