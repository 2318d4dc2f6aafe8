//! ares-show: one thing with all its evidence, or its output.

use super::output::escape;
use super::{Answer, Context, Field, Row, Run, args, fields};
use crate::domain::digest::Digest;
use crate::domain::id::{AttemptId, Handle, JobId};
use crate::domain::moves::Word as _;
use crate::error::{Code, Error, Result};
use crate::host::terminal;
use crate::ops::list;
use crate::ops::show::{self, AttemptShown, JobShown, SessionShown, Stream};
use crate::store::Store;
use serde_json::json;

/// What of a job or an attempt is printed instead of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its standard output.
    Stdout,
    /// Its standard error.
    Stderr,
    /// The worker's answer.
    Result,
    /// What was handed over.
    Prompt,
    /// The events that its worker printed, one a line.
    Events,
}

impl Part {
    /// Every part with its word.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        ("stdout", Self::Stdout),
        ("stderr", Self::Stderr),
        ("result", Self::Result),
        ("prompt", Self::Prompt),
        ("events", Self::Events),
    ];
}

/// The fields of a job, of an attempt and of a session.
const FIELDS: &[Field] = &fields::joined::<{ fields::JOB.len() + MORE.len() }>(fields::JOB, MORE);

const MORE: &[Field] = &[
    ("adapter", "text: the adapter that speaks to the worker"),
    ("program", "text: the absolute program"),
    ("argv", "json: its arguments, a list"),
    ("options", "json: the adapter's options"),
    ("env", "json: names of variables that are passed on, a list"),
    ("prompt", "text: the digest of what is handed over"),
    ("timeout", "integer: milliseconds for an attempt"),
    ("timeout_first", "integer: milliseconds until the first output"),
    ("timeout_idle", "integer: milliseconds between two outputs"),
    ("if_uncertain", "hold, retry or fail"),
    ("capture", "boolean: whether what its worker prints is kept"),
    ("after", "json: the jobs it waits for, with their states"),
    ("continues", "integer: the job whose session it continues"),
    ("submitted_by", "json: who asked: uid, pid and attempt"),
    ("stop", "json: the order to stop it"),
    ("usage", "json: tokens and cost"),
    ("attempts", "json: its attempts, a list"),
    ("outcome", "of an attempt: ok, error, ambiguous or void"),
    ("claimed", "time: when the attempt was claimed"),
    ("dispatched", "time: when it was dispatched"),
    ("seen", "json: what was seen of its end: cause, exit, signal, cpu_ms, leaked processes, streams that were cut"),
    ("permit", "integer: the permit that its dispatch consumed"),
    ("model_served", "text: the model that answered"),
    ("result", "text: the digest of the answer"),
    ("stdout", "text: the digest of its standard output"),
    ("stderr", "text: the digest of its standard error"),
    ("resolution", "json: the decision about it"),
    ("findings", "json: what was noticed, such as a late result"),
    ("receipts", "json: its receipts"),
    ("load", "json: memory and processor time of a running worker"),
    ("name", "text: a session's name in this store"),
    ("jobs", "json: a session's jobs"),
];

/// Show one thing with all its evidence
///
/// A job, an attempt, a session or a stored object. On a terminal its fields are lines of name and value; --json has
/// everything. Of a job, the output is that of its latest attempt.
///
/// Stored output is escaped on a terminal and printed as it is elsewhere, or with --raw.
#[derive(clap::Args)]
pub struct Args {
    /// What to show: 42, 42.1 or its handle, a session id, or an object's digest
    #[arg(value_name = "THING", value_parser = thing)]
    pub thing: String,

    /// Print what the worker prints, until its attempt ends
    ///
    /// That is its standard output, or the part that --output names: stdout, stderr or events. A job that has not begun
    /// is waited for; one of which nobody is left to record the end is not.
    #[arg(long)]
    pub follow: bool,

    /// Print this part of it
    #[arg(long, value_name = "PART", value_parser = args::words(Part::WORDS))]
    pub output: Option<Part>,

    /// Escape nothing, also on a terminal
    #[arg(long, requires = "output")]
    pub raw: bool,
}

/// A script has the handle of what it claimed; what it names is the attempt.
fn thing(text: &str) -> std::result::Result<String, std::convert::Infallible> {
    Ok(text.parse::<Handle>().map_or_else(|_| text.to_owned(), |handle| handle.attempt.to_string()))
}

impl Run for Args {
    const NAME: &'static str = "ares-show";
    const MUTATES: bool = false;
    const COLUMNS: &'static [&'static str] = &[];
    const FIELDS: &'static [Field] = FIELDS;
    const ERRORS: &'static [Code] = &[Code::NotFound];
    const EXAMPLES: &'static str = "\
$ ares-init --quiet .ares >/dev/null
$ ares-submit -- true
1
$ ares-show 1 --format '%(job) %(state) %(worker)'
1 queued command
$ ares-show 7
ares-show: ARES_NOT_FOUND: [..]
...
? 14
";
    const NOTES: &'static str = include_str!("notes/show.txt");

    fn run(self, cx: &mut Context) -> Result<Answer> {
        let store = cx.store()?;
        let Some(part) = self.output.or(self.follow.then_some(Part::Stdout)) else {
            return record(store, &self.thing);
        };
        if part == Part::Prompt {
            let job = self.thing.parse::<AttemptId>().map(|attempt| attempt.job).or_else(|_| self.thing.parse())?;
            return Ok(self.bytes(cx, show::prompt(store, job)?));
        }
        if self.follow && part == Part::Result {
            return Err(Error::new(Code::Usage, "only stdout, stderr and events can be followed"));
        }
        let attempt = match self.thing.parse() {
            Ok(attempt) => attempt,
            Err(_) => show::latest(store, self.thing.parse()?, self.follow)?,
        };
        if !show::captures(store, attempt)? {
            cx.note(&format!(
                "ares-show: what job {} prints is not kept: it was submitted with --no-capture",
                attempt.job
            ));
        }
        if self.follow {
            let answer = follow(cx, store, attempt, part)?;
            return note_cut(cx, store, attempt, part).map(|()| answer);
        }
        note_cut(cx, store, attempt, part)?;
        if part == Part::Events {
            let mut lines = Vec::new();
            let mut events = show::events(store, attempt)?;
            for event in events.feed(&show::content(store, attempt, Stream::Stdout)?) {
                lines.extend_from_slice(format!("{}\n", escape::json(&event)).as_bytes());
            }
            return Ok(Answer::Raw(lines));
        }
        let bytes = show::content(store, attempt, stream(part))?;
        Ok(self.bytes(cx, bytes))
    }
}

impl Args {
    /// Content as it is, or made harmless for a terminal.
    fn bytes(&self, cx: &Context, bytes: Vec<u8>) -> Answer {
        Answer::Raw(if self.raw || !cx.on_terminal() { bytes } else { escape::text(&bytes).into_bytes() })
    }
}

fn stream(part: Part) -> Stream {
    match part {
        Part::Stdout | Part::Prompt | Part::Events => Stream::Stdout,
        Part::Stderr => Stream::Stderr,
        Part::Result => Stream::Result,
    }
}

/// Says of an output that was cut that it was; the output itself stays what was printed.
fn note_cut(cx: &Context, store: &Store, attempt: AttemptId, part: Part) -> Result<()> {
    if let Some(max) = show::cut(store, attempt, stream(part))? {
        cx.note(&format!("ares-show: {}: output was cut at {max} bytes", Code::OutputLimit));
    }
    Ok(())
}

/// Prints what comes until the attempt has ended, or nobody reads any more.
fn follow(cx: &mut Context, store: &mut Store, attempt: AttemptId, part: Part) -> Result<Answer> {
    let mut events = if part == Part::Events { Some(show::events(store, attempt)?) } else { None };
    let escaped = cx.on_terminal();
    show::follow(store, attempt, stream(part), &mut |bytes| {
        if bytes.is_empty() {
            return Ok(!terminal::reader_gone(std::io::stdout()));
        }
        Ok(match &mut events {
            Some(events) => {
                events.feed(bytes).iter().all(|event| cx.out().raw(format!("{}\n", escape::json(event)).as_bytes()))
            }
            None if escaped => cx.out().raw(escape::text(bytes).as_bytes()),
            None => cx.out().raw(bytes),
        })
    })?;
    Ok(Answer::Nothing)
}

/// The record of a job, an attempt, a session or an object.
fn record(store: &Store, thing: &str) -> Result<Answer> {
    if let Ok(job) = thing.parse::<JobId>() {
        return Ok(Answer::Record(job_row(&show::job(store, job)?)));
    }
    if let Ok(id) = thing.parse::<AttemptId>() {
        let shown = show::job(store, id.job)?;
        let attempt = shown.attempts.iter().find(|shown| shown.attempt.id == id);
        let missing = || Error::new(Code::NotFound, format!("no attempt {id}"));
        return Ok(Answer::Record(attempt_row(attempt.ok_or_else(missing)?)));
    }
    match Digest::parse(thing) {
        Some(digest) => Ok(Answer::Raw(show::object(store, &digest)?)),
        None => Ok(Answer::Record(session_row(&show::session(store, thing)?))),
    }
}

fn job_row(shown: &JobShown) -> Row {
    let spec = &shown.job.spec;
    let after: Vec<_> = shown
        .after
        .iter()
        .map(|(dependency, state)| {
            json!({
                "job": dependency.on, "state": state.word(), "failed": dependency.on_failed,
                "cancelled": dependency.on_cancelled, "uncertain": dependency.on_uncertain,
            })
        })
        .collect();
    let attempts: Vec<_> = shown.attempts.iter().map(|attempt| attempt_row(attempt).object()).collect();
    let stop = shown.stop.as_ref().map(|stop| {
        json!({ "stop": stop.id, "at": stop.at.to_string(), "because": stop.because, "decision": stop.decision })
    });
    let spent = &shown.spent;
    let listed = list::Listed {
        job: shown.job.clone(),
        labels: shown.labels.clone(),
        session: shown.session.clone(),
        attempt: shown.attempts.last().map(|shown| shown.attempt.clone()),
        cancelled: shown.cancelled.clone(),
        prompt: shown.prompt.clone(),
    };
    fields::listed(&listed)
        .with("adapter", spec.adapter.clone())
        .with("program", spec.program.clone())
        .with("argv", json!(spec.argv))
        .with("options", json!(spec.options))
        .with("env", json!(spec.env))
        .with("prompt", spec.prompt.map(|digest| digest.to_string()))
        .with("timeout", spec.limits.timeout)
        .with("timeout_first", spec.limits.timeout_first)
        .with("timeout_idle", spec.limits.timeout_idle)
        .with("if_uncertain", spec.if_uncertain.word())
        .with("capture", spec.limits.capture)
        .with("after", json!(after))
        .with("continues", spec.continues)
        .with("submitted_by", serde_json::from_str::<serde_json::Value>(&shown.job.submitted_by).unwrap_or_default())
        .with("stop", stop.unwrap_or_default())
        .with(
            "usage",
            json!({
                "input": spent.input, "cached": spent.cached, "output": spent.output, "reasoning": spent.reasoning,
                "calls": spent.calls, "cost_nano": spent.cost,
            }),
        )
        .with("attempts", json!(attempts))
}

fn attempt_row(shown: &AttemptShown) -> Row {
    let attempt = &shown.attempt;
    let text = |digest: Option<Digest>| digest.map(|digest| digest.to_string());
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
    let resolution = shown.resolution.as_ref().map(|resolution| {
        json!({  "decision": resolution.decision, "evidence": text(resolution.evidence), "because": resolution.because, "by": parsed(&resolution.by), "at": resolution.at.to_string() })
    });
    let findings: Vec<_> = shown
        .findings
        .iter()
        .map(|finding| {
            json!({
                "kind": finding.kind, "at": finding.at.to_string(), "what": parsed(&finding.body),
                "object": text(finding.object),
            })
        })
        .collect();
    let receipts: Vec<_> = shown
        .receipts
        .iter()
        .map(|receipt| {
            json!({
                "seq": receipt.seq, "kind": receipt.kind, "digest": receipt.digest.to_string(),
            })
        })
        .collect();
    let load = shown.load.as_ref().map(|load| json!({ "memory_bytes": load.memory_bytes, "cpu_ms": load.cpu_ms }));
    Row::new()
        .with("attempt", attempt.id)
        .with("state", attempt.state.word())
        .with("outcome", attempt.outcome.map(|outcome| outcome.word()))
        .with("code", attempt.code.clone())
        .with("detail", attempt.detail.clone())
        .with("claimed", attempt.claimed_at)
        .with("dispatched", attempt.dispatched_at)
        .with("ended", attempt.ended_at)
        .with("seen", attempt.seen.as_deref().map(parsed).unwrap_or_default())
        .with("permit", attempt.permit)
        .with("model_served", attempt.model_served.clone())
        .with("result", text(attempt.result))
        .with("stdout", text(attempt.stdout))
        .with("stderr", text(attempt.stderr))
        .with("resolution", resolution.unwrap_or_default())
        .with("findings", json!(findings))
        .with("receipts", json!(receipts))
        .with("load", load.unwrap_or_default())
}

fn session_row(shown: &SessionShown) -> Row {
    let session = &shown.session;
    Row::new()
        .with("name", session.name.clone())
        .with("worker", session.worker.clone())
        .with("session", session.worker_session.clone())
        .with("state", if session.broken { "broken" } else { "open" })
        .with("detail", session.reason.clone())
        .with("jobs", json!(shown.jobs))
        .with(
            "usage",
            json!({ "input": shown.spent.input, "cached": shown.spent.cached, "output": shown.spent.output }),
        )
}
