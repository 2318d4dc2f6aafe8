//! ares-wait: block until jobs end.

use super::{Answer, Context, Field, Run, args, fields};
use crate::domain::id::JobId;
use crate::domain::job::State;
use crate::domain::moves::Word as _;
use crate::domain::time::Span;
use crate::error::{Code, Error, Result};
use crate::host::signals::Signals;
use crate::ops::wait::Waited;
use crate::ops::{list, wait};
use crate::store::JobRow;

/// Wait until jobs end
///
/// One record is printed for each job as it ends. The status says how: 0 all succeeded, 1 some did not or the time was
/// over, 10 one is uncertain and waits for a decision, which is told at once. One that is held after five releases waits
/// for a decision too, though nothing of it ran: it is told at once, with 1. A job that waits for one of these is told at
/// once with the same status.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("which").args(["jobs", "label"]).required(true))]
pub struct Args {
    /// The jobs
    #[arg(value_name = "JOB", value_parser = args::parsed::<JobId>)]
    pub jobs: Vec<JobId>,

    /// Wait at most this long; default for ever
    ///
    /// A length of time is written 500ms, 90s, 30m, 2h, 7d or 1h30m; a plain number is seconds. 0 looks once and does not
    /// wait. The jobs go on.
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    pub timeout: Option<Span>,

    /// Wait for the jobs that have this label now
    #[arg(long, value_name = "NAME", value_parser = args::name)]
    pub label: Option<String>,

    /// Wait for the first of them only
    #[arg(long)]
    pub any: bool,
}

impl Run for Args {
    const NAME: &'static str = "ares-wait";
    const MUTATES: bool = false;
    const COLUMNS: &'static [&'static str] = &["job", "state", "code", "detail"];
    const FIELDS: &'static [Field] = fields::JOB;
    const ERRORS: &'static [Code] = &[Code::WaitedFailed, Code::Held, Code::Timeout, Code::Uncertain, Code::NotFound];
    const EXAMPLES: &'static str = "\
$ ares-init --quiet .ares >/dev/null
$ ares-submit -- false
1
$ ares-wait 1 --timeout 100ms
ares-wait: ARES_TIMEOUT: [..]
? 1
$ ares-run --quiet >/dev/null
? 1
$ ares-wait 1 --format '%(job) %(state)'
1 failed
ares-wait: ARES_WAITED_FAILED: [..]
...
? 1
";
    const NOTES: &'static str = include_str!("notes/wait.txt");

    fn run(self, cx: &mut Context) -> Result<Answer> {
        let store = cx.store()?;
        let jobs = match &self.label {
            Some(label) => list::active(store, label)?,
            None => self.jobs,
        };
        let mut signals = Signals::listen()?;
        let timeout = self.timeout.map(Span::duration);
        let ended = wait::wait(store, &jobs, self.any, timeout, &mut signals, &mut |store, job| {
            for listed in list::these(store, &[job])? {
                cx.out().row(Self::COLUMNS, &fields::listed(&listed));
            }
            Ok(())
        })?;
        let those = |which: &dyn Fn(&JobRow) -> bool| {
            ended.iter().filter(|one| which(&one.job)).map(|one| one.job.facts.id).collect::<Vec<JobId>>()
        };
        let uncertain = those(&|job| job.state == State::Uncertain);
        let held = those(&JobRow::is_held);
        let not = those(&|job| matches!(job.state, State::Failed | State::Cancelled));
        let of = |word: &str, jobs: &[JobId]| {
            format!("{word}: {} of {}, {}", jobs.len(), fields::counted(ended.len(), "job"), fields::jobs(jobs))
        };
        if !uncertain.is_empty() {
            return Err(Error::new(Code::Uncertain, of("uncertain", &uncertain)));
        }
        if let Some(stuck) = ended.iter().find_map(behind) {
            return Err(stuck);
        }
        if !held.is_empty() {
            return Err(Error::new(Code::Held, of("held after five releases in a row", &held)));
        }
        if !not.is_empty() {
            return Ok(Answer::No(Error::new(Code::WaitedFailed, of("not succeeded", &not))));
        }
        Ok(Answer::Nothing)
    }
}

/// A job that waits for one that does not go on by itself does not either.
fn behind(waited: &Waited) -> Option<Error> {
    let (on, state) = waited.behind?;
    let (code, how) = match state {
        State::Uncertain => (Code::Uncertain, state.word()),
        State::Queued => (Code::Held, "held after five releases in a row"),
        other => (Code::WaitedFailed, other.word()),
    };
    let said = format!("job {} waits for job {on}, which is {how}", waited.job.facts.id);
    Some(Error::new(code, said))
}
