//! Attempts: claimed, dispatched, released, settled, resolved. Each change moves the attempt and its job together.

use super::evidence::canonical;
use super::objects::Object;
use super::{Columns, Ledger, Sql as _, View};
use crate::domain::attempt::State as AttemptState;
use crate::domain::digest::Digest;
use crate::domain::id::{AttemptId, Handle, JobId};
use crate::domain::job::{Decision, Job, Move, Now, State, at};
use crate::domain::moves::Word as _;
use crate::domain::outcome::{Fact, Outcome, Report, Seen};
use crate::domain::time::Time;
use crate::error::{Code, Error, Result};
use rusqlite::{OptionalExtension as _, Row, params};
use serde_json::Value;

/// Who claims, and with what handle.
#[derive(Debug)]
pub struct Claim<'a> {
    /// The owner's identity, as JSON.
    pub owner: &'a str,
    /// The owner's lock file under `locks/`; empty for an owner by identity alone.
    pub owner_lock: &'a str,
    /// Random bytes for the handle.
    pub random: [u8; 10],
}

/// How an attempt ended.
#[derive(Debug)]
pub struct Settlement<'a> {
    /// What the adapter or the script says.
    pub report: &'a Report,
    /// What the keeper saw.
    pub seen: Option<&'a Seen>,
    /// The worker's answer.
    pub result: Option<Object>,
    /// Its standard output.
    pub stdout: Option<Object>,
    /// Its standard error.
    pub stderr: Option<Object>,
}

/// An attempt as it stands.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its name.
    pub id: AttemptId,
    /// Its session.
    pub session: i64,
    /// Its state.
    pub state: AttemptState,
    /// The owner's identity, as JSON.
    pub owner: String,
    /// The owner's lock file; empty for an owner by identity alone.
    pub owner_lock: String,
    /// The keeper's identity, as JSON.
    pub keeper: Option<String>,
    /// The permit that its dispatch consumed.
    pub permit: Option<i64>,
    /// When it was claimed.
    pub claimed_at: Time,
    /// When it was dispatched.
    pub dispatched_at: Option<Time>,
    /// When its end was recorded.
    pub ended_at: Option<Time>,
    /// What was seen, as JSON.
    pub seen: Option<String>,
    /// What happened.
    pub outcome: Option<Outcome>,
    /// Why.
    pub code: Option<String>,
    /// In words.
    pub detail: String,
    /// The model that answered.
    pub model_served: Option<String>,
    /// The worker's answer.
    pub result: Option<Digest>,
    /// Its standard output.
    pub stdout: Option<Digest>,
    /// Its standard error.
    pub stderr: Option<Digest>,
    nonce_digest: Digest,
}

impl Attempt {
    /// Refuses a handle that this attempt was not claimed with.
    pub fn check_handle(&self, handle: &Handle) -> Result<()> {
        if handle.nonce_digest() == self.nonce_digest {
            return Ok(());
        }
        Err(Error::new(Code::NotYours, format!("'{handle}' is not the handle of attempt {}", self.id)))
    }
}

/// In the order in which [`attempt_row`] reads them.
const COLUMNS: &str = "job, n, session, state, owner, owner_lock, keeper, permit, claimed_at, dispatched_at, ended_at,
  seen, outcome, code, detail, model_served, result, stdout, stderr, nonce_digest";

fn attempt_row(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    let columns = &mut Columns::of(row, "attempt", 2);
    Ok(Attempt {
        id: AttemptId { job: JobId(columns.next()?), n: columns.next()? },
        session: columns.next()?,
        state: columns.word(AttemptState::parse)?,
        owner: columns.any_json()?,
        owner_lock: columns.next()?,
        keeper: columns.json_text::<Value>()?,
        permit: columns.next()?,
        claimed_at: Time(columns.next()?),
        dispatched_at: columns.next::<Option<i64>>()?.map(Time),
        ended_at: columns.next::<Option<i64>>()?.map(Time),
        seen: columns.json_text::<Seen>()?,
        outcome: columns.maybe_word(Outcome::parse)?,
        code: columns.next()?,
        detail: columns.next()?,
        model_served: columns.next()?,
        result: columns.maybe_digest()?,
        stdout: columns.maybe_digest()?,
        stderr: columns.maybe_digest()?,
        nonce_digest: columns.digest()?,
    })
}

impl View<'_> {
    /// An attempt by its name.
    pub fn attempt(&self, id: AttemptId) -> Result<Attempt> {
        let sql = format!("SELECT {COLUMNS} FROM attempts WHERE job = ?1 AND n = ?2");
        let mut statement = self.connection.prepare_cached(&sql).sql("read the attempt")?;
        let row = statement.query_row(params![id.job.0, id.n], attempt_row).optional().sql("read the attempt")?;
        row.ok_or_else(|| match self.job_now(id.job) {
            Ok(_) => Error::new(Code::NotFound, format!("no attempt {id}")),
            Err(error) => error,
        })
    }

    /// The attempts of a job, oldest first.
    pub fn attempts(&self, job: JobId) -> Result<Vec<Attempt>> {
        let sql = format!("SELECT {COLUMNS} FROM attempts WHERE job = ?1 ORDER BY n");
        let mut statement = self.connection.prepare_cached(&sql).sql("read attempts")?;
        statement.query_map([job.0], attempt_row).and_then(Iterator::collect).sql("read attempts")
    }

    /// Every attempt that is claimed or running.
    pub fn open_attempts(&self) -> Result<Vec<Attempt>> {
        self.attempts_of("jobs_state", "j.state IN ('claimed', 'running')")
    }

    /// Every attempt that waits for a decision.
    pub fn uncertain_attempts(&self) -> Result<Vec<Attempt>> {
        self.attempts_of("jobs_state", "j.state = 'uncertain'")
    }

    /// The latest attempt of every job that is held after its releases.
    pub fn held_attempts(&self) -> Result<Vec<Attempt>> {
        self.attempts_of("jobs_held", "j.state = 'queued' AND j.hold = 'releases'")
    }

    fn attempts_of(&self, index: &str, condition: &str) -> Result<Vec<Attempt>> {
        let columns = COLUMNS.split(',').map(|column| format!("a.{}", column.trim())).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "SELECT {columns} FROM jobs j INDEXED BY {index} JOIN attempts a ON a.job = j.id AND a.n = j.attempt
             WHERE {condition} ORDER BY j.id"
        );
        let mut statement = self.connection.prepare_cached(&sql).sql("read open attempts")?;
        statement.query_map([], attempt_row).and_then(Iterator::collect).sql("read open attempts")
    }
}

impl Ledger<'_> {
    /// Claims a queued job under its next N; gives the handle.
    pub fn claim(
        &mut self,
        job: Job<at::Queued>,
        session: i64,
        model: Option<&str>,
        claim: &Claim<'_>,
    ) -> Result<Handle> {
        let step = job.claim();
        let handle = Handle::new(step.attempt(), claim.random);
        let sql =
            "INSERT INTO attempts (job, n, session, state, nonce_digest, owner, owner_lock, claimed_at, model_asked)
                   VALUES (?1, ?2, ?3, 'claimed', ?4, ?5, ?6, ?7, ?8)";
        let id = step.attempt();
        let digest = handle.nonce_digest();
        let row = params![id.job.0, id.n, session, digest.bytes(), claim.owner, claim.owner_lock, self.now.0, model];
        self.connection.prepare_cached(sql).and_then(|mut s| s.execute(row)).sql("claim the job")?;
        self.apply(&step)?;
        Ok(handle)
    }

    /// Says "about to act": consumes the permit, names the keeper, and the job runs.
    pub fn dispatch(&mut self, id: AttemptId, keeper: Option<&str>, effect: &str, binding: &Digest) -> Result<()> {
        let Now::Claimed(job) = self.job_now(id.job)? else { return Err(moved(id)) };
        if job.facts().attempt != id.n {
            return Err(moved(id));
        }
        if let Some(stop) = self.stop_of(id.job)? {
            return Err(Error::new(Code::Stopped, format!("job {} is stopped: {}", id.job, stop.because)));
        }
        let permit = self.consume_dispatch(id, effect, binding)?;
        let sql = "UPDATE attempts SET state = 'running', keeper = ?3, permit = ?4, dispatched_at = ?5
                   WHERE job = ?1 AND n = ?2 AND state = 'claimed'";
        let row = params![id.job.0, id.n, keeper, permit, self.now.0];
        self.one_attempt(id, sql, row)?;
        self.apply(&job.dispatch())
    }

    /// Gives a claim back that never dispatched; a stop in force cancels the job instead.
    pub fn release(&mut self, id: AttemptId, code: Code, detail: &str) -> Result<State> {
        self.end_claimed(id, code, detail, Job::release)
    }

    /// Gives a claim back for a reason that is not the job's; else the same.
    pub fn give_back(&mut self, id: AttemptId, code: Code, detail: &str) -> Result<State> {
        self.end_claimed(id, code, detail, Job::give_back)
    }

    /// Ends a claim that can never be dispatched; nothing ran.
    pub fn refuse(&mut self, id: AttemptId, code: Code, detail: &str) -> Result<State> {
        let job = self.claimed(id)?;
        self.write_claimed(id, code, detail, &job.refuse())
    }

    fn claimed(&self, id: AttemptId) -> Result<Job<at::Claimed>> {
        match self.job_now(id.job)? {
            Now::Claimed(job) if job.facts().attempt == id.n => Ok(job),
            Now::Queued(_) | Now::Claimed(_) | Now::Running(_) | Now::Uncertain(_) | Now::Ended(_) => Err(moved(id)),
        }
    }

    fn end_claimed(
        &mut self,
        id: AttemptId,
        code: Code,
        detail: &str,
        back: impl FnOnce(Job<at::Claimed>) -> Move,
    ) -> Result<State> {
        let job = self.claimed(id)?;
        let step = if self.stop_of(id.job)?.is_some() { job.cancel() } else { back(job) };
        self.write_claimed(id, code, detail, &step)
    }

    fn write_claimed(&mut self, id: AttemptId, code: Code, detail: &str, step: &Move) -> Result<State> {
        let sql = "UPDATE attempts SET state = 'ended', outcome = 'void', code = ?3, detail = ?4, ended_at = ?5
                   WHERE job = ?1 AND n = ?2 AND state = 'claimed'";
        self.one_attempt(id, sql, params![id.job.0, id.n, code.name(), detail, self.now.0])?;
        self.apply(step)?;
        let body = event_body(step, Outcome::Void, Some(code.name()));
        self.event(&id.to_string(), "attempt.settled", Some(id.job), &body)?;
        let record = self.attempt_record(id)?.to_string();
        self.receipt("release", &id.to_string(), &canonical(&[&record]))?;
        Ok(step.to())
    }

    /// Settles a running attempt: outcome, receipt, event and the job's move in one transaction. Decisions that were
    /// made beforehand follow at once. Gives the job's state.
    pub fn settle(&mut self, attempt: &Attempt, end: &Settlement<'_>) -> Result<State> {
        let id = attempt.id;
        let Now::Running(job) = self.job_now(id.job)? else { return Err(moved(id)) };
        if job.facts().attempt != id.n {
            return Err(moved(id));
        }
        let stop = self.stop_of(id.job)?;
        let report = end.report;
        let step = match report.fact() {
            Fact::Void { .. } | Fact::Blameless if stop.is_some() => job.cancel(),
            Fact::Error { .. } if stop.is_some() => job.settle(Fact::Error { retry: None }, self.now),
            fact => job.settle(fact, self.now),
        };
        let uncertain = step.to() == State::Uncertain;
        let facts = self.write_end(attempt, end, uncertain)?;
        self.note_session(attempt, report)?;
        self.apply(&step)?;
        let code = report.code.map(Code::name);
        self.event(&id.to_string(), "attempt.settled", Some(id.job), &event_body(&step, report.outcome, code))?;
        let permit =
            attempt.permit.ok_or_else(|| Error::new(Code::StoreDamaged, format!("attempt {id} has no permit")))?;
        let outcome = if uncertain { Outcome::Ambiguous } else { report.outcome };
        // Last of all, as it covers what was written before it.
        self.settle_permit(id, permit, outcome, &facts.each_ref().map(String::as_str))?;
        if step.to() != State::Uncertain {
            return Ok(step.to());
        }
        match self.decided_beforehand(id, stop.as_ref(), end)? {
            Some((decision, because)) => self.resolve(id, decision, "beforehand", &because, None),
            None => Ok(State::Uncertain),
        }
    }

    /// Writes the end; gives the facts that its receipt spells out.
    fn write_end(&mut self, attempt: &Attempt, end: &Settlement<'_>, uncertain: bool) -> Result<[String; 5]> {
        let (id, report) = (attempt.id, end.report);
        let mut named = [None; 3];
        for (name, object) in named.iter_mut().zip([&end.result, &end.stdout, &end.stderr]) {
            *name = object.as_ref().map(|object| self.put(object)).transpose()?;
        }
        let [result, stdout, stderr] = named;
        let blob = |digest: &Option<Digest>| digest.map(|digest| digest.bytes().to_vec());
        let outcome = if uncertain { Outcome::Ambiguous } else { report.outcome };
        let seen = end.seen.map(|seen| serde_json::to_string(seen).unwrap_or_default());
        let sql = "UPDATE attempts SET state = ?3, outcome = ?4, code = ?5, detail = ?6, seen = ?7, model_served = ?8,
                     result = ?9, stdout = ?10, stderr = ?11, ended_at = ?12
                   WHERE job = ?1 AND n = ?2 AND state = 'running'";
        let code = report.code.map(Code::name);
        let row = params![
            id.job.0,
            id.n,
            if uncertain { "uncertain" } else { "ended" },
            outcome.word(),
            code,
            report.detail,
            seen,
            report.model_served,
            blob(&result),
            blob(&stdout),
            blob(&stderr),
            self.now.0,
        ];
        self.one_attempt(id, sql, row)?;
        let text = |digest: Option<Digest>| digest.map_or_else(String::new, |digest| digest.to_string());
        let code = code.unwrap_or("").to_owned();
        Ok([code, seen.unwrap_or_default(), text(result), text(stdout), text(stderr)])
    }

    fn note_session(&mut self, attempt: &Attempt, report: &Report) -> Result<()> {
        if let Some(reported) = &report.session
            && !report.broken
        {
            self.session_reported(attempt.session, attempt.id, reported)?;
        }
        if report.broken {
            self.break_session(attempt.session, &format!("{}: {}", attempt.id, report.detail))?;
        }
        match &report.usage {
            Some(usage) => {
                self.insert_run(attempt.session, attempt.id, report.model_served.as_deref().unwrap_or(""), usage)
            }
            None => Ok(()),
        }
    }

    /// A stop's decision, else the job's own; a session that broke is never retried by itself, nor is an attempt of which
    /// something could not be ended.
    fn decided_beforehand(
        &self,
        id: AttemptId,
        stop: Option<&super::Stop>,
        end: &Settlement<'_>,
    ) -> Result<Option<(Decision, String)>> {
        if let Some(stop) = stop {
            return Ok(stop.decision.map(|decision| (decision, format!("stop {}: {}", stop.id, stop.because))));
        }
        let job = self.job(id.job)?;
        let alone = end.seen.is_none_or(|seen| seen.survivors.is_empty());
        let tries_left = job.facts.tries < job.facts.max_tries && !end.report.broken && alone;
        let choice = job.spec.if_uncertain;
        Ok(choice
            .decision(tries_left)
            .map(|decision| (decision, format!("submitted with --if-uncertain {}", choice.word()))))
    }

    /// Resolves an uncertain attempt by a decision that is written beside it. Gives the job's state.
    pub fn resolve(
        &mut self,
        id: AttemptId,
        decision: Decision,
        by: &str,
        because: &str,
        evidence: Option<&Digest>,
    ) -> Result<State> {
        let job = match self.job_now(id.job)? {
            Now::Uncertain(job) if job.facts().attempt == id.n => job,
            Now::Queued(_) | Now::Claimed(_) | Now::Running(_) | Now::Uncertain(_) | Now::Ended(_) => {
                return match self.resolution(id)? {
                    Some(first) => Err(Error::new(
                        Code::AlreadyDecided,
                        format!("{id} was decided '{}' because: {}", first.decision, first.because),
                    )),
                    None => Err(moved(id)),
                };
            }
        };
        let step = job.resolve(decision);
        self.insert_resolution(id, decision, by, because, evidence)?;
        let sql = "UPDATE attempts SET state = 'ended' WHERE job = ?1 AND n = ?2 AND state = 'uncertain'";
        self.one_attempt(id, sql, params![id.job.0, id.n])?;
        if step.to() == State::Queued {
            self.lift_stops(id.job)?;
        }
        self.apply(&step)?;
        let body = serde_json::json!({ "state": step.to().word(), "decision": decision.word() }).to_string();
        self.event(&id.to_string(), "attempt.resolved", Some(id.job), &body)?;
        if let Some(record) = self.decision_record(&id.to_string())? {
            self.receipt("decision", &id.to_string(), &record)?;
        }
        Ok(step.to())
    }

    fn one_attempt(&self, id: AttemptId, sql: &str, row: &[&dyn rusqlite::ToSql]) -> Result<()> {
        let changed = self.connection.prepare_cached(sql).and_then(|mut s| s.execute(row)).sql("write the attempt")?;
        if changed == 1 { Ok(()) } else { Err(moved(id)) }
    }
}

fn event_body(step: &Move, outcome: Outcome, code: Option<&str>) -> String {
    let mut body = serde_json::json!({ "state": step.to().word(), "outcome": outcome.word(), "code": code });
    if step.to() == State::Queued {
        body["due"] = step.due().0.into();
    }
    body.to_string()
}

fn moved(id: AttemptId) -> Error {
    Error::new(Code::Fenced, format!("attempt {id} is over or was given away"))
}
