//! The only calls of the operating system: files, locks, processes, the clock. It knows the domain, not the store.

pub mod clock;
pub mod dir;
pub mod lock;
pub mod program;
pub mod terminal;
