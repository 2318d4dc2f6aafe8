//! Jobs: the one write of their state, the order in which they are offered, and how they are listed.

use super::{Ledger, Sql as _, View};
use crate::domain::digest::Digest;
use crate::domain::id::JobId;
use crate::domain::job::{Facts, Hold, Move, Now, State};
use crate::domain::moves::Word as _;
use crate::domain::spec::{IfUncertain, Limits, Spec};
use crate::domain::time::{Span, Time};
use crate::error::{Code, Error, Result};
use rusqlite::types::Value;
use rusqlite::{OptionalExtension as _, Row, params, params_from_iter};

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

const COLUMNS: &str = "j.id, j.state, j.hold, j.due, j.attempt, j.tries, j.max_tries, j.release_count, j.retry_delay_ms,
  j.worker, j.adapter, j.model, j.program, j.argv, j.options, j.prompt, j.dir, j.env, j.limits, j.if_uncertain,
  j.\"group\", j.width, j.priority, j.not_before, j.continues, j.config_digest, j.spec_digest, j.session,
  j.submitted_by, j.submitted_at, j.ended_at";

/// Reads JSON that this crate wrote; a damaged one reads as empty and is found by the digest.
fn json<T: serde::de::DeserializeOwned + Default>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_default()
}

fn digest(bytes: Option<Vec<u8>>) -> Option<Digest> {
    bytes.and_then(|bytes| Digest::from_bytes(&bytes))
}

fn facts(row: &Row<'_>) -> rusqlite::Result<Facts> {
    Ok(Facts {
        id: JobId(row.get("id")?),
        attempt: row.get("attempt")?,
        tries: row.get("tries")?,
        max_tries: row.get("max_tries")?,
        releases: row.get("release_count")?,
        retry_delay: Span(row.get("retry_delay_ms")?),
    })
}

fn job_row(row: &Row<'_>) -> rusqlite::Result<JobRow> {
    let facts = facts(row)?;
    let text = |name: &str| row.get::<_, String>(name);
    let no_limits =
        Limits { timeout: None, timeout_first: None, timeout_idle: None, grace: Span(0), output_max: 0 };
    let spec = Spec {
        worker: text("worker")?,
        adapter: text("adapter")?,
        model: row.get("model")?,
        program: text("program")?,
        argv: json(&text("argv")?),
        options: json(&text("options")?),
        prompt: digest(row.get("prompt")?),
        dir: text("dir")?,
        env: json(&text("env")?),
        limits: serde_json::from_str(&text("limits")?).unwrap_or(no_limits),
        max_tries: facts.max_tries,
        retry_delay: facts.retry_delay,
        if_uncertain: IfUncertain::parse(&text("if_uncertain")?).unwrap_or(IfUncertain::Hold),
        group: text("group")?,
        width: row.get("width")?,
        priority: row.get("priority")?,
        not_before: Time(row.get("not_before")?),
        labels: Vec::new(),
        after: Vec::new(),
        continues: row.get::<_, Option<i64>>("continues")?.map(JobId),
        config_digest: digest(row.get("config_digest")?),
    };
    Ok(JobRow {
        facts,
        state: State::parse(&text("state")?).unwrap_or(State::Queued),
        hold: Hold::parse(&text("hold")?).unwrap_or(Hold::None),
        due: Time(row.get("due")?),
        spec,
        spec_digest: digest(row.get("spec_digest")?).unwrap_or_else(|| Digest::of_content(b"")),
        session: row.get("session")?,
        submitted_by: text("submitted_by")?,
        submitted_at: Time(row.get("submitted_at")?),
        ended_at: row.get::<_, Option<i64>>("ended_at")?.map(Time),
    })
}

/// Which jobs a claimer wants.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only this job.
    pub job: Option<JobId>,
    /// Only jobs with this label.
    pub label: Option<String>,
    /// Only jobs of this group.
    pub group: Option<String>,
    /// Only jobs of this worker.
    pub worker: Option<String>,
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
            Verdict::Cancel => match self.job_now(job)? {
                Now::Queued(queued) => self.apply(&queued.cancel()),
                Now::Claimed(_) | Now::Running(_) | Now::Uncertain(_) | Now::Ended(_) => Ok(()),
            },
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

    /// Offers those whose time has come.
    pub fn wake_due(&mut self) -> Result<()> {
        let sql = "UPDATE jobs SET due = 0 WHERE state = 'queued' AND due > 0 AND due <= ?1";
        self.connection.prepare_cached(sql).and_then(|mut s| s.execute([self.now.0])).sql("wake jobs").map(drop)
    }

    /// Makes a held job available again, as an operator's or a resolution's act.
    pub fn unhold(&mut self, job: JobId) -> Result<bool> {
        let sql = "UPDATE jobs SET hold = '', release_count = 0 WHERE id = ?1 AND state = 'queued' AND hold = 'releases'";
        let changed = self.connection.execute(sql, [job.0]).sql("release the job")?;
        Ok(changed == 1)
    }
}

/// JSON text of the few things that are stored as such.
mod erased {
    pub(super) trait Json {
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
        let sql = "SELECT id, state, attempt, tries, max_tries, release_count, retry_delay_ms FROM jobs WHERE id = ?1";
        let mut statement = self.connection.prepare_cached(sql).sql("read the job")?;
        let row = statement.query_row([job.0], |row| Ok((facts(row)?, row.get::<_, String>("state")?)));
        let (facts, state) = row.optional().sql("read the job")?.ok_or_else(|| missing(job))?;
        let state = State::parse(&state)
            .ok_or_else(|| Error::new(Code::StoreDamaged, format!("job {job} is in no state of ours: '{state}'")))?;
        Ok(Now::new(facts, state))
    }

    /// A job with all that was frozen.
    pub fn job(&self, job: JobId) -> Result<JobRow> {
        let sql = format!("SELECT {COLUMNS} FROM jobs j WHERE j.id = ?1");
        let mut statement = self.connection.prepare_cached(&sql).sql("read the job")?;
        statement.query_row([job.0], job_row).optional().sql("read the job")?.ok_or_else(|| missing(job))
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
        statement.query_map([label], |row| row.get(0).map(JobId)).and_then(Iterator::collect).sql("look for active jobs")
    }

    /// The next job that may run now, by priority and then by age, over all groups that are not full. `width` gives a
    /// group's width where the configuration has one. Says also whether a full group kept some job back.
    pub fn next_ready(&self, wanted: &Wanted, width: impl Fn(&str) -> Option<i64>) -> Result<(Option<JobId>, bool)> {
        let (mut best, mut kept_back): (Option<(i64, JobId)>, bool) = (None, false);
        let mut group = match &wanted.group {
            Some(only) => Some(only.clone()),
            None => self.group_after(None)?,
        };
        while let Some(name) = group {
            if let Some((priority, job, own_width)) = self.best_of_group(&name, wanted)? {
                let limit = width(&name).unwrap_or(own_width);
                if !name.is_empty() && self.filled(&name)? >= limit {
                    kept_back = true;
                } else if best.is_none_or(|(p, j)| (priority, std::cmp::Reverse(job)) > (p, std::cmp::Reverse(j))) {
                    best = Some((priority, job));
                }
            }
            group = if wanted.group.is_some() { None } else { self.group_after(Some(&name))? };
        }
        Ok((best.map(|(_, job)| job), kept_back))
    }

    /// Groups that have something ready, one after the other, each found by one step into the index.
    fn group_after(&self, name: Option<&str>) -> Result<Option<String>> {
        let ready = "state = 'queued' AND hold = '' AND due = 0";
        let sql = match name {
            None => format!("SELECT \"group\" FROM jobs WHERE {ready} ORDER BY \"group\" LIMIT 1"),
            Some(_) => format!("SELECT \"group\" FROM jobs WHERE {ready} AND \"group\" > ?1 ORDER BY \"group\" LIMIT 1"),
        };
        let mut statement = self.connection.prepare_cached(&sql).sql("look at the queue")?;
        statement.query_row(params_from_iter(name), |row| row.get(0)).optional().sql("look at the queue")
    }

    fn best_of_group(&self, group: &str, wanted: &Wanted) -> Result<Option<(i64, JobId, i64)>> {
        let mut sql = String::from(
            "SELECT j.priority, j.id, j.width FROM jobs j WHERE j.state = 'queued' AND j.hold = '' AND j.due = 0
             AND j.\"group\" = ?1 AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.session = j.session AND a.state <> 'ended')",
        );
        let mut values = vec![Value::from(group.to_owned())];
        if let Some(job) = wanted.job {
            values.push(job.0.into());
            sql.push_str(&format!(" AND j.id = ?{}", values.len()));
        }
        if let Some(label) = &wanted.label {
            values.push(label.clone().into());
            sql.push_str(&format!(
                " AND EXISTS (SELECT 1 FROM labels l WHERE l.label = ?{} AND l.job = j.id)",
                values.len()
            ));
        }
        if let Some(worker) = &wanted.worker {
            values.push(worker.clone().into());
            sql.push_str(&format!(" AND j.worker = ?{}", values.len()));
        }
        sql.push_str(" ORDER BY j.priority DESC, j.id LIMIT 1");
        let mut statement = self.connection.prepare_cached(&sql).sql("look at the queue")?;
        let read = |row: &Row<'_>| Ok((row.get(0)?, JobId(row.get(1)?), row.get(2)?));
        statement.query_row(params_from_iter(values), read).optional().sql("look at the queue")
    }

    /// How many of a group are claimed or running: a worker that outlives its owner keeps its place.
    fn filled(&self, group: &str) -> Result<i64> {
        let sql = "SELECT count(*) FROM jobs WHERE state IN ('claimed', 'running') AND \"group\" = ?1";
        let mut statement = self.connection.prepare_cached(sql).sql("count a group")?;
        statement.query_row([group], |row| row.get(0)).sql("count a group")
    }

    /// When the next job comes due that waits for its time only; and the next of those that wait for another try.
    pub fn next_due(&self) -> Result<(Option<Time>, Option<Time>)> {
        let sql = "SELECT min(due), min(due) FILTER (WHERE tries > 0) FROM jobs WHERE state = 'queued' AND due > 0";
        let mut statement = self.connection.prepare_cached(sql).sql("look at the queue")?;
        let read = |row: &Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?));
        let (any, retry) = statement.query_row([], read).sql("look at the queue")?;
        Ok((any.map(Time), retry.map(Time)))
    }

    /// How many jobs are in this state.
    pub fn count_state(&self, state: State) -> Result<i64> {
        let sql = "SELECT count(*) FROM jobs WHERE state = ?1";
        let mut statement = self.connection.prepare_cached(sql).sql("count jobs")?;
        statement.query_row([state.word()], |row| row.get(0)).sql("count jobs")
    }
}

fn missing(job: JobId) -> Error {
    Error::new(Code::NotFound, format!("no job {job}"))
}

/// Which jobs to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// In one of these states; in any when empty.
    pub states: Vec<State>,
    /// With this label.
    pub label: Option<String>,
    /// Of this worker.
    pub worker: Option<String>,
    /// Of this group.
    pub group: Option<String>,
    /// Submitted at or after this.
    pub since: Option<Time>,
    /// Submitted before this.
    pub until: Option<Time>,
    /// Only those after this one in the order asked for.
    pub after: Option<JobId>,
    /// At most so many.
    pub limit: Option<i64>,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListBy {
    /// Oldest first.
    Id,
    /// Newest first.
    IdDown,
    /// First ended first; jobs that have not ended are left out.
    Ended,
    /// Last ended first; jobs that have not ended are left out.
    EndedDown,
    /// As they would be claimed.
    Priority,
}

impl Filter {
    fn sql(&self, select: &str, by: ListBy) -> (String, Vec<Value>) {
        let mut sql = format!("SELECT {select} FROM jobs j WHERE true");
        let mut values: Vec<Value> = Vec::new();
        let mut and = |clause: &str, value: Value| {
            values.push(value);
            sql.push_str(" AND ");
            sql.push_str(&clause.replace('?', &format!("?{}", values.len())));
        };
        let mut text = |clause: &str, value: &Option<String>| {
            if let Some(value) = value {
                and(clause, value.clone().into());
            }
        };
        text("j.worker = ?", &self.worker);
        text("j.\"group\" = ?", &self.group);
        text("EXISTS (SELECT 1 FROM labels l WHERE l.label = ? AND l.job = j.id)", &self.label);
        if !self.states.is_empty() {
            let words: Vec<&str> = self.states.iter().map(|state| state.word()).collect();
            and("j.state IN (SELECT value FROM json_each(?))", erased::Json::json(&words).into());
        }
        for (clause, time) in [("j.submitted_at >= ?", self.since), ("j.submitted_at < ?", self.until)] {
            if let Some(time) = time {
                and(clause, time.0.into());
            }
        }
        if let Some(after) = self.after {
            let clause = match by {
                ListBy::Id => "j.id > ?",
                ListBy::IdDown => "j.id < ?",
                ListBy::Ended => "(j.ended_at, j.id) > (SELECT ended_at, id FROM jobs WHERE id = ?)",
                ListBy::EndedDown => "(j.ended_at, j.id) < (SELECT ended_at, id FROM jobs WHERE id = ?)",
                ListBy::Priority => "(-j.priority, j.id) > (SELECT -priority, id FROM jobs WHERE id = ?)",
            };
            and(clause, after.0.into());
        }
        (sql, values)
    }
}

impl View<'_> {
    /// The jobs that the filter lets through, in this order.
    pub fn list(&self, filter: &Filter, by: ListBy) -> Result<Vec<JobRow>> {
        let (mut sql, mut values) = filter.sql(COLUMNS, by);
        sql.push_str(match by {
            ListBy::Id => " ORDER BY j.id",
            ListBy::IdDown => " ORDER BY j.id DESC",
            ListBy::Ended => " AND j.ended_at IS NOT NULL ORDER BY j.ended_at, j.id",
            ListBy::EndedDown => " AND j.ended_at IS NOT NULL ORDER BY j.ended_at DESC, j.id DESC",
            ListBy::Priority => " ORDER BY -j.priority, j.id",
        });
        values.push(filter.limit.unwrap_or(-1).into());
        sql.push_str(&format!(" LIMIT ?{}", values.len()));
        let mut statement = self.connection.prepare_cached(&sql).sql("list jobs")?;
        statement.query_map(params_from_iter(values), job_row).and_then(Iterator::collect).sql("list jobs")
    }

    /// How many jobs the filter lets through.
    pub fn count(&self, filter: &Filter) -> Result<i64> {
        let (sql, values) = filter.sql("count(*)", ListBy::Id);
        let mut statement = self.connection.prepare_cached(&sql).sql("count jobs")?;
        statement.query_row(params_from_iter(values), |row| row.get(0)).sql("count jobs")
    }
}
