//! Reading back one thing with all its evidence.

use super::list::{cancelled, prompt_words};
use super::reconcile;
use crate::domain::attempt::State as AttemptState;
use crate::domain::digest::Digest;
use crate::domain::id::{AttemptId, JobId};
use crate::domain::job::State;
use crate::domain::outcome::Seen;
use crate::domain::spec::Dependency;
use crate::error::{Code, Error, Result};
use crate::host::growing::Growing;
use crate::host::process::Load;
use crate::host::{clock, dir, keeper, process};
use crate::store::{Attempt, Finding, JobRow, Receipt, Resolution, SessionRow, Spent, Stop, Store};
use crate::worker::{Reader, Said};
use std::time::Duration;

/// How often it is looked whether anyone is left to end the attempt that is followed.
const LOOK_AFTER_OWNERS: Duration = Duration::from_secs(1);

/// The longest pause between two looks at what grows.
const PAUSE: Duration = Duration::from_millis(100);

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
    /// Why it was cancelled before it ran, in words.
    pub cancelled: Option<String>,
    /// The beginning of what is handed over, for people.
    pub prompt: Option<String>,
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
    /// What its worker takes of the machine, while it runs under a keeper.
    pub load: Option<Load>,
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
                receipts: attempt.permit.map_or_else(|| Ok(Vec::new()), |permit| view.receipts(permit))?,
                load: load(store, &attempt),
                attempt,
            })
        };
        Ok(JobShown {
            labels: view.labels(id)?,
            after: view.all_dependencies(id)?,
            session: view.session(session)?,
            spent: view.spent_of_job(id, session)?,
            cancelled: cancelled(view, &job)?,
            prompt: prompt_words(view, &job)?,
            stop: view.stop_of(id)?,
            attempts: view.attempts(id)?.into_iter().map(shown).collect::<Result<_>>()?,
            job,
        })
    })
}

/// What the worker of a running attempt takes; its number is in the keeper's mark.
fn load(store: &Store, attempt: &Attempt) -> Option<Load> {
    if attempt.state != AttemptState::Running || attempt.keeper.is_none() {
        return None;
    }
    match keeper::read_mark(&store.attempt_dir(attempt.id)) {
        Ok(keeper::Mark::Started { pid }) => process::load(pid),
        Ok(_) | Err(_) => None,
    }
}

/// A session by its name, or by the worker's own id.
pub fn session(store: &Store, name: &str) -> Result<SessionShown> {
    store.read(|view| {
        let session =
            view.session_named(name)?.ok_or_else(|| Error::new(Code::NotFound, format!("no session '{name}'")))?;
        Ok(SessionShown { jobs: view.jobs_of_session(session.id)?, spent: view.spent_of_session(session.id)?, session })
    })
}

/// An object's content, verified.
pub fn object(store: &Store, digest: &Digest) -> Result<Vec<u8>> {
    match store.read(|view| view.object(digest)) {
        // Its file may have been removed, with the row that named it, since the row was read: then it is gone, not lost.
        Err(error) if error.code == Code::StoreDamaged => store.read(|view| view.object(digest)),
        other => other,
    }
}

/// What is handed over to a job's worker, whether or not it ran.
pub fn prompt(store: &Store, job: JobId) -> Result<Vec<u8>> {
    match store.read(|view| view.job(job))?.spec.prompt {
        Some(digest) => object(store, &digest),
        None => Ok(Vec::new()),
    }
}

/// The latest attempt of a job; one that has none yet may be waited for.
pub fn latest(store: &Store, job: JobId, wait: bool) -> Result<AttemptId> {
    loop {
        let row = store.read(|view| view.job(job))?;
        if row.facts.attempt > 0 {
            return Ok(AttemptId { job, n: row.facts.attempt });
        }
        if !wait || row.state.is_terminal() {
            return Err(Error::new(Code::NotFound, format!("job {job} has no attempt yet")));
        }
        std::thread::sleep(PAUSE);
    }
}

/// The content of an attempt; from its files while it runs.
pub fn content(store: &Store, id: AttemptId, stream: Stream) -> Result<Vec<u8>> {
    let attempt = store.read(|view| view.attempt(id))?;
    let stored = match stream {
        Stream::Stdout => attempt.stdout,
        Stream::Stderr => attempt.stderr,
        Stream::Result => attempt.result,
    };
    // An answer that someone adopted stands beside the record of an attempt that ended uncertain.
    let adopted = || {
        let findings = store.read(|view| view.findings(&id.to_string()))?;
        Ok(findings.iter().rev().find(|finding| finding.kind == "adopted-answer").and_then(|finding| finding.object))
    };
    let adopted = if stream == Stream::Result { adopted()? } else { None };
    if let Some(digest) = adopted.or(stored) {
        return object(store, &digest);
    }
    let file = match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
        Stream::Result => return Ok(Vec::new()),
    };
    match dir::read_bounded(&store.attempt_dir(id).join(file), 1 << 30) {
        Err(error) if error.code == Code::NotFound => Ok(Vec::new()),
        other => other,
    }
}

/// Whether what the worker of an attempt prints is kept.
pub fn captures(store: &Store, id: AttemptId) -> Result<bool> {
    Ok(store.read(|view| view.job(id.job))?.spec.limits.capture)
}

/// At how many bytes an output of an attempt was cut; `None` for one that is whole. It is seen from the record, as what
/// is kept holds nothing but what was printed.
pub fn cut(store: &Store, id: AttemptId, stream: Stream) -> Result<Option<i64>> {
    let name = match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
        Stream::Result => return Ok(None),
    };
    let (attempt, job) = store.read(|view| Ok((view.attempt(id)?, view.job(id.job)?)))?;
    let seen = attempt.seen.as_deref().and_then(|seen| serde_json::from_str::<Seen>(seen).ok());
    let cut = seen.is_some_and(|seen| seen.cut.iter().any(|stream| stream == name));
    Ok(cut.then_some(job.spec.limits.output_max))
}

/// The events that a worker printed, parsed by its adapter from its standard output.
#[derive(Debug)]
pub struct Events(Reader);

impl Events {
    /// Takes the next bytes of standard output and gives the events in them.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<serde_json::Value> {
        let event = |said| if let Said::Event(event) = said { Some(event) } else { None };
        self.0.feed(bytes).into_iter().filter_map(event).collect()
    }
}

/// What reads the events of an attempt.
pub fn events(store: &Store, id: AttemptId) -> Result<Events> {
    let job = store.read(|view| view.job(id.job))?;
    Ok(Events(super::dispatch::adapter_of(&job)?.reader(None)))
}

/// Hands on the content of an attempt as it grows, until the attempt has ended and all was handed on, or `told` says
/// that nobody reads any more. Nothing of the store is held while it writes.
pub fn follow(
    store: &mut Store,
    id: AttemptId,
    stream: Stream,
    told: &mut dyn FnMut(&[u8]) -> Result<bool>,
) -> Result<()> {
    let name = if stream == Stream::Stderr { "stderr" } else { "stdout" };
    let mut file = Growing::new(&store.attempt_dir(id).join(name));
    let mut pause = Duration::from_millis(10);
    let mut looked = clock::mark();
    loop {
        let over = store.read(|view| view.attempt(id))?.ended_at.is_some();
        let lost = !over && looked.elapsed() > LOOK_AFTER_OWNERS && {
            looked = clock::mark();
            reconcile::is_left(store, id)?
        };
        let before = file.offset();
        if !file.read(told)? || !told(&[])? {
            return Ok(());
        }
        if over {
            // What was settled before its file was opened is handed on from the record.
            let stored = content(store, id, stream)?;
            let told_bytes = usize::try_from(file.offset()).unwrap_or(usize::MAX);
            if stored.len() > told_bytes {
                told(&stored[told_bytes..])?;
            }
            return Ok(());
        }
        if lost {
            return Err(Error::new(Code::Uncertain, format!("nobody is left to record the end of attempt {id}")));
        }
        pause = if file.offset() > before { Duration::from_millis(10) } else { (pause * 2).min(PAUSE) };
        std::thread::sleep(pause);
    }
}
