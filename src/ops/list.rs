//! Reading back many: jobs and operations, page by page, so that nothing of the store is held while they are written.

use crate::domain::digest::Digest;
use crate::domain::id::{AttemptId, JobId};
use crate::domain::job::State;
use crate::error::Result;
use crate::store::{Attempt, Filter, JobRow, ListBy, Operation, Operations, SessionRow, Store, View};

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
pub(super) fn cancelled(view: &View<'_>, job: &JobRow) -> Result<Option<String>> {
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

pub(super) fn prompt_words(view: &View<'_>, job: &JobRow) -> Result<Option<String>> {
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
