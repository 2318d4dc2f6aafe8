//! Making, opening and upgrading a store: the one place that opens a database, with its settings read back.

use super::{APPLICATION_ID, Sql as _, Store, VERSION, View, place};
use crate::error::{Code, Error, OrCode as _, Result};
use crate::host::{dir, lock, random};
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// How long SQLite itself waits; the write lock in front makes this rare.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// The oldest SQLite whose write-ahead log is safe with many processes.
const SQLITE_OLDEST: i32 = 3_051_003;

/// The folders of a store beside its database.
const FOLDERS: &[&str] = &["locks", "attempts", "objects", "tmp"];

impl Store {
    /// Opens the store at this absolute place, which [`place::find`] has checked.
    pub fn open(root: &Path, wait: Option<Duration>) -> Result<Self> {
        let store = Self::open_anywhere(root, wait)?;
        place::check_place(&store.view(), root)?;
        Ok(store)
    }

    /// Opens it although it may have been copied here; for adopting it.
    pub fn open_anywhere(root: &Path, wait: Option<Duration>) -> Result<Self> {
        check_file_system(root)?;
        let store = Self::connect(root, OpenFlags::empty(), wait)?;
        store.check_version()?;
        Ok(store)
    }

    fn view(&self) -> View<'_> {
        View { connection: &self.connection, root: &self.root }
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that opens a database")]
    fn connect(root: &Path, more: OpenFlags, wait: Option<Duration>) -> Result<Self> {
        // An absolute path cannot be read as a URI, so no name can switch locking off or open memory instead.
        debug_assert!(root.is_absolute());
        let path = database(root);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NOFOLLOW
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | more;
        check_not_emptied(root)?;
        let what = format!("open '{}'", path.display());
        let mut connection = Connection::open_with_flags(&path, flags).sql(&what)?;
        connection.busy_timeout(BUSY).sql(&what)?;
        // A runner's two transactions use some forty statements; each is compiled once.
        connection.set_prepared_statement_cache_capacity(128);
        let frames = Arc::new(AtomicI32::new(super::UNKNOWN));
        let counted = Arc::clone(&frames);
        let count = move |_: &mut Wal, pages: i32| {
            counted.store(pages, Ordering::Relaxed);
            Ok(())
        };
        let settings = || -> rusqlite::Result<()> {
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            // A plan holds whatever is bound to it; otherwise a LIMIT or a small number has a statement compiled twice.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
            connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
            connection.wal_hook(Some(count))
        };
        settings().sql(&what)?;
        let meta =
            std::fs::metadata(&path).or_code(Code::StoreUnusable, || format!("cannot look at '{}'", path.display()))?;
        let by = format!("{}:{}", rustix::process::geteuid().as_raw(), std::process::id());
        Ok(Self { connection, frames, writes: 0, root: root.to_owned(), file: (meta.dev(), meta.ino()), wait, by })
    }

    fn pragma<T: rusqlite::types::FromSql>(&self, name: &str) -> Result<T> {
        self.connection.pragma_query_value(None, name, |row| row.get(0)).sql(&format!("read the store's {name}"))
    }

    fn keep_wal(&self) -> Result<()> {
        let what = "switch to the write-ahead log";
        let switch = self.connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0));
        let journal: String = switch.sql(what)?;
        if journal == "wal" {
            return Ok(());
        }
        Err(Error::new(Code::StoreUnusable, format!("'{}' cannot keep a write-ahead log", self.root.display())))
    }

    /// Durability and foreign keys are never assumed: they are asked for and read back.
    fn check_settings(&self) -> Result<()> {
        let journal: String = self.pragma("journal_mode")?;
        let synchronous: i64 = self.pragma("synchronous")?;
        let foreign_keys = self.connection.db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY).sql("read foreign_keys")?;
        if journal != "wal" || synchronous != 2 || !foreign_keys {
            let found = format!("journal_mode={journal} synchronous={synchronous} foreign_keys={foreign_keys}");
            return Err(Error::new(Code::StoreUnusable, format!("the store's settings did not hold: {found}")));
        }
        Ok(())
    }

    fn check_version(&self) -> Result<()> {
        if rusqlite::version_number() < SQLITE_OLDEST {
            return Err(Error::new(Code::StoreUnusable, format!("SQLite {} is too old", rusqlite::version())));
        }
        let shown = self.root.join("ares.db");
        let shown = shown.display();
        match self.pragma::<i64>("application_id")? {
            APPLICATION_ID => {}
            0 => {
                return Err(
                    Error::new(Code::NoStore, format!("'{shown}' was never finished")).hint("run ares init again")
                );
            }
            _ => return Err(Error::new(Code::StoreDamaged, format!("'{shown}' is not a store of ares"))),
        }
        match self.pragma::<i64>("user_version")? {
            VERSION => self.check_settings(),
            old if old < VERSION => {
                Err(Error::new(Code::SchemaOld, format!("'{shown}' has version {old}, this ares {VERSION}")))
            }
            new => Err(Error::new(Code::SchemaNew, format!("'{shown}' has version {new}, this ares {VERSION}"))),
        }
    }
}

/// Refuses a database that is gone or empty in a store that was written to: what a loss of power may leave of it. SQLite
/// would take it for a new one, and remove the log in which everything may still be.
pub(super) fn check_not_emptied(root: &Path) -> Result<()> {
    let path = database(root);
    let empty = std::fs::metadata(&path).map_or_else(|e| e.kind() == ErrorKind::NotFound, |meta| meta.len() == 0);
    // Nobody takes this lock before there is something to write to.
    if !empty || root.join("locks/write.lock").symlink_metadata().is_err() {
        return Ok(());
    }
    let said = format!("'{}' is gone or empty, and this store was written to", path.display());
    Err(Error::new(Code::StoreDamaged, said).hint("move its directory aside, and put a backup in its place"))
}

/// Refuses a file system on which locks or shared memory do not hold.
fn check_file_system(root: &Path) -> Result<()> {
    match dir::file_system(root)? {
        Some(name) if !root.join("unsafe-fs").exists() => Err(Error::new(
            Code::StoreNetwork,
            format!("'{}' lies on {name}, where locks may not hold", root.display()),
        )),
        _ => Ok(()),
    }
}

/// Makes a store here; where there is one already, nothing changes. Says whether it was made. Any number of processes
/// may do this at once: the database is made behind a lock, and each looks again once it holds it.
pub fn create(root: &Path, unsafe_fs: bool, wait: Option<Duration>) -> Result<bool> {
    let parent = root.parent().unwrap_or(root);
    dir::private_dir(root)?;
    let root = &root.canonicalize().or_code(Code::StoreUnusable, || format!("cannot find '{}'", root.display()))?;
    place::check_owner(root)?;
    for folder in FOLDERS {
        dir::private_dir(&root.join(folder))?;
    }
    if unsafe_fs {
        let mark = root.join("unsafe-fs");
        if mark.symlink_metadata().is_err() {
            dir::write_private(&mark, b"")?;
        }
    }
    check_file_system(root)?;
    check_locks_hold(root)?;
    let _making = lock::lock(&root.join("locks/init.lock"), wait)?;
    let store = Store::connect(root, OpenFlags::SQLITE_OPEN_CREATE, wait)?;
    let found = store.pragma::<i64>("application_id")?;
    if found == 0 {
        fill(store, root, wait)?;
    } else {
        store.check_version()?;
        place::check_place(&store.view(), root)?;
    }
    // Also where there was one: whoever made it may not have got to this.
    let lasts = dir::sync_dir(root).and_then(|()| dir::sync_dir(parent));
    let unknown = |error: Error| format!("the store is there and may not last: {}", error.message);
    lasts.map_err(|error| Error::new(Code::CommitUnknown, unknown(error)))?;
    Ok(found == 0)
}

/// Two descriptors of one lock file must exclude each other; where they do not, nothing here can be trusted.
fn check_locks_hold(root: &Path) -> Result<()> {
    let path = root.join("tmp").join(format!("lock-{}", std::process::id()));
    let held = lock::try_lock(&path)?;
    let both = held.is_some() && lock::try_lock(&path)?.is_some();
    std::fs::remove_file(&path).or_code(Code::StoreUnusable, || format!("cannot remove '{}'", path.display()))?;
    if both {
        return Err(Error::new(
            Code::StoreNetwork,
            format!("two processes may lock the same file in '{}'", root.display()),
        ));
    }
    Ok(())
}

/// Where the database of a store is.
pub(super) fn database(root: &Path) -> PathBuf {
    root.join("ares.db")
}

/// Makes a copy of a database one that can be opened as a store's: a fresh copy keeps no write-ahead log yet.
pub(super) fn finish_copy(root: &Path) -> Result<()> {
    let store = Store::connect(root, OpenFlags::empty(), None)?;
    store.keep_wal()?;
    store.check_version()
}

/// Switches to the write-ahead log and writes the schema, in one transaction.
fn fill(store: Store, root: &Path, wait: Option<Duration>) -> Result<()> {
    // Both must be said before anything is written. Half the usual page: a short transaction writes, and the next process
    // reads anew, half as much, which is worth three percent of every command; and space can be given back bit by bit.
    store.connection.pragma_update(None, "page_size", 2048).sql("prepare the database")?;
    store.connection.pragma_update(None, "auto_vacuum", "incremental").sql("prepare the database")?;
    store.keep_wal()?;
    drop(store);
    // SQLite says that it keeps a log also where the page that says so could not be written: who opens it anew sees that.
    let mut store = Store::connect(root, OpenFlags::empty(), wait)?;
    store.check_settings()?;
    let random: [u8; 16] = random::bytes()?;
    let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let place = place::here(root)?;
    let made = crate::host::clock::now().to_string();
    let what = "write the schema";
    let tx = store.connection.transaction_with_behavior(TransactionBehavior::Immediate).sql(what)?;
    tx.execute_batch(&without_comments(SCHEMA)).sql(what)?;
    for (name, value) in [("id", &id), ("place", &place), ("made_at", &made)] {
        tx.execute("INSERT INTO meta (name, value) VALUES (?1, ?2)", [name, value]).sql(what)?;
    }
    tx.commit().map_err(|error| Error::new(Code::CommitUnknown, format!("the commit failed: {error}")))?;
    // Nobody who opens the store shall have to read the schema out of the log.
    store.empty_wal();
    Ok(())
}

/// The schema of every store, without its sections.
pub(super) const SCHEMA: &str = include_str!("schema.sql");

/// SQLite keeps the text of the schema as it was given and reads it at every open. No string in it holds two dashes.
pub(super) fn without_comments(sql: &str) -> String {
    let words = sql.lines().flat_map(|line| line.split("--").next().unwrap_or_default().split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

/// Brings an older store to this version, one step at a time, behind the lock; never done silently. Says from which
/// version it came.
pub fn upgrade(root: &Path, wait: Option<Duration>) -> Result<i64> {
    check_file_system(root)?;
    let _making = lock::lock(&root.join("locks/init.lock"), wait)?;
    let mut store = Store::connect(root, OpenFlags::empty(), wait)?;
    if store.pragma::<i64>("application_id")? != APPLICATION_ID {
        return store.check_version().map(|()| VERSION);
    }
    place::check_place(&store.view(), root)?;
    let before: i64 = store.pragma("user_version")?;
    if before < 1 {
        let said = format!("'{}' has version {before}, which no ares has written", database(root).display());
        return Err(Error::new(Code::StoreDamaged, said));
    }
    for (version, sql) in MIGRATIONS.iter().filter(|(version, _)| *version > before) {
        let what = format!("upgrade to version {version}");
        let tx = store.connection.transaction_with_behavior(TransactionBehavior::Immediate).sql(&what)?;
        tx.execute_batch(sql).sql(&what)?;
        tx.pragma_update(None, "user_version", version).sql(&what)?;
        tx.commit().map_err(|error| Error::new(Code::CommitUnknown, format!("the commit failed: {error}")))?;
    }
    // These transactions went past [`Store::write`], which makes a fresh log durable as a file.
    dir::sync_dir(root)?;
    store.check_version()?;
    Ok(before)
}

/// What leads from one version to the next: the version reached and its SQL, in `migrations/NNNN-name.sql`. A migration
/// is never edited once it was released.
const MIGRATIONS: &[(i64, &str)] = &[];
