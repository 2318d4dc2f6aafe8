//! The only calls of the operating system: files, locks, processes, the clock. It knows the domain, not the store.

pub mod clock;
pub mod dir;
pub mod keep;
pub mod keeper;
pub mod lock;
pub mod process;
mod record;
mod setup;
pub mod spawn;
mod wire;
