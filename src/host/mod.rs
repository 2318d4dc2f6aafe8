//! The only calls of the operating system: files, locks, processes, the clock. It knows the domain, not the store.

pub mod clock;
pub mod config;
pub mod dir;
pub mod growing;
pub mod keep;
pub mod keeper;
pub mod lock;
pub mod process;
pub mod program;
pub mod random;
mod record;
mod setup;
pub mod signals;
pub mod spawn;
pub mod terminal;
mod wire;
