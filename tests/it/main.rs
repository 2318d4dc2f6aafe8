//! Everything that needs files, processes or the commands themselves, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod worker;
