//! Copying a store while it is in use, and making a store of a copy. A copy is verified before it gets its name, so what
//! has the name is whole.

use crate::error::{Code, Error, OrCode as _, Result};
use crate::fault;
use crate::host::{dir, random};
use crate::store::{Fault, Store};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The largest object or configuration that is copied in one piece.
const PIECE_MAX: u64 = 1 << 32;

/// Copies the store to a directory that must not exist yet.
pub fn backup(store: &Store, to: &Path) -> Result<()> {
    let staged = stage(to)?;
    // What the copy of the database names must still be there when it is copied in its turn.
    let _kept = store.hold_objects()?;
    let copied = fill(store, &staged).and_then(|()| verify(&staged));
    finish(copied, &staged, to)
}

/// Makes a store of a backup, at home in a directory that must not exist yet.
pub fn restore(backup: &Path, to: &Path, wait: Option<Duration>) -> Result<()> {
    let what = || format!("no backup at '{}'", backup.display());
    let backup = backup.canonicalize().or_code(Code::NotFound, what)?;
    let source = Store::open_anywhere(&backup, wait)?;
    verify(&backup)?;
    let staged = stage(to)?;
    finish(fill(&source, &staged).and_then(|()| verify(&staged)), &staged, to)?;
    // It remembers its place only where it stays.
    super::init::adopt(to, None, wait)
}

/// A private directory beside the one that is asked for, which is given its name when it is whole.
fn stage(to: &Path) -> Result<PathBuf> {
    if to.symlink_metadata().is_ok() {
        return Err(Error::new(Code::Usage, format!("'{}' is there already", to.display())));
    }
    let random: String = random::bytes::<6>()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let staged = to.with_file_name(format!(".{name}.{random}.tmp"));
    dir::private_dir(&staged)?;
    Ok(staged)
}

fn fill(from: &Store, to: &Path) -> Result<()> {
    from.copy_to(to)?;
    fault::point("backup.copied");
    for folder in ["objects", "locks", "attempts", "tmp"] {
        dir::private_dir(&to.join(folder))?;
    }
    // What the copy names was there before the copy was made, and objects do not change.
    let files = Store::open_anywhere(to, None)?.read(|view| view.object_files())?;
    for (_, name) in files {
        let path = to.join(&name);
        dir::private_dir(path.parent().unwrap_or(to))?;
        dir::write_durable(&path, &dir::read_bounded(&from.root().join(&name), PIECE_MAX)?)?;
    }
    match dir::read_bounded(&from.root().join("config.toml"), PIECE_MAX) {
        Ok(config) => dir::write_durable(&to.join("config.toml"), &config)?,
        Err(error) if error.code == Code::NotFound => {}
        Err(error) => return Err(error),
    }
    dir::sync_tree(to)
}

fn verify(root: &Path) -> Result<()> {
    let faults = Store::open_anywhere(root, None)?.check(false)?;
    let Some(fault) = faults.into_iter().find(Fault::spoils_a_copy) else { return Ok(()) };
    let code = if fault.damage { Code::StoreDamaged } else { Code::StoreUnusable };
    Err(Error::new(code, format!("'{}': {} {}", root.display(), fault.subject, fault.detail)))
}

fn finish(copied: Result<()>, staged: &Path, to: &Path) -> Result<()> {
    if let Err(error) = copied {
        dir::remove_tree(staged)?;
        return Err(error);
    }
    dir::rename(staged, to)
}
