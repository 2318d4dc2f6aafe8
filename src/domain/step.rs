//! The only ways of a job from one state to another. A [`Job`] in a state offers the moves that are legal there; each
//! consumes it and gives a [`Move`], which the store writes by compare-and-set and nobody else can make.

use super::id::{AttemptId, JobId};
use super::job::{Decision, Hold, RELEASES_MAX, State};
use super::moves::Word as _;
use super::outcome::Fact;
use super::time::{Span, Time};
use std::marker::PhantomData;

/// The states as types.
pub mod at {
    /// Waits to be claimed.
    #[derive(Debug)]
    pub struct Queued;
    /// Claimed.
    #[derive(Debug)]
    pub struct Claimed;
    /// Dispatched.
    #[derive(Debug)]
    pub struct Running;
    /// Nobody can tell.
    #[derive(Debug)]
    pub struct Uncertain;
}

/// What the moves need to know of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its number.
    pub id: JobId,
    /// The N of its latest attempt; 0 before the first claim.
    pub attempt: i64,
    /// Attempts that were dispatched and not void.
    pub tries: i64,
    /// How many of them it may have.
    pub max_tries: i64,
    /// Releases in a row.
    pub releases: i64,
    /// The wait before its second try; doubled for each further one.
    pub retry_delay: Span,
}

/// A job known to be in one state.
#[derive(Debug)]
pub struct Job<S> {
    facts: Facts,
    state: PhantomData<S>,
}

/// A job as it was read: a new state is a compile error wherever it matters.
#[derive(Debug)]
pub enum Now {
    /// Waits to be claimed.
    Queued(Job<at::Queued>),
    /// Claimed.
    Claimed(Job<at::Claimed>),
    /// Dispatched.
    Running(Job<at::Running>),
    /// Nobody can tell.
    Uncertain(Job<at::Uncertain>),
    /// Over.
    Ended(State),
}

impl Now {
    /// What was read, as a job in its state.
    pub fn new(facts: Facts, state: State) -> Self {
        match state {
            State::Queued => Self::Queued(Job::new(facts)),
            State::Claimed => Self::Claimed(Job::new(facts)),
            State::Running => Self::Running(Job::new(facts)),
            State::Uncertain => Self::Uncertain(Job::new(facts)),
            State::Succeeded | State::Failed | State::Cancelled => Self::Ended(state),
        }
    }
}

/// One legal change of a job, not written yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    from: State,
    to: State,
    before: Facts,
    after: Facts,
    hold: Hold,
    due: Time,
}

impl Move {
    fn new(before: Facts, from: State, to: State) -> Self {
        debug_assert!(from.may(to));
        Self { from, to, before, after: before, hold: Hold::None, due: Time(0) }
    }

    /// The state it leaves.
    pub fn from(&self) -> State {
        self.from
    }
    /// The state it enters.
    pub fn to(&self) -> State {
        self.to
    }
    /// The job as it must still be.
    pub fn before(&self) -> &Facts {
        &self.before
    }
    /// The job as it will be.
    pub fn after(&self) -> &Facts {
        &self.after
    }
    /// Why it will not be offered.
    pub fn hold(&self) -> Hold {
        self.hold
    }
    /// Not to be claimed before this; 0 for at once.
    pub fn due(&self) -> Time {
        self.due
    }
    /// The attempt that it is about, once there is one.
    pub fn attempt(&self) -> AttemptId {
        AttemptId { job: self.after.id, n: self.after.attempt }
    }
}

impl<S> Job<S> {
    fn new(facts: Facts) -> Self {
        Self { facts, state: PhantomData }
    }

    /// What is known of it.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Queued again without having burned a try; held after [`RELEASES_MAX`] in a row.
    fn back(self, from: State) -> Move {
        let mut step = Move::new(self.facts, from, State::Queued);
        step.after.releases += 1;
        if step.after.releases >= RELEASES_MAX {
            step.hold = Hold::Releases;
        }
        step
    }
}

impl Job<at::Queued> {
    /// Claimed under the next N.
    pub fn claim(self) -> Move {
        let mut step = Move::new(self.facts, State::Queued, State::Claimed);
        step.after.attempt += 1;
        step
    }

    /// Will not be done.
    pub fn cancel(self) -> Move {
        Move::new(self.facts, State::Queued, State::Cancelled)
    }
}

impl Job<at::Claimed> {
    /// Given back; nothing was dispatched.
    pub fn release(self) -> Move {
        self.back(State::Claimed)
    }

    /// Given back for a reason that is not the job's, as when its claimer is told to end: nothing is counted against it.
    pub fn give_back(self) -> Move {
        Move::new(self.facts, State::Claimed, State::Queued)
    }

    /// About to act: the try counts from here.
    pub fn dispatch(self) -> Move {
        let mut step = Move::new(self.facts, State::Claimed, State::Running);
        step.after.tries += 1;
        step
    }

    /// Cannot be dispatched for a lasting reason; nothing ran.
    pub fn refuse(self) -> Move {
        Move::new(self.facts, State::Claimed, State::Failed)
    }

    /// Will not be done.
    pub fn cancel(self) -> Move {
        Move::new(self.facts, State::Claimed, State::Cancelled)
    }
}

impl Job<at::Running> {
    /// Only known facts leave `running`; whatever is not known is uncertain. A try that was not void ends the row of
    /// releases; the dispatch does not, or a worker that refuses each time would be dispatched without end.
    pub fn settle(self, fact: Fact, now: Time) -> Move {
        let facts = Facts { releases: 0, ..self.facts };
        let from_here = |to| Move { before: self.facts, ..Move::new(facts, State::Running, to) };
        match fact {
            Fact::Ok => from_here(State::Succeeded),
            Fact::Error { retry: None } => from_here(State::Failed),
            Fact::Error { retry: Some(at) } if facts.tries < facts.max_tries => {
                let mut step = from_here(State::Queued);
                step.due = at.unwrap_or_else(|| now.after(backoff(&facts)));
                step
            }
            Fact::Error { retry: Some(_) } => from_here(State::Failed),
            Fact::Void { lasting: true } => Self::unburned(self.facts, State::Failed),
            Fact::Void { lasting: false } => {
                let mut step = self.back(State::Running);
                step.after.tries = (step.after.tries - 1).max(0);
                step
            }
            // Whoever ran it stops at that, so nothing spins and nothing is to be counted against the job.
            Fact::Blameless => Self::unburned(self.facts, State::Queued),
            Fact::Ambiguous => from_here(State::Uncertain),
        }
    }

    /// Stopped and proved never to have acted.
    pub fn cancel(self) -> Move {
        Self::unburned(self.facts, State::Cancelled)
    }

    fn unburned(facts: Facts, to: State) -> Move {
        let mut step = Move::new(facts, State::Running, to);
        step.after.tries = (step.after.tries - 1).max(0);
        step
    }
}

impl Job<at::Uncertain> {
    /// A decision, written beside the record, is the only way out.
    pub fn resolve(self, decision: Decision) -> Move {
        let to = match decision {
            Decision::Ok => State::Succeeded,
            Decision::Error => State::Failed,
            Decision::NoEffect | Decision::Retry => State::Queued,
            Decision::Abandon => State::Cancelled,
        };
        let mut step = Move::new(self.facts, State::Uncertain, to);
        if decision == Decision::NoEffect {
            step.after.tries = (step.after.tries - 1).max(0);
        }
        step
    }
}

/// The wait before the next try: the job's delay, doubled for each try after the first, an hour at most.
fn backoff(facts: &Facts) -> Span {
    let doublings = u32::try_from(facts.tries - 1).unwrap_or(0).min(20);
    Span(facts.retry_delay.0.saturating_mul(1 << doublings).min(3_600_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: Facts =
        Facts { id: JobId(1), attempt: 1, tries: 1, max_tries: 2, releases: 0, retry_delay: Span(1000) };

    fn running(facts: Facts, fact: Fact) -> Move {
        Job::<at::Running>::new(facts).settle(fact, Time(0))
    }

    #[test]
    fn only_known_facts_leave_running() {
        assert_eq!(running(FACTS, Fact::Ok).to(), State::Succeeded);
        assert_eq!(running(FACTS, Fact::Error { retry: None }).to(), State::Failed);
        assert_eq!(running(FACTS, Fact::Ambiguous).to(), State::Uncertain);
        let retried = running(FACTS, Fact::Error { retry: Some(None) });
        assert_eq!((retried.to(), retried.due()), (State::Queued, Time(1000)));
        let spent = Facts { tries: 2, ..FACTS };
        assert_eq!(running(spent, Fact::Error { retry: Some(None) }).to(), State::Failed);
    }

    #[test]
    fn a_void_try_burns_nothing_and_cannot_spin() {
        let dispatched = Job::<at::Claimed>::new(Facts { releases: 3, ..FACTS }).dispatch();
        assert_eq!(dispatched.after().releases, 3, "a dispatch is no try that came to something");
        let tried = running(Facts { releases: 3, ..FACTS }, Fact::Error { retry: Some(None) });
        assert_eq!((tried.before().releases, tried.after().releases), (3, 0));
        let step = running(FACTS, Fact::Void { lasting: false });
        assert_eq!((step.to(), step.after().tries, step.hold()), (State::Queued, 0, Hold::None));
        let worn = Facts { releases: RELEASES_MAX - 1, ..FACTS };
        assert_eq!(running(worn, Fact::Void { lasting: false }).hold(), Hold::Releases);
        assert_eq!(running(FACTS, Fact::Void { lasting: true }).to(), State::Failed);
        let blameless = running(worn, Fact::Blameless);
        assert_eq!((blameless.to(), blameless.hold(), blameless.after().tries), (State::Queued, Hold::None, 0));
        assert_eq!(blameless.after().releases, worn.releases, "what is not the job's fault is not counted");
        let claimed = || Job::<at::Claimed>::new(worn);
        assert_eq!((claimed().release().hold(), claimed().give_back().hold()), (Hold::Releases, Hold::None));
        assert_eq!(claimed().give_back().after(), &worn);
    }

    #[test]
    fn delays_double_up_to_an_hour() {
        assert_eq!(backoff(&Facts { tries: 3, ..FACTS }), Span(4000));
        assert_eq!(backoff(&Facts { tries: 60, ..FACTS }), Span(3_600_000));
    }

    #[test]
    fn terminal_states_have_no_way_out() {
        for (from, _) in State::MOVES {
            assert!(!from.is_terminal());
        }
    }
}
