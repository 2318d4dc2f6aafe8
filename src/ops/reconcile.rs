//! Finding what crashes left: each attempt that is not at rest is proved alive, released because it provably never
//! acted, settled because its keeper saw its end, or marked uncertain. No timer decides anything.

use super::collect::{self, Evidence, Follower};
use super::dispatch::adapter_of;
use crate::domain::attempt::State as AttemptState;
use crate::domain::id::AttemptId;
use crate::domain::job::{Hold, Move, Now, State};
use crate::domain::outcome::{Report, Seen};
use crate::error::{Code, Error, Result};
use crate::host::keeper::{self, Mark};
use crate::host::process::{self, Identity, Life};
use crate::host::{clock, dir, lock};
use crate::store::{Attempt, Done, Store};
use std::path::Path;

/// What a pass found of one attempt.
#[derive(Clone, Debug)]
pub struct Found {
    /// The attempt.
    pub attempt: AttemptId,
    /// The state it was in.
    pub was: AttemptState,
    /// What became of it.
    pub became: Became,
    /// Whether its job is held now, after its releases.
    pub held: bool,
    /// The code of its end, where it has one.
    pub code: Option<Code>,
    /// Why.
    pub detail: String,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    /// Its owner is alive; nothing was done.
    Alive,
    /// Its owner is gone and its worker is alive under its keeper; nothing was done.
    Orphaned,
    /// Nothing had been dispatched: its job is in this state now.
    Released(State),
    /// Its end was recorded: its job is in this state now.
    Settled(State),
}

/// What a pass came to.
#[derive(Clone, Debug, Default)]
pub struct Pass {
    /// Every attempt that was not at rest.
    pub found: Vec<Found>,
    /// How many of them were changed, or would be.
    pub changed: usize,
}

/// One look at everything that is claimed or running. Idempotent, and safe beside owners and other passes, because
/// each change is compare-and-set on the attempt. A dry run changes nothing.
pub fn pass(store: &mut Store, dry_run: bool) -> Result<Pass> {
    let mut pass = Pass::default();
    for attempt in store.read(|view| view.open_attempts())? {
        match look(store, &attempt, dry_run) {
            Ok(found) => {
                pass.changed += usize::from(matches!(found.became, Became::Released(_) | Became::Settled(_)));
                pass.found.push(found);
            }
            // Its owner, or another pass, was quicker.
            Err(error) if matches!(error.code, Code::Fenced | Code::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(pass)
}

/// Whether an attempt is still open although nobody is left who will end it; nothing is changed.
pub fn is_left(store: &mut Store, id: AttemptId) -> Result<bool> {
    let attempt = store.read(|view| view.attempt(id))?;
    if attempt.ended_at.is_some() {
        return Ok(false);
    }
    let found = look(store, &attempt, true)?;
    Ok(matches!(found.became, Became::Released(_) | Became::Settled(_)))
}

fn look(store: &mut Store, attempt: &Attempt, dry_run: bool) -> Result<Found> {
    let found = |became, code, detail: &str| Found {
        attempt: attempt.id,
        was: attempt.state,
        became,
        held: false,
        code,
        detail: detail.to_owned(),
    };
    if owner_lives(store, attempt)? {
        return Ok(found(Became::Alive, None, "its owner is alive"));
    }
    if attempt.state == AttemptState::Claimed {
        let detail = "its owner is gone and nothing had been dispatched";
        let (state, held) = if dry_run {
            would_be(store, attempt.id, |now| if let Now::Claimed(job) = now { Some(job.release()) } else { None })?
        } else {
            let released = store.write(clock::now(), |ledger| {
                let state = ledger.release(attempt.id, Code::NeverStarted, detail)?;
                ledger.record("reconcile", None, &Done::new(attempt.id.to_string(), ()))?;
                Ok((state, ledger.job(attempt.id.job)?.is_held()))
            })?;
            dir::clear_attempt_dir(&store.attempt_dir(attempt.id));
            released
        };
        return Ok(Found { held, ..found(Became::Released(state), Some(Code::NeverStarted), detail) });
    }
    let folder = store.attempt_dir(attempt.id);
    match ending(store, attempt, &folder)? {
        Ending::Alive(detail) => Ok(found(Became::Orphaned, None, detail)),
        Ending::Known(report, seen) => {
            let (code, detail) = (report.code, report.detail.clone());
            let (state, held) = settle(store, attempt, &folder, *report, seen, dry_run)?;
            Ok(Found { held, ..found(Became::Settled(state), code, &detail) })
        }
    }
}

/// What a move would make of the job, and whether it would be held then; nothing is written.
fn would_be(store: &Store, id: AttemptId, step: impl FnOnce(Now) -> Option<Move>) -> Result<(State, bool)> {
    let moved = || Error::new(Code::Fenced, format!("attempt {id} is over or was given away"));
    let step = step(store.read(|view| view.job_now(id.job))?).ok_or_else(moved)?;
    Ok((step.to(), step.hold() == Hold::Releases))
}

/// A held lock proves life. A free one, of an owner that holds one, proves that no process of the owner's is left.
fn owner_lives(store: &Store, attempt: &Attempt) -> Result<bool> {
    if !attempt.owner_lock.is_empty() {
        return lock::is_held(&store.locks().join(&attempt.owner_lock));
    }
    Ok(process::life(&identity(attempt.id, "owner", &attempt.owner)?)? == Life::Alive)
}

/// A process that the record of an attempt names. One that does not read is damage: whether it lives cannot be told.
pub(super) fn identity(attempt: AttemptId, column: &str, text: &str) -> Result<Identity> {
    let said = |error| format!("column '{column}' of attempt {attempt} does not read: {error}");
    serde_json::from_str(text).map_err(|error| Error::new(Code::StoreDamaged, said(error)))
}

enum Ending {
    Alive(&'static str),
    Known(Box<Report>, Option<Seen>),
}

/// How a running attempt ended whose owner is gone, by what is left of it.
fn ending(store: &Store, attempt: &Attempt, folder: &Path) -> Result<Ending> {
    let ambiguous = |detail: &str| Ok(Ending::Known(Box::new(Report::ambiguous(Code::OwnerLost, detail)), None));
    let marked = || process::marked(&attempt.id.to_string(), &store.root().to_string_lossy());
    let Some(keeper) = attempt.keeper.as_deref() else {
        return if marked()?.is_empty() {
            ambiguous("the script that owned it is gone and did not settle it")
        } else {
            Ok(Ending::Alive("its script is gone, processes of it are alive"))
        };
    };
    let keeper = identity(attempt.id, "keeper", keeper)?;
    // The record of the end is the last that a keeper writes of an attempt: it counts while the keeper is still there.
    if let Some(seen) = keeper::read_exit(folder)? {
        return recorded(store, attempt, folder, seen);
    }
    match process::life(&keeper)? {
        Life::Alive => return Ok(Ending::Alive("its owner is gone, its keeper goes on")),
        Life::Unknown => return ambiguous("whether its keeper is alive cannot be told from here"),
        Life::Dead => {}
    }
    if keeper.boot != Identity::own()?.boot {
        return ambiguous("the machine was started anew while it ran");
    }
    if let Some(seen) = keeper::read_end(folder)? {
        return recorded(store, attempt, folder, seen);
    }
    match keeper::read_mark(folder)? {
        Mark::Missing => {
            let report = Report::void(Code::NeverStarted, "its keeper ended before it started the worker", false);
            Ok(Ending::Known(Box::new(report), None))
        }
        Mark::Lost | Mark::AboutToStart | Mark::Started { .. }
            if keeper::worker_lock_held(folder)? || !marked()?.is_empty() =>
        {
            Ok(Ending::Alive("its keeper is gone, processes of it are alive"))
        }
        Mark::Lost => ambiguous("its directory is gone or damaged, and with it what its keeper wrote"),
        Mark::AboutToStart | Mark::Started { .. } | Mark::NotExecuted { .. } => {
            ambiguous("owner and keeper are gone and left no record of the end")
        }
    }
}

/// The end that a keeper wrote down, read through the job's adapter.
fn recorded(store: &Store, attempt: &Attempt, folder: &Path, seen: Seen) -> Result<Ending> {
    let job = store.read(|view| view.job(attempt.id.job))?;
    let session = store.read(|view| view.session(job.session))?;
    let resume = job.spec.continues.and_then(|_| session.and_then(|session| session.worker_session));
    let report = Follower::new(folder, adapter_of(&job)?.reader(resume.as_deref()), job.spec.limits.capture)
        .finish(folder, &seen)?;
    Ok(Ending::Known(Box::new(report), Some(seen)))
}

fn settle(
    store: &mut Store,
    attempt: &Attempt,
    folder: &Path,
    report: Report,
    seen: Option<Seen>,
    dry_run: bool,
) -> Result<(State, bool)> {
    if dry_run {
        let settle =
            |now| if let Now::Running(job) = now { Some(job.settle(report.fact(), clock::now())) } else { None };
        return would_be(store, attempt.id, settle);
    }
    let capture = store.read(|view| view.job(attempt.id.job))?.spec.limits.capture;
    let evidence = Evidence::gather(&store.spool(), folder, seen, report, capture)?;
    let (state, held) = store.write(clock::now(), |ledger| {
        let state = ledger.settle(attempt, &evidence.settlement())?;
        ledger.record("reconcile", None, &Done::new(attempt.id.to_string(), ()))?;
        Ok((state, ledger.job(attempt.id.job)?.is_held()))
    })?;
    if state != State::Uncertain {
        dir::clear_attempt_dir(folder);
    } else if !capture {
        collect::forget(folder);
    }
    Ok((state, held))
}

/// Every attempt that waits for a decision.
pub fn uncertain(store: &Store) -> Result<Vec<Attempt>> {
    store.read(|view| view.uncertain_attempts())
}

/// The latest attempt of every job that is held after its releases, and waits for a decision, too.
pub fn held(store: &Store) -> Result<Vec<Attempt>> {
    store.read(|view| view.held_attempts())
}

/// What of an attempt is alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Living {
    /// Processes that carry the attempt's mark in their environment.
    pub pids: Vec<i32>,
    /// Whether its lock is held: also by a process that cleared its environment, or cannot be seen from here.
    pub lock_held: bool,
}

impl Living {
    /// Whether anything is.
    pub fn any(&self) -> bool {
        self.lock_held || !self.pids.is_empty()
    }
}

impl std::fmt::Display for Living {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.pids.is_empty() {
            return f.write_str("its lock is held by a process that does not say that it is one of it");
        }
        let pids: Vec<String> = self.pids.iter().map(ToString::to_string).collect();
        f.write_str(&pids.join(" "))
    }
}

/// What of an attempt is alive: a mark or a held lock proves that; nothing proves the contrary.
pub fn living(store: &Store, attempt: AttemptId) -> Result<Living> {
    let mut pids = process::marked(&attempt.to_string(), &store.root().to_string_lossy())?;
    pids.sort_unstable();
    Ok(Living { pids, lock_held: keeper::worker_lock_held(&store.attempt_dir(attempt))? })
}
