//! ares-run: claim, dispatch, follow, settle.

use super::{Answer, Context, Field, Row, Run, args, fields};
use crate::domain::id::JobId;
use crate::domain::job::{Hold, State};
use crate::domain::moves::Word as _;
use crate::domain::time::Span;
use crate::error::{Class, Code, Error, Result};
use crate::host::config::Config;
use crate::host::signals::Signals;
use crate::host::spawn::{self, Status};
use crate::ops::claim::why_not;
use crate::ops::dispatch::Watch;
use crate::ops::fleet;
use crate::ops::reconcile::{self, Became, Found};
use crate::ops::run::{self, Ended, News, Tally, Until};
use crate::store::Store;
use std::ffi::OsString;

/// Run the next job, or all
///
/// Takes the next job that may run, starts its worker, follows it, and records how it ended; then one record of it is
/// printed. Without --drain or --wait one job is run.
///
/// The status says how it went: 0 all ok, 1 some failed or nothing to run, 10 something is uncertain. A job that ends
/// uncertain does not keep the others from running.
///
/// On SIGTERM, SIGINT or SIGHUP no further job is started, and the running worker may finish within --grace; after that
/// it is asked to end. On a second one it is ended at once. What was stopped is uncertain, never failed; what was claimed
/// and not started goes back to the queue.
#[derive(clap::Args)]
pub struct Args {
    /// Go on until no job may run
    #[arg(long, conflicts_with_all = ["wait", "job"])]
    pub drain: bool,

    /// Go on for ever: wait when no job may run
    #[arg(long, conflicts_with = "job")]
    pub wait: bool,

    /// Run this many at once, each in a process of its own
    #[arg(short, long, value_name = "N", default_value_t = 1, overrides_with = "jobs", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: u16,

    /// Which jobs
    #[command(flatten)]
    pub which: args::Which,

    /// How long the running worker may go on after a signal
    ///
    /// After it the worker is asked to end, and ended when the job's own grace is over.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = args::span)]
    pub grace: Span,
}

impl Run for Args {
    const NAME: &'static str = "ares-run";
    const MUTATES: bool = true;
    // What a worker did cannot be done again by its answer.
    const REPEATS: bool = false;
    const COLUMNS: &'static [&'static str] = fields::END_COLUMNS;
    const FIELDS: &'static [Field] = fields::END;
    const ERRORS: &'static [Code] = &[
        Code::NothingToClaim,
        Code::WaitedFailed,
        Code::Held,
        Code::Uncertain,
        Code::Stopped,
        Code::Fenced,
        Code::ReceiptFailed,
        Code::NotFound,
    ];
    const EXAMPLES: &'static str = "\
$ ares-init --quiet .ares >/dev/null
$ ares-submit -- echo hello
1
$ ares-run --format '%(attempt) %(outcome)'
1.1 ok
$ ares-show 1 --output stdout
hello
$ ares-run
ares-run: ARES_NOTHING_TO_CLAIM: [..]
? 1
";
    const NOTES: &'static str = include_str!("notes/run.txt");

    fn run(self, cx: &mut Context) -> Result<Answer> {
        if self.jobs > 1 {
            return self.siblings(cx);
        }
        let store = cx.store()?;
        let (config, caller) = (Config::load(store.root())?, cx.caller(store));
        let until = match (self.drain, self.wait) {
            (_, true) => Until::Stopped,
            (true, false) => Until::Drained,
            (false, false) => Until::One,
        };
        let (job, wanted) = (self.which.job, self.which.wanted());
        let mut signals = Signals::listen()?;
        let hears = || crate::host::terminal::takes(std::io::stdout());
        let mut watch = Watch { signals: &mut signals, grace: self.grace, asked: None, parent: parent(cx), hears };
        let tally = run::run(store, &caller, &config, &wanted, until, &mut watch, &mut |news| {
            match news {
                // A reader that went away does not end the work; it is told at the end.
                News::Ended(ended) => {
                    cx.out().row(Self::COLUMNS, &row(ended));
                    if ended.held {
                        cx.warn(&fields::held(Self::NAME, ended.attempt.job));
                    }
                }
                News::Found(found) => tell(cx, found),
            }
            Ok(())
        })?;
        if tally == Tally::default() && until == Until::One {
            let why = why_not(store, job)?;
            return Ok(Answer::No(with_held(store, why)?));
        }
        match answer(&tally, until) {
            // The names are told once, by the one that started us.
            Err(error) if matches!(error.code, Code::Uncertain | Code::Held) && parent(cx).is_some() => {
                Ok(Answer::Status(error.code.class().exit()))
            }
            answer => answer,
        }
    }
}

impl Args {
    /// This command once more for each runner; what they print is the answer, how they ended the status.
    fn siblings(&self, cx: &mut Context) -> Result<Answer> {
        // The store is looked for once, so that a wrong one is told once.
        let store = cx.store()?;
        let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
        args.push("--jobs=1".into());
        args.extend((!cx.quiet()).then(|| "--quiet".into()));
        let fleet = fleet::run(store, self.jobs, &args)?;
        let any = |class: Class| fleet.ended.contains(&Status::Exit(i32::from(class.exit())));
        let plain = |status: &Status| matches!(status, Status::Exit(0 | 1 | 10));
        let killed = |status: &Status| if let Status::Signal(signal) = status { Some(*signal) } else { None };
        if let Some(signal) = fleet.ended.iter().find_map(killed) {
            let said = format!("one of the runners was ended by signal {signal} and recorded nothing more");
            return Err(Error::new(Code::OwnerLost, said).hint("ares reconcile tells what became of its attempt"));
        }
        if let Some(other) = fleet.ended.iter().find(|status| !plain(status)) {
            return Ok(Answer::Status(other.passed_on()));
        }
        if any(Class::Uncertain) {
            // Others run beside these: what is named is what these recorded.
            let ours = fleet.jobs(store, &reconcile::uncertain(store)?)?;
            // One may have been decided by now.
            let of = if ours.is_empty() { String::new() } else { format!(": {}", fields::jobs(&ours)) };
            return Err(Error::new(Code::Uncertain, format!("some attempts ended uncertain{of}")));
        }
        if any(Class::No) {
            let ours = fleet.jobs(store, &reconcile::held(store)?)?;
            if !ours.is_empty() {
                let said = format!("held after five releases in a row: {}", fields::jobs(&ours));
                return Err(Error::new(Code::Held, said));
            }
            return Ok(Answer::No(Error::new(Code::WaitedFailed, "some attempts did not succeed, or there were none")));
        }
        Ok(Answer::Nothing)
    }
}

/// The process of -j that started this one, where one did.
fn parent(cx: &Context) -> Option<i32> {
    cx.env.get(spawn::SIBLING_OF)?.to_str()?.parse().ok()
}

/// Says what a crash left; what waits for a decision also when quiet, as cron mails what is said.
fn tell(cx: &Context, found: &Found) {
    let (Became::Settled(state) | Became::Released(state)) = found.became else { return };
    let code = found.code.map_or_else(String::new, |code| format!("{code}: "));
    let line = format!(
        "ares-run: {code}job {} was left by a crash and is {}: attempt {}: {}",
        found.attempt.job,
        if found.held { "held after five releases in a row" } else { state.word() },
        found.attempt,
        if found.detail.is_empty() { "its keeper recorded the end" } else { &found.detail }
    );
    if state == State::Uncertain || found.held { cx.warn(&line) } else { cx.note(&line) }
}

/// Where there is nothing to run: what could be run if someone decided so.
fn with_held(store: &Store, why: Error) -> Result<Error> {
    let held = reconcile::held(store)?;
    if why.code != Code::NothingToClaim || held.is_empty() {
        return Ok(why);
    }
    let jobs: Vec<JobId> = held.iter().map(|attempt| attempt.id.job).collect();
    let said = format!("{}; held after five releases in a row: {}", why.message, fields::jobs(&jobs));
    Ok(Error::new(why.code, said).hint(Code::Held.hint()))
}

fn row(ended: &Ended) -> Row {
    Row::new()
        .with("job", ended.attempt.job)
        .with("attempt", ended.attempt)
        .with("outcome", ended.outcome.word())
        .with("state", ended.state.word())
        .with("code", ended.code.map(|code| code.name().to_owned()))
        .with("detail", ended.detail.clone())
        .with("took", ended.took)
        .with("hold", ended.held.then(|| Hold::Releases.word()))
}

fn answer(tally: &Tally, until: Until) -> Result<Answer> {
    let all = tally.ok + tally.failed + tally.again + (tally.held.len() + tally.uncertain.len()) as u64;
    if !tally.uncertain.is_empty() {
        let (n, of) = (tally.uncertain.len(), fields::jobs(&tally.uncertain));
        return Err(Error::new(Code::Uncertain, format!("uncertain: {n} of {all} attempts, of {of}")));
    }
    if !tally.held.is_empty() {
        let (n, of) = (tally.held.len(), fields::jobs(&tally.held));
        let said = format!("held after five releases in a row: {n} of {all} attempts, of {of}");
        return Err(Error::new(Code::Held, said));
    }
    // What is queued again ends later, unless this was the only attempt asked for.
    if tally.failed > 0 || (until == Until::One && tally.again > 0) {
        return Ok(Answer::No(Error::new(
            Code::WaitedFailed,
            format!("not succeeded: {} of {all} attempts", tally.failed + tally.again),
        )));
    }
    Ok(Answer::Nothing)
}
