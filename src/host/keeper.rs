//! The owner's side of the keeper: starts it, gives it attempts, asks it to stop them, hears how they ended; and what
//! an attempt's directory tells when no keeper is there to ask. It decides nothing about a job.

use super::process::Identity;
pub use super::record::{Mark, ask_stop, damaged, read_end, read_exit, read_mark, reserve_end};
pub use super::wire::Start;
use super::wire::{Answer, Lines, Order};
use super::{clock, lock, spawn};
use crate::domain::outcome::{Cause, Seen};
use crate::error::{Code, Error, OrCode, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long a keeper may take to say who it is.
const HELLO: Duration = Duration::from_secs(10);

/// What the keeper says of the attempt that it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// It ended like this.
    Ended(Seen),
    /// The keeper itself is gone; what it did is in the attempt's directory.
    Gone,
}

/// A keeper of this process. It takes one attempt after another and ends when this is dropped; with an attempt under
/// way it first sees that to its end.
pub struct Keeper {
    lines: Lines,
    identity: Identity,
    /// Whether it has an attempt whose end was not heard yet.
    busy: bool,
    /// Kept so that the keeper is reaped by this process.
    child: spawn::Child,
}

impl Keeper {
    /// Starts one from this very program.
    pub fn start() -> Result<Self> {
        Self::start_from(Path::new(spawn::OWN_PROGRAM))
    }

    /// Starts one from this program, which must be one of ours.
    pub fn start_from(executable: &Path) -> Result<Self> {
        let what = || "cannot start the keeper".to_owned();
        let (ours, theirs) = UnixStream::pair().or_code(Code::NeverStarted, what)?;
        let child = spawn::keeper(executable, theirs.into()).or_code(Code::NeverStarted, what)?;
        let mut lines = Lines::new(ours);
        let asked = clock::mark();
        loop {
            lines.fill()?;
            match lines.next()? {
                Some(Answer::Hello(identity)) => return Ok(Self { lines, identity, busy: false, child }),
                Some(Answer::Ended(_)) => {}
                None if lines.closed() || asked.left(HELLO).is_zero() => {
                    return Err(Error::new(Code::NeverStarted, "the keeper did not come up"));
                }
                None => {
                    arrived(&lines, asked.left(HELLO))?;
                }
            }
        }
    }

    /// Who the keeper is, to be written down before [`Self::go`].
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The keeper's process id.
    pub fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// Gives it an attempt to carry out. When this fails the worker was not and will not be started, and the keeper
    /// ends: who waits for it hears that it is gone.
    pub fn go(&mut self, start: &Start) -> Result<()> {
        if !start.dir.is_absolute() || !Path::new(&start.cwd).is_absolute() {
            return Err(Error::new(Code::Internal, "the keeper takes absolute directories only"));
        }
        if self.busy {
            return Err(Error::new(Code::Internal, "the keeper takes one attempt at a time"));
        }
        if let Err(error) = self.lines.send(&Order::Go(Box::new(start.clone()))) {
            self.lines.close();
            return Err(error);
        }
        self.busy = true;
        Ok(())
    }

    /// Asks it to end the worker; a hard stop gives it no time. Without effect when nothing runs.
    pub fn stop(&mut self, cause: Cause, hard: bool) {
        // A keeper that cannot be reached is heard of as `Gone`.
        let _gone = self.lines.send(&Order::Stop { cause, hard });
    }

    /// Waits this long for the keeper to say something; `None` when it did not, or when a signal came in between.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<Word>> {
        let asked = clock::mark();
        loop {
            self.lines.fill()?;
            match self.lines.next()? {
                Some(Answer::Ended(seen)) => {
                    self.busy = false;
                    return Ok(Some(Word::Ended(seen)));
                }
                Some(Answer::Hello(_)) => continue,
                None if self.lines.closed() => return Ok(Some(Word::Gone)),
                None => {}
            }
            let left = asked.left(timeout);
            if left.is_zero() || !arrived(&self.lines, left)? {
                return Ok(None);
            }
        }
    }

    /// Becomes readable when there is something to hear.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.lines.as_fd()
    }
}

/// Waits for input; `false` when none came in time, or a signal did.
fn arrived(lines: &Lines, timeout: Duration) -> Result<bool> {
    // A day is as good as for ever, and fits.
    let timeout = timeout.min(Duration::from_secs(86_400));
    let timeout =
        Timespec { tv_sec: timeout.as_secs().try_into().unwrap_or(0), tv_nsec: timeout.subsec_nanos().into() };
    match poll(&mut [PollFd::new(lines, PollFlags::IN)], Some(&timeout)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error).or_code(Code::Internal, || "cannot wait for the keeper".to_owned()),
    }
}

/// Whether any process of this attempt's tree holds its lock, the keeper included. A held one proves life; a free one
/// does not prove death.
pub fn worker_lock_held(folder: &Path) -> Result<bool> {
    lock::is_held(&folder.join("worker.lock"))
}
