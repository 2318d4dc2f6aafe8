//! Jobs: the one write of their state, the order in which they are offered, and how they are listed.

use super::{Columns, Ledger, Sql as _, View};
use crate::domain::digest::Digest;
use crate::domain::id::JobId;
use crate::domain::job::{Facts, Hold, Move, Now, State};
use crate::domain::moves::Word as _;
use crate::domain::spec::{IfUncertain, Spec};
use crate::domain::time::{Span, Time};
use crate::error::{Code, Error, Result};
use rusqlite::{OptionalExtension as _, Row, params};

/// A job to be queued.
#[derive(Debug)]
pub struct NewJob<'a> {
    /// What was frozen.
    pub spec: &'a Spec,
    /// Its session.
    pub session: i64,
    /// Who asked, as JSON.
    pub submitted_by: &'a str,
}

/// A job as it stands.
#[derive(Clone, Debug)]
pub struct JobRow {
    /// What the moves need to know.
    pub facts: Facts,
    /// Its state.
    pub state: State,
    /// Why it is not offered.
    pub hold: Hold,
    /// Not to be claimed before this; 0 once it may.
    pub due: Time,
    /// What was frozen, without labels and dependencies, which have tables of their own.
    pub spec: Spec,
    /// The digest that was taken of it.
    pub spec_digest: Digest,
    /// Its session.
    pub session: i64,
    /// Who asked, as JSON.
    pub submitted_by: String,
    /// When.
    pub submitted_at: Time,
    /// When it ended.
    pub ended_at: Option<Time>,
}

impl JobRow {
    /// Whether it goes on only when someone decides so, although it is queued.
    pub fn is_held(&self) -> bool {
        self.state == State::Queued && self.hold == Hold::Releases
    }
}

/// In the order in which [`job_row`] reads them.
pub(super) const COLUMNS: &str = "j.id, j.attempt, j.tries, j.max_tries, j.release_count, j.retry_delay_ms,
  j.worker, j.adapter, j.model, j.program, j.argv, j.options, j.prompt, j.dir, j.env, j.limits, j.if_uncertain,
  j.\"group\", j.width, j.priority, j.not_before, j.continues, j.config_digest,
  j.state, j.hold, j.due, j.spec_digest, j.session, j.submitted_by, j.submitted_at, j.ended_at";

fn facts(columns: &mut Columns<'_, '_>) -> rusqlite::Result<Facts> {
    Ok(Facts {
        id: JobId(columns.next()?),
        attempt: columns.next()?,
        tries: columns.next()?,
        max_tries: columns.next()?,
        releases: columns.next()?,
        retry_delay: Span(columns.next()?),
    })
}

fn spec(columns: &mut Columns<'_, '_>, facts: &Facts) -> rusqlite::Result<Spec> {
    Ok(Spec {
        worker: columns.next()?,
        adapter: columns.next()?,
        model: columns.next()?,
        program: columns.next()?,
        argv: columns.json()?,
        options: columns.json()?,
        prompt: columns.maybe_digest()?,
        dir: columns.next()?,
        env: columns.json()?,
        limits: columns.json()?,
        max_tries: facts.max_tries,
        retry_delay: facts.retry_delay,
        if_uncertain: columns.word(IfUncertain::parse)?,
        group: columns.next()?,
        width: columns.next()?,
        priority: columns.next()?,
        not_before: Time(columns.next()?),
        labels: Vec::new(),
        after: Vec::new(),
        continues: columns.next::<Option<i64>>()?.map(JobId),
        config_digest: columns.maybe_digest()?,
    })
}

pub(super) fn job_row(row: &Row<'_>) -> rusqlite::Result<JobRow> {
    let columns = &mut Columns::of(row, "job", 1);
    let facts = facts(columns)?;
    let spec = spec(columns, &facts)?;
    Ok(JobRow {
        facts,
        spec,
        state: columns.word(State::parse)?,
        hold: columns.word(Hold::parse)?,
        due: Time(columns.next()?),
        spec_digest: columns.digest()?,
        session: columns.next()?,
        submitted_by: columns.any_json()?,
        submitted_at: Time(columns.next()?),
        ended_at: columns.next::<Option<i64>>()?.map(Time),
    })
}

impl Ledger<'_> {
    /// Queues a job, held where it waits for others.
    pub fn insert_job(&mut self, new: &NewJob<'_>) -> Result<JobId> {
        let sql = "INSERT INTO jobs (hold, due, priority, \"group\", width, session, worker, adapter, model, program,
                     argv, options, prompt, dir, env, limits, max_tries, retry_delay_ms, if_uncertain, not_before,
                     continues, config_digest, spec_digest, submitted_by, submitted_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
                     ?21, ?22, ?23, ?24, ?25)";
        let spec = new.spec;
        let text = |value: &dyn erased::Json| value.json();
        let digest = spec.digest();
        let due = if spec.not_before > self.now { spec.not_before.0 } else { 0 };
        let hold = if spec.after.is_empty() { Hold::None } else { Hold::Dependency };
        let row = params![
            hold.word(),
            due,
            spec.priority,
            spec.group,
            spec.width,
            new.session,
            spec.worker,
            spec.adapter,
            spec.model,
            spec.program,
            text(&spec.argv),
            text(&spec.options),
            spec.prompt.as_ref().map(|digest| digest.bytes().as_slice()),
            spec.dir,
            text(&spec.env),
            text(&spec.limits),
            spec.max_tries,
            spec.retry_delay.0,
            spec.if_uncertain.word(),
            spec.not_before.0,
            spec.continues.map(|job| job.0),
            spec.config_digest.as_ref().map(|digest| digest.bytes().as_slice()),
            digest.bytes().as_slice(),
            new.submitted_by,
            self.now.0,
        ];
        self.connection.prepare_cached(sql).and_then(|mut s| s.execute(row)).sql("queue the job")?;
        let job = JobId(self.connection.last_insert_rowid());
        for label in &spec.labels {
            let sql = "INSERT INTO labels (label, job) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            let row = params![label, job.0];
            self.connection.prepare_cached(sql).and_then(|mut s| s.execute(row)).sql("write a label")?;
        }
        if !spec.after.is_empty() {
            self.add_dependencies(job, &spec.after)?;
            self.settle_new(job)?;
        }
        Ok(job)
    }

    /// A job whose dependencies are over already does not wait for them.
    fn settle_new(&mut self, job: JobId) -> Result<()> {
        use super::dependencies::Verdict;
        match self.verdict(job)? {
            Verdict::Wait => Ok(()),
            Verdict::Run => {
                let sql = "UPDATE jobs SET hold = '' WHERE id = ?1 AND state = 'queued'";
                self.connection.execute(sql, [job.0]).sql("release the job").map(drop)
            }
            Verdict::Cancel(on, state) => self.cancel_after(job, on, state).map(drop),
        }
    }

    /// Writes a move and lets those follow that wait for the job.
    pub fn apply(&mut self, step: &Move) -> Result<()> {
        self.write_move(step)?;
        match step.to() {
            State::Succeeded | State::Failed | State::Cancelled | State::Uncertain => self.follow(step.after().id),
            State::Queued | State::Claimed | State::Running => Ok(()),
        }
    }

    /// INVARIANT `one-write`: the only statement that writes a job's state. It changes nothing unless the job is still
    /// as it was read.
    pub(super) fn write_move(&mut self, step: &Move) -> Result<()> {
        let sql = "UPDATE jobs SET state = ?1, hold = ?2, due = ?3, attempt = ?4, tries = ?5, release_count = ?6,
                     ended_at = ?7 WHERE id = ?8 AND state = ?9 AND attempt = ?10";
        let (before, after) = (step.before(), step.after());
        let row = params![
            step.to().word(),
            step.hold().word(),
            step.due().0,
            after.attempt,
            after.tries,
            after.releases,
            step.to().is_terminal().then_some(self.now.0),
            before.id.0,
            step.from().word(),
            before.attempt,
        ];
        let changed = self.connection.prepare_cached(sql).and_then(|mut s| s.execute(row)).sql("move the job")?;
        if changed == 1 {
            return Ok(());
        }
        Err(Error::new(Code::Conflict, format!("job {} is not {} any more", before.id, step.from().word())))
    }

    /// Makes a held job available again, as an operator's or a resolution's act.
    pub fn unhold(&mut self, job: JobId) -> Result<bool> {
        let sql =
            "UPDATE jobs SET hold = '', release_count = 0 WHERE id = ?1 AND state = 'queued' AND hold = 'releases'";
        let changed = self.connection.execute(sql, [job.0]).sql("release the job")?;
        Ok(changed == 1)
    }
}

/// JSON text of the few things that are stored as such.
pub(super) mod erased {
    pub(in crate::store) trait Json {
        fn json(&self) -> String;
    }
    impl<T: serde::Serialize> Json for T {
        fn json(&self) -> String {
            serde_json::to_string(self).unwrap_or_default()
        }
    }
}

impl View<'_> {
    /// A job as its state's type.
    pub fn job_now(&self, job: JobId) -> Result<Now> {
        let sql = "SELECT id, attempt, tries, max_tries, release_count, retry_delay_ms, state FROM jobs WHERE id = ?1";
        let mut statement = self.connection.prepare_cached(sql).sql("read the job")?;
        let row = statement.query_row([job.0], |row| {
            let columns = &mut Columns::of(row, "job", 1);
            Ok((facts(columns)?, columns.word(State::parse)?))
        });
        let (facts, state) = row.optional().sql("read the job")?.ok_or_else(|| self.missing(job))?;
        Ok(Now::new(facts, state))
    }

    /// A job with all that was frozen.
    pub fn job(&self, job: JobId) -> Result<JobRow> {
        let sql = format!("SELECT {COLUMNS} FROM jobs j WHERE j.id = ?1");
        let mut statement = self.connection.prepare_cached(&sql).sql("read the job")?;
        statement.query_row([job.0], job_row).optional().sql("read the job")?.ok_or_else(|| self.missing(job))
    }

    /// A job's labels.
    pub fn labels(&self, job: JobId) -> Result<Vec<String>> {
        let sql = "SELECT label FROM labels WHERE job = ?1 ORDER BY label";
        let mut statement = self.connection.prepare_cached(sql).sql("read labels")?;
        statement.query_map([job.0], |row| row.get(0)).and_then(Iterator::collect).sql("read labels")
    }

    /// Jobs with this label that have not ended, uncertain ones included.
    pub fn active(&self, label: &str) -> Result<Vec<JobId>> {
        let sql = "SELECT j.id FROM labels l JOIN jobs j ON j.id = l.job WHERE l.label = ?1 AND j.ended_at IS NULL
                   ORDER BY j.id";
        let mut statement = self.connection.prepare_cached(sql).sql("look for active jobs")?;
        statement
            .query_map([label], |row| row.get(0).map(JobId))
            .and_then(Iterator::collect)
            .sql("look for active jobs")
    }

    /// How many jobs are in this state.
    pub fn count_state(&self, state: State) -> Result<i64> {
        let sql = "SELECT count(*) FROM jobs WHERE state = ?1";
        let mut statement = self.connection.prepare_cached(sql).sql("count jobs")?;
        statement.query_row([state.word()], |row| row.get(0)).sql("count jobs")
    }
}
