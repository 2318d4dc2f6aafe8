//! Reading back one thing with all its evidence.

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
use crate::store::{
    Attempt, Filter, Finding, JobRow, ListBy, Operation, Operations, Receipt, Resolution, SessionRow, Spent, Stop,
    Store, View,
};
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

/// A job in a list: with its labels, its session and its latest attempt.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The job.
    pub job: JobRow,
    /// Its labels.
    pub labels: Vec<String>,
    /// Its session.
    pub session: Option<SessionRow>,
    /// Its latest attempt.
    pub attempt: Option<Attempt>,
    /// Why it was cancelled before it ran, in words.
    pub cancelled: Option<String>,
    /// The beginning of what is handed over, for people.
    pub prompt: Option<String>,
}

/// How many records are read at once.
const PAGE: i64 = 256;

/// How much of a prompt a list shows, in characters.
const PROMPT_SHOWN: usize = 60;

/// How much of one is read for that: room for characters of four bytes, and for blank lines before them.
const PROMPT_READ: usize = 1024;

/// Jobs as a list has them; the beginnings of their prompts are read at once.
fn listed(view: &View<'_>, jobs: Vec<JobRow>) -> Result<Vec<Listed>> {
    let prompts: Vec<Digest> = jobs.iter().filter_map(|job| job.spec.prompt).collect();
    let prompts = view.beginnings(&prompts, PROMPT_READ)?;
    let one = |job: JobRow| {
        let latest = AttemptId { job: job.facts.id, n: job.facts.attempt };
        Ok(Listed {
            labels: view.labels(job.facts.id)?,
            session: view.session(job.session)?,
            cancelled: cancelled(view, &job)?,
            attempt: if latest.n > 0 { Some(view.attempt(latest)?) } else { None },
            prompt: job
                .spec
                .prompt
                .and_then(|digest| prompts.get(&digest))
                .map(|(bytes, size)| first_words(bytes, *size)),
            job,
        })
    };
    jobs.into_iter().map(one).collect()
}

/// Why a job was cancelled while it was queued, in words.
fn cancelled(view: &View<'_>, job: &JobRow) -> Result<Option<String>> {
    if job.state != State::Cancelled {
        return Ok(None);
    }
    let Some(body) = view.why_cancelled(job.facts.id)? else { return Ok(None) };
    let told: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
    let other = told["on"].as_i64().or(told["by"].as_i64());
    let words = match (told["because"].as_str(), other, told["state"].as_str()) {
        (Some("dependency"), Some(on), Some("cancelled")) => format!("job {on} was cancelled"),
        (Some("dependency"), Some(on), Some("uncertain")) => format!("job {on} is uncertain"),
        (Some("dependency"), Some(on), Some(state)) => format!("job {on} {state}"),
        (Some("dependency"), _, _) => "a job that it waited for did not succeed".to_owned(),
        (Some("replaced"), Some(by), _) => format!("replaced by job {by}"),
        (Some("stop"), _, _) => "stopped before it ran".to_owned(),
        (because, _, _) => because.unwrap_or_default().to_owned(),
    };
    Ok(Some(words))
}

fn prompt_words(view: &View<'_>, job: &JobRow) -> Result<Option<String>> {
    let Some(digest) = job.spec.prompt else { return Ok(None) };
    Ok(view.beginnings(&[digest], PROMPT_READ)?.get(&digest).map(|(bytes, size)| first_words(bytes, *size)))
}

/// The first line of a prompt, cut; of one that is damaged too: `ares-fsck` is who tells that.
fn first_words(bytes: &[u8], size: u64) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.trim_start().lines().next().unwrap_or_default();
    let cut: String = line.chars().take(PROMPT_SHOWN).collect();
    let more = cut.len() < text.trim().len() || u64::try_from(bytes.len()).is_ok_and(|read| read < size);
    if more { cut + "…" } else { cut }
}

/// Hands on the jobs that the filter lets through, in this order, page by page, so that a list of any length takes little
/// memory and nothing of the store is held while it is written. `told` says whether anyone still reads.
pub fn list(store: &Store, filter: &Filter, by: ListBy, told: &mut dyn FnMut(&[Listed]) -> Result<bool>) -> Result<()> {
    let (mut filter, mut left) = (filter.clone(), filter.limit.unwrap_or(i64::MAX));
    while left > 0 {
        let limit = left.min(PAGE);
        filter.limit = Some(limit);
        let page: Vec<Listed> = store.read(|view| listed(view, view.list(&filter, by)?))?;
        let Some(last) = page.last().map(|listed| listed.job.facts.id) else { break };
        let full = i64::try_from(page.len()).is_ok_and(|count| count == limit);
        if !told(&page)? || !full {
            break;
        }
        (filter.after, left) = (Some(last), left - limit);
    }
    Ok(())
}

/// How many jobs a list in this order has.
pub fn count(store: &Store, filter: &Filter, by: ListBy) -> Result<i64> {
    store.read(|view| view.count(filter, by))
}

/// Jobs by number, as a list has them.
pub fn these(store: &Store, jobs: &[JobId]) -> Result<Vec<Listed>> {
    store.read(|view| listed(view, jobs.iter().map(|job| view.job(*job)).collect::<Result<_>>()?))
}

/// Jobs with this label that have not ended.
pub fn active(store: &Store, label: &str) -> Result<Vec<JobId>> {
    store.read(|view| view.active(label))
}

/// Hands on the log of operations, or the latest so many of it, oldest first and page by page. `told` says whether anyone
/// still reads.
pub fn log(
    store: &Store,
    which: &Operations,
    latest: Option<i64>,
    told: &mut dyn FnMut(Vec<Operation>) -> Result<bool>,
) -> Result<()> {
    let mut after = match latest {
        Some(count) => store.read(|view| view.before_latest(which, count))?,
        None => 0,
    };
    loop {
        let page = store.read(|view| view.operations(which, after, PAGE))?;
        let full = i64::try_from(page.len()).is_ok_and(|count| count == PAGE);
        let Some(last) = page.last().map(|operation| operation.id) else { return Ok(()) };
        if !told(page)? || !full {
            return Ok(());
        }
        after = last;
    }
}

/// How many operations there are.
pub fn count_log(store: &Store, which: &Operations) -> Result<i64> {
    store.read(|view| view.count_operations(which))
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
