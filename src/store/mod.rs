//! The only SQL. [`Store::read`] gives a consistent view, [`Store::write`] one IMMEDIATE transaction behind the
//! store's write lock; each table has its own file. It knows the domain and nothing above.
//!
//! INVARIANT `sqlite-only`: nobody opens the database's files but SQLite. Closing any other descriptor of them would
//! drop SQLite's locks and lose commits without a word.

mod attempts;
mod dependencies;
mod evidence;
mod jobs;
mod list;
mod objects;
mod open;
mod operations;
mod place;
mod queue;
mod sessions;
mod stops;

pub use attempts::{Attempt, Claim, Settlement};
pub use evidence::{Finding, Receipt, Resolution};
pub use jobs::{JobRow, NewJob};
pub use list::{Filter, ListBy};
pub use objects::{Object, Spool};
pub use open::{create, upgrade};
pub use operations::{Done, Operation, Request};
pub use place::{adopt, find};
pub use queue::Wanted;
pub use sessions::{SessionRow, Spent};
pub use stops::Stop;

use crate::domain::time::Time;
use crate::error::{Code, Error, OrCode as _, Result};
use crate::fault;
use crate::host::lock;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// The schema's version; other ones are refused.
pub const VERSION: i64 = 1;

/// "ARES", what marks the file as ours.
const APPLICATION_ID: i64 = 0x4152_4553;

/// Above this many frames the writer that passed it starts the write-ahead log anew: what a short log saves every
/// opener is more than what the checkpoint costs one writer.
const WAL_FRAMES_MAX: i32 = 256;

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    /// Frames in the write-ahead log after this process's latest commit.
    frames: Arc<AtomicI32>,
    root: PathBuf,
    file: (u64, u64),
    wait: Option<Duration>,
    by: String,
}

/// A consistent view of the store.
#[derive(Debug)]
pub struct View<'a> {
    connection: &'a Connection,
    root: &'a Path,
}

/// The open write transaction.
#[derive(Debug)]
pub struct Ledger<'a> {
    view: View<'a>,
    now: Time,
    by: &'a str,
}

impl<'a> std::ops::Deref for Ledger<'a> {
    type Target = View<'a>;
    fn deref(&self) -> &Self::Target {
        &self.view
    }
}

impl Ledger<'_> {
    /// The time that everything in this transaction is stamped with.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Runs a part that may fail without undoing what came before it; its failure is dropped with what it did.
    pub fn within<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        let run = |sql: &str| self.view.connection.execute_batch(sql).sql("divide the transaction");
        run("SAVEPOINT part")?;
        match body(self) {
            Ok(answer) => {
                self.view.connection.execute_batch("RELEASE part").sql("divide the transaction")?;
                Ok(Some(answer))
            }
            Err(error) => {
                tracing::debug!(%error, "a part of the transaction was undone");
                let sql = "ROLLBACK TO part; RELEASE part";
                self.view.connection.execute_batch(sql).sql("divide the transaction").map(|()| None)
            }
        }
    }
}

impl Store {
    /// The store's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of an attempt's files.
    pub fn attempt_dir(&self, attempt: crate::domain::id::AttemptId) -> PathBuf {
        self.root.join("attempts").join(attempt.to_string())
    }

    /// The directory of the lock files.
    pub fn locks(&self) -> PathBuf {
        self.root.join("locks")
    }

    /// How long to wait for the write lock; `None` waits for as long as it takes.
    pub fn set_wait(&mut self, wait: Option<Duration>) {
        self.wait = wait;
    }

    /// Runs several reads on one state of the store. They must be over before anything is written to a pipe.
    pub fn read<T>(&self, body: impl FnOnce(&View<'_>) -> Result<T>) -> Result<T> {
        let tx = self.connection.unchecked_transaction().sql("begin reading")?;
        let answer = body(&View { connection: &tx, root: &self.root });
        tx.finish().sql("end reading")?;
        answer
    }

    /// A number that changes when another process has committed something.
    pub fn data_version(&self) -> Result<i64> {
        self.connection.pragma_query_value(None, "data_version", |row| row.get(0)).sql("ask for changes")
    }

    /// Runs one transaction behind the write lock, which keeps the order of asking. Whatever fails inside is rolled
    /// back; a failed COMMIT is [`Code::CommitUnknown`].
    pub fn write<T>(&mut self, now: Time, body: impl FnOnce(&mut Ledger<'_>) -> Result<T>) -> Result<T> {
        let _order = lock::lock(&self.root.join("locks/write.lock"), self.wait)?;
        self.check_not_replaced()?;
        let tx = Transaction::new(&mut self.connection, TransactionBehavior::Immediate).sql("begin the transaction")?;
        fault::point("store.began");
        let view = View { connection: &tx, root: &self.root };
        let answer = body(&mut Ledger { view, now, by: &self.by })?;
        fault::point("store.before_commit");
        if fault::fails("store.commit") {
            return Err(Error::new(Code::CommitUnknown, "the commit failed: asked for by a test"));
        }
        tx.commit().map_err(|error| Error::new(Code::CommitUnknown, format!("the commit failed: {error}")))?;
        fault::point("store.after_commit");
        if fault::fails("store.committed") {
            return Err(Error::new(Code::CommitUnknown, "the commit's answer was lost: asked for by a test"));
        }
        self.shorten_wal();
        Ok(answer)
    }

    /// Starts the write-ahead log anew when it is long. Readers are not waited for: the next writer tries again.
    fn shorten_wal(&self) {
        if self.frames.load(Ordering::Relaxed) < WAL_FRAMES_MAX {
            return;
        }
        let restart = || -> rusqlite::Result<()> {
            self.connection.busy_timeout(Duration::ZERO)?;
            self.connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()))?;
            self.frames.store(0, Ordering::Relaxed);
            Ok(())
        };
        if let Err(error) = restart() {
            tracing::debug!(%error, "the write-ahead log was not restarted");
        }
        if let Err(error) = self.connection.busy_timeout(open::BUSY) {
            tracing::debug!(%error, "the busy time-out was not restored");
        }
    }

    fn check_not_replaced(&self) -> Result<()> {
        let path = self.root.join("ares.db");
        let meta = std::fs::metadata(&path).or_code(Code::StoreReplaced, || format!("'{}' is gone", path.display()))?;
        if (meta.dev(), meta.ino()) == self.file {
            return Ok(());
        }
        Err(Error::new(
            Code::StoreReplaced,
            format!("'{}' is another file than the one that was opened", path.display()),
        ))
    }
}

/// Turns an answer of SQLite into a code that says whether anything was applied.
trait Sql<T> {
    /// `what` says what was being done, as in "cannot …".
    fn sql(self, what: &str) -> Result<T>;
}

impl<T> Sql<T> for rusqlite::Result<T> {
    fn sql(self, what: &str) -> Result<T> {
        self.map_err(|error| sql_error(&error, what))
    }
}

fn sql_error(error: &rusqlite::Error, what: &str) -> Error {
    let text = error.to_string();
    let code = match error.sqlite_error().map(|e| e.extended_code) {
        _ if text.contains("ARES_ILLEGAL_MOVE") => Code::IllegalMove,
        Some(5 | 261 | 517 | 773) => Code::StoreBusy,
        Some(13 | 4874) => Code::StoreFull,
        Some(8 | 264 | 520 | 776 | 1032 | 1288 | 1544) => Code::StoreReadOnly,
        Some(11 | 26 | 267 | 523 | 779) => Code::StoreDamaged,
        Some(14 | 526 | 782 | 1038 | 1294 | 1550) => Code::StoreUnusable,
        Some(extended) if extended & 0xff == 10 => Code::StoreUnusable,
        _ => Code::Internal,
    };
    Error::new(code, format!("cannot {what}: {text}"))
}
