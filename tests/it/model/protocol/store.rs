//! What is committed in the model. Every change of a job is a [`Move`] that the library made of the job as it is, so a
//! move that the library does not know cannot be written here; an attempt and its permit move by the library's own
//! tables.

use super::Fault;
use super::world::{Attempt, End, Id, Keeper, KeeperId, Known, Looker, NOBODY, Owner, Phase, Tree, World};
use ares::domain::attempt::State as AttemptState;
use ares::domain::id::JobId;
use ares::domain::job::{Decision, Facts, Hold, Move, Now, State};
use ares::domain::moves::{Permit, Word as _};
use ares::domain::outcome::{Fact, Outcome};
use ares::domain::time::{Span, Time};

/// It moved, or is not yours any more.
#[derive(Debug)]
pub(super) struct Fenced;

impl World {
    pub(super) fn at(&self, (job, n): Id) -> &Attempt {
        &self.jobs[job].attempts[n - 1]
    }

    pub(super) fn at_mut(&mut self, (job, n): Id) -> &mut Attempt {
        &mut self.jobs[job].attempts[n - 1]
    }

    /// Whether the owner of an attempt holds its lock, as anyone can test.
    pub(super) fn owner_lives(&self, id: Id) -> bool {
        let owner = self.owners.get(self.at(id).owner);
        owner.is_some_and(|owner| !matches!(owner.phase, Phase::Unborn | Phase::Gone))
    }

    pub(super) fn keeper_lives(&self, (owner, n): KeeperId) -> bool {
        let owner = &self.owners[owner];
        owner.keepers == n + 1 && !matches!(owner.keeper, Keeper::None | Keeper::Dead)
    }

    /// The oldest job that may run.
    pub(super) fn next_ready(&self) -> Option<usize> {
        self.jobs.iter().position(|job| job.state == Some(State::Queued) && !job.held)
    }

    fn now(&self, job: usize) -> Option<Now> {
        let row = &self.jobs[job];
        let facts = Facts {
            id: JobId(job as i64 + 1),
            attempt: row.attempts.len() as i64,
            tries: row.tries.into(),
            max_tries: 2,
            releases: row.releases.into(),
            retry_delay: Span(0),
        };
        row.state.map(|state| Now::new(facts, state))
    }

    /// The only way to another state of a job.
    fn apply(&mut self, job: usize, step: &Move) {
        let row = &mut self.jobs[job];
        debug_assert_eq!(row.state, Some(step.from()));
        row.state = Some(step.to());
        row.tries = step.after().tries as u8;
        row.releases = step.after().releases as u8;
        row.held = step.hold() == Hold::Releases;
    }

    pub(super) fn submit(&mut self, job: usize) {
        let row = &mut self.jobs[job];
        row.state = row.state.or(Some(State::Queued));
        row.rows += 1;
    }

    pub(super) fn claim(&mut self, job: usize, owner: usize) -> Option<Id> {
        let Some(Now::Queued(queued)) = self.now(job) else { return None };
        let step = queued.claim();
        let attempt = Attempt::new(owner, self.boot);
        self.jobs[job].attempts.push(attempt);
        self.apply(job, &step);
        Some((job, self.jobs[job].attempts.len()))
    }

    /// Refuses an attempt that is not the job's latest.
    fn latest(&self, (job, n): Id) -> Result<Now, Fenced> {
        if self.jobs[job].attempts.len() == n { self.now(job).ok_or(Fenced) } else { Err(Fenced) }
    }

    pub(super) fn dispatch(&mut self, id: Id, keeper: KeeperId) -> Result<(), Fenced> {
        let Now::Claimed(job) = self.latest(id)? else { return Err(Fenced) };
        self.enter(id, AttemptState::Running);
        let attempt = self.at_mut(id);
        attempt.keeper = Some(keeper);
        attempt.permit = Some(Permit::Issued);
        self.permit(id, Permit::Consumed);
        self.apply(id.0, &job.dispatch());
        Ok(())
    }

    pub(super) fn release(&mut self, id: Id, counted: bool) -> Result<(), Fenced> {
        let Now::Claimed(job) = self.latest(id)? else { return Err(Fenced) };
        self.enter(id, AttemptState::Ended);
        self.at_mut(id).outcome = Some(Known::NeverStarted);
        self.apply(id.0, &if counted { job.release() } else { job.give_back() });
        Ok(())
    }

    pub(super) fn settle(&mut self, id: Id, known: Known, fault: Fault) -> Result<(), Fenced> {
        let now = if fault == Fault::SettleUnfenced { self.now(id.0).ok_or(Fenced)? } else { self.latest(id)? };
        let Now::Running(job) = now else { return Err(Fenced) };
        let fact = known.report().fact();
        let step = job.settle(fact, Time(0));
        if step.to() == State::Uncertain && self.provable(id) {
            self.breaks("uncertain only where nothing can be proved");
        }
        if step.to() == State::Failed && !matches!(self.at(id).tree, Tree::Child(End::One) | Tree::Gone(End::One)) {
            self.breaks("never failed from silence");
        }
        if step.to() == State::Queued && fact != Fact::Blameless && !matches!(fact, Fact::Void { .. }) {
            // A known failure is tried again because the job was submitted so.
            self.jobs[id.0].effects = 0;
        }
        self.enter(id, if step.to() == State::Uncertain { AttemptState::Uncertain } else { AttemptState::Ended });
        self.permit(id, Permit::Settled);
        self.at_mut(id).outcome = Some(known);
        self.apply(id.0, &step);
        Ok(())
    }

    pub(super) fn resolve(&mut self, job: usize, decision: Decision) -> Result<(), Fenced> {
        let Some(Now::Uncertain(uncertain)) = self.now(job) else { return Err(Fenced) };
        let id = (job, self.jobs[job].attempts.len());
        self.enter(id, AttemptState::Ended);
        self.jobs[job].effects = 0;
        self.apply(job, &uncertain.resolve(decision));
        Ok(())
    }

    /// What broke first is what is told.
    fn breaks(&mut self, promise: &'static str) {
        self.broken.get_or_insert(promise);
    }

    fn enter(&mut self, id: Id, to: AttemptState) {
        let attempt = self.at_mut(id);
        if !attempt.state.may(to) {
            self.breaks("a fenced attempt settles nothing");
            return;
        }
        attempt.state = to;
    }

    fn permit(&mut self, id: Id, to: Permit) {
        match &mut self.at_mut(id).permit {
            Some(permit) if permit.may(to) => *permit = to,
            _ => self.breaks("a permit moves by its table"),
        }
    }

    /// Takes out what makes no difference any more, so that fewer states are told apart: the files of an attempt that is
    /// over, which are removed; whose it was, and what was told of it, once that is right; an owner of which nothing is
    /// left.
    pub(super) fn tidy(mut self) -> Self {
        let named = self.named();
        for (at, job) in self.jobs.iter_mut().enumerate() {
            for (n, attempt) in job.attempts.iter_mut().enumerate() {
                let right = attempt.told.is_none_or(|told| attempt.outcome == Some(told));
                if named.contains(&(at, n + 1)) || attempt.tree.lives() || !right {
                    continue;
                }
                if attempt.state == AttemptState::Ended {
                    *attempt =
                        Attempt { state: AttemptState::Ended, permit: attempt.permit, ..Attempt::new(NOBODY, 0) };
                } else if attempt.state == AttemptState::Uncertain {
                    (attempt.told, attempt.outcome) = (None, None);
                }
            }
            let plain = |attempt: &Attempt| attempt.owner == NOBODY && !attempt.tree.lives();
            if job.state.is_some_and(State::is_terminal) && job.effects < 2 && job.attempts.iter().all(plain) {
                (job.state, job.tries, job.releases, job.effects) = (Some(State::Cancelled), 0, 0, 0);
                job.attempts.clear();
            }
        }
        for at in 0..self.owners.len() {
            let owner = &self.owners[at];
            let over = owner.phase == Phase::Gone && matches!(owner.keeper, Keeper::None | Keeper::Dead);
            let mut attempts = self.jobs.iter().flat_map(|job| &job.attempts);
            if over && attempts.all(|attempt| attempt.owner != at && attempt.keeper.is_none_or(|keeper| keeper.0 != at))
            {
                self.owners[at] = Owner::UNBORN;
            }
        }
        self
    }

    /// Every attempt that somebody has to do with.
    fn named(&self) -> Vec<Id> {
        let mut named = Vec::new();
        for owner in &self.owners {
            named.extend(owner.keeper.task());
            match owner.phase {
                Phase::Unborn | Phase::Idle | Phase::Gone => {}
                Phase::SettleUnknown(id, _, next) => {
                    named.extend([Some(id), next.map(|next| next.0)].into_iter().flatten())
                }
                Phase::Claimed(id)
                | Phase::Early(id)
                | Phase::DispatchUnknown(id)
                | Phase::Dispatched(id)
                | Phase::Following(id)
                | Phase::Ended(id, _) => named.push(id),
            }
        }
        for looker in &self.lookers {
            match looker {
                Looker::Idle => {}
                Looker::Read(id, _) | Looker::Free(id) | Looker::NoRecord(id) => named.push(*id),
                Looker::Release(id) | Looker::Settle(id, _) => named.push(*id),
            }
        }
        named
    }

    /// Whether how an attempt ended, or that it never began, could be proved by who looks.
    fn provable(&self, id: Id) -> bool {
        let attempt = self.at(id);
        let known = |end: End| Known::Ended(end).report().outcome != Outcome::Ambiguous;
        let gone = attempt.keeper.is_none_or(|keeper| !self.keeper_lives(keeper));
        attempt.files.exit.is_some_and(known) || (!attempt.files.mark && gone && attempt.boot == self.boot)
    }
}
