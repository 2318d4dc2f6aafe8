//! Several runners side by side: this program once more for each, with the caller's streams. What asks us to end is
//! handed on to all of them; none is left behind.

use crate::error::Result;
use crate::host::process::{self, Identity, Signal};
use crate::host::signals::Signals;
use crate::host::spawn::{self, Child, Status};
use crate::host::terminal;
use std::ffi::OsString;
use std::time::Duration;

/// How often it is looked whether a signal is to be handed on.
const LOOK: Duration = Duration::from_millis(50);

/// Runs so many and waits for all; gives how each ended.
pub fn run(count: u16, args: &[OsString]) -> Result<Vec<Status>> {
    let mut asked = Signals::listen_to(&[Signal::TERM, Signal::HUP])?;
    let mut interrupted = Signals::listen_to(&[Signal::INT])?;
    let started: Vec<Result<Child>> = (0..count).map(|_| spawn::sibling(args)).collect();
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
    Ok(ended)
}
