//! Everybody else: who reconciles and learns of life only by locks and records, who submits, who decides, the workers, and
//! what goes wrong.

use super::Fault;
use super::owner::{Commit, Steps};
use super::world::{End, Files, Id, Keeper, Known, Looker, Operator, Phase, Submission, Tree, World};
use ares::domain::attempt::State as AttemptState;
use ares::domain::job::{Decision, State};

/// One step, for who reads a counterexample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Look,
    TestLock,
    ReadEnd,
    TestKeeper,
    Reconcile(Commit),
    Submit(Commit),
    Decide(Decision, Commit),
    RepeatDecision,
    Act,
    Exit(End),
    ChildEnds,
    Kill,
    KillKeeper,
    KillWorker,
    Halt,
    Pause,
    Wake,
    /// All processes end at once, and what was not synced may be gone.
    Reboot(bool),
}

fn with(world: &World, change: impl FnOnce(&mut World)) -> World {
    let mut next = world.clone();
    change(&mut next);
    next
}

/// What who reconciles may do next. That it may be killed anywhere needs no step of its own: it holds nothing, and to be
/// slow for ever is the same.
pub(super) fn looker(world: &World, me: usize, fault: Fault, steps: &mut Steps<Step>) {
    let mut to = |step, looker| steps.push((me, step, with(world, |next| next.lookers[me] = looker)));
    match world.lookers[me] {
        Looker::Idle => {
            for (job, row) in world.jobs.iter().enumerate() {
                let id = (job, row.attempts.len());
                let open = matches!(row.state, Some(State::Claimed | State::Running));
                // To look after an owner that nobody kills any more would come to nothing.
                let may = world.left.kills > 0 || fault == Fault::TimeOut;
                if open && (may || !world.owner_lives(id)) {
                    to(Step::Look, Looker::Read(id, world.at(id).state));
                }
            }
        }
        Looker::Read(id, state) => {
            let lives = world.owner_lives(id) && fault != Fault::TimeOut;
            to(
                Step::TestLock,
                match (lives, state) {
                    (true, _) => Looker::Idle,
                    (false, AttemptState::Claimed) => Looker::Release(id),
                    (false, _) => Looker::Free(id),
                },
            );
        }
        Looker::Free(id) => {
            let exit = world.at(id).files.exit;
            to(Step::ReadEnd, exit.map_or(Looker::NoRecord(id), |end| Looker::Settle(id, Known::Ended(end))));
        }
        Looker::NoRecord(id) => to(Step::TestKeeper, left(world, id, fault)),
        Looker::Release(_) | Looker::Settle(..) => {
            for commit in Commit::all(world) {
                let next = with(world, |next| reconcile(next, me, *commit, fault));
                steps.push((me, Step::Reconcile(*commit), next));
            }
        }
    }
}

/// What is left of an attempt without a record of its end: once its keeper is dead, nobody writes to its files.
fn left(world: &World, id: Id, fault: Fault) -> Looker {
    let attempt = world.at(id);
    if fault == Fault::TimeOut {
        return Looker::Settle(id, Known::NeverStarted);
    }
    if attempt.keeper.is_some_and(|keeper| world.keeper_lives(keeper)) {
        return Looker::Idle;
    }
    if attempt.boot != world.boot && fault != Fault::OldMark {
        return Looker::Settle(id, Known::Lost);
    }
    match (attempt.files.exit, attempt.files.mark) {
        (Some(end), _) => Looker::Settle(id, Known::Ended(end)),
        (None, false) => Looker::Settle(id, Known::NeverStarted),
        (None, true) if attempt.tree.lives() => Looker::Idle,
        (None, true) => Looker::Settle(id, Known::Lost),
    }
}

fn reconcile(world: &mut World, me: usize, commit: Commit, fault: Fault) {
    match world.lookers[me] {
        Looker::Release(id) => {
            commit.apply(world, |world| world.release(id, true).ok());
        }
        Looker::Settle(id, known) => {
            let settled = commit.apply(world, |world| world.settle(id, known, fault).ok());
            if commit == Commit::Done && settled.is_some() {
                world.at_mut(id).told = Some(known);
            }
        }
        _ => {}
    }
    world.lookers[me] = Looker::Idle;
}

/// A submission under an id: where its answer was lost it is repeated.
pub(super) fn submitter(world: &World, fault: Fault, steps: &mut Steps<Step>) {
    for (job, row) in world.jobs.iter().enumerate().filter(|(_, row)| row.submission != Submission::Printed) {
        for commit in Commit::all(world) {
            let next = with(world, |next| {
                // The id is in the same commit as the row.
                let known = row.rows > 0 && fault != Fault::NoOpId;
                commit.apply(next, |world| {
                    if !known {
                        world.submit(job);
                    }
                    Some(())
                });
                let told = *commit == Commit::Done || fault == Fault::EarlyAnswer;
                next.jobs[job].submission = if told { Submission::Printed } else { Submission::Repeated };
            });
            steps.push((job, Step::Submit(*commit), next));
        }
    }
}

/// A person decides what is uncertain, and repeats under the same id what had no answer.
pub(super) fn operator(world: &World, fault: Fault, steps: &mut Steps<Step>) {
    if let Operator::Unknown { job, again, applied } = world.operator {
        let next = with(world, |next| {
            next.operator = Operator::Idle;
            if !applied || fault == Fault::NoOpId {
                // What has moved meanwhile is a conflict, and no harm.
                let _conflict = next.resolve(job, if again { Decision::Retry } else { Decision::Abandon });
                if applied && again {
                    next.broken = Some("one decision is applied once");
                }
            }
        });
        steps.push((job, Step::RepeatDecision, next));
        return;
    }
    for (job, row) in world.jobs.iter().enumerate().filter(|(_, row)| row.state == Some(State::Uncertain)) {
        let alive = row.attempts.last().is_some_and(|attempt| attempt.tree.lives());
        for decision in [Decision::Retry, Decision::NoEffect, Decision::Abandon] {
            let again = matches!(decision, Decision::Retry | Decision::NoEffect);
            if again && (world.left.reruns == 0 || (alive && fault != Fault::KillOne)) {
                continue;
            }
            for commit in Commit::all(world) {
                // What is repeated are the two that differ.
                if *commit != Commit::Done && decision == Decision::NoEffect {
                    continue;
                }
                let next = with(world, |next| {
                    next.left.reruns -= u8::from(again);
                    let _conflict = commit.apply(next, |world| world.resolve(job, decision).ok());
                    if *commit != Commit::Done {
                        next.operator = Operator::Unknown { job, again, applied: *commit == Commit::Lost };
                    }
                });
                steps.push((job, Step::Decide(decision, *commit), next));
            }
        }
    }
}

fn each(world: &World) -> impl Iterator<Item = Id> + '_ {
    world.jobs.iter().enumerate().flat_map(|(job, row)| (1..=row.attempts.len()).map(move |n| (job, n)))
}

/// The workers, which do what they like.
pub(super) fn workers(world: &World, steps: &mut Steps<Step>) {
    for id in each(world) {
        let attempt = world.at(id);
        if attempt.tree.lives() && !attempt.acted {
            let next = with(world, |next| {
                next.at_mut(id).acted = true;
                next.jobs[id.0].effects += 1;
            });
            steps.push((id.0, Step::Act, next));
        }
        match attempt.tree {
            Tree::Whole => {
                let ends = if attempt.acted { &[End::Zero, End::One][..] } else { &[End::One][..] };
                for end in ends {
                    let next = with(world, |next| next.at_mut(id).tree = Tree::Child(*end));
                    steps.push((id.0, Step::Exit(*end), next));
                }
            }
            // Its keeper sweeps it, where there is one.
            Tree::Child(end) if !attempt.keeper.is_some_and(|keeper| world.keeper_lives(keeper)) => {
                steps.push((id.0, Step::ChildEnds, with(world, |next| next.at_mut(id).tree = Tree::Gone(end))));
            }
            Tree::None | Tree::Child(_) | Tree::Gone(_) => {}
        }
    }
}

/// The end of a keeper, which its worker does not outlive.
fn end_keeper(world: &mut World, owner: usize) {
    if let Keeper::Watching(id) = world.owners[owner].keeper {
        world.at_mut(id).tree = world.at(id).tree.orphaned(End::Killed);
    }
    world.owners[owner].keeper = Keeper::Dead;
}

/// What goes wrong, as often as it still may.
pub(super) fn mishaps(world: &World, steps: &mut Steps<Step>) {
    for (me, owner) in world.owners.iter().enumerate() {
        let born = !matches!(owner.phase, Phase::Unborn | Phase::Gone);
        if born && world.left.kills > 0 {
            let next = with(world, |next| {
                next.left.kills -= 1;
                next.owners[me].phase = Phase::Gone;
                next.owners[me].stopped = false;
                next.owners[me].heard = None;
            });
            steps.push((me, Step::Kill, next));
        }
        if !matches!(owner.keeper, Keeper::None | Keeper::Dead) && world.left.kills > 0 {
            let next = with(world, |next| {
                next.left.kills -= 1;
                end_keeper(next, me);
            });
            steps.push((me, Step::KillKeeper, next));
        }
        if let Keeper::Watching(id) = owner.keeper
            && world.at(id).tree == Tree::Whole
        {
            let mut end = |step, end, spend: fn(&mut World)| {
                let next = with(world, |next| {
                    spend(next);
                    next.at_mut(id).tree = Tree::Child(end);
                });
                steps.push((me, step, next));
            };
            if world.left.kills > 0 {
                end(Step::KillWorker, End::Killed, |next| next.left.kills -= 1);
            }
            if world.left.halts > 0 {
                end(Step::Halt, End::Halted, |next| next.left.halts -= 1);
            }
        }
        if born && !owner.stopped && world.left.pauses > 0 {
            let next = with(world, |next| {
                next.left.pauses -= 1;
                next.owners[me].stopped = true;
            });
            steps.push((me, Step::Pause, next));
        }
    }
    if world.left.reboots > 0 {
        for lost in [false, true] {
            steps.push((0, Step::Reboot(lost), with(world, |next| reboot(next, lost))));
        }
    }
}

/// Who was stopped goes on.
pub(super) fn wake(world: &World, steps: &mut Steps<Step>) {
    for (me, _) in world.owners.iter().enumerate().filter(|(_, owner)| owner.stopped) {
        steps.push((me, Step::Wake, with(world, |next| next.owners[me].stopped = false)));
    }
}

fn reboot(world: &mut World, lost: bool) {
    world.left.reboots -= 1;
    world.boot += 1;
    for owner in world.owners.iter_mut().filter(|owner| owner.phase != Phase::Unborn) {
        (owner.phase, owner.keeper, owner.heard, owner.stopped) = (Phase::Gone, Keeper::Dead, None, false);
    }
    world.lookers.fill(Looker::Idle);
    for attempt in world.jobs.iter_mut().flat_map(|job| &mut job.attempts) {
        attempt.tree = attempt.tree.ended(End::Killed);
        if lost {
            attempt.files = Files { mark: false, exit: None };
        }
    }
}
