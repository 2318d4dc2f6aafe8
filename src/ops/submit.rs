//! Queueing jobs: what was asked for is resolved, frozen, and committed. One job or a whole batch is one transaction.

use super::Caller;
use super::ask::{Ask, IfActive, is_command, request_digest};
use super::resolve::{Resolved, Resolver};
use crate::domain::id::JobId;
use crate::domain::spec::{Dependency, Spec, Then};
use crate::domain::time::Time;
use crate::error::{Code, Error, Result};
use crate::fault;
use crate::host::config::Config;
use crate::host::process;
use crate::store::{Done, Ledger, NewJob, Request, Store};
use crate::worker::Adapter;
use serde::{Deserialize, Serialize};

/// What came of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Submitted {
    /// Queued as this job, or as it was the first time.
    Job(JobId),
    /// Not queued, because this job has not ended.
    Skipped(JobId),
}

/// Queues one job.
pub fn submit(
    store: &mut Store,
    now: Time,
    caller: &Caller,
    config: &Config,
    op_id: Option<String>,
    ask: Ask,
) -> Result<Submitted> {
    let request = Request::new(op_id, || request_digest(caller, &ask));
    if let Some(first) = store.repeated("submit", &request)? {
        return Ok(first);
    }
    let resolved = Resolver::new(caller, config, now).resolve(store, ask)?;
    fault::point("submit.prepared");
    store.operate(now, "submit", &request, |ledger| {
        let skip = Skip::of(&resolved);
        let submitted = queue(ledger, caller, &submitted_by(caller), resolved)?;
        Ok(done(&[(submitted, skip)], submitted))
    })
}

/// Queues many jobs in one transaction, all or none. `next` gives them one after the other and fails with the place of
/// a bad one; it reads from a spool, never from a pipe, because the transaction is open.
pub fn submit_many(
    store: &mut Store,
    now: Time,
    caller: &Caller,
    config: &Config,
    request: &Request,
    mut next: impl FnMut(&mut dyn FnMut(Ask) -> Result<()>) -> Result<()>,
) -> Result<Vec<Submitted>> {
    let spool = store.spool();
    let (mut resolver, by) = (Resolver::new(caller, config, now), submitted_by(caller));
    store.operate(now, "submit", request, |ledger| {
        let mut all = Vec::new();
        next(&mut |ask| {
            let resolved = resolver.resolve_with(&spool, ask)?;
            let skip = Skip::of(&resolved);
            let submitted = queue(ledger, caller, &by, resolved)?;
            all.push((submitted, skip.filter(|_| matches!(submitted, Submitted::Skipped(_)))));
            Ok(())
        })?;
        let answer = all.iter().map(|(submitted, _)| *submitted).collect();
        Ok(done(&all, answer))
    })
}

/// How much of a command or a prompt the log shows, in characters.
const SHOWN: usize = 60;

/// What a skip is about, for the log: it has no job of its own that could be looked up.
#[derive(Debug)]
struct Skip {
    label: String,
    words: String,
}

impl Skip {
    fn of(resolved: &Resolved) -> Option<Self> {
        let (label, _) = resolved.if_active.as_ref()?;
        let spec = &resolved.spec;
        let key = resolved.key.as_ref().map_or_else(String::new, |(key, _)| format!("key '{key}', "));
        let words = if is_command(spec) {
            std::iter::once(&spec.program).chain(&spec.argv).map(String::as_str).collect::<Vec<_>>().join(" ")
        } else {
            format!("a turn of {}", spec.worker)
        };
        let cut: String = words.chars().take(SHOWN).collect();
        let words = if cut.len() < words.len() { cut + "…" } else { words };
        Some(Self { label: label.clone(), words: format!("{key}{words}") })
    }
}

/// The line of the log on all of them; the first that was skipped stands for those.
fn done<T>(submitted: &[(Submitted, Option<Skip>)], answer: T) -> Done<T> {
    let jobs = || submitted.iter().filter_map(|(s, _)| if let Submitted::Job(job) = s { Some(job) } else { None });
    let skips = submitted.len() - jobs().count();
    let first = submitted.iter().find_map(|(s, skip)| match (s, skip) {
        (Submitted::Skipped(active), Some(skip)) => Some((active, skip)),
        _ => None,
    });
    let subject = match (jobs().next(), first) {
        (Some(job), _) => job.to_string(),
        (None, Some((_, skip))) => skip.label.clone(),
        (None, None) => String::new(),
    };
    let mut notes = Vec::new();
    if jobs().count() > 1 {
        notes.push(format!("and {} more", jobs().count() - 1));
    }
    if let Some((active, skip)) = first {
        let Skip { label, words } = skip;
        notes.push(format!("skipped {skips}: job {active} has not ended (label '{label}', {words})"));
    }
    let mut done = Done::new(subject, answer);
    done.note = notes.join("; ");
    done
}

/// Commits one resolved request as a job.
fn queue(ledger: &mut Ledger<'_>, caller: &Caller, submitted_by: &str, resolved: Resolved) -> Result<Submitted> {
    let Resolved { mut spec, prompt, home, key, if_active } = resolved;
    if let Some((key, asked)) = &key
        && let Some((digest, job)) = ledger.key(key)?
    {
        if digest == *asked {
            return Ok(Submitted::Job(job));
        }
        return Err(Error::new(
            Code::KeyConflict,
            format!("key '{key}' belongs to job {job}, which is another request"),
        ));
    }
    let mut replaced = Vec::new();
    if let Some((label, then)) = &if_active {
        let active = ledger.active(label)?;
        match (active.first(), then) {
            (None, _) => {}
            (Some(job), IfActive::Skip) => return Ok(Submitted::Skipped(*job)),
            (Some(job), IfActive::Fail) => {
                return Err(Error::new(Code::Active, format!("job {job} with label '{label}' has not ended")));
            }
            (Some(_), IfActive::Queue) => wait_for(&mut spec, &active),
            (Some(_), IfActive::Latest) => replaced = active,
        }
        // The label that guards is also the label that the next one looks for.
        if !spec.labels.contains(label) {
            spec.labels.push(label.clone());
            spec.labels.sort();
        }
    }
    for dependency in &spec.after {
        ledger.job_now(dependency.on)?;
    }
    let session = session_of(ledger, &mut spec, &home)?;
    if let Some(prompt) = &prompt {
        ledger.put(prompt)?;
    }
    let job = ledger.insert_job(&NewJob { spec: &spec, session, submitted_by })?;
    for old in replaced {
        ledger.replace(old, job)?;
    }
    if let Some(parent) = caller.attempt
        && let Ok(parent_attempt) = ledger.attempt(parent)
    {
        ledger.insert_edge(session, parent_attempt.session, parent)?;
    }
    if let Some((key, asked)) = &key {
        ledger.insert_key(key, asked, job)?;
    }
    Ok(Submitted::Job(job))
}

fn submitted_by(caller: &Caller) -> String {
    let uid = process::own_user();
    let attempt = caller.attempt.map(|attempt| attempt.to_string());
    serde_json::json!({ "uid": uid, "pid": std::process::id(), "attempt": attempt }).to_string()
}

/// Waits for these jobs however they end; while one is uncertain, it counts as not ended.
fn wait_for(spec: &mut Spec, jobs: &[JobId]) {
    for job in jobs.iter().filter(|job| !spec.after.iter().any(|d| d.on == **job)).copied().collect::<Vec<_>>() {
        let run = Then::Run;
        spec.after.push(Dependency { on: job, on_failed: run, on_cancelled: run, on_uncertain: Then::Hold });
    }
    // The order is part of what is frozen, and they are read back by number.
    spec.after.sort_by_key(|dependency| dependency.on);
}

/// A session of its own, or the one that is continued: then every earlier job of it comes first.
fn session_of(ledger: &mut Ledger<'_>, spec: &mut Spec, home: &str) -> Result<i64> {
    let Some(continued) = spec.continues else { return ledger.insert_session(&spec.worker, home) };
    let before = ledger.job(continued)?;
    if before.spec.worker != spec.worker {
        let said = format!("job {continued} was done by '{}', not by '{}'", before.spec.worker, spec.worker);
        return Err(Error::new(Code::BadInput, said).hint("a session can be continued by its own worker only"));
    }
    if !Adapter::parse(&before.spec.adapter).is_some_and(Adapter::keeps_session) {
        return Err(Error::new(Code::WorkerRefused, format!("worker '{}' keeps no session to continue", spec.worker)));
    }
    match ledger.session(before.session)? {
        Some(session) if session.broken => Err(Error::new(
            Code::SessionBroken,
            format!("the session of job {continued} is broken: {}", session.reason),
        )),
        Some(_) => {
            let earlier = ledger.jobs_of_session_with(continued)?;
            wait_for(spec, &earlier);
            Ok(before.session)
        }
        None => Err(Error::new(Code::StoreDamaged, format!("job {continued} has lost its session"))),
    }
}
