//! ares-reconcile: find what crashes left, do what is safe, take decisions.

use super::{Answer, Context, Field, Run, args, ops_todo};
use crate::domain::id::JobId;
use crate::domain::job::Decision;
use crate::error::{Code, Result};

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
        ("found", "text: alive, never-started, ended or unknown"),
        ("done", "text: nothing, released, settled, uncertain or decided"),
        ("state", "the state of the job after it"),
        ("detail", "text: one line on the evidence"),
        ("job", "integer: the job"),
        ("code", "text: the code of the end"),
        ("evidence", "json: everything that was looked at"),
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
        ops_todo("reconcile") // WIRE: ops::reconcile → Rows; Err(Uncertain) after printing while something is uncertain
    }
}
