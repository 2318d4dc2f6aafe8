//! Ends what a worker left behind. The keeper is the subreaper of everything below it, so whatever outlived its parents
//! is a child of the keeper, however it detached itself; each is reaped by its number, and none by a wait for any child,
//! which would take the worker's status from its handle.

use super::output::Output;
use crate::host::clock;
use crate::host::process;
use crate::host::spawn::{Child, Status};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process, kill_process_group, waitid};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long what is left may take to end by itself: the reader at the end of a pipe needs a moment after the writer.
const SETTLE: Duration = Duration::from_millis(20);

/// The longest time of grace for what is left.
const GRACE_MAX: Duration = Duration::from_secs(1);

/// How long killed processes may take to go.
const KILL_MAX: Duration = Duration::from_secs(2);

/// What the sweep found.
pub(super) struct Swept {
    /// How the worker itself ended.
    pub(super) status: Option<Status>,
    /// What had to be ended.
    pub(super) leaked: Vec<i32>,
    /// What could not be ended.
    pub(super) survivors: Vec<i32>,
}

struct Sweep<'a> {
    /// What is left may still have something to print.
    output: &'a mut Output,
    /// The worker, until it is reaped through its own handle.
    leader: i32,
    /// What survived earlier sweeps and is not waited for again.
    known: &'a [i32],
    /// What had to be ended: it got a signal while it ran, or died of one that was sent to its group.
    leaked: BTreeSet<i32>,
}

/// Reaps the worker, which has ended, and ends what it left. Where nothing is left, and that is the common case, this
/// takes one look and no waiting.
pub(super) fn after(child: &Child, output: &mut Output, grace: Duration, known: &[i32]) -> Swept {
    let mut sweep = Sweep { output, leader: child.pid(), known, leaked: BTreeSet::new() };
    if !sweep.settle(grace) {
        // Its number is its own as long as the worker is unreaped; after that the group might be a stranger's.
        let ending = if grace.is_zero() { Signal::KILL } else { Signal::TERM };
        if let Some(group) = Pid::from_raw(sweep.leader) {
            // There may be nobody left in the group itself.
            let _nobody = kill_process_group(group, ending);
            let _nobody = kill_process_group(group, Signal::CONT);
        }
    }
    let status = child.wait().ok();
    sweep.leader = 0;
    let survivors = if none_left() { Vec::new() } else { sweep.end_all(grace.min(GRACE_MAX)) };
    let leaked = sweep.leaked.into_iter().filter(|pid| !survivors.contains(pid)).collect();
    Swept { status, leaked, survivors }
}

/// Keeps of the survivors of earlier sweeps those that still run; what ended meanwhile is reaped.
pub(super) fn forget_dead(survivors: &mut Vec<i32>) {
    survivors.retain(|pid| matches!(reap(*pid), Ok(None)));
}

fn reap(pid: i32) -> rustix::io::Result<Option<WaitIdStatus>> {
    let number = Pid::from_raw(pid).ok_or(Errno::CHILD)?;
    waitid(WaitId::Pid(number), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
}

fn send(pid: i32, signal: Signal) {
    // It is an unreaped child, so the number is its own; one that we may not send to survives, and is told.
    let _failed = Pid::from_raw(pid).map(|pid| kill_process(pid, signal));
}

/// Whether this process has no child at all, as the kernel knows best.
fn none_left() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

impl Sweep<'_> {
    /// What was left and still runs; what has ended is reaped.
    fn living(&mut self, signalled: bool) -> Vec<i32> {
        let mut children = process::children_of_self();
        children.retain(|pid| *pid != self.leader && !self.known.contains(pid));
        children.retain(|pid| !self.gone(*pid, signalled));
        children
    }

    /// Reaps a child if it has ended. One that died of a signal such as ours, after ours, was ended by us.
    fn gone(&mut self, pid: i32, signalled: bool) -> bool {
        match reap(pid) {
            Ok(None) => false,
            Ok(Some(status)) => {
                let ours = [Signal::TERM, Signal::KILL].map(|signal| Some(signal.as_raw()));
                if signalled && ours.contains(&status.terminating_signal()) {
                    self.leaked.insert(pid);
                }
                true
            }
            Err(_) => true,
        }
    }

    /// Lets what is left end by itself for a moment; whether nothing is left.
    fn settle(&mut self, grace: Duration) -> bool {
        let began = clock::mark();
        loop {
            let living = self.living(false);
            if living.is_empty() || grace.is_zero() || began.elapsed() > SETTLE {
                self.leaked.extend(&living);
                return living.is_empty();
            }
            self.output.pause(Duration::from_millis(2));
        }
    }

    /// Asks everything that is left to end, then kills it, until nothing is left; gives what stays.
    fn end_all(&mut self, grace: Duration) -> Vec<i32> {
        let began = clock::mark();
        let (mut asked, mut pause) = (Vec::new(), Duration::from_millis(1));
        loop {
            let living = self.living(true);
            let kill = began.elapsed() >= grace;
            if living.is_empty() || began.elapsed() > grace + KILL_MAX {
                return living;
            }
            self.leaked.extend(&living);
            for pid in living {
                if kill {
                    send(pid, Signal::KILL);
                } else if !asked.contains(&pid) {
                    send(pid, Signal::TERM);
                    send(pid, Signal::CONT);
                    asked.push(pid);
                }
            }
            self.output.pause(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        }
    }
}
