//! Ordering jobs to stop: durable first, then the worker is told. What is decided of an end that stays unknown is part
//! of the order and becomes a resolution when it is used.

use crate::domain::digest::Digest;
use crate::domain::id::{AttemptId, JobId};
use crate::domain::job::{Decision, Now, State};
use crate::domain::moves::Word as _;
use crate::error::{Code, Error, Result};
use crate::host::process::{self, Life};
use crate::host::{clock, keeper};
use crate::store::{Attempt, Done, Ledger, Request, Store};
use serde::{Deserialize, Serialize};

/// What came of the order for one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// The job.
    pub job: JobId,
    /// Its state after the order, as a word: a running one is told to end and goes on until it has.
    pub state: String,
}

/// The order.
#[derive(Clone, Debug)]
pub struct Order {
    /// These jobs.
    pub jobs: Vec<JobId>,
    /// And all with this label that have not ended.
    pub label: Option<String>,
    /// Why.
    pub because: String,
    /// Without grace.
    pub hard: bool,
    /// What is decided of an attempt that ends uncertain; `None` leaves that open.
    pub decision: Option<Decision>,
}

/// Stops jobs. Queued ones are cancelled, running ones told to end, uncertain ones decided.
pub fn stop(store: &mut Store, op_id: Option<String>, order: &Order) -> Result<Vec<Stopped>> {
    let jobs: Vec<String> = order.jobs.iter().map(ToString::to_string).collect();
    let decision = order.decision.map_or("hold", Decision::word);
    let text = format!("{} {:?} {} {decision}", jobs.join(" "), order.label, order.hard);
    let request = Request::new(op_id, || Digest::of("ares.stop.1", &[text.as_bytes(), order.because.as_bytes()]));
    // A dead owner's claim is released first, so that its job is cancelled now and not at the next reconcile.
    if store.repeated::<Vec<Stopped>>("stop", &request)?.is_none() {
        super::reconcile::pass(store, false)?;
    }
    let stopped = store.operate(clock::now(), "stop", &request, |ledger| {
        let mut jobs = order.jobs.clone();
        if let Some(label) = &order.label {
            jobs.extend(ledger.active(label)?);
        }
        jobs.sort();
        jobs.dedup();
        let stopped = jobs.iter().map(|job| stop_one(ledger, *job, order)).collect::<Result<Vec<_>>>()?;
        let subject = jobs.first().map_or_else(String::new, ToString::to_string);
        let mut done = Done::new(subject, stopped);
        done.note = order.because.clone();
        Ok(done)
    })?;
    for job in stopped.iter().filter(|stopped| stopped.state == State::Running.word()) {
        let attempt = store.read(|view| {
            let n = view.job(job.job)?.facts.attempt;
            view.attempt(AttemptId { job: job.job, n })
        })?;
        tell(store, &attempt, order.hard)?;
    }
    Ok(stopped)
}

/// Tells a running attempt to end: through its keeper, or where that is gone by ending what is left of it.
fn tell(store: &Store, attempt: &Attempt, hard: bool) -> Result<()> {
    let keeper =
        attempt.keeper.as_deref().map(|text| super::reconcile::identity(attempt.id, "keeper", text)).transpose()?;
    let dead = keeper.is_some_and(|keeper| matches!(process::life(&keeper), Ok(Life::Dead)));
    let told = if dead {
        process::end_marked(&attempt.id.to_string(), &store.root().to_string_lossy())
    } else {
        keeper::ask_stop(&store.attempt_dir(attempt.id), hard)
    };
    if let Err(error) = told {
        // The attempt has ended in between, or a script owns it.
        tracing::debug!(%error, "the worker was not told");
    }
    Ok(())
}

fn stop_one(ledger: &mut Ledger<'_>, id: JobId, order: &Order) -> Result<Stopped> {
    let stopped = |state: State| Ok(Stopped { job: id, state: state.word().to_owned() });
    match ledger.job_now(id)? {
        Now::Queued(job) => {
            ledger.insert_stop(id, order.decision, order.hard, &order.because)?;
            ledger.apply(&job.cancel())?;
            ledger.event(&id.to_string(), "job.cancelled", Some(id), "{\"because\":\"stop\"}")?;
            stopped(State::Cancelled)
        }
        Now::Claimed(_) => {
            ledger.insert_stop(id, order.decision, order.hard, &order.because)?;
            stopped(State::Claimed)
        }
        Now::Running(_) => {
            ledger.insert_stop(id, order.decision, order.hard, &order.because)?;
            stopped(State::Running)
        }
        Now::Uncertain(job) => match order.decision {
            Some(decision @ (Decision::Ok | Decision::Error | Decision::Abandon)) => {
                let attempt = AttemptId { job: id, n: job.facts().attempt };
                ledger.resolve(attempt, decision, "stop", &order.because, None).and_then(stopped)
            }
            Some(Decision::NoEffect | Decision::Retry) => {
                Err(Error::new(Code::Usage, "a stop cannot decide to run a job again"))
            }
            None => stopped(State::Uncertain),
        },
        Now::Ended(state) => stopped(state),
    }
}
