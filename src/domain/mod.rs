//! The rules, pure: no input or output, no clock, no process, no SQL. Everything here is tested with literals.

pub mod attempt;
pub mod digest;
pub mod id;
pub mod job;
pub mod moves;
pub mod outcome;
pub mod redact;
pub mod session;
pub mod spec;
pub mod step;
pub mod time;
