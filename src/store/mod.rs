//! The only SQL. [`Store::read`] gives a consistent view, [`Store::write`] one IMMEDIATE transaction behind the
//! store's write lock; each table has its own file. It knows the domain and nothing above.
//!
//! INVARIANT `sqlite-only`: nobody opens the database's files but SQLite. Closing any other descriptor of them would
//! drop SQLite's locks and lose commits without a word.

mod attempts;
mod backup;
mod chain;
mod check;
mod dependencies;
mod evidence;
mod jobs;
mod list;
mod objects;
mod open;
mod operations;
mod place;
mod queue;
mod record;
mod retire;
mod rules;
mod section;
mod segments;
mod sessions;
mod stops;
mod sweep;
mod words;

pub use attempts::{Attempt, Claim, Settlement};
pub use check::Fault;
pub use evidence::{Finding, Permit, Receipt, Resolution, binding};
pub use jobs::{JobRow, NewJob};
pub use list::{Filter, ListBy};
pub use objects::{Object, Spool};
pub use open::{create, upgrade};
pub use operations::{Done, Operation, Operations, Request};
pub use place::find;
pub use queue::Wanted;
pub use retire::{Retention, Retirable, SUBJECT as REMOVED, told as told_removed};
pub use section::Section;
pub use segments::Segment;
pub use sessions::{SessionRow, Spent};
pub use stops::Stop;
pub use sweep::{Gone, Loose, Spare};

use words::{Columns, Unread};

use crate::domain::id::{AttemptId, JobId};
use crate::domain::time::Time;
use crate::error::{Code, Error, OrCode as _, Result};
use crate::fault;
use crate::host::{dir, lock};
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

/// Above this many frames a process that came to write once starts the write-ahead log anew before it writes: every
/// opener reads the whole log anew, some three microseconds a frame, and what that costs all of them is weighed against
/// the syncs of one of them.
const WAL_FRAMES_MAX: i32 = 64;

/// The same for a process that has written before, such as a runner: while it is there nobody else reads the log anew.
const WAL_FRAMES_MAX_RESIDENT: i32 = 900;

/// How many frames the log has is not known before the first write.
const UNKNOWN: i32 = -1;

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    /// Frames in the write-ahead log after this process's latest commit.
    frames: Arc<AtomicI32>,
    /// Transactions that this process committed.
    writes: u64,
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
    /// Jobs that were cancelled because of others, for the operation that did it.
    cancelled: Vec<JobId>,
    /// The number in the name of the session that was made last.
    last_name: Option<u32>,
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

impl View<'_> {
    /// The store's directory.
    pub fn root(&self) -> &Path {
        self.root
    }
}

/// The directory of an attempt's files, in the store at this place.
pub fn attempt_dir(root: &Path, attempt: AttemptId) -> PathBuf {
    root.join("attempts").join(attempt.to_string())
}

impl Store {
    /// The store's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of an attempt's files.
    pub fn attempt_dir(&self, attempt: AttemptId) -> PathBuf {
        attempt_dir(&self.root, attempt)
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

    /// Does something while nobody writes, without a transaction.
    pub fn alone<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let _order = lock::lock(&self.root.join("locks/write.lock"), self.wait)?;
        body()
    }

    /// INVARIANT `nothing-waits-under-the-lock`: what runs in here waits for nothing and writes to no pipe, because everyone
    /// else waits for it.
    ///
    /// Runs one transaction behind the write lock, which keeps the order of asking. Whatever fails inside is rolled
    /// back; a failed COMMIT is [`Code::CommitUnknown`].
    pub fn write<T>(&mut self, now: Time, body: impl FnOnce(&mut Ledger<'_>) -> Result<T>) -> Result<T> {
        self.write_then(now, body, |_| {})
    }

    /// The same, and something that is done once it is committed and before anyone else may write.
    pub fn write_then<T>(
        &mut self,
        now: Time,
        body: impl FnOnce(&mut Ledger<'_>) -> Result<T>,
        then: impl FnOnce(&T),
    ) -> Result<T> {
        let _order = lock::lock(&self.root.join("locks/write.lock"), self.wait)?;
        self.check_not_replaced()?;
        self.prepare_wal()?;
        let tx = Transaction::new(&mut self.connection, TransactionBehavior::Immediate).sql("begin the transaction")?;
        fault::point("store.began");
        let view = View { connection: &tx, root: &self.root };
        let answer = body(&mut Ledger { view, now, by: &self.by, cancelled: Vec::new(), last_name: None })?;
        fault::point("store.before_commit");
        if fault::fails("store.commit") {
            return Err(Error::new(Code::CommitUnknown, "the commit failed: asked for by a test"));
        }
        tx.commit().map_err(|error| commit_error(&error))?;
        fault::point("store.after_commit");
        if fault::fails("store.committed") {
            return Err(Error::new(Code::CommitUnknown, "the commit's answer was lost: asked for by a test"));
        }
        self.writes += 1;
        then(&answer);
        Ok(answer)
    }

    /// Before a transaction: makes a fresh log durable as a file, and starts a long one anew. It is done before and not
    /// after a commit, because only the write that follows makes it last: the next process reads the log from its
    /// beginning, and what was copied into the database counts for it only once new frames stand there.
    fn prepare_wal(&self) -> Result<()> {
        let mut frames = self.frames.load(Ordering::Relaxed);
        if frames == UNKNOWN {
            frames = self.checkpoint("NOOP").sql("look at the write-ahead log")?;
        }
        if frames == 0 {
            // It may have been made just now. A log that has frames was synced here by whoever wrote the first one.
            dir::sync_dir(&self.root)?;
        }
        let max = if self.writes == 0 { WAL_FRAMES_MAX } else { WAL_FRAMES_MAX_RESIDENT };
        if frames > max {
            self.try_checkpoint("RESTART");
        }
        Ok(())
    }

    /// Leaves a short log behind, at the end of a process that wrote much. Nobody is waited for.
    pub fn rest(&self) {
        if self.frames.load(Ordering::Relaxed) <= WAL_FRAMES_MAX {
            return;
        }
        match lock::try_lock(&self.root.join("locks/write.lock")) {
            Ok(Some(_order)) => self.empty_wal(),
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "the write-ahead log stays as it is"),
        }
    }

    /// Copies everything into the database and cuts the log to nothing.
    fn empty_wal(&self) {
        self.try_checkpoint("TRUNCATE");
        self.frames.store(UNKNOWN, Ordering::Relaxed);
    }

    /// The same where nothing depends on it.
    fn try_checkpoint(&self, mode: &str) {
        if let Err(error) = self.checkpoint_now(mode) {
            tracing::debug!(%error, "the write-ahead log was not restarted");
        }
    }

    /// A checkpoint that waits for no reader: where one is in the way, the next writer tries again.
    fn checkpoint_now(&self, mode: &str) -> Result<()> {
        let now = || {
            self.connection.busy_timeout(Duration::ZERO)?;
            self.checkpoint(mode)
        };
        let done = now().map(drop).sql("copy the write-ahead log");
        if let Err(error) = self.connection.busy_timeout(open::BUSY) {
            tracing::debug!(%error, "the busy time-out was not restored");
        }
        done
    }

    /// Checkpoints in this mode; gives the number of frames in the log.
    fn checkpoint(&self, mode: &str) -> rusqlite::Result<i32> {
        self.connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| row.get(1))
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

/// Who does an operation, as the log has it, when this process does it for the caller's user.
pub fn by(pid: i32) -> String {
    format!("{}:{pid}", rustix::process::geteuid().as_raw())
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

/// A commit that failed may have been applied all the same. Only where there was no room it was not: what makes it valid
/// is written last, and is no longer than what could not be written.
fn commit_error(error: &rusqlite::Error) -> Error {
    let last = std::io::Error::last_os_error();
    let extended = error.sqlite_error().map(|error| error.extended_code);
    // The bound of a file's size is the same to it, except that SQLite calls it a failed write.
    let bound =
        extended == Some(rusqlite::ffi::SQLITE_IOERR_WRITE) && Code::StoreUnusable.fitting(&last) == Code::SystemLimit;
    match extended {
        Some(rusqlite::ffi::SQLITE_FULL) => Error::new(Code::StoreFull, format!("the commit failed: {error}")),
        _ if bound => Error::new(Code::SystemLimit, format!("the commit failed: {last}")),
        _ => Error::new(Code::CommitUnknown, format!("the commit failed: {error}")),
    }
}

fn sql_error(error: &rusqlite::Error, what: &str) -> Error {
    if let rusqlite::Error::FromSqlConversionFailure(_, _, source) = error
        && let Some(unread) = source.downcast_ref::<Unread>()
    {
        return Error::new(Code::StoreDamaged, unread.to_string());
    }
    let last = std::io::Error::last_os_error();
    let text = error.to_string();
    let code = match error.sqlite_error().map(|e| e.extended_code) {
        Some(rusqlite::ffi::SQLITE_CONSTRAINT_TRIGGER) if text.contains("ARES_ILLEGAL_MOVE") => Code::IllegalMove,
        Some(5 | 261 | 517 | 773) => Code::StoreBusy,
        Some(rusqlite::ffi::SQLITE_FULL) => Code::StoreFull,
        Some(8 | 264 | 520 | 776 | 1032 | 1288 | 1544) => Code::StoreReadOnly,
        Some(11 | 26 | 267 | 523 | 779) => Code::StoreDamaged,
        Some(14 | 526 | 782 | 1038 | 1294 | 1550) => return unusable(what, &text, &last),
        Some(7) => Code::SystemLimit,
        Some(extended) if extended & 0xff == rusqlite::ffi::SQLITE_IOERR => {
            let error = unusable(what, &text, &last);
            let unknown = error.code == Code::StoreUnusable;
            return if unknown { error.hint("look whether the disk fails or is full: dmesg, df") } else { error };
        }
        _ if is_foreign(error, &text) => Code::StoreDamaged,
        _ => Code::Internal,
    };
    Error::new(code, format!("cannot {what}: {text}"))
}

/// Whether something stands in the store that we never wrote: another kind of value, or another schema.
fn is_foreign(error: &rusqlite::Error, text: &str) -> bool {
    use rusqlite::Error as E;
    match error {
        E::FromSqlConversionFailure(..) | E::IntegralValueOutOfRange(..) | E::InvalidColumnType(..) => true,
        E::Utf8Error(..) => true,
        _ => ["no such table", "no such column", "has no column", "no such index", "malformed", "unknown function"]
            .iter()
            .chain(&["no such function", "no such collation"])
            .any(|said| text.contains(said)),
    }
}

/// SQLite says "full" only of some writes; for others, such as of its shared memory, a full disk, a failing one and a
/// limit of the system are the same to it, and only the system's own word tells them apart. Calls that succeed leave
/// that word as it is.
fn unusable(what: &str, text: &str, last: &std::io::Error) -> Error {
    match Code::StoreUnusable.fitting(last) {
        Code::StoreUnusable => Error::new(Code::StoreUnusable, format!("cannot {what}: {text}")),
        known => Error::new(known, format!("cannot {what}: {text}: {last}")),
    }
}
