//! Sessions, who started whom, and what each turn used.

use super::{Columns, Ledger, Sql as _, View};
use crate::domain::id::{AttemptId, JobId};
use crate::domain::job::State;
use crate::domain::moves::Word as _;
use crate::domain::outcome::Usage;
use crate::domain::session::{Status, own_id};
use crate::error::Result;
use rusqlite::{OptionalExtension as _, params};

/// A session as it stands.
#[derive(Clone, Debug)]
pub struct SessionRow {
    /// Its number in this store.
    pub id: i64,
    /// Its name: of our own making, or a foreign id.
    pub name: String,
    /// The worker whose conversation it is.
    pub worker: String,
    /// Where that worker keeps its credentials.
    pub credential_home: String,
    /// The worker's own id, once it reported one.
    pub worker_session: Option<String>,
    /// Whether it cannot be continued.
    pub broken: bool,
    /// Why not.
    pub reason: String,
}

/// Tokens and money of one or many turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens read.
    pub input: i64,
    /// Of them, from a cache.
    pub cached: i64,
    /// Tokens written.
    pub output: i64,
    /// Of them, reasoning.
    pub reasoning: i64,
    /// Model calls.
    pub calls: i64,
    /// Nano-USD, where it is known.
    pub cost: Option<i64>,
}

impl Ledger<'_> {
    /// A new session of this worker.
    pub fn insert_session(&mut self, worker: &str, credential_home: &str) -> Result<i64> {
        let sql =
            "INSERT INTO sessions (name, worker, credential_home) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO NOTHING";
        loop {
            // The first of a transaction is drawn, and the others count on from it; what is taken already is passed over.
            let next = match self.last_name {
                Some(last) => last.wrapping_add(1),
                None => u32::from_be_bytes(crate::host::random::bytes()?),
            };
            self.last_name = Some(next);
            let name = own_id(self.now, next);
            let row = params![name, worker, credential_home];
            let made = self.connection.prepare_cached(sql).and_then(|mut s| s.execute(row)).sql("make a session")?;
            if made == 1 {
                return Ok(self.connection.last_insert_rowid());
            }
        }
    }

    /// Notes the id that the worker reported. The latest is the one to continue: a first turn that is tried again begins
    /// a new conversation, and the earlier one is kept beside it.
    pub fn session_reported(&mut self, session: i64, attempt: AttemptId, reported: &str) -> Result<()> {
        let what = "note the worker's session";
        let sql = "UPDATE sessions SET worker_session = ?2 WHERE id = ?1 AND worker_session IS NOT ?2";
        self.connection.execute(sql, params![session, reported]).sql(what)?;
        let sql = "INSERT INTO session_ids (session, worker_session, attempt_n, seen_at) VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT DO NOTHING";
        self.connection.execute(sql, params![session, reported, attempt.n, self.now.0]).sql(what).map(drop)
    }

    /// The session must not be continued.
    pub fn break_session(&mut self, session: i64, reason: &str) -> Result<()> {
        let sql = "UPDATE sessions SET state = 'broken', reason = ?2 WHERE id = ?1 AND state = 'open'";
        self.connection.execute(sql, params![session, reason]).sql("break the session").map(drop)
    }

    /// Records who started this session; the first parent wins.
    pub fn insert_edge(&mut self, child: i64, parent: i64, attempt: AttemptId) -> Result<()> {
        let sql =
            "INSERT INTO edges (child, parent, parent_job, parent_attempt, started_at) VALUES (?1, ?2, ?3, ?4, ?5)
                   ON CONFLICT DO NOTHING";
        let row = params![child, parent, attempt.job.0, attempt.n, self.now.0];
        self.connection.execute(sql, row).sql("write an edge").map(drop)
    }

    /// Records what a turn used, once: cumulative totals become the difference to what the conversation had before.
    pub fn insert_run(&mut self, session: i64, attempt: AttemptId, model: &str, usage: &Usage) -> Result<()> {
        let before = if usage.cumulative { self.spent_of_conversation(session)? } else { Spent::default() };
        let rest = |total: i64, before: i64| (total - before).max(0);
        let cost = usage.cost_nano.map(|cost| rest(cost, before.cost.unwrap_or(0)));
        let sql =
            "INSERT INTO runs (session, turn, job, attempt_n, model, input, cached, output, reasoning, calls, cost, at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING";
        let row = params![
            session,
            attempt.to_string(),
            attempt.job.0,
            attempt.n,
            model,
            rest(usage.input, before.input),
            rest(usage.cached, before.cached),
            rest(usage.output, before.output),
            rest(usage.reasoning, before.reasoning),
            usage.calls.max(0),
            cost,
            self.now.0,
        ];
        self.connection.execute(sql, row).sql("record the usage").map(drop)
    }
}

impl View<'_> {
    /// A session by its number.
    pub fn session(&self, id: i64) -> Result<Option<SessionRow>> {
        self.session_where("id = ?1", &id)
    }

    /// A session by its name or by the worker's own id.
    pub fn session_named(&self, name: &str) -> Result<Option<SessionRow>> {
        match self.session_where("name = ?1", &name)? {
            Some(session) => Ok(Some(session)),
            None => self.session_where("worker_session = ?1 ORDER BY id LIMIT 1", &name),
        }
    }

    fn session_where(&self, condition: &str, value: &dyn rusqlite::ToSql) -> Result<Option<SessionRow>> {
        let sql = format!(
            "SELECT id, name, worker, credential_home, worker_session, state, reason FROM sessions WHERE {condition}"
        );
        let mut statement = self.connection.prepare_cached(&sql).sql("read the session")?;
        let read = |row: &rusqlite::Row<'_>| {
            let columns = &mut Columns::of(row, "session", 1);
            Ok(SessionRow {
                id: columns.next()?,
                name: columns.next()?,
                worker: columns.next()?,
                credential_home: columns.next()?,
                worker_session: columns.next()?,
                broken: columns.word(Status::parse)? == Status::Broken,
                reason: columns.next()?,
            })
        };
        statement.query_row([value], read).optional().sql("read the session")
    }

    /// The jobs of a session, oldest first.
    pub fn jobs_of_session(&self, session: i64) -> Result<Vec<JobId>> {
        let sql = "SELECT id FROM jobs WHERE session = ?1 ORDER BY id";
        let mut statement = self.connection.prepare_cached(sql).sql("read the session")?;
        statement.query_map([session], |row| row.get(0).map(JobId)).and_then(Iterator::collect).sql("read the session")
    }

    /// The same for the session of a job that is known, without looking at every job: those that continue one have an
    /// index, and the first is found by going back from one to the other.
    pub fn jobs_of_session_with(&self, job: JobId) -> Result<Vec<JobId>> {
        let sql = "WITH RECURSIVE back (id, session, continues) AS (
                     SELECT id, session, continues FROM jobs WHERE id = ?1
                     UNION SELECT j.id, j.session, j.continues FROM back JOIN jobs j ON j.id = back.continues)
                   SELECT id FROM back UNION SELECT id FROM jobs INDEXED BY jobs_continuing
                   WHERE continues IS NOT NULL AND session = (SELECT session FROM back) ORDER BY id";
        let mut statement = self.connection.prepare_cached(sql).sql("read the session")?;
        statement.query_map([job.0], |row| row.get(0).map(JobId)).and_then(Iterator::collect).sql("read the session")
    }

    /// Jobs that an attempt submitted, those that they submitted, and so on: each with its state and the job that
    /// submitted it. A job is listed once.
    pub fn descendants_of(&self, attempt: AttemptId) -> Result<Vec<(JobId, State, JobId)>> {
        let sql = "WITH RECURSIVE below (job, parent) AS (
                     SELECT j.id, e.parent_job FROM edges e JOIN jobs j ON j.session = e.child
                     WHERE e.parent_job = ?1 AND e.parent_attempt = ?2
                     UNION SELECT j.id, e.parent_job FROM below b JOIN edges e ON e.parent_job = b.job
                     JOIN jobs j ON j.session = e.child)
                   SELECT j.id, j.state, b.parent FROM below b JOIN jobs j ON j.id = b.job ORDER BY j.id";
        let mut statement = self.connection.prepare_cached(sql).sql("read the children")?;
        let read = |row: &rusqlite::Row<'_>| {
            let columns = &mut Columns::of(row, "job", 1);
            Ok((JobId(columns.next()?), columns.word(State::parse)?, JobId(columns.next()?)))
        };
        let rows = statement.query_map(params![attempt.job.0, attempt.n], read);
        rows.and_then(Iterator::collect).sql("read the children")
    }

    /// What a session came to so far.
    pub fn spent_of_session(&self, session: i64) -> Result<Spent> {
        self.spent("session = ?1", params![session])
    }

    /// What the conversation that goes on came to: without earlier tries of its first turn, which had one of their own.
    fn spent_of_conversation(&self, session: i64) -> Result<Spent> {
        let own = "session = ?1 AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = runs.job
                   AND jobs.continues IS NULL AND jobs.attempt > runs.attempt_n)";
        self.spent(own, params![session])
    }

    /// What a job came to, over all its attempts.
    pub fn spent_of_job(&self, job: JobId, session: i64) -> Result<Spent> {
        self.spent("session = ?1 AND job = ?2", params![session, job.0])
    }

    fn spent(&self, condition: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Spent> {
        let sql = format!(
            "SELECT coalesce(sum(input), 0), coalesce(sum(cached), 0), coalesce(sum(output), 0),
                    coalesce(sum(reasoning), 0), coalesce(sum(calls), 0), sum(cost) FROM runs WHERE {condition}"
        );
        let mut statement = self.connection.prepare_cached(&sql).sql("add up the usage")?;
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Spent {
                input: row.get(0)?,
                cached: row.get(1)?,
                output: row.get(2)?,
                reasoning: row.get(3)?,
                calls: row.get(4)?,
                cost: row.get(5)?,
            })
        };
        statement.query_row(values, read).sql("add up the usage")
    }
}
