//! Recording the outcome of an attempt that a script owns: compare-and-set on the attempt, idempotent, and what comes
//! too late is kept as evidence.

use super::collect::Evidence;
use crate::domain::attempt::State as AttemptState;
use crate::domain::digest::Digest;
use crate::domain::id::{AttemptId, Handle};
use crate::domain::job::State;
use crate::domain::moves::Word as _;
use crate::domain::outcome::{Outcome, Report, Seen, Usage};
use crate::error::{Code, Error, Result};
use crate::host::clock;
use crate::store::{Attempt, Done, Object, Request, Settlement, Store};
use serde::{Deserialize, Serialize};

/// What a script says of its attempt.
#[derive(Debug)]
pub struct Say {
    /// What the claim printed.
    pub handle: Handle,
    /// What happened.
    pub outcome: Outcome,
    /// Why.
    pub code: Option<Code>,
    /// In words.
    pub because: String,
    /// The exit status it saw.
    pub exit: Option<i32>,
    /// The signal it saw.
    pub signal: Option<i32>,
    /// The answer.
    pub result: Option<Vec<u8>>,
    /// Tokens and money.
    pub usage: Option<Usage>,
    /// Whether a void attempt would end the same way again.
    pub lasting: bool,
    /// Whether that it is void says nothing of the job.
    pub blameless: bool,
    /// Whether an error is worth another try, as long as tries are left.
    pub retry: bool,
}

/// What the job came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// The attempt.
    pub attempt: String,
    /// The job's state, as a word.
    pub state: String,
    /// Whether the job is held, after its releases.
    #[serde(default)]
    pub held: bool,
}

/// Settles an attempt, or says that it was settled in the same way before.
pub fn settle(store: &mut Store, op_id: Option<String>, say: &Say) -> Result<Settled> {
    let report = report(say);
    let request = Request::new(op_id, || digest(say));
    let result = say.result.as_deref().map(|bytes| store.spool().prepare(bytes)).transpose()?;
    let now = clock::now();
    let seen = Seen { exit: say.exit, signal: say.signal, ended: now.0, ..Seen::exited(0) };
    let seen = (say.exit.is_some() || say.signal.is_some()).then_some(&seen);
    let end = Settlement { report: &report, seen, result: result.clone(), stdout: None, stderr: None };
    let answer = store.operate(now, "settle", &request, |ledger| {
        let attempt = ledger.attempt(say.handle.attempt)?;
        attempt.check_handle(&say.handle)?;
        if let Some(settled) = same_before(&attempt, &report, result.as_ref().map(|object| object.digest)) {
            let job = ledger.job(attempt.id.job)?;
            return if settled {
                Ok(Done { changed: false, ..done(&attempt, job.state, job.is_held()) })
            } else {
                Err(fenced(&attempt))
            };
        }
        let state = match (attempt.state, say.outcome) {
            (AttemptState::Claimed, Outcome::Void) if say.lasting => {
                ledger.refuse(attempt.id, report.code.unwrap_or(Code::NeverStarted), &report.detail)?
            }
            (AttemptState::Claimed, Outcome::Void) => {
                ledger.release(attempt.id, report.code.unwrap_or(Code::NeverStarted), &report.detail)?
            }
            (AttemptState::Claimed, _) => {
                return Err(Error::new(Code::IllegalMove, format!("attempt {} was only reserved", attempt.id))
                    .hint("settle it void, and claim without --reserve to act"));
            }
            (AttemptState::Running | AttemptState::Uncertain | AttemptState::Ended, _) => {
                ledger.settle(&attempt, &end)?
            }
        };
        // Only what is queued again may be held.
        let held = state == State::Queued && ledger.job(attempt.id.job)?.is_held();
        Ok(done(&attempt, state, held))
    });
    match answer {
        Err(error) if error.code == Code::Fenced => keep_late(store, say, &report, error),
        other => other,
    }
}

fn done(attempt: &Attempt, state: State, held: bool) -> Done<Settled> {
    let attempt = attempt.id.to_string();
    Done::new(attempt.clone(), Settled { attempt, state: state.word().to_owned(), held })
}

fn report(say: &Say) -> Report {
    let mut report = match say.outcome {
        Outcome::Ok => Report::ok(),
        Outcome::Error => Report::error(say.code.unwrap_or(Code::ExitStatus), &say.because),
        Outcome::Ambiguous => Report::ambiguous(say.code.unwrap_or(Code::Uncertain), &say.because),
        Outcome::Void => Report::void(say.code.unwrap_or(Code::NeverStarted), &say.because, say.lasting),
    };
    if say.outcome == Outcome::Ok {
        report.detail = crate::domain::outcome::clean(&say.because);
    }
    report.blameless = say.blameless;
    report.retry = say.retry.then_some(None);
    report.usage.clone_from(&say.usage);
    report
}

fn digest(say: &Say) -> Digest {
    let usage = serde_json::to_string(&say.usage).unwrap_or_default();
    let text = format!("{:?} {:?} {:?} {} {} {usage}", say.code, say.exit, say.signal, say.lasting, say.retry);
    let handle = say.handle.to_string();
    let fields: [&[u8]; 5] = [
        handle.as_bytes(),
        say.outcome.word().as_bytes(),
        text.as_bytes(),
        say.because.as_bytes(),
        say.result.as_deref().unwrap_or_default(),
    ];
    Digest::of("ares.settle.1", &fields)
}

/// Whether the attempt has ended already: `Some(true)` when it was in this very way.
fn same_before(attempt: &Attempt, report: &Report, result: Option<Digest>) -> Option<bool> {
    match attempt.state {
        AttemptState::Claimed | AttemptState::Running => None,
        AttemptState::Uncertain | AttemptState::Ended => {
            let code = report.code.map(Code::name);
            Some(attempt.outcome == Some(report.outcome) && attempt.result == result && attempt.code.as_deref() == code)
        }
    }
}

fn fenced(attempt: &Attempt) -> Error {
    let how = attempt.outcome.map_or("", Outcome::word);
    Error::new(Code::Fenced, format!("attempt {} is over ({how}); what came late is kept as evidence", attempt.id))
}

/// What a script said too late.
fn keep_late(store: &mut Store, say: &Say, report: &Report, error: Error) -> Result<Settled> {
    let object = say.result.as_deref().map(|bytes| store.spool().prepare(bytes)).transpose()?;
    let body = serde_json::json!({
        "outcome": say.outcome.word(),
        "code": report.code.map(Code::name),
        "detail": report.detail,
        "exit": say.exit,
    });
    keep(store, say.handle.attempt, &body.to_string(), object.as_ref())?;
    Err(error)
}

/// Keeps what a runner saw of an attempt that had been given away meanwhile.
pub(super) fn keep_late_end(store: &mut Store, id: AttemptId, evidence: &Evidence) -> Result<()> {
    let (end, seen) = (evidence.settlement(), evidence.seen());
    let body = serde_json::json!({
        "outcome": end.report.outcome.word(),
        "code": end.report.code.map(Code::name),
        "detail": end.report.detail,
        "exit": seen.and_then(|seen| seen.exit),
        "signal": seen.and_then(|seen| seen.signal),
    });
    keep(store, id, &body.to_string(), end.result.as_ref().or(end.stdout.as_ref()))
}

/// Keeps what came too late, beside the record; the same thing once.
fn keep(store: &mut Store, id: AttemptId, body: &str, object: Option<&Object>) -> Result<()> {
    store.write(clock::now(), |ledger| {
        let object = object.map(|object| ledger.put(object)).transpose()?;
        let subject = id.to_string();
        if ledger.findings(&subject)?.iter().any(|known| known.body == body && known.object == object) {
            return Ok(());
        }
        ledger.finding("late-result", &subject, body, object.as_ref())
    })
}
