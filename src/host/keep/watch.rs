//! Waits for a worker's end and enforces its limits: time, output, and what the owner or the `stop` file ask for.
//! It sends signals to the worker's group only while the worker is unreaped, so that the number is surely its own.

use super::output::{Output, timespec};
use crate::domain::outcome::Cause;
use crate::host::clock::{self, Mark};
use crate::host::record;
use crate::host::wire::{Lines, Order, Start};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};
use std::time::Duration;

/// How often files are looked at: at first, and when nothing has happened for a while.
const TICK: Duration = Duration::from_millis(10);
const TICK_MAX: Duration = Duration::from_millis(50);

/// How long a killed worker may take to end before it counts as one that cannot be ended.
const GIVE_UP: Duration = Duration::from_secs(10);

/// How the waiting ended.
pub(super) struct Watched {
    pub(super) cause: Cause,
    /// Whether it was given no time to end.
    pub(super) hard: bool,
    /// Whether it still runs and cannot be ended.
    pub(super) given_up: bool,
}

/// An order to end, and how far it came.
struct Stop {
    cause: Cause,
    since: Mark,
    hard: bool,
    killed: Option<Mark>,
}

struct Watch<'a> {
    start: &'a Start,
    group: Pid,
    began: Mark,
    printed: u64,
    /// When something new was last seen on a stream.
    heard: Option<Mark>,
    stop: Option<Stop>,
}

/// Milliseconds as a length of time.
pub(super) fn span(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

/// Waits until the worker has ended, and leaves it unreaped.
pub(super) fn until_end(start: &Start, pid: i32, output: &mut Output, owner: &mut Lines) -> Watched {
    let Some(group) = Pid::from_raw(pid) else {
        return Watched { cause: Cause::Exited, hard: false, given_up: false };
    };
    let mut watch = Watch { start, group, began: clock::mark(), printed: 0, heard: None, stop: None };
    // Without a descriptor for the worker its end is noticed at the next tick.
    let pidfd = pidfd_open(group, PidfdFlags::empty()).ok();
    let mut tick = TICK;
    loop {
        let given_up = watch.stop.as_ref().and_then(|stop| stop.killed).is_some_and(|at| at.elapsed() > GIVE_UP);
        if watch.ended() || given_up {
            let (cause, hard) = watch.stop.map_or((Cause::Exited, false), |stop| (stop.cause, stop.hard));
            return Watched { cause, hard, given_up };
        }
        sleep(owner, pidfd.as_ref(), output, tick.min(watch.next_limit()));
        tick = (tick * 5 / 4).min(TICK_MAX);
        if !watch.ended() {
            watch.hear(owner);
            watch.look(output);
            watch.press();
        }
    }
}

/// Sleeps until something happens, at most this long.
fn sleep(owner: &Lines, pidfd: Option<&OwnedFd>, output: &mut Output, limit: Duration) {
    let began = clock::mark();
    loop {
        let left = began.left(limit);
        let mut fds = Vec::with_capacity(4);
        fds.extend(pidfd.map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
        if !owner.closed() {
            fds.push(PollFd::new(owner, PollFlags::IN));
        }
        let others = fds.len();
        fds.extend(output.pipes().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        // A signal in between only makes the tick shorter.
        let _interrupted = poll(&mut fds, Some(&timespec(left)));
        let happened = fds[..others].iter().any(|fd| !fd.revents().is_empty());
        // What is printed is taken as it comes, and is nothing that has to be looked after.
        if !output.take() || happened || began.left(limit).is_zero() {
            return;
        }
    }
}

impl Watch<'_> {
    /// Whether the worker has ended; it stays a zombie, so that its number stays its own.
    fn ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error would mean that it is no child of ours any more, and there would be nothing to wait for.
        !matches!(waitid(WaitId::Pid(self.group), options), Ok(None))
    }

    /// Does what the owner asks. Without an owner, or with one that is not understood, the worker goes on.
    fn hear(&mut self, owner: &mut Lines) {
        if owner.closed() || owner.fill().is_err() {
            return;
        }
        while let Ok(Some(order)) = owner.next() {
            if let Order::Stop { cause, hard } = order {
                self.ask(cause, hard);
            }
        }
    }

    /// Looks at the streams, the clock and the `stop` file.
    fn look(&mut self, output: &Output) {
        let lengths = output.stored();
        let printed = output.heard().unwrap_or_else(|| lengths.iter().sum());
        if printed != self.printed {
            self.printed = printed;
            self.heard = Some(clock::mark());
        }
        let max = u64::try_from(self.start.output_max).unwrap_or(0);
        let passed = self.limits().find(|(_, left)| left.is_zero()).map(|(cause, _)| cause);
        if lengths.iter().any(|length| *length > max) {
            // One that goes on printing while it is asked to end would fill the disk in its time of grace.
            let flood = lengths.iter().any(|length| *length / 2 > max);
            self.ask(Cause::OutputLimit, flood);
        } else if let Some(cause) = passed {
            self.ask(cause, false);
        }
        if let Some(hard) = record::stop_asked(&self.start.dir) {
            self.ask(Cause::Stopped, hard);
        }
    }

    /// The limits in time that are in force, with what is left of each.
    fn limits(&self) -> impl Iterator<Item = (Cause, Duration)> {
        let left = |from: Mark, ms: i64| from.left(span(ms));
        let whole = self.start.timeout_ms.map(|ms| (Cause::TimeoutWhole, left(self.began, ms)));
        let quiet = match (self.heard, self.start.timeout_first_ms) {
            (None, Some(ms)) => Some((Cause::TimeoutFirst, left(self.began, ms))),
            (heard, _) => {
                let from = heard.unwrap_or(self.began);
                self.start.timeout_idle_ms.map(|ms| (Cause::TimeoutIdle, left(from, ms)))
            }
        };
        whole.into_iter().chain(quiet)
    }

    /// How long until a limit has to be looked at.
    fn next_limit(&self) -> Duration {
        match &self.stop {
            None => self.limits().map(|(_, left)| left).min().unwrap_or(TICK_MAX),
            Some(stop) if stop.killed.is_none() => stop.since.left(span(self.start.grace_ms)),
            Some(_) => TICK_MAX,
        }
    }

    /// Begins to end the worker, or hurries where that has begun. The first cause stays.
    fn ask(&mut self, cause: Cause, hard: bool) {
        match &mut self.stop {
            Some(stop) => stop.hard |= hard,
            None => {
                self.stop = Some(Stop { cause, since: clock::mark(), hard, killed: None });
                if !hard {
                    self.signal(Signal::TERM);
                    // A stopped process acts on SIGTERM only when it goes on.
                    self.signal(Signal::CONT);
                }
            }
        }
    }

    /// Kills the worker when its time of grace is over.
    fn press(&mut self) {
        let grace = span(self.start.grace_ms);
        let due = |stop: &Stop| stop.killed.is_none() && (stop.hard || stop.since.left(grace).is_zero());
        if self.stop.as_ref().is_some_and(due) {
            self.signal(Signal::KILL);
            if let Some(stop) = &mut self.stop {
                stop.killed = Some(clock::mark());
            }
        }
    }

    fn signal(&self, signal: Signal) {
        // Where it fails there is nobody to get it, or nobody whom we may send it to: then it survives, and is told.
        let _failed = kill_process_group(self.group, signal);
    }
}
