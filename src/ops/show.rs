//! Reading back one thing with all its evidence.

use crate::domain::digest::Digest;
use crate::domain::id::{AttemptId, JobId};
use crate::domain::job::State;
use crate::domain::spec::Dependency;
use crate::error::{Code, Error, Result};
use crate::host::dir;
use crate::store::{Attempt, Finding, JobRow, Receipt, Resolution, SessionRow, Spent, Stop, Store};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::time::Duration;

/// A job with its surroundings.
#[derive(Clone, Debug)]
pub struct JobShown {
    /// The job.
    pub job: JobRow,
    /// Its labels.
    pub labels: Vec<String>,
    /// What it waits for.
    pub after: Vec<(Dependency, State)>,
    /// Its session.
    pub session: Option<SessionRow>,
    /// What it came to.
    pub spent: Spent,
    /// The order to stop it.
    pub stop: Option<Stop>,
    /// Its attempts, oldest first.
    pub attempts: Vec<AttemptShown>,
}

/// An attempt with its evidence.
#[derive(Clone, Debug)]
pub struct AttemptShown {
    /// The attempt.
    pub attempt: Attempt,
    /// The decision about it.
    pub resolution: Option<Resolution>,
    /// What was noticed.
    pub findings: Vec<Finding>,
    /// Its receipts.
    pub receipts: Vec<Receipt>,
}

/// A session with its jobs.
#[derive(Clone, Debug)]
pub struct SessionShown {
    /// The session.
    pub session: SessionRow,
    /// Its jobs, oldest first.
    pub jobs: Vec<JobId>,
    /// What it came to.
    pub spent: Spent,
}

/// Which content of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The answer.
    Result,
    /// What was handed over.
    Prompt,
}

/// A job with everything that belongs to it.
pub fn job(store: &Store, id: JobId) -> Result<JobShown> {
    store.read(|view| {
        let job = view.job(id)?;
        let session = job.session;
        let shown = |attempt: Attempt| {
            let subject = attempt.id.to_string();
            Ok(AttemptShown {
                resolution: view.resolution(attempt.id)?,
                findings: view.findings(&subject)?,
                receipts: view.receipts(&subject)?,
                attempt,
            })
        };
        Ok(JobShown {
            labels: view.labels(id)?,
            after: view.dependencies(id)?,
            session: view.session(session)?,
            spent: view.spent_of_job(id, session)?,
            stop: view.stop_of(id)?,
            attempts: view.attempts(id)?.into_iter().map(shown).collect::<Result<_>>()?,
            job,
        })
    })
}

/// A session by its name, or by the worker's own id.
pub fn session(store: &Store, name: &str) -> Result<SessionShown> {
    store.read(|view| {
        let session = view.session_named(name)?.ok_or_else(|| Error::new(Code::NotFound, format!("no session '{name}'")))?;
        Ok(SessionShown { jobs: view.jobs_of_session(session.id)?, spent: view.spent_of_session(session.id)?, session })
    })
}

/// An object's content, verified.
pub fn object(store: &Store, digest: &Digest) -> Result<Vec<u8>> {
    store.read(|view| view.object(digest))
}

/// The content of an attempt; from its files while it runs.
pub fn content(store: &Store, id: AttemptId, stream: Stream) -> Result<Vec<u8>> {
    let (attempt, job) = store.read(|view| Ok((view.attempt(id)?, view.job(id.job)?)))?;
    let stored = match stream {
        Stream::Stdout => attempt.stdout,
        Stream::Stderr => attempt.stderr,
        Stream::Result => attempt.result,
        Stream::Prompt => job.spec.prompt,
    };
    if let Some(digest) = stored {
        return object(store, &digest);
    }
    let file = match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
        Stream::Result | Stream::Prompt => return Ok(Vec::new()),
    };
    match dir::read_bounded(&store.attempt_dir(id).join(file), 1 << 30) {
        Err(error) if error.code == Code::NotFound => Ok(Vec::new()),
        other => other,
    }
}

/// Hands on the content of an attempt as it grows, until the attempt has ended and all was handed on. `told` gets the
/// pieces; nothing of the store is held while it writes them.
pub fn follow(store: &Store, id: AttemptId, stream: Stream, told: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let name = if stream == Stream::Stderr { "stderr" } else { "stdout" };
    let path = store.attempt_dir(id).join(name);
    // The file stays readable through this descriptor when it is stored and its directory goes.
    let mut file: Option<std::fs::File> = None;
    let mut told_bytes = 0;
    let (mut block, mut pause) = (vec![0; 64 << 10], Duration::from_millis(10));
    loop {
        let over = store.read(|view| view.attempt(id))?.ended_at.is_some();
        file = file.or_else(|| std::fs::File::open(&path).ok());
        if let Some(open) = &mut file {
            while let Ok(n @ 1..) = open.read(&mut block) {
                told(&block[..n])?;
                told_bytes += n;
                pause = Duration::from_millis(10);
            }
        }
        if over {
            // What was cut or never seen as a file is handed on from the record.
            let stored = content(store, id, stream)?;
            return if stored.len() > told_bytes { told(&stored[told_bytes..]) } else { Ok(()) };
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
        if let Some(open) = &mut file {
            // A file that was cut at its bound is shorter than what was read.
            let position = open.stream_position().unwrap_or(0);
            if open.metadata().is_ok_and(|meta| meta.len() < position) {
                let _seek = open.seek(SeekFrom::End(0));
            }
        }
    }
}
