//! `ares-claim -- CMD`: a command that is run for the next job. The command keeps the caller's streams, or its output is
//! captured through a keeper; how it ends settles the attempt, unless the command settled it itself.

use super::claim::{self, Owner};
use super::dispatch::{self, Watch};
use super::{Caller, settle};
use crate::domain::attempt::State as AttemptState;
use crate::domain::id::Handle;
use crate::domain::outcome::{Outcome, Report, Seen};
use crate::domain::spec::OUTPUT_MAX;
use crate::domain::time::Span;
use crate::error::{Code, Error, Result};
use crate::host::config::Config;
use crate::host::keeper::{self, Keeper, Start};
use crate::host::process::{self, Identity, Signal};
use crate::host::signals::Signals;
use crate::host::spawn::{self, Status};
use crate::host::{clock, dir, program};
use crate::store::{Attempt, JobRow, Store, Wanted};
use std::ffi::OsString;
use std::time::Duration;

/// What the kernel answers for a program that is not there.
const ENOENT: i32 = 2;

/// How often a running command is looked after, for signals to hand on.
const LOOK: Duration = Duration::from_millis(100);

/// What came of it.
#[derive(Debug)]
pub struct Wrapped {
    /// What the claim was called.
    pub handle: Handle,
    /// How the command ended; its status is passed on.
    pub status: Status,
    /// How many processes of it are left, which nobody ends.
    pub left: usize,
}

/// Claims the next job and runs the command for it. `None` when nothing may run now.
pub fn wrap(
    store: &mut Store,
    caller: &Caller,
    config: &Config,
    wanted: &Wanted,
    command: &[OsString],
    capture: bool,
) -> Result<Option<Wrapped>> {
    let mut signals = Signals::listen()?;
    let owner = Owner::this_process(store)?;
    // A captured command is dispatched by naming its keeper, so it is only reserved here.
    let Some(claimed) = claim::claim(store, config, None, wanted, &owner, capture)? else {
        owner.retire();
        return Ok(None);
    };
    let handle: Handle = claimed.handle.parse()?;
    let attempt = store.read(|view| view.attempt(handle.attempt))?;
    let ended = if capture {
        captured(store, caller, &handle, command, &mut signals).map(|status| (status, 0))
    } else {
        inherited(store, &handle, command, &mut signals).and_then(|(status, asked)| {
            // The end of the command is recorded also where it cannot be looked what it left.
            let left =
                process::marked(&attempt.id.to_string(), &store.root().to_string_lossy()).map_or(0, |left| left.len());
            record(store, &handle, &attempt, (status, asked), left)?;
            Ok((status, left))
        })
    };
    let (status, left) = ended?;
    owner.retire();
    Ok(Some(Wrapped { handle, status, left }))
}

/// What a command is told of the attempt that it is run for. Store and attempt are also the mark by which its processes
/// are found alive when nothing else of it is left.
fn variables(store: &Store, handle: &Handle) -> [(&'static str, String); 4] {
    [
        ("ARES_DIR", store.root().to_string_lossy().into_owned()),
        ("ARES_JOB", handle.attempt.job.to_string()),
        ("ARES_ATTEMPT", handle.attempt.to_string()),
        ("ARES_HANDLE", handle.to_string()),
    ]
}

/// Runs it with the caller's streams; what asks us to end is handed on.
/// Says whether any was.
fn inherited(store: &Store, handle: &Handle, command: &[OsString], signals: &mut Signals) -> Result<(Status, bool)> {
    let variables = variables(store, handle);
    let env: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let (program, args) = command.split_first().ok_or_else(|| Error::new(Code::Usage, "no command"))?;
    let child = match spawn::start_inherited(program, args, &env) {
        Ok(child) => child,
        Err(error) => return Ok((Status::NotExecuted(error.raw_os_error().unwrap_or(0)), false)),
    };
    let identity = Identity::of(child.pid())?;
    let mut handed_on = 0;
    loop {
        if let Some(status) = child.wait_timeout(LOOK)? {
            // Who asked us may have asked the command itself as well, which then ends before it is handed on.
            return Ok((status, signals.count() > 0));
        }
        if signals.count() > handed_on
            && let Some(identity) = &identity
        {
            handed_on = signals.count();
            process::signal(identity, Signal::TERM)?;
        }
    }
}

/// What is said of processes that a command left; nobody but their caller knows whether they are meant to go on.
pub fn left_words(left: usize) -> Option<String> {
    match left {
        0 => None,
        1 => Some("1 process of it is left".to_owned()),
        n => Some(format!("{n} processes of it are left")),
    }
}

/// Settles by the command's end, unless the command has done so itself.
fn record(
    store: &mut Store,
    handle: &Handle,
    attempt: &Attempt,
    (status, asked): (Status, bool),
    left: usize,
) -> Result<()> {
    let settled = store.read(|view| Ok(view.attempt(attempt.id)?.state))?;
    if matches!(settled, AttemptState::Ended | AttemptState::Uncertain) {
        return Ok(());
    }
    let (outcome, code, because, exit, signal) = match status {
        // What it had done by then nobody knows, whatever it makes of being asked to end.
        Status::Exit(n) if asked => {
            let because = format!("asked to end, exit status {n}");
            (Outcome::Ambiguous, Some(Code::StoppedRunning), because, Some(n), None)
        }
        Status::Exit(0) => (Outcome::Ok, None, String::new(), Some(0), None),
        Status::Exit(n) => (Outcome::Error, Some(Code::ExitStatus), format!("exit status {n}"), Some(n), None),
        Status::Signal(n) => (Outcome::Ambiguous, Some(Code::Signalled), format!("ended by signal {n}"), None, Some(n)),
        Status::NotExecuted(errno) => {
            (Outcome::Void, Some(Code::CannotExecute), std::io::Error::from_raw_os_error(errno).to_string(), None, None)
        }
    };
    let because = match (because.as_str(), left_words(left)) {
        (_, None) => because,
        ("", Some(words)) => words,
        (because, Some(words)) => format!("{because}; {words}"),
    };
    let say = settle::Say {
        handle: handle.clone(),
        outcome,
        code,
        because,
        exit,
        signal,
        result: None,
        usage: None,
        // That the command cannot be executed is the caller's mistake and not the job's, which is queued again.
        lasting: false,
        blameless: true,
        retry: outcome == Outcome::Error,
    };
    match settle::settle(store, None, &say) {
        Ok(_) => Ok(()),
        Err(error) if error.code == Code::Fenced => Err(error),
        // The command ran; that its end is not recorded must not look like success.
        Err(error) => {
            Err(Error::new(Code::ReceiptFailed, format!("attempt {} ran and is not recorded: {error}", attempt.id)))
        }
    }
}

/// Runs it under a keeper, its output stored with the attempt.
fn captured(
    store: &mut Store,
    caller: &Caller,
    handle: &Handle,
    command: &[OsString],
    signals: &mut Signals,
) -> Result<Status> {
    let job = store.read(|view| view.job(handle.attempt.job))?;
    let prepared = capture_start(store, caller, &job, handle, command).and_then(|start| {
        let keeper = Keeper::start()?;
        dispatch::commit(store, &job, handle, &keeper, None)?;
        Ok((start, keeper))
    });
    let (start, mut keeper) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return not_started(store, handle, error),
    };
    if let Err(error) = keeper.go(&start) {
        tracing::debug!(%error, "the keeper did not take the attempt");
    }
    let attempt = store.read(|view| view.attempt(handle.attempt))?;
    let mut watch = Watch { signals, grace: Span(0), asked: None, parent: None, hears: || true };
    let plain = JobRow { spec: crate::domain::spec::Spec { adapter: "command".to_owned(), ..job.spec.clone() }, ..job };
    let unrecorded = |error| dispatch::unrecorded(attempt.id, error);
    let evidence = dispatch::follow(store, &mut keeper, &plain, &attempt, None, &mut watch).map_err(unrecorded)?;
    let evidence = evidence.blameless();
    let status = status_of(evidence.report(), evidence.seen());
    match store.write(clock::now(), |ledger| super::run::settle_one(ledger, &attempt, &evidence).map(drop)) {
        Err(error) if error.code == Code::Fenced => {
            settle::keep_late_end(store, attempt.id, &evidence).map_err(unrecorded)?;
            return Err(error);
        }
        other => other.map_err(unrecorded)?,
    }
    dir::clear_attempt_dir(&store.attempt_dir(attempt.id));
    Ok(status)
}

/// Gives back a claim that came to nothing. The command and its directory are the caller's, so it is no fault of the job.
fn not_started(store: &mut Store, handle: &Handle, error: Error) -> Result<Status> {
    let id = handle.attempt;
    // After a commit of which nobody knows the attempt may be running; then this moves nothing.
    let back = store.write(clock::now(), |ledger| ledger.give_back(id, error.code, &error.message));
    match back {
        Ok(_) => dir::clear_attempt_dir(&store.attempt_dir(id)),
        Err(other) => tracing::debug!(error = %other, "the claim was not given back"),
    }
    if error.code == Code::CannotExecute { Ok(Status::NotExecuted(ENOENT)) } else { Err(error) }
}

fn capture_start(store: &Store, caller: &Caller, job: &JobRow, handle: &Handle, command: &[OsString]) -> Result<Start> {
    let words = command.iter().map(|word| {
        word.to_str().map(str::to_owned).ok_or_else(|| Error::new(Code::BadInput, "an argument is not UTF-8"))
    });
    let mut args = words.collect::<Result<Vec<String>>>()?;
    let cwd = caller
        .cwd()?
        .to_str()
        .map(str::to_owned)
        .ok_or_else(|| Error::new(Code::BadInput, "the directory is not UTF-8"))?;
    let name = if args.is_empty() { String::new() } else { args.remove(0) };
    let program = program::named(&name, &cwd, caller.var("PATH").unwrap_or("/usr/bin:/bin"))?;
    let folder = dispatch::folder_of(store.root(), handle.attempt)?;
    keeper::reserve_end(&folder)?;
    let mut env = caller.env.clone();
    env.extend(variables(store, handle).map(|(name, value)| (name.to_owned(), value)));
    let limits = &job.spec.limits;
    Ok(Start {
        attempt: handle.attempt.to_string(),
        store: store.root().to_string_lossy().into_owned(),
        dir: folder,
        program,
        args,
        env: env.into_iter().collect(),
        cwd,
        stdin: None,
        timeout_ms: limits.timeout.map(|span| span.0),
        timeout_first_ms: limits.timeout_first.map(|span| span.0),
        timeout_idle_ms: limits.timeout_idle.map(|span| span.0),
        grace_ms: limits.grace.0,
        output_max: if limits.output_max > 0 { limits.output_max } else { OUTPUT_MAX },
        redact: dispatch::secrets(&job.spec.env, &[]),
        discard: !limits.capture,
    })
}

fn status_of(report: &Report, seen: Option<&Seen>) -> Status {
    match (seen.and_then(|seen| seen.exit), seen.and_then(|seen| seen.signal), seen.and_then(|seen| seen.errno)) {
        (Some(exit), _, _) => Status::Exit(exit),
        (None, Some(signal), _) => Status::Signal(signal),
        (None, None, Some(errno)) => Status::NotExecuted(errno),
        (None, None, None) => Status::Exit(if report.outcome == Outcome::Ok { 0 } else { 125 }),
    }
}

/// The owner file of a shell, made fresh.
pub fn owner_file(store: &Store) -> Result<String> {
    let path = claim::fresh_file(store)?;
    let bad = |_| Error::new(Code::BadInput, "the store's path is not UTF-8");
    path.into_os_string().into_string().map_err(bad)
}
