//! Where a store is: found by name, by `ARES_DIR` or upward like `.git`, and refused where it is another's, may be
//! changed by others, was copied, or lies where locks do not hold. A store remembers where it was made.

use super::{Ledger, Sql as _, View};
use crate::error::{Code, Error, OrCode as _, Result};
use rusqlite::OptionalExtension as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Finds the store: the one named, else the nearest `.ares` above this directory that may be trusted.
pub fn find(named: Option<&Path>, from: &Path) -> Result<PathBuf> {
    if let Some(named) = named {
        return resolve(named);
    }
    let found = from.ancestors().map(|dir| dir.join(".ares")).find(|dir| dir.join("ares.db").is_file());
    let none = || Error::new(Code::NoStore, format!("no store in '{}' or above it", from.display()));
    resolve(&found.ok_or_else(none)?)
}

/// The absolute place of a store, checked for what it is before anything in it is opened.
fn resolve(named: &Path) -> Result<PathBuf> {
    let none = || format!("no store at '{}'", named.display());
    let root = named.canonicalize().or_code(Code::NoStore, none)?;
    if !root.is_dir() {
        return Err(Error::new(Code::NoStore, format!("'{}' is a file, not a directory", named.display()))
            .hint("name the directory of the store"));
    }
    check_owner(&root)?;
    if !root.join("ares.db").is_file() {
        super::open::check_not_emptied(&root)?;
        return Err(Error::new(Code::NoStore, none()));
    }
    Ok(root)
}

/// Refuses a directory of someone else, or one that others may change.
pub(super) fn check_owner(root: &Path) -> Result<()> {
    let meta = std::fs::metadata(root).or_code(Code::NoStore, || format!("no store at '{}'", root.display()))?;
    let foreign = |why: &str| Error::new(Code::StoreForeign, format!("'{}' {why}", root.display()));
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(foreign(&format!("belongs to user {}", meta.uid())));
    }
    if meta.permissions().mode() & 0o077 != 0 {
        return Err(foreign(&format!("has mode {:04o}", meta.permissions().mode() & 0o7777)));
    }
    Ok(())
}

/// What a store remembers of the place where it was made.
pub(super) fn here(root: &Path) -> Result<String> {
    let meta =
        std::fs::metadata(root).or_code(Code::StoreUnusable, || format!("cannot look at '{}'", root.display()))?;
    // A machine without an id has none to compare; the inode and the owner still count.
    let machine = match std::fs::read_to_string("/etc/machine-id") {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        other => other.or_code(Code::StoreUnusable, || "cannot read /etc/machine-id".to_owned())?,
    };
    Ok(format!("inode={} owner={} machine={}", meta.ino(), meta.uid(), machine.trim()))
}

impl View<'_> {
    /// One value of the store's own facts.
    pub fn meta(&self, name: &str) -> Result<Option<String>> {
        let mut statement =
            self.connection.prepare_cached("SELECT value FROM meta WHERE name = ?1").sql("read the store's facts")?;
        statement.query_row([name], |row| row.get(0)).optional().sql("read the store's facts")
    }
}

/// Refuses a store that was copied or unpacked here.
pub(super) fn check_place(view: &View<'_>, root: &Path) -> Result<()> {
    if view.meta("place")?.as_deref() == Some(here(root)?.as_str()) {
        return Ok(());
    }
    Err(Error::new(Code::StoreCopied, format!("'{}' was made in another place", root.display())))
}

impl Ledger<'_> {
    /// Makes a copied store at home here; says whether it was made in another place.
    pub fn adopt(&mut self) -> Result<bool> {
        let place = here(self.root)?;
        let sql = "UPDATE meta SET value = ?1 WHERE name = 'place' AND value <> ?1";
        let changed = self.connection.execute(sql, [&place]).sql("remember the store's place")?;
        Ok(changed > 0)
    }
}
