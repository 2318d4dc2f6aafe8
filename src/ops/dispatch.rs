//! One attempt of a runner: its files are laid out, the dispatch is committed, the keeper is told to go, the worker is
//! followed to its end.
//!
//! INVARIANT `no-go-without-commit`: the keeper hears of an attempt only after the transaction that says "about to act"
//! is known to be committed.

use super::Caller;
use super::collect::{Evidence, Follower};
use crate::domain::attempt::State as AttemptState;
use crate::domain::id::{AttemptId, Handle};
use crate::domain::outcome::{Cause, Report, Seen};
use crate::domain::time::Span;
use crate::error::{Class, Code, Error, OrCode as _, Result};
use crate::fault;
use crate::host::clock::{self, Mark};
use crate::host::keeper::{self, Keeper, Start, Word};
use crate::host::signals::Signals;
use crate::host::{dir, process};
use crate::store::{Attempt, JobRow, Ledger, SessionRow, Store, View};
use crate::worker::{self, Adapter, Plan, Said};
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

/// How often the output of a worker that keeps a session is looked at: often until its session is known, so that a
/// wrong one is stopped before its first request is answered.
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK: Duration = Duration::from_millis(50);
/// How often a worker without events is looked after; its end is heard of at once.
const LOOK_PLAIN: Duration = Duration::from_millis(250);

/// How long a worker may go on after it said how its turn ended.
const LINGER: Duration = Duration::from_secs(3);

/// How long the keeper may take to say that the worker ended, beside the worker's own grace. A keeper that was stopped
/// itself never says it.
const ANSWER: Duration = Duration::from_secs(5);

/// How often it is looked whether the attempt was given away. That may happen only while this process does not run, so
/// the first look after that sees it.
const LOOK_FENCE: Duration = Duration::from_secs(1);

/// What the runner does between two looks.
#[derive(Debug)]
pub struct Watch<'a> {
    /// Whether we are asked to end.
    pub signals: &'a mut Signals,
    /// How long the worker may go on after the first request.
    pub grace: Span,
    /// When that request was seen.
    pub asked: Option<Mark>,
    /// The process that started this one as one of several runners, without which it is to start nothing more.
    pub parent: Option<i32>,
    /// Whether who is told of what ended would take it now, without making us wait.
    pub hears: fn() -> bool,
}

impl Watch<'_> {
    /// Whether nothing more is to be started: we were asked to end, or whoever would ask us is gone.
    pub fn over(&mut self) -> bool {
        self.signals.count() > 0 || self.parent.is_some_and(|parent| process::parent() != parent)
    }
}

/// What came of preparing an attempt.
pub enum Prepared {
    /// The worker can be started.
    Ready(Ready),
    /// It never can: the attempt is refused, nothing ran.
    Refused(Error),
}

/// An attempt that can be dispatched.
pub struct Ready {
    /// What the keeper is told.
    pub start: Box<Start>,
    /// The variables that were named and have no value here, for a finding: whoever wonders why the worker failed sees
    /// it there.
    pub missing: Option<String>,
}

/// Lays out the files of a claimed attempt and plans its call. Nothing of the worker runs.
pub fn prepare(
    view: &View<'_>,
    caller: &Caller,
    job: &JobRow,
    attempt: AttemptId,
    resume: Option<&str>,
) -> Result<Prepared> {
    let adapter = adapter_of(job)?;
    let session = view.session(job.session)?;
    let name = session.as_ref().map_or_else(String::new, |session| unique(session, attempt));
    let plan = match adapter.plan(&job.spec, resume, &name) {
        Ok(plan) => plan,
        Err(error) => return Ok(Prepared::Refused(error)),
    };
    let folder = folder_of(view.root(), attempt)?;
    let stdin = match &job.spec.prompt {
        None => None,
        Some(prompt) => {
            let path = folder.join("stdin");
            view.object_to_file(prompt, &path)?;
            Some(path)
        }
    };
    let home = session.map(|session| session.credential_home);
    let home = adapter.home_variable().zip(home.filter(|home| !home.is_empty()));
    let redact = secrets(&job.spec.env, &plan.pass);
    let env = environment(view.root(), caller, job, attempt, &plan, home);
    let missing = missing(job, &env);
    let limits = &job.spec.limits;
    let start = Start {
        attempt: attempt.to_string(),
        store: view.root().to_string_lossy().into_owned(),
        dir: folder,
        program: job.spec.program.clone(),
        args: plan.args,
        env,
        cwd: job.spec.dir.clone(),
        stdin,
        timeout_ms: limits.timeout.map(|span| span.0),
        timeout_first_ms: limits.timeout_first.map(|span| span.0),
        timeout_idle_ms: limits.timeout_idle.map(|span| span.0),
        grace_ms: limits.grace.0,
        output_max: limits.output_max,
        redact,
        // Nobody needs what is neither kept nor tells anything.
        discard: !limits.capture && !adapter.reader(resume).listens(),
    };
    if !start.fits() {
        let refusal = "E2BIG: the arguments are too long";
        return Ok(Prepared::Refused(Error::new(Code::CannotExecute, refusal)));
    }
    keeper::reserve_end(&start.dir)?;
    Ok(Prepared::Ready(Ready { start: Box::new(start), missing }))
}

/// The name of an attempt that none has in any store: sessions are named by time and chance.
pub(super) fn unique(session: &SessionRow, attempt: AttemptId) -> String {
    format!("{} {attempt}", session.name)
}

/// Makes the directory of an attempt's files, in the store itself.
pub(super) fn folder_of(root: &Path, attempt: AttemptId) -> Result<PathBuf> {
    let folder = crate::store::attempt_dir(root, attempt);
    dir::expect(&root.join("attempts"))?;
    // An earlier attempt was decided. Its owner may have been stopped before it told its keeper to go: without a directory
    // no keeper begins. Whoever decided removes it, unless that one crashed in between.
    let before = crate::store::attempt_dir(root, AttemptId { n: attempt.n - 1, ..attempt });
    if attempt.n > 1 && !keeper::worker_lock_held(&before)? {
        dir::clear_attempt_dir(&before);
    }
    // A transaction that prepared it and came to nothing may have left one.
    dir::remove_attempt_dir(&folder)?;
    dir::private_dir(&folder)?;
    Ok(folder)
}

/// The adapter that a job was frozen with.
pub(super) fn adapter_of(job: &JobRow) -> Result<Adapter> {
    let unknown =
        || Error::new(Code::UnknownWorker, format!("job {} needs the adapter '{}'", job.facts.id, job.spec.adapter));
    Adapter::parse(&job.spec.adapter).ok_or_else(unknown)
}

/// The worker's complete environment: what is harmless, what was named, what the adapter sets, and who it is.
fn environment(
    root: &Path,
    caller: &Caller,
    job: &JobRow,
    attempt: AttemptId,
    plan: &Plan,
    home: Option<(&str, String)>,
) -> Vec<(String, String)> {
    let named = |name: &str| job.spec.env.iter().any(|env| env == name);
    let passes =
        |name: &str| worker::may_pass(name, named(name)) || (plan.pass.contains(&name) && worker::may_pass(name, true));
    let mut env: std::collections::BTreeMap<String, String> =
        caller.env.iter().filter(|(name, _)| passes(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
    env.extend(plan.env.iter().cloned());
    env.extend(home.map(|(name, path)| (name.to_owned(), path)));
    env.insert("ARES_DIR".to_owned(), root.to_string_lossy().into_owned());
    env.insert("ARES_ATTEMPT".to_owned(), attempt.to_string());
    env.into_iter().collect()
}

/// Of the variables that a job names, those whose values are replaced in what its worker prints: those that it would not
/// be given unasked.
pub(super) fn secrets(named: &[String], given: &[&str]) -> Vec<String> {
    named.iter().filter(|name| worker::may_be_secret(name) && !given.contains(&name.as_str())).cloned().collect()
}

fn missing(job: &JobRow, env: &[(String, String)]) -> Option<String> {
    let missing: Vec<&String> = job.spec.env.iter().filter(|name| !env.iter().any(|(set, _)| set == *name)).collect();
    (!missing.is_empty()).then(|| serde_json::json!({ "env": missing }).to_string())
}

/// Writes the dispatch: what is about to be done, by which keeper, under which permit.
fn write(ledger: &mut Ledger<'_>, job: &JobRow, handle: &Handle, keeper: &Keeper, missing: Option<&str>) -> Result<()> {
    let identity =
        serde_json::to_string(keeper.identity()).or_code(Code::Internal, || "cannot write an identity".to_owned())?;
    let binding = super::claim::binding(job, handle);
    if let Some(missing) = missing {
        ledger.finding("variables-not-set", &handle.attempt.to_string(), missing, None)?;
    }
    ledger.dispatch(handle.attempt, Some(&identity), &job.spec.adapter, &binding)
}

/// Prepares and dispatches an attempt in the transaction that claims it, where its job hands nothing over and continues
/// nothing, so that this takes as long as making a few files. Whatever stands in the way undoes it, and the attempt
/// that stays claimed is prepared and dispatched by itself.
pub fn at_once(
    ledger: &mut Ledger<'_>,
    caller: &Caller,
    job: &JobRow,
    handle: &Handle,
    keeper: &Keeper,
) -> Result<Option<Box<Start>>> {
    if job.spec.prompt.is_some() || job.spec.continues.is_some() {
        return Ok(None);
    }
    ledger.within(|ledger| match prepare(ledger, caller, job, handle.attempt, None)? {
        Prepared::Ready(ready) => {
            fault::point("run.laid_out");
            write(ledger, job, handle, keeper, ready.missing.as_deref()).map(|()| ready.start)
        }
        Prepared::Refused(error) => Err(error),
    })
}

/// Commits the dispatch. When the commit's answer is unknown, the store is asked once whether it was applied.
pub fn commit(store: &mut Store, job: &JobRow, handle: &Handle, keeper: &Keeper, missing: Option<&str>) -> Result<()> {
    let committed = store.write(clock::now(), |ledger| write(ledger, job, handle, keeper, missing));
    match committed {
        Err(error) if error.code == Code::CommitUnknown => {
            let applied = store.read(|view| Ok(view.attempt(handle.attempt)?.state == AttemptState::Running))?;
            if applied { Ok(()) } else { Err(error) }
        }
        other => other,
    }
}

/// Follows a dispatched attempt to its end and gathers its evidence.
pub fn follow(
    store: &mut Store,
    keeper: &mut Keeper,
    job: &JobRow,
    attempt: &Attempt,
    resume: Option<&str>,
    watch: &mut Watch<'_>,
) -> Result<Evidence> {
    let folder = store.attempt_dir(attempt.id);
    let adapter = adapter_of(job)?;
    let mut follower = Follower::new(&folder, adapter.reader(resume), job.spec.limits.capture);
    let (mut terminal, mut known) = (None::<Mark>, !adapter.keeps_session());
    let (mut finishing, mut stopping) = (false, Stopping::default());
    let (mut looked, mut fenced) = (clock::mark(), false);
    loop {
        let pause = match (adapter.keeps_session(), known) {
            (false, _) => LOOK_PLAIN,
            (true, false) => LOOK_FIRST,
            (true, true) => LOOK,
        };
        match keeper.wait(pause)? {
            Some(Word::Ended(seen)) => return finish(store, follower, job, attempt, Some(seen)),
            Some(Word::Gone) => return finish(store, follower, job, attempt, None),
            None => {}
        }
        if adapter.keeps_session() {
            for said in follower.follow()? {
                match said {
                    Said::Session(id) => {
                        known = true;
                        note_session(store, attempt, &id)?;
                    }
                    Said::WrongSession { .. } => keeper.stop(Cause::Stopped, true),
                    Said::Terminal => terminal = terminal.or_else(|| Some(clock::mark())),
                    Said::Event(_) => {}
                }
            }
        }
        if !finishing && terminal.is_some_and(|mark| mark.elapsed() > LINGER) {
            finishing = true;
            keeper.stop(Cause::Finished, false);
        }
        if !fenced && looked.elapsed() > LOOK_FENCE {
            (looked, fenced) = (clock::mark(), given_away(store, attempt.id)?);
            if fenced {
                // Whoever has the job now must not find this worker at it.
                keeper.stop(Cause::Stopped, true);
            }
        }
        stopping.go_on(keeper, watch);
        if stopping.unheard(job.spec.limits.grace.duration()) {
            // It may come back to life, and then it ends the worker and writes down how that ended.
            return Err(Error::new(Code::Uncertain, format!("the keeper of attempt {} does not answer", attempt.id))
                .hint(format!("look at process {}, then ares reconcile {}", keeper.pid(), attempt.id.job)));
        }
    }
}

/// Whether someone decided about the attempt, or a later one was claimed.
fn given_away(store: &Store, id: AttemptId) -> Result<bool> {
    store.read(|view| Ok(view.resolution(id)?.is_some() || view.job(id.job)?.facts.attempt > id.n))
}

/// What a failure after the dispatch means: the worker ran, and only the record of its end is missing. The keeper has
/// written that down, and whoever looks next reads it.
pub(super) fn unrecorded(id: AttemptId, error: Error) -> Error {
    match error.code.class() {
        Class::Store | Class::Unknown | Class::Busy => {
            Error::new(Code::ReceiptFailed, format!("attempt {id} ran and its end is not recorded: {error}"))
                .hint("make the store work again; the next ares-run or ares-reconcile records the end that was seen")
        }
        _ => error,
    }
}

/// How far the request to end went.
#[derive(Debug, Default)]
struct Stopping {
    asked: Option<Mark>,
    hard: bool,
}

impl Stopping {
    /// The first request lets the worker finish within the grace, then asks it to end; a second one ends it at once.
    fn go_on(&mut self, keeper: &mut Keeper, watch: &mut Watch<'_>) {
        let count = watch.signals.count();
        if count == 0 {
            return;
        }
        let since = *watch.asked.get_or_insert_with(clock::mark);
        let hard = count > 1;
        if (hard && !self.hard) || (self.asked.is_none() && since.elapsed() >= watch.grace.duration()) {
            keeper.stop(Cause::Stopped, hard);
            (self.asked, self.hard) = (Some(clock::mark()), hard);
        }
    }

    /// Whether the keeper should have said long ago that the worker ended.
    fn unheard(&self, grace: Duration) -> bool {
        let may_take = if self.hard { ANSWER } else { grace + ANSWER };
        self.asked.is_some_and(|mark| mark.elapsed() > may_take)
    }
}

/// The session's id is stored at the event that reports it, so that a crash right after it loses nothing.
fn note_session(store: &mut Store, attempt: &Attempt, id: &str) -> Result<()> {
    let known = store.read(|view| view.session(attempt.session))?.and_then(|session| session.worker_session);
    if known.as_deref() == Some(id) {
        return Ok(());
    }
    fault::point("run.before_session");
    store.write(clock::now(), |ledger| ledger.session_reported(attempt.session, attempt.id, id))
}

/// Gathers the evidence: the keeper's word, or what its files say when it is gone.
fn finish(store: &Store, follower: Follower, job: &JobRow, attempt: &Attempt, seen: Option<Seen>) -> Result<Evidence> {
    let folder = store.attempt_dir(attempt.id);
    let seen = match seen {
        Some(seen) => Some(seen),
        None => {
            // The worker dies with its keeper; what it left would else go on with nobody to end it.
            process::end_marked(&attempt.id.to_string(), &store.root().to_string_lossy())?;
            keeper::read_end(&folder)?
        }
    };
    let report = match &seen {
        Some(seen) => follower.finish(&folder, seen)?,
        None if keeper::read_mark(&folder)? == keeper::Mark::Missing => {
            Report::void(Code::NeverStarted, "the keeper ended before it started the worker", false)
        }
        None => Report::ambiguous(Code::OwnerLost, "the keeper ended while the worker ran"),
    };
    Evidence::gather(&store.spool(), &folder, seen, report, job.spec.limits.capture)
}
