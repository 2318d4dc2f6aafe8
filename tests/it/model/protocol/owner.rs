//! The runner and its keeper: what each may do next, a step for each thing that a kill or another process can come
//! between.

use super::Fault;
use super::world::{End, Id, Keeper, Known, Phase, Tree, World};
use ares::domain::attempt::State as AttemptState;

/// What becomes of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commit {
    Done,
    /// Applied, and the answer lost.
    Lost,
    /// Not applied, and the answer lost too.
    Undone,
}

impl Commit {
    /// Those that may be.
    pub(super) fn all(world: &World) -> &'static [Self] {
        if world.left.unknown > 0 { &[Self::Done, Self::Lost, Self::Undone] } else { &[Self::Done] }
    }

    /// Carries it out; `None` when it was refused.
    pub(super) fn apply<T>(self, world: &mut World, change: impl FnOnce(&mut World) -> Option<T>) -> Option<T> {
        if self != Self::Done {
            world.left.unknown -= 1;
        }
        if self == Self::Undone { change(&mut world.clone()) } else { change(world) }
    }
}

/// One step, for who reads a counterexample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Claim(Commit),
    TellEarly,
    Dispatch(Commit),
    ReadDispatch,
    Go,
    Hear,
    FindKeeperGone,
    /// Settles; claims too, and dispatches that too.
    Settle(Commit, bool, bool),
    ReadSettled,
    GiveBack(Commit),
    StartOwner,
    KeeperMarks,
    KeeperStarts,
    KeeperSweeps,
    KeeperWrites,
    KeeperSays,
    KeeperEnds,
}

pub(super) type Steps<S> = Vec<(usize, S, World)>;

/// What an owner may do next.
pub(super) fn owner(world: &World, me: usize, fault: Fault, steps: &mut Steps<Step>) {
    let now = world.owners[me];
    if now.stopped {
        return;
    }
    let mut step = |step: Step, change: &mut dyn FnMut(&mut World)| {
        let mut next = world.clone();
        change(&mut next);
        steps.push((me, step, next));
    };
    match now.phase {
        Phase::Unborn => {
            let first = world.owners.iter().position(|owner| owner.phase == Phase::Unborn) == Some(me);
            let alive = world.owners.iter().filter(|owner| !matches!(owner.phase, Phase::Unborn | Phase::Gone));
            if first && alive.count() < world.left.runners.into() && world.next_ready().is_some() {
                step(Step::StartOwner, &mut |next| next.owners[me].phase = Phase::Idle);
            }
        }
        Phase::Idle => {
            let Some(job) = world.next_ready() else { return };
            for commit in Commit::all(world) {
                step(Step::Claim(*commit), &mut |next| {
                    let claimed = commit.apply(next, |world| world.claim(job, me));
                    next.owners[me].phase = match (commit, claimed) {
                        (Commit::Done, Some(id)) => Phase::Claimed(id),
                        _ => Phase::Gone,
                    };
                });
            }
        }
        Phase::Claimed(id) if fault == Fault::EarlyGo => step(Step::TellEarly, &mut |next| {
            go(next, me, id);
            next.owners[me].phase = Phase::Early(id);
        }),
        Phase::Claimed(id) | Phase::Early(id) => {
            for commit in Commit::all(world) {
                step(Step::Dispatch(*commit), &mut |next| dispatch(next, me, id, *commit, fault));
            }
        }
        Phase::DispatchUnknown(id) => step(Step::ReadDispatch, &mut |next| {
            let applied = next.at(id).state == AttemptState::Running;
            next.owners[me].phase = if applied { Phase::Dispatched(id) } else { Phase::Gone };
        }),
        Phase::Dispatched(id) => step(Step::Go, &mut |next| {
            go(next, me, id);
            next.owners[me].phase = Phase::Following(id);
        }),
        Phase::Following(id) => follow(world, me, id, &mut step, fault),
        Phase::Ended(id, known) => {
            for commit in Commit::all(world) {
                for (claim, dispatch) in [(false, false), (true, false), (true, true)] {
                    let possible = settle(&mut world.clone(), me, id, known, (claim, dispatch), *commit, fault);
                    if possible {
                        step(Step::Settle(*commit, claim, dispatch), &mut |next| {
                            settle(next, me, id, known, (claim, dispatch), *commit, fault);
                        });
                    }
                }
            }
        }
        Phase::SettleUnknown(id, known, next_up) => {
            step(Step::ReadSettled, &mut |next| read_settled(next, me, id, known, next_up, fault));
        }
        Phase::Gone => {}
    }
}

/// Makes sure of a keeper, and gives its name.
fn keeper(world: &mut World, me: usize) -> (usize, u8) {
    let owner = &mut world.owners[me];
    if matches!(owner.keeper, Keeper::None | Keeper::Dead) {
        owner.keeper = Keeper::Waiting;
        owner.keepers += 1;
        owner.heard = None;
    }
    (me, owner.keepers - 1)
}

fn go(world: &mut World, me: usize, id: Id) {
    if world.owners[me].phase == Phase::Claimed(id) {
        keeper(world, me);
    }
    if world.owners[me].keeper == Keeper::Waiting {
        world.owners[me].keeper = Keeper::Told(id);
    }
}

fn dispatch(world: &mut World, me: usize, id: Id, commit: Commit, fault: Fault) {
    let early = world.owners[me].phase == Phase::Early(id);
    let name = keeper(world, me);
    let done = commit.apply(world, |world| world.dispatch(id, name).ok());
    world.owners[me].phase = match (commit, done) {
        (Commit::Done, Some(())) if early => Phase::Following(id),
        (Commit::Done, Some(())) => Phase::Dispatched(id),
        (_, Some(())) if fault == Fault::UnreadDispatch => Phase::Dispatched(id),
        (_, Some(())) => Phase::DispatchUnknown(id),
        (_, None) => Phase::Gone,
    };
}

fn follow(world: &World, me: usize, id: Id, step: &mut impl FnMut(Step, &mut dyn FnMut(&mut World)), fault: Fault) {
    let said = world.owners[me].heard.filter(|(of, _)| *of == id);
    let ended = |next: &mut World, known: Known| {
        if fault == Fault::EarlyAnswer {
            next.at_mut(id).told = Some(known);
        }
        next.owners[me].heard = None;
        next.owners[me].phase = Phase::Ended(id, known);
    };
    if let Some((_, end)) = said {
        step(Step::Hear, &mut |next| ended(next, Known::Ended(end)));
    } else if !world.at(id).keeper.is_some_and(|keeper| world.keeper_lives(keeper)) {
        step(Step::FindKeeperGone, &mut |next| {
            let attempt = next.at_mut(id);
            if fault != Fault::KillOne {
                attempt.tree = attempt.tree.ended(End::Killed);
            }
            let files = attempt.files;
            let unknown = if files.mark { Known::Lost } else { Known::NeverStarted };
            ended(next, files.exit.map_or(unknown, Known::Ended));
        });
    }
}

/// Settles, and claims the next in the same commit, and dispatches it too. Says whether there was anything of that.
fn settle(
    world: &mut World,
    me: usize,
    id: Id,
    known: Known,
    (claim, dispatch): (bool, bool),
    commit: Commit,
    fault: Fault,
) -> bool {
    // A keeper that is gone is replaced by who dispatches alone.
    let alive = world.owners[me].keeper == Keeper::Waiting;
    let name = (me, world.owners[me].keepers.saturating_sub(1));
    let mut possible = true;
    let settled = commit.apply(world, |world| {
        world.settle(id, known, fault).ok()?;
        let next = world.next_ready().filter(|_| claim).and_then(|job| world.claim(job, me));
        let dispatched = dispatch && alive && next.is_some_and(|next| world.dispatch(next, name).is_ok());
        possible = next.is_some() == claim && dispatched == dispatch;
        Some(next.map(|next| (next, dispatched)))
    });
    world.owners[me].phase = match (commit, settled) {
        (Commit::Done, Some(next)) => {
            world.at_mut(id).told = Some(known);
            after(next)
        }
        (_, Some(next)) => Phase::SettleUnknown(id, known, next),
        (_, None) => Phase::Gone,
    };
    possible
}

fn after(next: Option<(Id, bool)>) -> Phase {
    match next {
        Some((id, true)) => Phase::Dispatched(id),
        Some((id, false)) => Phase::Claimed(id),
        None => Phase::Idle,
    }
}

/// The record is asked what of the lost commit it knows. What it did not apply is settled now, alone.
fn read_settled(world: &mut World, me: usize, id: Id, known: Known, next: Option<(Id, bool)>, fault: Fault) {
    if !matches!(world.at(id).state, AttemptState::Ended | AttemptState::Uncertain)
        && world.settle(id, known, fault).is_err()
    {
        world.owners[me].phase = Phase::Gone;
        return;
    }
    world.at_mut(id).told = Some(known);
    // Its handle tells a claim of ours from another one under the same N.
    let ours = |(job, n): Id| world.jobs[job].attempts.get(n - 1).is_some_and(|attempt| attempt.owner == me);
    let next = next.filter(|(id, _)| ours(*id));
    world.owners[me].phase = after(next);
}

/// Whoever is asked to end gives back what was not started.
pub(super) fn give_back(world: &World, me: usize, fault: Fault, steps: &mut Steps<Step>) {
    let (id, dispatched) = match world.owners[me].phase {
        Phase::Claimed(id) => (id, false),
        Phase::Dispatched(id) => (id, true),
        _ => return,
    };
    for commit in Commit::all(world).iter().filter(|_| !world.owners[me].stopped) {
        let mut next = world.clone();
        commit.apply(&mut next, |world| {
            if dispatched { world.settle(id, Known::GivenBack, fault).ok() } else { world.release(id, false).ok() }
        });
        next.left.kills -= 1;
        next.owners[me].phase = Phase::Gone;
        steps.push((me, Step::GiveBack(*commit), next));
    }
}

/// What the keeper of an owner may do next.
pub(super) fn keeper_of(world: &World, me: usize, fault: Fault, steps: &mut Steps<Step>) {
    let owner = world.owners[me];
    let mut next = world.clone();
    let step = match owner.keeper {
        // The end of file on its socket is its owner's death.
        Keeper::Waiting if owner.phase == Phase::Gone => {
            next.owners[me].keeper = Keeper::Dead;
            Step::KeeperEnds
        }
        Keeper::Told(id) => {
            next.at_mut(id).files.mark = true;
            next.owners[me].keeper = Keeper::Marked(id);
            Step::KeeperMarks
        }
        Keeper::Marked(id) => {
            next.at_mut(id).tree = Tree::Whole;
            next.owners[me].keeper = Keeper::Watching(id);
            Step::KeeperStarts
        }
        Keeper::Watching(id) => {
            let (Tree::Child(end) | Tree::Gone(end)) = world.at(id).tree else { return };
            if fault != Fault::KillOne {
                next.at_mut(id).tree = Tree::Gone(end);
            }
            next.owners[me].keeper = Keeper::Swept(id, end);
            Step::KeeperSweeps
        }
        Keeper::Swept(id, end) => {
            next.at_mut(id).files.exit = Some(end);
            next.owners[me].keeper = Keeper::Written(id, end);
            Step::KeeperWrites
        }
        Keeper::Written(id, end) => {
            let heard = owner.phase != Phase::Gone;
            next.owners[me].heard = heard.then_some((id, end));
            next.owners[me].keeper = if heard { Keeper::Waiting } else { Keeper::Dead };
            Step::KeeperSays
        }
        Keeper::None | Keeper::Waiting | Keeper::Dead => return,
    };
    steps.push((me, step, next));
}
