//! What there is to see of one attempt before someone decides about it: gathered, never judged. A proposal says what
//! the evidence speaks for; it is not acted on.

use super::dispatch::{adapter_of, secrets};
use super::show::{self, Stream};
use super::{Caller, reconcile};
use crate::domain::digest::Digest;
use crate::domain::id::{AttemptId, JobId};
use crate::domain::job::{Decision, State};
use crate::domain::moves::Word as _;
use crate::domain::outcome::clean;
use crate::domain::redact::Redactor;
use crate::domain::time::{Span, Time};
use crate::error::{Code, Error, Result};
use crate::host::{dir, keeper, process};
use crate::store::{Attempt, JobRow, Store};
use crate::worker::{Kept, Turn};
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
    let survivors = reconcile::survivors(store, attempt.id)?;
    let kept = kept(store, caller, &row)?;
    // A turn that began before this attempt did is an earlier one.
    let ours = kept.filter(|kept| match (kept.began, attempt.dispatched_at) {
        (Some(began), Some(dispatched)) => began.after(CLOCKS_APART) >= dispatched,
        _ => false,
    });
    let evidence = json!({
        "attempt": attempt.id.to_string(),
        "code": attempt.code,
        "detail": attempt.detail,
        "seen": attempt.seen.as_deref().and_then(|seen| serde_json::from_str::<Value>(seen).ok()),
        "mark": mark(&keeper::read_mark(&folder)?),
        "stdout": tail(store, attempt.id, Stream::Stdout)?,
        "stderr": tail(store, attempt.id, Stream::Stderr)?,
        "events": events(store, attempt.id)?,
        "worker_store": ours.as_ref().map(told),
        "git": git(Path::new(&row.spec.dir)),
        "children": children(store, attempt.id)?,
        "permit": attempt.permit,
        "survivors": survivors,
    });
    let proposal = propose(&attempt, ours.as_ref(), &survivors);
    let digest = Digest::of_content(evidence.to_string().as_bytes());
    Ok(Packet { attempt: attempt.id, state: row.state, held: row.is_held(), evidence, proposal, digest, survivors })
}

/// What the worker's own store holds. The worker may have written there what is replaced in its output; the values are
/// known here only as far as the caller has them.
fn kept(store: &Store, caller: &Caller, row: &JobRow) -> Result<Option<Kept>> {
    let session = store.read(|view| view.session(row.session))?;
    let Some(session) = session else { return Ok(None) };
    let adapter = adapter_of(row)?;
    let var = |name: &str| caller.var(name).map(PathBuf::from);
    match (adapter.home(&row.spec.program, &session.credential_home, var), session.worker_session) {
        (Some(home), Some(id)) => Ok(adapter.kept(&home, &id)?.map(|kept| shown(kept, caller, row))),
        _ => Ok(None),
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
fn mark(mark: &keeper::Mark) -> Value {
    match mark {
        keeper::Mark::Missing | keeper::Mark::Lost => json!({ "state": "missing" }),
        keeper::Mark::AboutToStart => json!({ "state": "about-to-start" }),
        keeper::Mark::Started { pid } => json!({ "state": "started", "pid": pid }),
        keeper::Mark::NotExecuted { errno } => json!({ "state": "not-executed", "errno": errno }),
    }
}

fn last(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(TAIL)..]).into_owned()
}

fn tail(store: &Store, id: AttemptId, stream: Stream) -> Result<Value> {
    let bytes = show::content(store, id, stream)?;
    Ok(json!({ "size": bytes.len(), "tail": last(&bytes), "digest": Digest::of_content(&bytes).to_string() }))
}

fn events(store: &Store, id: AttemptId) -> Result<Vec<Value>> {
    let mut all = show::events(store, id)?.feed(&show::content(store, id, Stream::Stdout)?);
    Ok(all.split_off(all.len().saturating_sub(EVENTS)))
}

/// What a look at the directory's repository tells without running anything: the commit, and a lock that was left.
fn git(work: &Path) -> Value {
    let Some(root) = work.ancestors().map(|dir| dir.join(".git")).find(|git| git.is_dir()) else { return Value::Null };
    let read = |name: &str| dir::read_bounded(&root.join(name), 1 << 16).ok().and_then(|b| String::from_utf8(b).ok());
    let head = read("HEAD").unwrap_or_default().trim().to_owned();
    let commit = head.strip_prefix("ref: ").and_then(read).map(|text| text.trim().to_owned());
    json!({ "head": head, "commit": commit, "index_lock": root.join("index.lock").exists() })
}

/// Jobs that the attempt submitted, with their states.
fn children(store: &Store, id: AttemptId) -> Result<Vec<Value>> {
    let children = store.read(|view| view.children_of(id))?;
    Ok(children.into_iter().map(|(job, state)| json!({ "job": job, "state": state.word() })).collect())
}

fn propose(attempt: &Attempt, kept: Option<&Kept>, survivors: &[i32]) -> Option<Proposal> {
    let proposal = |decision, reason: String| Some(Proposal { decision, reason });
    if !survivors.is_empty() {
        return None;
    }
    if attempt.code.as_deref() == Some(Code::ResumeMismatch.name()) {
        return proposal(Decision::Abandon, "the turn went to another session; submit it anew".to_owned());
    }
    match kept.map(|kept| (&kept.turn, &kept.path)) {
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
    let after = attempt.dispatched_at.unwrap_or(Time(0));
    Ok(kept(store, caller, &row)?.filter(|kept| kept.began.is_some_and(|at| at.after(CLOCKS_APART) >= after)).and_then(
        |kept| match kept.turn {
            Turn::Completed { answer } => Some(answer),
            Turn::Failed { .. } | Turn::Interrupted | Turn::Open { .. } => None,
        },
    ))
}

/// Ends what is left of an attempt; each process is identified before it gets a signal. Gives what is still there.
pub fn stop_survivors(store: &Store, id: AttemptId) -> Result<Vec<i32>> {
    let grace = store.read(|view| view.job(id.job))?.spec.limits.grace.duration();
    for signal in [process::Signal::TERM, process::Signal::KILL] {
        let alive = reconcile::survivors(store, id)?;
        for pid in &alive {
            if let Some(identity) = process::Identity::of(*pid)? {
                process::signal(&identity, signal)?;
            }
        }
        let asked = crate::host::clock::mark();
        while !reconcile::survivors(store, id)?.is_empty() && !asked.left(grace).is_zero() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    reconcile::survivors(store, id)
}
