//! All tests that run the commands or read the source, as one binary. Run with `ARES_BLESS=1`, those that compare
//! with a checked-in file rewrite it; `git diff` is then the review.

mod cmd;
mod harness;
mod host;
mod laws;
mod sessions;
