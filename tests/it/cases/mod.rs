//! Failures that users of like systems reported, each under the number that it is known by in this project. Some stand
//! where their kind is tested: 31 and 49 in `race/submits.rs`; 47 is also a law of the source in `store/durable.rs`.

mod clock;
mod cron;
mod effects;
mod lost;
mod processes;
mod storage;
