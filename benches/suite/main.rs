//! The benchmark: one interleaved run of ares, the limit of the machine, SQLite and the peers that are there; medians,
//! and their ratios. `benches/run` builds what it needs and says where it is.

#![allow(missing_docs, clippy::print_stderr, clippy::unwrap_used, clippy::disallowed_methods)]

mod measure;
mod peers;
mod queue;
mod report;
mod single;

use measure::Lab;
use report::Report;
use std::path::PathBuf;

fn main() {
    let dir =
        |name: &str| PathBuf::from(std::env::var_os(name).unwrap_or_else(|| panic!("{name} is set by benches/run")));
    let quick = std::env::args().any(|arg| arg == "--quick");
    let lab = Lab::new(dir("BENCH_STATIC"), dir("BENCH_PLAIN"), dir("BENCH_LIMIT"), dir("BENCH_TMP"), quick);
    let mut report = Report::new(quick);
    single::run(&lab, &mut report);
    single::batches(&lab, &mut report);
    queue::run(&lab, &mut report);
    report.write(&dir("BENCH_RESULTS"));
}
