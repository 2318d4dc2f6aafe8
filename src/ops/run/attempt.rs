//! One attempt of a runner, from its claim to its settlement with the claim of the one after it.

use super::{Ended, Next, Runner, Told, UNTOLD_MAX, Until};
use crate::domain::id::AttemptId;
use crate::domain::job::State;
use crate::domain::outcome::Outcome;
use crate::domain::time::Span;
use crate::error::{Code, Error, Result};
use crate::fault;
use crate::host::keeper::{Keeper, Start};
use crate::host::{clock, random};
use crate::ops::claim;
use crate::ops::collect::{self, Evidence};
use crate::ops::dispatch::{self, Prepared, Watch};
use crate::ops::settle;
use crate::store::{Attempt, Done, JobRow, Ledger};
use std::time::Duration;

/// What came of dispatching.
enum Dispatched {
    /// The keeper is to be told this; the session that is resumed.
    Go(Box<Start>, Option<String>),
    /// Nothing ran.
    Ended(Option<Ended>),
}

impl Runner<'_> {
    /// One attempt from claim to settlement, with the claim of the one after it.
    pub(super) fn carry_out(
        &mut self,
        next: Next,
        until: Until,
        watch: &mut Watch<'_>,
        told: &mut Told<'_>,
    ) -> Result<Option<Next>> {
        let id = next.handle.attempt;
        let (start, resume) = match self.dispatch(&next)? {
            Dispatched::Go(start, resume) => (start, resume),
            Dispatched::Ended(ended) => {
                self.untold.extend(ended);
                return Ok(None);
            }
        };
        self.go(&start)?;
        // Who does not listen, or cannot be told, does not keep the worker that was just started from being looked after.
        let unheard = if (watch.hears)() { self.tell(told) } else { Ok(()) };
        let job = next.job;
        self.clear_settled();
        let attempt = self.store.read(|view| view.attempt(id))?;
        let keeper = self.keeper.as_mut().ok_or_else(no_keeper)?;
        let unrecorded = |error| dispatch::unrecorded(id, error);
        let evidence = dispatch::follow(self.store, keeper, &job, &attempt, resume.as_deref(), watch);
        let evidence = evidence.map_err(unrecorded)?;
        fault::point("run.ended");
        self.stuck = stuck(id, &evidence);
        let claim_too = until != Until::One && !watch.over() && self.stuck.is_none() && unheard.is_ok();
        let claim_too = claim_too && self.untold.len() < UNTOLD_MAX;
        let (state, following) = match self.settle(&attempt, &evidence, claim_too) {
            Err(error) if error.code == Code::Fenced => return Err(self.late(id, &evidence, error)),
            other => other.map_err(unrecorded)?,
        };
        fault::point("run.settled");
        self.settled = Some(id).filter(|_| state != State::Uncertain);
        if state == State::Uncertain && !job.spec.limits.capture {
            collect::forget(&self.store.attempt_dir(id));
        }
        match self.ended(&attempt, &evidence, state) {
            Ok(ended) => self.untold.push(ended),
            Err(error) => {
                following.map_or(Ok(()), |following| self.give_back(&following))?;
                return Err(error);
            }
        }
        unheard.map(|()| following)
    }

    /// Dispatches an attempt that was only claimed. A keeper that is gone is replaced before the commit that names it.
    fn dispatch(&mut self, next: &Next) -> Result<Dispatched> {
        if let Some(start) = &next.dispatched {
            return Ok(Dispatched::Go(start.clone(), None));
        }
        let Next { job, handle, .. } = next;
        fault::point("run.claimed");
        let resume = match self.session_to_resume(job) {
            Ok(resume) => resume,
            Err(refusal) => return self.refuse(handle.attempt, refusal),
        };
        let caller = self.caller;
        let prepared = self.store.read(|view| dispatch::prepare(view, caller, job, handle.attempt, resume.as_deref()));
        let ready = match prepared {
            Ok(Prepared::Ready(ready)) => ready,
            Ok(Prepared::Refused(refusal)) => return self.refuse(handle.attempt, refusal),
            Err(error) => {
                self.put_back(next, &error)?;
                return Err(error);
            }
        };
        fault::point("run.prepared");
        if !self.keeper_lives() {
            match Keeper::start() {
                Ok(keeper) => self.keeper = Some(keeper),
                Err(error) => {
                    self.give_back(next)?;
                    return Err(error);
                }
            }
        }
        let keeper = self.keeper.as_ref().ok_or_else(no_keeper)?;
        match dispatch::commit(self.store, job, handle, keeper, ready.missing.as_deref()) {
            Ok(()) => Ok(Dispatched::Go(ready.start, resume)),
            Err(error) if error.code == Code::Stopped => {
                self.give_back(next)?;
                Ok(Dispatched::Ended(None))
            }
            Err(error) => Err(error),
        }
    }

    fn keeper_lives(&mut self) -> bool {
        self.keeper.as_mut().is_some_and(|keeper| matches!(keeper.wait(Duration::ZERO), Ok(None)))
    }

    /// Tells the keeper of a dispatched attempt.
    fn go(&mut self, start: &Start) -> Result<()> {
        fault::point("run.dispatched");
        let keeper = self.keeper.as_mut().ok_or_else(no_keeper)?;
        if let Err(error) = keeper.go(start) {
            // It did not hear of the attempt; that it is gone is found when it is waited for.
            tracing::debug!(%error, "the keeper did not take the attempt");
        }
        fault::point("run.gone");
        Ok(())
    }

    /// The worker's session that the job continues; `None` for a first turn.
    fn session_to_resume(&self, job: &JobRow) -> Result<Option<String>> {
        let session = self.store.read(|view| view.session(job.session))?;
        let session = session
            .ok_or_else(|| Error::new(Code::StoreDamaged, format!("job {} has lost its session", job.facts.id)))?;
        if session.broken {
            return Err(Error::new(
                Code::SessionBroken,
                format!("session {} is broken: {}", session.name, session.reason),
            ));
        }
        match (job.spec.continues, session.worker_session) {
            (Some(_), Some(id)) => Ok(Some(id)),
            (Some(before), None) => Err(Error::new(
                Code::SessionUnknown,
                format!("the worker never reported an id for the session of job {before}"),
            )),
            // A second try of a first turn begins anew: the failed turn's message is already in the old conversation.
            (None, _) => Ok(None),
        }
    }

    fn refuse(&mut self, id: AttemptId, refusal: Error) -> Result<Dispatched> {
        let state = self.store.write(clock::now(), |ledger| ledger.refuse(id, refusal.code, &refusal.message))?;
        self.clear(id);
        self.tally.failed += 1;
        let ended = Ended {
            attempt: id,
            state,
            held: false,
            outcome: Outcome::Void,
            code: Some(refusal.code),
            detail: refusal.message,
            took: Span(0),
        };
        Ok(Dispatched::Ended(Some(ended)))
    }

    /// Settles, and claims the next in the same commit, and dispatches it too where that takes nothing else. An unknown
    /// commit is read back once: what it applied is gone on with, and where it applied nothing, only the settlement is
    /// tried again.
    fn settle(&mut self, attempt: &Attempt, evidence: &Evidence, claim_too: bool) -> Result<(State, Option<Next>)> {
        let random = random::bytes()?;
        let lives = claim_too && self.keeper_lives();
        let Self { store, caller, config, wanted, owner, keeper, .. } = self;
        let keeper = keeper.as_ref().filter(|_| lives);
        let (mut following, mut state_then) = (None, None);
        let settled = store.write(clock::now(), |ledger| {
            let state = settle_one(ledger, attempt, evidence)?;
            state_then = Some(state);
            let next = if claim_too {
                ledger.within(|ledger| claim::next(ledger, config, wanted, owner, random))?
            } else {
                None
            };
            let Some((job, handle)) = next.and_then(|(next, _)| next) else { return Ok(state) };
            ledger.record("claim", None, &Done::new(handle.attempt.to_string(), ()))?;
            let dispatched = match keeper {
                Some(keeper) => dispatch::at_once(ledger, caller, &job, &handle, keeper)?,
                None => None,
            };
            following = Some(Next { job, handle, dispatched });
            Ok(state)
        });
        match settled {
            Err(error) if error.code == Code::CommitUnknown => {
                let again = self.settle_again(attempt, evidence)?;
                let following = following.filter(|next| self.has(next));
                // Where it was applied, the job may be elsewhere by now: in the attempt after this one.
                Ok((again.or(state_then).unwrap_or(State::Uncertain), following))
            }
            other => other.map(|state| (state, following)),
        }
    }

    /// The attempt was given away while this process did not run: it settles nothing, and what it saw is evidence.
    fn late(&mut self, id: AttemptId, evidence: &Evidence, error: Error) -> Error {
        match settle::keep_late_end(self.store, id, evidence) {
            Ok(()) => {
                self.clear(id);
                Error::new(error.code, format!("{}; what came late is kept as evidence", error.message))
            }
            Err(other) => dispatch::unrecorded(id, other),
        }
    }

    /// Whether the record knows of this claim.
    fn has(&self, next: &Next) -> bool {
        let attempt = self.store.read(|view| view.attempt(next.handle.attempt));
        attempt.is_ok_and(|attempt| attempt.check_handle(&next.handle).is_ok())
    }

    /// After an unknown commit: if nothing was applied, it is applied now, alone; then this is the job's state.
    fn settle_again(&mut self, attempt: &Attempt, evidence: &Evidence) -> Result<Option<State>> {
        if self.store.read(|view| view.attempt(attempt.id))?.ended_at.is_some() {
            return Ok(None);
        }
        self.store.write(clock::now(), |ledger| settle_one(ledger, attempt, evidence)).map(Some)
    }

    fn ended(&mut self, attempt: &Attempt, evidence: &Evidence, state: State) -> Result<Ended> {
        let report = evidence.report();
        // Only what is queued again may be held; then nobody else can claim it meanwhile.
        let held = state == State::Queued && self.store.read(|view| view.job(attempt.id.job))?.is_held();
        match state {
            State::Queued if held => self.tally.held.push(attempt.id.job),
            State::Succeeded => self.tally.ok += 1,
            State::Failed | State::Cancelled => self.tally.failed += 1,
            State::Queued | State::Claimed | State::Running => self.tally.again += 1,
            State::Uncertain => self.tally.uncertain.push(attempt.id.job),
        }
        let since = attempt.dispatched_at.unwrap_or(attempt.claimed_at);
        Ok(Ended {
            attempt: attempt.id,
            state,
            held,
            outcome: report.outcome,
            code: report.code,
            detail: report.detail.clone(),
            took: Span((clock::now().0 - since.0).max(0)),
        })
    }
}

pub(in crate::ops) fn settle_one(ledger: &mut Ledger<'_>, attempt: &Attempt, evidence: &Evidence) -> Result<State> {
    let state = ledger.settle(attempt, &evidence.settlement())?;
    ledger.record("settle", None, &Done::new(attempt.id.to_string(), ()))?;
    Ok(state)
}

/// What the machine lacked for this attempt, whose job is queued again: the next one would find no more of it.
fn stuck(id: AttemptId, evidence: &Evidence) -> Option<Error> {
    let seen = evidence.seen()?;
    let why = format!("attempt {id} was not started, and is queued again: {}", evidence.report().detail);
    if seen.no_room() {
        return Some(Error::new(Code::StoreFull, why));
    }
    let hint = "look at ulimit -u, ulimit -n and the memory, then repeat";
    seen.short().then(|| Error::new(Code::SystemLimit, why).hint(hint))
}

fn no_keeper() -> Error {
    Error::new(Code::Internal, "the keeper is missing")
}
