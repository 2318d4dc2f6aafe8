//! All tests that run the commands or read the source, as one binary. Run with `ARES_BLESS=1`, those that compare
//! with a checked-in file rewrite it; `git diff` is then the review.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod cases;
mod cmd;
mod crash;
mod harness;
mod host;
mod laws;
mod model;
mod race;
mod readme;
mod real;
mod run;
mod sessions;
mod stock;
mod store;
mod storm;
mod sweep;
mod worker;
