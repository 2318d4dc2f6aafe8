//! ares-run: claim, dispatch, follow, settle.

use super::{Answer, Context, Field, Run, args, fields, ops_todo};
use crate::domain::id::JobId;
use crate::domain::time::Span;
use crate::error::{Code, Result};

/// Run the next job, or all
///
/// Takes the next job that may run, starts its worker, follows it, and records how it ended; then one record of it is
/// printed. Without --drain or --wait one job is run.
///
/// The status says how it went: 0 all ok, 1 some failed or nothing to run, 10 something is uncertain. A job that ends
/// uncertain does not keep the others from running.
///
/// On SIGTERM, SIGINT or SIGHUP no further job is started and the running worker is asked to end; after --grace it is
/// ended.
#[derive(clap::Args)]
pub struct Args {
    /// Go on until no job may run
    #[arg(long, conflicts_with_all = ["wait", "job"])]
    pub drain: bool,

    /// Go on for ever: wait when no job may run
    #[arg(long, conflicts_with = "job")]
    pub wait: bool,

    /// Run this many at once, each in a process of its own
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: u16,

    /// Only jobs with this label
    #[arg(long, value_name = "NAME", value_parser = args::name)]
    pub label: Option<String>,

    /// Only jobs of this group
    #[arg(long, value_name = "NAME", value_parser = args::name)]
    pub group: Option<String>,

    /// Only jobs of this worker
    #[arg(long, value_name = "NAME", value_parser = args::name)]
    pub worker: Option<String>,

    /// Only this job
    ///
    /// Where it cannot run, the status says why: 10 when it is uncertain.
    #[arg(long, value_name = "JOB", value_parser = args::parsed::<JobId>)]
    pub job: Option<JobId>,

    /// Time between asking a running worker to end and ending it; default the job's own
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    pub grace: Option<Span>,
}

impl Run for Args {
    const NAME: &'static str = "ares-run";
    const MUTATES: bool = true;
    const COLUMNS: &'static [&'static str] = fields::END_COLUMNS;
    const FIELDS: &'static [Field] = fields::END;
    const ERRORS: &'static [Code] = &[
        Code::NothingToClaim,
        Code::WaitedFailed,
        Code::Uncertain,
        Code::OverBudget,
        Code::Stopped,
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

    fn run(self, _cx: &mut Context) -> Result<Answer> {
        ops_todo("run") // WIRE: ops::run; each end through cx.out().row(Self::COLUMNS, &row), then Nothing, No or Err
    }
}
