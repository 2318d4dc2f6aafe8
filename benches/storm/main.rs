//! `benches/crash`: a storm of kills upon the commands as they are released, and its numbers.

#![allow(missing_docs, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

#[path = "mod.rs"]
mod storm;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use storm::{Plan, Plant, storm};

/// What is kept of a run; the first table stands in the README as well.
const RESULTS: &str = "benches/results/crash.md";

const USAGE: &str = "usage: benches/crash [N] [--seed N] [--check] [--plant double|lost|uncertain|failed] [--keep]";

struct Asked {
    kills: usize,
    seed: u64,
    plant: Option<Plant>,
    check: bool,
    keep: bool,
}

fn plant(word: &str) -> Option<Plant> {
    Some(match word {
        "double" => Plant::Double,
        "lost" => Plant::Lost,
        "uncertain" => Plant::Uncertain,
        "failed" => Plant::Failed,
        _ => return None,
    })
}

fn asked(args: impl Iterator<Item = String>) -> Option<Asked> {
    let seed = u64::from(std::process::id()) * 7919;
    let mut asked = Asked { kills: 1000, seed, plant: None, check: false, keep: false };
    let mut args = args;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            // What cargo itself says to a benchmark.
            "--bench" => {}
            "--check" => asked.check = true,
            "--keep" => asked.keep = true,
            "--seed" => asked.seed = args.next()?.parse().ok()?,
            "--plant" => asked.plant = Some(plant(&args.next()?)?),
            count => asked.kills = count.parse().ok()?,
        }
    }
    Some(asked)
}

fn main() -> ExitCode {
    let Some(asked) = asked(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let bin = Path::new(env!("CARGO_BIN_EXE_ares")).parent().unwrap();
    // On the disk of the source, not in memory: the moments are as long as they are with a disk.
    let mut dir = tempfile::tempdir_in(bin).unwrap();
    dir.disable_cleanup(asked.keep);
    let told = storm(&Plan { bin, dir: dir.path(), kills: asked.kills, seed: asked.seed, plant: asked.plant });
    let (summary, moments) = (told.summary(), told.moments());
    print!("{told}");
    if asked.keep {
        println!("kept: {}", dir.path().display());
    }
    let scarce = told.scarce();
    scarce.iter().for_each(|moment| println!("too few kills: {moment}"));
    let good = told.good() && scarce.is_empty();
    if good && asked.plant.is_none() && !asked.check {
        let text = format!(
            "# What `benches/crash` counted\n\n{summary}\nWho was killed when, as it was seen from outside while the \
             victim stood still:\n\n{moments}"
        );
        std::fs::write(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(RESULTS), text).unwrap();
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
