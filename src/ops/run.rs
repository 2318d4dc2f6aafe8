//! Carrying out jobs: claim, dispatch, follow, settle, one attempt at a time; the settlement and the next claim are one
//! commit, so a job costs two; and one where it can be dispatched in that commit too.

mod attempt;

pub(super) use attempt::settle_one;

use super::Caller;
use super::claim::{self, Owner};
use super::collect::Evidence;
use super::dispatch::Watch;
use super::reconcile::{self, Became, Found};
use crate::domain::id::{AttemptId, Handle, JobId};
use crate::domain::job::State;
use crate::domain::outcome::{Outcome, Report};
use crate::domain::time::{Span, Time};
use crate::error::{Code, Error, Result};
use crate::host::config::Config;
use crate::host::keeper::{Keeper, Start};
use crate::host::{clock, dir, random};
use crate::store::{Done, JobRow, Store, Wanted};
use std::time::Duration;

/// The longest pause between two looks at an empty queue.
const IDLE: Duration = Duration::from_millis(250);

/// A drain waits for a job that is to be tried again within this time, and leaves the others queued.
const DRAIN_WAIT_MAX: Span = Span(300_000);

/// How many attempts may have ended while whoever is told of them does not listen; then it is waited for, with nothing
/// claimed.
const UNTOLD_MAX: usize = 64;

/// How long a runner goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// One attempt.
    One,
    /// The queue has nothing that may run.
    Drained,
    /// It is asked to end.
    Stopped,
}

/// One attempt that came to its end.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The attempt.
    pub attempt: AttemptId,
    /// What its job came to.
    pub state: State,
    /// Whether its job is held now, after its releases.
    pub held: bool,
    /// What happened.
    pub outcome: Outcome,
    /// Why.
    pub code: Option<Code>,
    /// In words.
    pub detail: String,
    /// From dispatch to settlement.
    pub took: Span,
}

/// What a runner came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Attempts whose job succeeded.
    pub ok: u64,
    /// Attempts whose job failed or was cancelled.
    pub failed: u64,
    /// Attempts after which the job is queued again.
    pub again: u64,
    /// The jobs that are held after their attempt, those that crashes left and this runner found included.
    pub held: Vec<JobId>,
    /// The jobs whose attempt is uncertain, those that crashes left and this runner found included.
    pub uncertain: Vec<JobId>,
}

/// What a runner tells while it runs.
#[derive(Debug)]
pub enum News<'a> {
    /// An attempt of its own came to its end.
    Ended(&'a Ended),
    /// It found the end of an attempt that a crash had left.
    Found(&'a Found),
}

/// Who hears of it.
type Told<'a> = dyn FnMut(&News<'_>) -> Result<()> + 'a;

/// A job that was claimed and is to be carried out.
struct Next {
    job: JobRow,
    handle: Handle,
    /// What its keeper is to be told, where the transaction that claimed it has dispatched it too.
    dispatched: Option<Box<Start>>,
}

struct Runner<'a> {
    store: &'a mut Store,
    caller: &'a Caller,
    config: &'a Config,
    wanted: &'a Wanted,
    owner: Owner,
    keeper: Option<Keeper>,
    tally: Tally,
    /// The attempt that was settled last, whose files are removed while the next one runs.
    settled: Option<AttemptId>,
    /// Attempts that ended and nobody was told of.
    untold: Vec<Ended>,
    /// Why the machine had no room for the last worker: nothing else is tried against that.
    stuck: Option<Error>,
}

/// Runs jobs. `told` hears of every attempt after its settlement is committed.
pub fn run(
    store: &mut Store,
    caller: &Caller,
    config: &Config,
    wanted: &Wanted,
    until: Until,
    watch: &mut Watch<'_>,
    told: &mut Told<'_>,
) -> Result<Tally> {
    // A runner waits for its turn: what it has to settle must not be lost to a short time-out.
    store.set_wait(None);
    let owner = Owner::this_process(store)?;
    let mut runner = Runner {
        store,
        caller,
        config,
        wanted,
        owner,
        keeper: None,
        tally: Tally::default(),
        settled: None,
        untold: Vec::new(),
        stuck: None,
    };
    let answer = runner.look(told).and_then(|_| runner.carry_on(until, watch, told));
    runner.clear_settled();
    let Runner { store, owner, keeper, tally, .. } = runner;
    drop(keeper);
    store.rest();
    if answer.is_ok() {
        owner.retire();
    }
    answer.map(|()| tally)
}

impl Runner<'_> {
    /// Finds what crashes left and tells of it; says whether anything was changed.
    fn look(&mut self, told: &mut Told<'_>) -> Result<bool> {
        let pass = reconcile::pass(self.store, false)?;
        for found in &pass.found {
            match found.became {
                Became::Settled(State::Uncertain) => self.tally.uncertain.push(found.attempt.job),
                Became::Settled(_) | Became::Released(_) if found.held => self.tally.held.push(found.attempt.job),
                Became::Settled(_) => {}
                Became::Released(_) | Became::Alive | Became::Orphaned => continue,
            }
            told(&News::Found(found))?;
        }
        Ok(pass.changed > 0)
    }

    fn carry_on(&mut self, until: Until, watch: &mut Watch<'_>, told: &mut Told<'_>) -> Result<()> {
        let mut next = self.claim_or_wait(until, watch, told)?;
        while let Some(claimed) = next.take() {
            if watch.over() {
                // Nothing was started: giving it back burns no try.
                let given_back = self.give_back(&claimed);
                return self.tell(told).and(given_back);
            }
            let following = self.carry_out(claimed, until, watch, told)?;
            // Whoever reads what is told may take its time: what is dispatched is started first.
            if following.as_ref().is_none_or(|following| following.dispatched.is_none())
                && let Err(error) = self.tell(told)
            {
                following.map_or(Ok(()), |following| self.give_back(&following))?;
                return Err(error);
            }
            if let Some(error) = self.stuck.take() {
                return Err(error);
            }
            next = match following {
                Some(following) => Some(following),
                None if until == Until::One => None,
                None => self.claim_or_wait(until, watch, told)?,
            };
        }
        Ok(())
    }

    /// Tells of what ended, once.
    fn tell(&mut self, told: &mut Told<'_>) -> Result<()> {
        std::mem::take(&mut self.untold).iter().try_for_each(|ended| told(&News::Ended(ended)))
    }

    /// Gives back what was claimed, and dispatched perhaps, and never started. It is not counted against the job.
    fn give_back(&mut self, next: &Next) -> Result<()> {
        let id = next.handle.attempt;
        self.store.write(clock::now(), |ledger| {
            if next.dispatched.is_none() {
                let said = "given back before anything was dispatched";
                return ledger.give_back(id, Code::NeverStarted, said).map(drop);
            }
            let attempt = ledger.attempt(id)?;
            let report = Report::void(Code::NeverStarted, "given back before its worker was started", false);
            settle_one(ledger, &attempt, &Evidence::nothing(Report { blameless: true, ..report })).map(drop)
        })?;
        self.clear(id);
        Ok(())
    }

    /// Gives back what could not be made ready. That the machine had no room for it is not counted; anything else may be
    /// the job's own, and would end every runner without end.
    fn put_back(&mut self, next: &Next, error: &Error) -> Result<()> {
        if matches!(error.code, Code::StoreFull | Code::StoreReadOnly | Code::SystemLimit) {
            return self.give_back(next);
        }
        let id = next.handle.attempt;
        self.store.write(clock::now(), |ledger| ledger.release(id, error.code, &error.message).map(drop))?;
        self.clear(id);
        Ok(())
    }

    fn clear_settled(&mut self) {
        if let Some(id) = self.settled.take() {
            self.clear(id);
        }
    }

    fn clear(&self, id: AttemptId) {
        dir::clear_attempt_dir(&self.store.attempt_dir(id));
    }

    /// The next job; where there is none, what `until` says: end, or wait for one.
    fn claim_or_wait(&mut self, until: Until, watch: &mut Watch<'_>, told: &mut Told<'_>) -> Result<Option<Next>> {
        let (mut pause, mut looked) = (Duration::from_millis(10), None);
        loop {
            if watch.over() {
                return Ok(None);
            }
            // What did not change since the last look is not looked at again, unless something comes due.
            let version = self.store.data_version()?;
            let (due, retry) = self.store.read(|view| view.next_due(self.wanted))?;
            if looked != Some(version) || due.is_some_and(|due| due <= clock::now()) {
                if let Some(next) = self.claim_next(told)? {
                    return Ok(Some(next));
                }
                looked = Some(version);
            }
            // What is tried again soon belongs to the drain; what waits for a quota's reset is for a later one.
            let soon = retry.is_some_and(|due| due <= clock::now().after(DRAIN_WAIT_MAX));
            if until == Until::One || (until == Until::Drained && !soon) {
                return Ok(None);
            }
            std::thread::sleep(pause.min(due_in(due)));
            pause = (pause * 2).min(IDLE);
        }
    }

    fn claim_next(&mut self, told: &mut Told<'_>) -> Result<Option<Next>> {
        for again in [true, false] {
            let random = random::bytes()?;
            let Self { store, config, wanted, owner, .. } = self;
            let (next, kept_back) = store.write(clock::now(), |ledger| {
                let (next, kept_back) = claim::next(ledger, config, wanted, owner, random)?;
                if let Some((_, handle)) = &next {
                    ledger.record("claim", None, &Done::new(handle.attempt.to_string(), ()))?;
                }
                Ok((next, kept_back))
            })?;
            if let Some((job, handle)) = next {
                return Ok(Some(Next { job, handle, dispatched: None }));
            }
            // A dead owner may fill a group: look once who is alive.
            if !(again && kept_back && self.look(told)?) {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

fn due_in(due: Option<Time>) -> Duration {
    due.map_or(IDLE, |due| Span((due.0 - clock::now().0).max(1)).duration())
}
