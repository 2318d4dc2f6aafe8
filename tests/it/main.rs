//! The tests that run the built commands.

mod host;
