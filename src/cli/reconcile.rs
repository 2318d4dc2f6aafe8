//! ares-reconcile: find what crashes left, do what is safe, take decisions.

use super::{Answer, Context, Field, Row, Run, args};
use crate::domain::id::AttemptId;
use crate::domain::id::JobId;
use crate::domain::job::Decision;
use crate::domain::job::State;
use crate::domain::moves::Word as _;
use crate::error::{Code, Error, Result};
use crate::ops::reconcile::{self, Became, Found};
use crate::store::Attempt;

/// Find what crashes left, and mend or decide it
///
/// Every claimed or running attempt whose owner is gone is looked at. What provably never started is queued again; what
/// has a record of its end is settled by it; a worker that is alive is left alone. The rest is uncertain, and its
/// evidence is shown. Nothing uncertain is repeated without a decision.
///
/// With --decide one uncertain job is decided: ok and error say how it ended, no-effect queues it again without
/// burning a try, retry does it again whatever it did, abandon cancels it. The decision is added beside the record.
///
/// The status is 10 while anything that was asked for is uncertain.
#[derive(clap::Args)]
pub struct Args {
    /// Only this job; default all
    #[arg(value_name = "JOB", value_parser = args::parsed::<JobId>)]
    pub job: Option<JobId>,

    /// Show what would be done, and change nothing
    #[arg(long, conflicts_with = "decide")]
    pub dry_run: bool,

    /// Decide the job
    #[arg(long, value_name = "WHAT", requires = "job", value_parser = args::words(Decision::WORDS))]
    pub decide: Option<Decision>,

    /// One line on why; it is kept with the decision
    #[arg(long, value_name = "TEXT", requires = "decide")]
    pub because: Option<String>,
}

impl Run for Args {
    const NAME: &'static str = "ares-reconcile";
    const MUTATES: bool = true;
    const COLUMNS: &'static [&'static str] = &["attempt", "found", "done", "state", "detail"];
    const FIELDS: &'static [Field] = &[
        ("attempt", "text: the attempt, JOB.N"),
        ("found", "text: alive, orphaned, never-started, ended, unknown or uncertain"),
        ("done", "text: nothing, released, settled, uncertain or decided"),
        ("state", "the state of the job after it"),
        ("detail", "text: one line on the evidence"),
        ("job", "integer: the job"),
        ("code", "text: the code of the end"),
    ];
    const ERRORS: &'static [Code] =
        &[Code::Uncertain, Code::AlreadyDecided, Code::Survivors, Code::IllegalMove, Code::NotFound];
    const EXAMPLES: &'static str = "\
$ ares-init --quiet .ares >/dev/null
$ ares-reconcile
$ ares-submit --timeout 200ms --grace 100ms -- sleep 60
1
$ ares-run --quiet >/dev/null
...
? 10
$ ares-reconcile 1 --decide abandon --because 'it only slept' --format '%(attempt) %(state)'
1.1 cancelled
";

    fn run(self, cx: &mut Context) -> Result<Answer> {
        if self.dry_run {
            cx.reads_only();
        }
        let store = cx.store()?;
        if let (Some(job), Some(decision)) = (self.job, self.decide) {
            let because = self.because.as_deref().unwrap_or("");
            let decided = reconcile::decide(store, cx.op_id().map(str::to_owned), job, decision, because)?;
            let row = Row::new()
                .with("attempt", decided.attempt)
                .with("found", "uncertain")
                .with("done", "decided")
                .with("state", decided.state)
                .with("detail", because.to_owned())
                .with("job", job);
            return Ok(Answer::rows(Self::COLUMNS, vec![row]));
        }
        let pass = reconcile::pass(store, self.dry_run)?;
        if !self.dry_run {
            reconcile::tidy(store)?;
        }
        let asked = |attempt: &AttemptId| self.job.is_none_or(|job| attempt.job == job);
        let mut rows: Vec<Row> = pass.found.iter().filter(|found| asked(&found.attempt)).map(row).collect();
        let uncertain = reconcile::uncertain(store)?;
        let uncertain: Vec<_> = uncertain.iter().filter(|attempt| asked(&attempt.id)).collect();
        let listed = |attempt: &AttemptId| pass.found.iter().any(|found| found.attempt == *attempt);
        rows.extend(uncertain.iter().filter(|attempt| !listed(&attempt.id)).map(|attempt| waiting(attempt)));
        cx.out().answer(&Answer::rows(Self::COLUMNS, rows));
        match uncertain.len() {
            0 => Ok(Answer::Nothing),
            n => Err(Error::new(Code::Uncertain, format!("{n} attempts wait for a decision"))),
        }
    }
}

fn row(found: &Found) -> Row {
    let (what, done, state) = match found.became {
        Became::Alive => ("alive", "nothing", None),
        Became::Orphaned => ("orphaned", "nothing", None),
        Became::Released(state) => ("never-started", "released", Some(state)),
        Became::Settled(State::Uncertain) => ("unknown", "uncertain", Some(State::Uncertain)),
        Became::Settled(state) => ("ended", "settled", Some(state)),
    };
    Row::new()
        .with("attempt", found.attempt)
        .with("found", what)
        .with("done", done)
        .with("state", state.map(|state| state.word().to_owned()))
        .with("detail", found.detail.clone())
        .with("job", found.attempt.job)
}

fn waiting(attempt: &Attempt) -> Row {
    Row::new()
        .with("attempt", attempt.id)
        .with("found", "uncertain")
        .with("done", "nothing")
        .with("state", State::Uncertain.word())
        .with("detail", attempt.detail.clone())
        .with("job", attempt.id.job)
        .with("code", attempt.code.clone())
}
