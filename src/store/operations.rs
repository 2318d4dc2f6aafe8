//! The log of commands that changed something, and what makes a repeated one give its first answer.

use super::{Columns, Ledger, Sql as _, Store, View};
use crate::domain::digest::Digest;
use crate::domain::id::JobId;
use crate::domain::time::Time;
use crate::error::{Code, Error, Result};
use rusqlite::{OptionalExtension as _, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What a mutating command asks for, so that a repetition can be told from another request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The caller's own id of this request, with the digest of everything asked for.
    explicit: Option<(String, Digest)>,
}

impl Request {
    /// A request under the caller's id; without one it is never compared with another, and has no digest.
    pub fn new(op_id: Option<String>, digest: impl FnOnce() -> Digest) -> Self {
        Self { explicit: op_id.map(|op_id| (op_id, digest())) }
    }

    /// Whether the caller gave it an id.
    pub fn is_explicit(&self) -> bool {
        self.explicit.is_some()
    }
}

/// One row of the log.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Its number.
    pub id: i64,
    /// The caller's id of it.
    pub op_id: Option<String>,
    /// What was done.
    pub verb: String,
    /// To what.
    pub subject: String,
    /// By whom: uid and pid.
    pub by: String,
    /// Anything to add.
    pub note: String,
    /// When.
    pub at: Time,
}

/// Which operations to read.
#[derive(Clone, Debug, Default)]
pub struct Operations {
    /// Of this command.
    pub verb: Option<String>,
    /// On this thing.
    pub subject: Option<String>,
    /// At or after this.
    pub since: Option<Time>,
    /// Before this.
    pub until: Option<Time>,
}

/// The condition on the first four parameters that an [`Operations`] stands for.
const WHICH: &str = "(?1 IS NULL OR verb = ?1) AND (?2 IS NULL OR subject = ?2)
                     AND (?3 IS NULL OR at >= ?3) AND (?4 IS NULL OR at < ?4)";

impl Operations {
    fn between(&self) -> (Option<i64>, Option<i64>) {
        (self.since.map(|time| time.0), self.until.map(|time| time.0))
    }
}

/// What an operation did: its subject, a note, and the answer to give again when it is repeated.
#[derive(Debug)]
pub struct Done<T> {
    /// What was changed.
    pub subject: String,
    /// Anything to add to the log.
    pub note: String,
    /// The answer.
    pub answer: T,
    /// Whether anything was changed. Where nothing was, the log says nothing, unless an op-id is to be remembered.
    pub changed: bool,
}

impl<T> Done<T> {
    /// Done to this subject.
    pub fn new(subject: impl Into<String>, answer: T) -> Self {
        Self { subject: subject.into(), note: String::new(), answer, changed: true }
    }
}

impl Store {
    /// One operation in one transaction. Repeated under the same op-id it applies nothing and gives the first answer;
    /// with another request under that id it is a conflict.
    pub fn operate<T: Serialize + DeserializeOwned>(
        &mut self,
        now: Time,
        verb: &str,
        request: &Request,
        body: impl FnOnce(&mut Ledger<'_>) -> Result<Done<T>>,
    ) -> Result<T> {
        self.write(now, |ledger| {
            if let Some(first) = ledger.first_answer(verb, request)? {
                return Ok(first);
            }
            let done = body(ledger)?;
            if done.changed || request.explicit.is_some() {
                ledger.record(verb, Some(request), &done)?;
            }
            Ok(done.answer)
        })
    }

    /// The first answer of an operation that is repeated, for what has to be done before its transaction begins: it is
    /// not done twice, and need not be possible any more.
    pub fn repeated<T: DeserializeOwned>(&self, verb: &str, request: &Request) -> Result<Option<T>> {
        if request.explicit.is_none() {
            return Ok(None);
        }
        self.read(|view| view.first_answer(verb, request))
    }
}

impl Ledger<'_> {
    /// Adds a row to the log; the answer is kept for an explicit op-id only.
    pub fn record<T: Serialize>(&mut self, verb: &str, request: Option<&Request>, done: &Done<T>) -> Result<()> {
        let explicit = request.and_then(|request| request.explicit.as_ref());
        let answer = explicit.map(|_| serde_json::to_string(&done.answer).unwrap_or_default());
        let sql = "INSERT INTO operations (op_id, verb, subject, request, answer, by, note, at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let request = explicit.map(|(_, digest)| digest.bytes().as_slice());
        let op_id = explicit.map(|(op_id, _)| op_id);
        let note = [done.note.clone(), cancelled(&std::mem::take(&mut self.cancelled))];
        let note = note.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
        let row = params![op_id, verb, done.subject, request, answer, self.by, note, self.now.0];
        self.connection.prepare_cached(sql).and_then(|mut s| s.execute(row)).sql("log the operation").map(drop)
    }
}

/// How many jobs one line of the log names.
const NAMED: usize = 8;

/// The jobs that were cancelled because of others, for the log.
fn cancelled(jobs: &[JobId]) -> String {
    if jobs.is_empty() {
        return String::new();
    }
    let names: Vec<String> = jobs.iter().take(NAMED).map(ToString::to_string).collect();
    let more = if jobs.len() > NAMED { format!(" and {} more", jobs.len() - NAMED) } else { String::new() };
    format!("cancelled: {}{more}", names.join(", "))
}

impl Ledger<'_> {
    /// Remembers a key, which outlives its job.
    pub fn insert_key(&mut self, key: &str, request: &Digest, job: JobId) -> Result<()> {
        let sql = "INSERT INTO keys (key, request, job) VALUES (?1, ?2, ?3)";
        let row = params![key, request.bytes(), job.0];
        self.connection.prepare_cached(sql).and_then(|mut s| s.execute(row)).sql("remember the key").map(drop)
    }
}

impl View<'_> {
    fn first_answer<T: DeserializeOwned>(&self, verb: &str, request: &Request) -> Result<Option<T>> {
        let Some((op_id, asked)) = &request.explicit else { return Ok(None) };
        let sql = "SELECT verb, request, answer FROM operations WHERE op_id = ?1";
        let mut statement = self.connection.prepare_cached(sql).sql("look for the operation")?;
        let read = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, String>(2)?))
        };
        let Some((first_verb, digest, answer)) =
            statement.query_row([op_id], read).optional().sql("look for the operation")?
        else {
            return Ok(None);
        };
        if first_verb != verb || digest != asked.bytes() {
            return Err(Error::new(
                Code::OperationConflict,
                format!("operation '{op_id}' was another request ({first_verb})"),
            ));
        }
        let bad =
            |error| Error::new(Code::StoreDamaged, format!("the answer of operation '{op_id}' does not read: {error}"));
        serde_json::from_str(&answer).map(Some).map_err(bad)
    }

    /// The request and the job that a key stands for.
    pub fn key(&self, key: &str) -> Result<Option<(Digest, JobId)>> {
        let sql = "SELECT key, request, job FROM keys WHERE key = ?1";
        let mut statement = self.connection.prepare_cached(sql).sql("look for the key")?;
        let read = |row: &rusqlite::Row<'_>| {
            let columns = &mut Columns::of(row, "key", 1);
            columns.next::<String>()?;
            Ok((columns.digest()?, JobId(columns.next()?)))
        };
        statement.query_row([key], read).optional().sql("look for the key")
    }

    /// A page of the log, oldest first, after this operation.
    pub fn operations(&self, which: &Operations, after: i64, limit: i64) -> Result<Vec<Operation>> {
        let sql = format!(
            "SELECT id, op_id, verb, subject, by, note, at FROM operations WHERE {WHICH} AND id > ?5 ORDER BY id LIMIT ?6"
        );
        let mut statement = self.connection.prepare_cached(&sql).sql("read the log")?;
        let (since, until) = which.between();
        let row = params![which.verb, which.subject, since, until, after, limit];
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Operation {
                id: row.get(0)?,
                op_id: row.get(1)?,
                verb: row.get(2)?,
                subject: row.get(3)?,
                by: row.get(4)?,
                note: row.get(5)?,
                at: Time(row.get(6)?),
            })
        };
        statement.query_map(row, read).and_then(Iterator::collect).sql("read the log")
    }
    /// The operation before the latest so many; 0 where there are not more.
    pub fn before_latest(&self, which: &Operations, count: i64) -> Result<i64> {
        let sql = format!("SELECT id FROM operations WHERE {WHICH} ORDER BY id DESC LIMIT 1 OFFSET ?5");
        let (since, until) = which.between();
        let row = params![which.verb, which.subject, since, until, count];
        let id = self.connection.query_row(&sql, row, |row| row.get(0)).optional().sql("read the log")?;
        Ok(id.unwrap_or(0))
    }

    /// How many operations there are.
    pub fn count_operations(&self, which: &Operations) -> Result<i64> {
        let sql = format!("SELECT count(*) FROM operations WHERE {WHICH}");
        let (since, until) = which.between();
        let row = params![which.verb, which.subject, since, until];
        self.connection.query_row(&sql, row, |row| row.get(0)).sql("count the log")
    }
}
