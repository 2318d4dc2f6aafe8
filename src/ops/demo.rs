//! The main job from end to end in a store of its own: queue, run outside this process, settle, read back.

use super::ask::Ask;
use super::dispatch::Watch;
use super::run::{self, Until};
use super::submit::{self, Submitted};
use super::{Caller, init, show};
use crate::domain::id::{AttemptId, JobId};
use crate::domain::job::State;
use crate::domain::time::Span;
use crate::error::{Code, Error, Result};
use crate::host::config::Config;
use crate::host::signals::Signals;
use crate::host::{clock, dir};
use crate::store::{Store, Wanted};
use std::collections::BTreeMap;
use std::path::Path;

/// What became of one job.
#[derive(Debug)]
pub struct Shown {
    /// The job.
    pub job: JobId,
    /// Its state.
    pub state: State,
    /// Why, for everything but a plain success.
    pub code: Option<String>,
    /// The command line that queued it.
    pub asked: String,
    /// The first line of its answer.
    pub answer: String,
}

/// The demonstration.
#[derive(Debug)]
pub struct Demo {
    /// Its jobs, in order.
    pub jobs: Vec<Shown>,
    /// Where the store is, if it was kept.
    pub kept: Option<String>,
}

/// A file to work on; the words are ours.
const NAMES: &str = "plum\nfig\napple\nfig\nquince\napple\n";

/// Runs it in a fresh temporary directory, which is removed again unless it is to be kept.
pub fn run(env: &BTreeMap<String, String>, keep: bool) -> Result<Demo> {
    let place = dir::temporary("ares-demo")?;
    let demo = in_dir(&place, env);
    if keep {
        return demo.map(|demo| Demo { kept: Some(place.join(".ares").to_string_lossy().into_owned()), ..demo });
    }
    dir::remove_tree(&place)?;
    demo
}

fn in_dir(place: &Path, env: &BTreeMap<String, String>) -> Result<Demo> {
    let root = place.join(".ares");
    init::init(&root, false, None, None)?;
    dir::write_private(&place.join("names.txt"), NAMES.as_bytes())?;
    let mut store = Store::open(&root, None)?;
    let mut env = env.clone();
    // The synthetic worker keeps its conversations beside the store, not in anyone's home.
    let home = place.join("synthetic").to_string_lossy().into_owned();
    env.insert("ARES_SYNTHETIC_HOME".to_owned(), home);
    let caller = Caller { env, cwd: Some(place.to_owned()), attempt: None };
    let config = Config::default();
    let mut asked = Vec::new();
    for (line, ask) in asks() {
        match submit::submit(&mut store, clock::now(), &caller, &config, None, ask)? {
            Submitted::Job(job) => asked.push((job, line)),
            Submitted::Skipped(_) => {}
        }
    }
    let mut signals = Signals::listen()?;
    let mut watch = Watch { signals: &mut signals, grace: Span(0), asked: None, parent: None, hears: || true };
    run::run(&mut store, &caller, &config, &Wanted::default(), Until::Drained, &mut watch, &mut |_| Ok(()))?;
    let jobs = asked.into_iter().map(|(job, line)| read_back(&store, job, line)).collect::<Result<_>>()?;
    Ok(Demo { jobs, kept: None })
}

/// The five jobs, with the command lines that would queue them.
fn asks() -> Vec<(&'static str, Ask)> {
    let command =
        |words: &[&str]| Ask { argv: Some(words.iter().map(|w| (*w).to_owned()).collect()), ..Ask::default() };
    let turn =
        |prompt: &str| Ask { worker: Some("synthetic".to_owned()), prompt: Some(prompt.to_owned()), ..Ask::default() };
    vec![
        ("ares submit -- sort -u names.txt", command(&["sort", "-u", "names.txt"])),
        ("ares submit --after 1 -- wc -l names.txt", Ask { after: vec![1], ..command(&["wc", "-l", "names.txt"]) }),
        ("ares submit -- ls no-such-file", command(&["ls", "no-such-file"])),
        ("ares submit -w synthetic -- remember the plum", turn("remember the plum")),
        (
            "ares submit -w synthetic --continue 4 -- what did I say",
            Ask { continues: Some(4), ..turn("what did I say") },
        ),
    ]
}

fn read_back(store: &Store, job: JobId, asked: &str) -> Result<Shown> {
    let shown = show::job(store, job)?;
    let latest = shown.attempts.last().ok_or_else(|| Error::new(Code::Internal, format!("job {job} was not run")))?;
    let id = AttemptId { job, n: shown.job.facts.attempt };
    let mut answer = show::content(store, id, show::Stream::Result)?;
    if answer.is_empty() {
        answer = show::content(store, id, show::Stream::Stderr)?;
    }
    let first = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
    Ok(Shown { job, state: shown.job.state, code: latest.attempt.code.clone(), asked: asked.to_owned(), answer: first })
}
