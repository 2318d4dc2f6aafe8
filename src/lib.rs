//! ares (architecture to follow).
pub mod domain;
pub mod error;
pub mod fault;
pub mod host;
pub mod worker;
