//! ares (architecture to follow).
pub mod cli;
pub mod domain;
pub mod error;
pub mod fault;
pub mod host;
