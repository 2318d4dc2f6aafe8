//! Jobs that wait for others. Whenever a job ends or becomes uncertain, those that wait for it follow in the same
//! transaction: released, cancelled or still held.

use super::{Columns, Ledger, Sql as _, View};
use crate::domain::id::JobId;
use crate::domain::job::{Now, State};
use crate::domain::moves::Word as _;
use crate::domain::spec::{Dependency, Then};
use crate::error::Result;
use rusqlite::{OptionalExtension as _, params};
use std::collections::HashSet;

/// What a job's dependencies come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Wait,
    Run,
    /// Because of this one, which is in this state.
    Cancel(JobId, State),
}

impl View<'_> {
    /// The jobs that this one waits for, with their states.
    pub fn dependencies(&self, job: JobId) -> Result<Vec<(Dependency, State)>> {
        let sql = "SELECT d.job, d.\"on\", d.on_failed, d.on_cancelled, d.on_uncertain, j.state
                   FROM dependencies d JOIN jobs j ON j.id = d.\"on\" WHERE d.job = ?1 ORDER BY d.\"on\"";
        let mut statement = self.connection.prepare_cached(sql).sql("read dependencies")?;
        let rows = statement.query_map([job.0], |row| {
            let columns = &mut Columns::of(row, "the dependency of job", 1);
            let _job: i64 = columns.next()?;
            let dependency = Dependency {
                on: JobId(columns.next()?),
                on_failed: columns.word(Then::parse)?,
                on_cancelled: columns.word(Then::parse)?,
                on_uncertain: columns.word(Then::parse)?,
            };
            Ok((dependency, columns.word(State::parse)?))
        });
        rows.and_then(Iterator::collect).sql("read dependencies")
    }

    /// Why a job was cancelled before it ran, as it was told, as JSON.
    pub fn why_cancelled(&self, job: JobId) -> Result<Option<String>> {
        let sql = "SELECT subject, body FROM events WHERE subject = ?1 AND kind = 'job.cancelled'";
        let mut statement = self.connection.prepare_cached(sql).sql("read why")?;
        let read = |row: &rusqlite::Row<'_>| {
            let columns = &mut Columns::of(row, "the event 'job.cancelled' of job", 1);
            columns.next::<String>()?;
            columns.any_json()
        };
        statement.query_row([job.to_string()], read).optional().sql("read why")
    }

    /// What a queued job waits for that does not go on by itself: one that it comes after, directly or not, that is
    /// uncertain, held, or ended in a way that holds it; or an uncertain turn of its session. Gives that job's state too.
    pub fn stuck_behind(&self, job: JobId) -> Result<Option<(JobId, State)>> {
        let uncertain = self.uncertain_attempts()?;
        let (mut open, mut looked_at) = (vec![job], HashSet::new());
        while let Some(next) = open.pop() {
            let row = self.job(next)?;
            if row.state != State::Queued || !looked_at.insert(next) {
                continue;
            }
            if next != job && row.is_held() {
                return Ok(Some((next, row.state)));
            }
            if let Some(turn) = uncertain.iter().find(|attempt| attempt.session == row.session) {
                return Ok(Some((turn.id.job, State::Uncertain)));
            }
            for (dependency, state) in self.dependencies(next)? {
                let then = match state {
                    State::Failed => dependency.on_failed,
                    State::Cancelled => dependency.on_cancelled,
                    State::Uncertain => dependency.on_uncertain,
                    State::Queued | State::Claimed | State::Running | State::Succeeded => Then::Run,
                };
                if then == Then::Hold {
                    return Ok(Some((dependency.on, state)));
                }
                open.push(dependency.on);
            }
        }
        Ok(None)
    }

    /// Whether the job may run, must not, or waits.
    pub(super) fn verdict(&self, job: JobId) -> Result<Verdict> {
        let mut verdict = Verdict::Run;
        for (dependency, state) in self.dependencies(job)? {
            let then = match state {
                State::Succeeded => Then::Run,
                State::Failed => dependency.on_failed,
                State::Cancelled => dependency.on_cancelled,
                State::Uncertain => dependency.on_uncertain,
                State::Queued | State::Claimed | State::Running => Then::Hold,
            };
            match then {
                Then::Cancel => return Ok(Verdict::Cancel(dependency.on, state)),
                Then::Hold => verdict = Verdict::Wait,
                Then::Run => {}
            }
        }
        Ok(verdict)
    }
}

impl Ledger<'_> {
    pub(super) fn add_dependencies(&mut self, job: JobId, after: &[Dependency]) -> Result<()> {
        let sql = "INSERT INTO dependencies (job, \"on\", on_failed, on_cancelled, on_uncertain)
                   VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
        for dependency in after {
            let row = params![
                job.0,
                dependency.on.0,
                dependency.on_failed.word(),
                dependency.on_cancelled.word(),
                dependency.on_uncertain.word()
            ];
            self.connection.prepare_cached(sql).and_then(|mut s| s.execute(row)).sql("write a dependency")?;
        }
        Ok(())
    }

    /// Cancels a job because of one that it waited for. What waits for it in turn is left to the caller.
    pub(super) fn cancel_after(&mut self, job: JobId, on: JobId, state: State) -> Result<bool> {
        let Now::Queued(queued) = self.job_now(job)? else { return Ok(false) };
        self.write_move(&queued.cancel())?;
        let body = serde_json::json!({ "because": "dependency", "on": on, "state": state.word() }).to_string();
        self.event(&job.to_string(), "job.cancelled", Some(job), &body)?;
        self.cancelled.push(job);
        Ok(true)
    }

    /// Cancels a job that nobody has claimed, because a later one takes its place.
    pub fn replace(&mut self, old: JobId, by: JobId) -> Result<()> {
        let Now::Queued(queued) = self.job_now(old)? else { return Ok(()) };
        self.cancelled.push(old);
        let body = serde_json::json!({ "because": "replaced", "by": by }).to_string();
        self.event(&old.to_string(), "job.cancelled", Some(old), &body)?;
        self.apply(&queued.cancel())
    }

    /// Lets those follow that wait for this job, and those that wait for them.
    pub(super) fn follow(&mut self, ended: JobId) -> Result<()> {
        let mut open = vec![ended];
        while let Some(job) = open.pop() {
            let sql = "SELECT d.job FROM dependencies d JOIN jobs j ON j.id = d.job
                       WHERE d.\"on\" = ?1 AND j.state = 'queued' AND j.hold = 'dependency'";
            let waiting: Vec<i64> = self
                .connection
                .prepare_cached(sql)
                .and_then(|mut s| s.query_map([job.0], |row| row.get(0))?.collect())
                .sql("find what waits")?;
            for next in waiting.into_iter().map(JobId) {
                match self.verdict(next)? {
                    Verdict::Wait => {}
                    Verdict::Run => {
                        let sql =
                            "UPDATE jobs SET hold = '' WHERE id = ?1 AND state = 'queued' AND hold = 'dependency'";
                        self.connection
                            .prepare_cached(sql)
                            .and_then(|mut s| s.execute([next.0]))
                            .sql("release a job")?;
                    }
                    Verdict::Cancel(on, state) => {
                        if self.cancel_after(next, on, state)? {
                            open.push(next);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
