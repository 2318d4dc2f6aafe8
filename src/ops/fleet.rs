//! Several runners side by side: this program once more for each, with the caller's streams. What asks us to end is
//! handed on to all of them; none is left behind.

use crate::domain::id::JobId;
use crate::error::Result;
use crate::host::process::{self, Identity, Signal};
use crate::host::signals::Signals;
use crate::host::spawn::{self, Child, Status};
use crate::host::terminal;
use crate::store::{self, Attempt, Operations, Store};
use std::ffi::OsString;
use std::time::Duration;

/// How often it is looked whether a signal is to be handed on.
const LOOK: Duration = Duration::from_millis(50);

/// What the runners came to.
#[derive(Debug)]
pub struct Fleet {
    /// How each ended.
    pub ended: Vec<Status>,
    /// Who they were, as the log has it: what they did is told by it from what others did.
    by: Vec<String>,
    /// The latest operation before they began.
    since: i64,
}

impl Fleet {
    /// The jobs of these attempts whose end one of the runners recorded.
    pub fn jobs(&self, store: &Store, attempts: &[Attempt]) -> Result<Vec<JobId>> {
        let mut ours = Vec::new();
        for attempt in attempts {
            let of = Operations { subject: Some(attempt.id.to_string()), ..Operations::default() };
            let recorded = store.read(|view| view.operations(&of, self.since, -1))?;
            if recorded.iter().any(|operation| self.by.contains(&operation.by)) {
                ours.push(attempt.id.job);
            }
        }
        Ok(ours)
    }
}

/// Runs so many and waits for all.
pub fn run(store: &Store, count: u16, args: &[OsString]) -> Result<Fleet> {
    let since = store.read(|view| view.before_latest(&Operations::default(), 0))?;
    let mut asked = Signals::listen_to(&[Signal::TERM, Signal::HUP])?;
    let mut interrupted = Signals::listen_to(&[Signal::INT])?;
    let started: Vec<Result<Child>> = (0..count).map(|_| spawn::sibling(args)).collect();
    let by = started.iter().flatten().map(|child| store::by(child.pid())).collect();
    let mut open: Vec<&Child> = started.iter().flatten().collect();
    let (mut ended, mut handed_on) = (Vec::new(), 0);
    while !open.is_empty() {
        let mut still = Vec::new();
        for (at, child) in open.iter().enumerate() {
            // One is waited for, the others are only looked at.
            let pause = if at == 0 { LOOK } else { Duration::ZERO };
            match child.wait_timeout(pause)? {
                Some(status) => ended.push(status),
                None => still.push(*child),
            }
        }
        open = still;
        // A terminal interrupts every process in front of it by itself; twice would be once too often.
        let interrupts = if terminal::is_ours() { 0 } else { interrupted.count() };
        let came = asked.count() + interrupts;
        if came > handed_on {
            handed_on = came;
            for child in &open {
                if let Some(identity) = Identity::of(child.pid())? {
                    process::signal(&identity, Signal::TERM)?;
                }
            }
        }
    }
    // Those that did start were waited for before the failure of another is told.
    started.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(Fleet { ended, by, since })
}
