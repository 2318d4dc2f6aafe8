//! The protocol of owner, keeper, worker and store, in small and checked whole: each party may be killed, stopped or
//! delayed at each of its steps, commits may lose their answer, the machine may be started anew. No two effects without a
//! decision between, nothing acknowledged lost, never failed from silence, uncertain only where nothing can be proved,
//! nothing settled by who was fenced; and wherever it comes to, every job comes to rest once nothing goes wrong further.
//!
//! What is wrong on purpose must be found, or the search would prove nothing.

mod check;
mod others;
mod owner;
mod store;
mod world;

use check::Plan;
use world::Left;

/// What is wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// An answer is given before the commit is known.
    EarlyAnswer,
    /// Whoever is silent for long is taken for dead.
    TimeOut,
    /// The keeper is told before the dispatch is committed.
    EarlyGo,
    /// A dispatch whose answer was lost is taken for applied.
    UnreadDispatch,
    /// Of a worker only its first process is ended, and nobody looks whether another lives.
    KillOne,
    /// A settlement does not ask whether the attempt is still the job's.
    SettleUnfenced,
    /// A repeated request is carried out again.
    NoOpId,
    /// What is missing after a start of the machine is taken for never written.
    OldMark,
}

const CALM: Left = Left { kills: 0, unknown: 0, pauses: 0, reboots: 0, halts: 0, reruns: 0, runners: 1 };
const PLAIN: Plan = Plan { jobs: 1, submitted: true, lookers: 1, left: CALM, fault: Fault::None };

/// Submissions under their ids.
const SUBMITTED: Plan = Plan { submitted: false, left: Left { unknown: 2, ..CALM }, ..PLAIN };

/// Two jobs, so that one is claimed and dispatched where the other is settled.
const QUEUE: Plan = Plan { jobs: 2, left: Left { kills: 1, ..CALM }, ..PLAIN };

/// The same, and the answer of one commit is lost.
const UNKNOWN: Plan = Plan { jobs: 2, left: Left { unknown: 1, ..CALM }, ..PLAIN };

/// The same by two runners, of which one may have to read back what the other changes.
const RACE: Plan = Plan { jobs: 2, left: Left { unknown: 1, runners: 2, ..CALM }, ..PLAIN };

/// One job that is decided and tried again.
const DECIDED: Plan = Plan { left: Left { kills: 1, halts: 1, reruns: 1, ..CALM }, ..PLAIN };

/// Two kills, of owner and keeper or of one after the other.
const KILLED: Plan = Plan { left: Left { kills: 2, ..CALM }, ..PLAIN };

/// Two who look after the same.
const LOOKED: Plan = Plan { lookers: 2, left: Left { kills: 1, ..CALM }, ..PLAIN };

/// A kill, and a lost answer of whatever follows it.
const LOST_TOO: Plan = Plan { left: Left { kills: 1, unknown: 1, reruns: 1, ..CALM }, ..PLAIN };

/// A runner that sleeps while another comes.
const PAUSED: Plan = Plan { left: Left { kills: 1, pauses: 1, runners: 2, ..CALM }, ..PLAIN };

/// A machine that is started anew.
const REBOOTED: Plan = Plan { left: Left { kills: 1, reboots: 1, reruns: 1, ..CALM }, ..PLAIN };

#[expect(clippy::print_stderr, reason = "how much was looked at")]
fn holds(name: &str, plan: &Plan) {
    let searched = plan.search();
    eprintln!("{name}: {} states", searched.states);
    if let Some((promise, path)) = searched.broken.then(|| plan.counterexample()).flatten() {
        panic!("{promise}:\n{}", plan.told(&path));
    }
    assert!(searched.stuck.is_empty(), "{} states do not heal: {:#?}", searched.stuck.len(), searched.stuck.first());
}

fn finds(plan: Plan, fault: Fault, promise: &str) {
    let plan = Plan { fault, ..plan };
    let (broken, path) = plan.counterexample().unwrap_or_else(|| panic!("{fault:?} was not found"));
    assert_eq!(broken, promise, "{fault:?}:\n{}", plan.told(&path));
}

#[test]
fn a_queue_keeps_its_promises() {
    holds("queue", &QUEUE);
    holds("unknown", &UNKNOWN);
    holds("race", &RACE);
}

#[test]
fn what_is_killed_decided_and_tried_again_keeps_its_promises() {
    holds("submitted", &SUBMITTED);
    holds("decided", &DECIDED);
    holds("killed", &KILLED);
    holds("lost too", &LOST_TOO);
}

#[test]
fn who_looks_sleeps_or_starts_anew_keeps_its_promises() {
    holds("looked", &LOOKED);
    holds("paused", &PAUSED);
    holds("rebooted", &REBOOTED);
}

const TWICE: &str = "no two effects without a decision between";
const LOST: &str = "nothing acknowledged is lost";

#[test]
fn an_answer_before_the_commit_is_found() {
    finds(SUBMITTED, Fault::EarlyAnswer, LOST);
}

#[test]
fn recovery_by_time_out_is_found() {
    finds(DECIDED, Fault::TimeOut, TWICE);
}

#[test]
fn a_worker_before_the_dispatch_is_committed_is_found() {
    finds(QUEUE, Fault::EarlyGo, TWICE);
    finds(UNKNOWN, Fault::UnreadDispatch, TWICE);
}

#[test]
fn a_kill_without_the_group_is_found() {
    finds(DECIDED, Fault::KillOne, TWICE);
}

#[test]
fn a_settlement_without_its_fence_is_found() {
    finds(LOOKED, Fault::SettleUnfenced, "a fenced attempt settles nothing");
}

#[test]
fn a_request_that_is_repeated_without_its_id_is_found() {
    finds(SUBMITTED, Fault::NoOpId, "one request is applied once");
}

#[test]
fn a_missing_mark_of_an_earlier_boot_as_proof_is_found() {
    finds(REBOOTED, Fault::OldMark, TWICE);
}
