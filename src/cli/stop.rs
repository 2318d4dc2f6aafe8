//! ares-stop: a durable order that jobs must not go on.

use super::{Answer, Context, Field, Row, Run, args};
use crate::domain::id::JobId;
use crate::domain::job::Decision;
use crate::domain::outcome::clean;
use crate::error::{Code, Result};
use crate::ops::stop::{Order, Stopped, stop};

/// A decision made beforehand, or none: the job is left uncertain.
pub type Decided = Option<Decision>;

/// What becomes of a running job whose end is not known after it was stopped.
pub const DECISIONS: &[(&str, Decided)] = &[
    ("abandon", Some(Decision::Abandon)),
    ("hold", None),
    ("ok", Some(Decision::Ok)),
    ("error", Some(Decision::Error)),
];

/// Stop jobs
///
/// A queued job is cancelled at once. A running one is asked to end, and ended after its grace; what it did is then
/// decided as --decide says. The order is durable: it holds for what is not running yet, and it reaches a worker whose
/// owner is gone. Each job is printed with its state.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("which").args(["jobs", "label"]).required(true))]
pub struct Args {
    /// The jobs
    #[arg(value_name = "JOB", value_parser = args::parsed::<JobId>)]
    pub jobs: Vec<JobId>,

    /// Stop the jobs that have this label now
    #[arg(long, value_name = "NAME", value_parser = args::name)]
    pub label: Option<String>,

    /// One line on why
    #[arg(long, value_name = "TEXT")]
    pub because: Option<String>,

    /// End running workers at once, without grace
    #[arg(long)]
    pub hard: bool,

    /// What becomes of a stopped job of which nobody can tell what it did
    ///
    /// hold leaves it uncertain; the others are decisions as in ares-reconcile, made beforehand.
    #[arg(long, value_name = "WHAT", default_value = "abandon", value_parser = args::words(DECISIONS))]
    pub decide: Decided,
}

impl Run for Args {
    const NAME: &'static str = "ares-stop";
    const MUTATES: bool = true;
    const COLUMNS: &'static [&'static str] = &["job", "state"];
    const FIELDS: &'static [Field] =
        &[("job", "integer: the job"), ("state", "its state now: a running one is told to end, and has not yet")];
    const ERRORS: &'static [Code] = &[Code::NotFound, Code::IllegalMove, Code::Uncertain];
    const EXAMPLES: &'static str = "\
$ ares-init --quiet .ares >/dev/null
$ ares-submit -- true
1
$ ares-stop 1 --because 'not needed any more' --format '%(job) %(state)'
1 cancelled
$ ares-list --format '%(job) %(state)'
1 cancelled
";
    const NOTES: &'static str = include_str!("notes/stop.txt");

    fn run(self, cx: &mut Context) -> Result<Answer> {
        let store = cx.store()?;
        let order = Order {
            jobs: self.jobs,
            label: self.label,
            because: clean(self.because.as_deref().unwrap_or("")),
            hard: self.hard,
            decision: self.decide,
        };
        let stopped = stop(store, cx.op_id().map(str::to_owned), &order)?;
        let row = |stopped: &Stopped| Row::new().with("job", stopped.job).with("state", stopped.state.clone());
        Ok(Answer::rows(Self::COLUMNS, stopped.iter().map(row).collect()))
    }
}
