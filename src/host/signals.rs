//! The signals that ask a long-running command to end, as a count that it looks at between its steps.

use crate::error::{Code, OrCode as _, Result};
use rustix::process::Signal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often this process was asked to end since it began to listen.
#[derive(Debug)]
pub struct Signals {
    came: Arc<AtomicBool>,
    count: u32,
}

/// Makes a write beyond the caller's `ulimit -f` an error instead of the end of this process. A handler, not an ignored
/// signal: programs that we start get the default back.
pub fn survive_file_limit() -> Result<()> {
    signal_hook::flag::register(Signal::XFSZ.as_raw(), Arc::default())
        .or_code(Code::Internal, || "cannot listen to SIGXFSZ".to_owned())
        .map(drop)
}

impl Signals {
    /// Listens to SIGTERM, SIGINT and SIGHUP from now on.
    pub fn listen() -> Result<Self> {
        Self::listen_to(&[Signal::TERM, Signal::INT, Signal::HUP])
    }

    /// Listens to these from now on; they do not end this process any more.
    pub fn listen_to(signals: &[Signal]) -> Result<Self> {
        let came = Arc::new(AtomicBool::new(false));
        for signal in signals {
            signal_hook::flag::register(signal.as_raw(), Arc::clone(&came))
                .or_code(Code::Internal, || format!("cannot listen to signal {}", signal.as_raw()))?;
        }
        Ok(Self { came, count: 0 })
    }

    /// How many were seen so far; several at one look count as one.
    pub fn count(&mut self) -> u32 {
        if self.came.swap(false, Ordering::Relaxed) {
            self.count += 1;
        }
        self.count
    }
}
