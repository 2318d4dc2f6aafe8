//! The fields that several commands print, with the names of the store's tables. It knows no command.

use super::{Field, Row};
use crate::domain::id::JobId;
use crate::domain::job::State;
use crate::domain::moves::Word as _;
use crate::domain::time::Time;
use crate::error::Code;
use crate::ops::ask::is_command;
use crate::ops::list::Listed;

/// What is printed of a job.
pub const JOB: &[Field] = &[
    ("job", "integer: the job"),
    ("state", "queued, claimed, running, uncertain, succeeded, failed or cancelled"),
    ("worker", "text: the worker"),
    ("attempt", "integer: the N of its latest attempt; 0 before the first claim"),
    ("tries", "integer: attempts that were dispatched and not void"),
    ("submitted", "time: when it was submitted"),
    ("ended", "time: when it ended"),
    ("detail", "text: how its latest attempt ended, or why it was cancelled before one, in words"),
    ("code", "text: the code of its end; none of a job that succeeded or is queued again, whose attempts keep theirs"),
    ("hold", "text: why it is not offered: dependency, checkpoint, pause or releases"),
    ("model", "text: the model asked for"),
    ("priority", "integer: higher runs first"),
    ("group", "text: the concurrency group"),
    ("labels", "json: the labels, a list"),
    ("dir", "text: the working directory"),
    ("not_before", "time: not to be claimed before this"),
    ("max_tries", "integer: how many tries it may have"),
    ("session", "text: the id of the worker's session, once it is known"),
    ("spec_digest", "text: SHA-256 over everything that was frozen at submission"),
    (
        "command",
        "text: the program and its arguments, joined by spaces, after < the beginning of what it is handed; of an agent's turn the worker and the beginning of its prompt",
    ),
    ("due", "time: not offered before this"),
];

/// How many numbers a sentence names.
const NAMED_MAX: usize = 10;

/// Jobs in a sentence, by number, at most so many.
pub fn jobs(ids: &[JobId]) -> String {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    let named: Vec<String> = ids.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    let (one, named) = (if ids.len() == 1 { "job" } else { "jobs" }, named.join(", "));
    match ids.len().saturating_sub(NAMED_MAX) {
        0 => format!("{one} {named}"),
        more => format!("{one} {named} and {more} more"),
    }
}

/// The line on a job that was held just now; what to do follows it.
pub fn held(name: &str, job: JobId) -> String {
    let code = Code::Held;
    format!(
        "{name}: {code}: job {job} is held after five releases in a row: {}",
        code.hint().replace("JOB", &job.to_string())
    )
}

/// So many of something, in words.
pub fn counted(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// A job of a list as a record.
pub fn listed(listed: &Listed) -> Row {
    let job = &listed.job;
    let spec = &job.spec;
    let attempt = listed.attempt.as_ref().filter(|_| job.facts.attempt > 0);
    let some_time = |time: Time| (time.0 > 0).then_some(time);
    let how = attempt.map(|attempt| attempt.detail.clone()).filter(|detail| !detail.is_empty());
    let how = listed.cancelled.clone().or(how);
    // The code of an end that does not hold any more, after a decision or before a further try, is its attempt's only.
    let over = matches!(job.state, State::Queued | State::Succeeded) || listed.cancelled.is_some();
    let code = attempt.filter(|_| !over).and_then(|attempt| attempt.code.clone());
    Row::new()
        .with("job", job.facts.id)
        .with("state", job.state.word())
        .with("worker", spec.worker.clone())
        .with("attempt", job.facts.attempt)
        .with("tries", job.facts.tries)
        .with("submitted", job.submitted_at)
        .with("ended", job.ended_at)
        .with("detail", how.unwrap_or_default())
        .with("code", code)
        .with("hold", job.hold.word())
        .with("model", spec.model.clone())
        .with("priority", spec.priority)
        .with("group", spec.group.clone())
        .with("labels", serde_json::json!(listed.labels))
        .with("dir", spec.dir.clone())
        .with("not_before", some_time(spec.not_before))
        .with("max_tries", spec.max_tries)
        .with("session", listed.session.as_ref().and_then(|session| session.worker_session.clone()))
        .with("spec_digest", job.spec_digest.to_string())
        .with("command", what(listed))
        .with("due", some_time(job.due))
}

/// What a job is, in one line: its command, or who is asked and the first words of what.
fn what(listed: &Listed) -> String {
    let spec = &listed.job.spec;
    let prompt = listed.prompt.as_deref();
    if !is_command(spec) {
        return format!("{}: {}", spec.worker, prompt.unwrap_or_default());
    }
    let mut what = std::iter::once(&spec.program).chain(&spec.argv).map(String::as_str).collect::<Vec<_>>().join(" ");
    if let Some(prompt) = prompt {
        what.push_str(" < ");
        what.push_str(prompt);
    }
    what
}

/// The columns of a job that are shown without asking.
pub const JOB_COLUMNS: &[&str] = &["job", "state", "worker", "tries", "submitted", "code", "command", "hold"];

/// What is printed of an attempt's end.
pub const END: &[Field] = &[
    ("job", "integer: the job"),
    ("attempt", "text: the attempt, JOB.N"),
    ("outcome", "ok, error, ambiguous or void"),
    ("state", "the state of the job after it"),
    ("code", "text: why, for everything but a plain success"),
    ("detail", "text: one line on it"),
    ("took", "integer: milliseconds from its dispatch to its settlement"),
    ("hold", "text: releases, where the job is held after its fifth release in a row"),
];

/// The columns of an attempt's end that are shown without asking.
pub const END_COLUMNS: &[&str] = &["attempt", "outcome", "state", "code", "detail"];

/// Two lists of fields as one.
pub const fn joined<const N: usize>(first: &[Field], then: &[Field]) -> [Field; N] {
    let mut all = [("", ""); N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { then[at - first.len()] };
        at += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_ten_jobs_at_most() {
        let ids: Vec<JobId> = (1..=12).rev().map(JobId).collect();
        assert_eq!(jobs(&ids[..1]), "job 12");
        assert_eq!(jobs(&ids[10..]), "jobs 1, 2");
        assert_eq!(jobs(&ids), "jobs 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more");
    }
}
