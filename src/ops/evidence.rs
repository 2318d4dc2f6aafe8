//! What there is to see of one attempt before someone decides about it: gathered, never judged. A proposal says what
//! the evidence speaks for; it is not acted on.

mod git;

use super::Caller;
use super::dispatch::{adapter_of, secrets, unique};
use super::reconcile::{self, Living};
use super::show::{self, Stream};
use crate::domain::digest::Digest;
use crate::domain::id::{AttemptId, JobId};
use crate::domain::job::{Decision, State};
use crate::domain::moves::Word as _;
use crate::domain::outcome::clean;
use crate::domain::redact::Redactor;
use crate::domain::time::{Span, Time};
use crate::error::{Code, Error, Result};
use crate::host::keeper::{self, Mark};
use crate::host::process;
use crate::store::{Attempt, JobRow, Permit, Store};
use crate::worker::{self, Kept, Turn};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// How much of each stream is shown.
const TAIL: usize = 2000;

/// How many of the last events are shown.
const EVENTS: usize = 5;

/// A turn that a worker recorded may have begun this much before our own dispatch was stamped.
const CLOCKS_APART: Span = Span(2000);

/// What the evidence speaks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The decision.
    pub decision: Decision,
    /// Why.
    pub reason: String,
}

/// Everything there is to see of an attempt.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The attempt.
    pub attempt: AttemptId,
    /// The job's state.
    pub state: State,
    /// Whether it is held after its releases.
    pub held: bool,
    /// The evidence.
    pub evidence: Value,
    /// What it speaks for, if it speaks for anything.
    pub proposal: Option<Proposal>,
    /// The digest of the evidence, for `--seen`.
    pub digest: Digest,
    /// Processes of the attempt that are alive.
    pub survivors: Vec<i32>,
}

impl Packet {
    /// The evidence as it is kept: the content that the digest is of.
    pub fn text(&self) -> String {
        self.evidence.to_string()
    }
}

/// Gathers the packet of a job's latest attempt.
pub fn gather(store: &Store, caller: &Caller, job: JobId) -> Result<Packet> {
    let (row, attempt) = store.read(|view| {
        let row = view.job(job)?;
        let n = row.facts.attempt;
        let none = || Error::new(Code::NotFound, format!("job {job} has no attempt yet"));
        Ok((row, if n > 0 { view.attempt(AttemptId { job, n })? } else { return Err(none()) }))
    })?;
    let folder = store.attempt_dir(attempt.id);
    let living = reconcile::living(store, attempt.id)?;
    // That the worker's own store cannot be read hides nothing else.
    let (ours, unread) = match ours(store, caller, &row, &attempt) {
        Ok(ours) => (ours, None),
        Err(error) => (None, Some(json!({ "unread": error.to_string() }))),
    };
    let mark = keeper::read_mark(&folder)?;
    let limits = &row.spec.limits;
    let evidence = json!({
        "attempt": attempt.id.to_string(),
        "code": attempt.code,
        "detail": attempt.detail,
        "seen": seen(&attempt, &folder)?,
        "mark": marked(&mark),
        "stdout": tail(store, attempt.id, Stream::Stdout),
        "stderr": tail(store, attempt.id, Stream::Stderr),
        "events": events(store, attempt.id)?,
        "worker_store": unread.or_else(|| ours.as_ref().map(told)),
        "git": git::state(Path::new(&row.spec.dir), limits.capture),
        "children": children(store, attempt.id)?,
        "permit": attempt.permit,
        "permits": permits(store, &attempt)?,
        "survivors": living.pids,
        "lock_held": living.lock_held,
    });
    let proposal = if living.any() { None } else { propose(&row, &attempt, &mark, ours.as_ref()) };
    let digest = Digest::of_content(evidence.to_string().as_bytes());
    let survivors = living.pids;
    Ok(Packet { attempt: attempt.id, state: row.state, held: row.is_held(), evidence, proposal, digest, survivors })
}

/// What was seen of the end: as it is recorded, else as its keeper wrote it down for whoever will.
fn seen(attempt: &Attempt, folder: &Path) -> Result<Option<Value>> {
    match &attempt.seen {
        Some(seen) => Ok(serde_json::from_str(seen).ok()),
        None => Ok(keeper::read_exit(folder)?.map(|seen| json!(seen))),
    }
}

/// The turn of this attempt that the worker's own store holds. One that began before the attempt was dispatched, or after
/// its end, is another one.
fn ours(store: &Store, caller: &Caller, row: &JobRow, attempt: &Attempt) -> Result<Option<Kept>> {
    let Some(dispatched) = attempt.dispatched_at else { return Ok(None) };
    let began_in_it = |began: Time| {
        began.after(CLOCKS_APART) >= dispatched
            && attempt.ended_at.is_none_or(|ended| ended.after(CLOCKS_APART) >= began)
    };
    Ok(kept(store, caller, row, attempt.id)?.filter(|kept| kept.began.is_some_and(began_in_it)))
}

/// What the worker's own store holds. The worker may have written there what is replaced in its output; the values are
/// known here only as far as the caller has them.
fn kept(store: &Store, caller: &Caller, row: &JobRow, id: AttemptId) -> Result<Option<Kept>> {
    let session = store.read(|view| view.session(row.session))?;
    let Some(session) = session else { return Ok(None) };
    let adapter = adapter_of(row)?;
    // A worker looked where the variables that it was given say.
    let given =
        |name: &str| adapter.keeps_session() || worker::may_pass(name, row.spec.env.iter().any(|named| named == name));
    let var = |name: &str| caller.var(name).filter(|_| given(name)).map(PathBuf::from);
    let name = unique(&session, id);
    let told = || adapter.session_told(&row.spec, &name, &show::content(store, id, Stream::Stdout).unwrap_or_default());
    let Some(home) = adapter.home(&row.spec.program, &session.credential_home, var) else { return Ok(None) };
    match session.worker_session.or_else(told) {
        Some(id) => Ok(adapter.kept(&home, &id)?.map(|kept| shown(kept, caller, row))),
        None => Ok(None),
    }
}

/// What may be stored of it: nothing that was said where nothing is to be kept.
fn shown(mut kept: Kept, caller: &Caller, row: &JobRow) -> Kept {
    let names = secrets(&row.spec.env, &[]);
    let values = names.iter().filter_map(|name| Some((name.as_str(), caller.var(name)?)));
    let filter = Redactor::new(values);
    match &mut kept.turn {
        Turn::Completed { answer: text } | Turn::Failed { message: text } | Turn::Open { answer: Some(text) } => {
            if !row.spec.limits.capture {
                text.clear();
            } else if let Some(filter) = filter {
                *text = filter.text(text);
            }
        }
        Turn::Interrupted | Turn::Open { answer: None } => {}
    }
    kept
}

fn told(kept: &Kept) -> Value {
    let (turn, text) = match &kept.turn {
        Turn::Completed { answer } => ("completed", answer.clone()),
        Turn::Failed { message } => ("failed", message.clone()),
        Turn::Interrupted => ("interrupted", String::new()),
        Turn::Open { answer } => ("open", answer.clone().unwrap_or_default()),
    };
    let digest = Digest::of_content(text.as_bytes()).to_string();
    json!({ "path": kept.path, "turn": turn, "text": last(text.as_bytes()), "digest": digest, "began": kept.began.map(|t| t.to_string()) })
}

/// How far the keeper came.
fn marked(mark: &Mark) -> Value {
    match mark {
        Mark::Missing | Mark::Lost => json!({ "state": "missing" }),
        Mark::AboutToStart => json!({ "state": "about-to-start" }),
        Mark::Started { pid } => json!({ "state": "started", "pid": pid }),
        Mark::NotExecuted { errno } => json!({ "state": "not-executed", "errno": errno }),
    }
}

fn last(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(TAIL)..]).into_owned()
}

/// The end of an output. That it is lost or damaged is told, and hides nothing else.
fn tail(store: &Store, id: AttemptId, stream: Stream) -> Value {
    match show::content(store, id, stream) {
        Ok(bytes) => {
            let digest = Digest::of_content(&bytes).to_string();
            json!({ "size": bytes.len(), "tail": last(&bytes), "digest": digest })
        }
        Err(error) => json!({ "unread": error.to_string() }),
    }
}

fn events(store: &Store, id: AttemptId) -> Result<Vec<Value>> {
    let mut all = show::events(store, id)?.feed(&show::content(store, id, Stream::Stdout).unwrap_or_default());
    Ok(all.split_off(all.len().saturating_sub(EVENTS)))
}

/// Jobs that the attempt submitted, and all that they did in turn, each with its state and who submitted it.
fn children(store: &Store, id: AttemptId) -> Result<Vec<Value>> {
    let children = store.read(|view| view.descendants_of(id))?;
    let told =
        |(job, state, parent): (JobId, State, JobId)| json!({ "job": job, "state": state.word(), "parent": parent });
    Ok(children.into_iter().map(told).collect())
}

/// What the attempt was permitted to do, and what came of it.
fn permits(store: &Store, attempt: &Attempt) -> Result<Vec<Value>> {
    let Some(first) = attempt.permit else { return Ok(Vec::new()) };
    let permits = store.read(|view| view.permits_of(attempt.id, first))?;
    let told = |permit: Permit| {
        json!({
            "permit": permit.id, "effect": permit.effect, "target": permit.target, "state": permit.state,
            "outcome": permit.outcome,
        })
    };
    Ok(permits.into_iter().map(told).collect())
}

/// What the evidence of an attempt of which nothing lives speaks for.
fn propose(row: &JobRow, attempt: &Attempt, mark: &Mark, kept: Option<&Kept>) -> Option<Proposal> {
    let proposal = |decision, reason: String| Some(Proposal { decision, reason });
    if row.is_held() {
        return proposal(Decision::Retry, format!("it never started: {}; offer it again", attempt.detail));
    }
    if attempt.code.as_deref() == Some(Code::ResumeMismatch.name()) {
        return proposal(Decision::Abandon, "the turn went to another session; submit it anew".to_owned());
    }
    if let Mark::NotExecuted { .. } = mark {
        return proposal(Decision::NoEffect, "it never started: its keeper could not execute the program".to_owned());
    }
    // Where a turn is not all that the job does, nobody knows what came after it.
    let whole = adapter_of(row).is_ok_and(|adapter| adapter.is_one_turn(&row.spec));
    match kept.filter(|_| whole).map(|kept| (&kept.turn, &kept.path)) {
        Some((Turn::Completed { .. }, path)) => {
            proposal(Decision::Ok, format!("'{path}' holds the finished turn: adopt its answer"))
        }
        Some((Turn::Failed { message }, path)) => {
            proposal(Decision::Error, format!("'{path}' says that the turn failed: {}", clean(message)))
        }
        Some((Turn::Interrupted | Turn::Open { .. }, _)) | None => None,
    }
}

/// The answer that a worker's own store holds of the attempt, to be kept as its result when the evidence is adopted.
pub fn answer(store: &Store, caller: &Caller, id: AttemptId) -> Result<Option<String>> {
    let (row, attempt) = store.read(|view| Ok((view.job(id.job)?, view.attempt(id)?)))?;
    if !row.spec.limits.capture {
        return Ok(None);
    }
    // What cannot be read has no answer to adopt; the evidence says that it could not.
    let turn = ours(store, caller, &row, &attempt).ok().flatten().map(|kept| kept.turn);
    Ok(match turn {
        Some(Turn::Completed { answer }) => Some(answer),
        Some(Turn::Failed { .. } | Turn::Interrupted | Turn::Open { .. }) | None => None,
    })
}

/// Ends what is left of an attempt; each process is identified before it gets a signal. Gives what is still there.
pub fn stop_survivors(store: &Store, id: AttemptId) -> Result<Living> {
    let grace = store.read(|view| view.job(id.job))?.spec.limits.grace.duration();
    for signal in [process::Signal::TERM, process::Signal::KILL] {
        for pid in reconcile::living(store, id)?.pids {
            if let Some(identity) = process::Identity::of(pid)? {
                process::signal(&identity, signal)?;
            }
        }
        let asked = crate::host::clock::mark();
        while !reconcile::living(store, id)?.pids.is_empty() && !asked.left(grace).is_zero() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    reconcile::living(store, id)
}
