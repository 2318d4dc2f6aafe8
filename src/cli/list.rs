//! ares-list: many jobs, filtered, sorted, formatted.

use super::{Answer, Context, Field, Row, Run, args, fields};
use crate::domain::id::JobId;
use crate::domain::job::State;
use crate::domain::moves::Word as _;
use crate::error::{Code, Result};
use crate::ops::list;
use crate::store::{Filter, ListBy};

/// The orders of a list.
pub const SORTS: &[(&str, ListBy)] = &[
    ("id", ListBy::Id),
    ("-id", ListBy::IdDown),
    ("ended", ListBy::Ended),
    ("-ended", ListBy::EndedDown),
    ("priority", ListBy::Priority),
];

/// List jobs
///
/// Filters of different kinds must all hold; of one kind, one is enough. Without a filter by state, jobs in every state
/// are listed. All are printed, except on a terminal: there the first 100, unless --all or --limit asks for more or less.
#[derive(clap::Args)]
pub struct Args {
    /// Only jobs in this state
    ///
    /// May be given several times.
    #[arg(long, value_name = "STATE", value_parser = args::words(State::WORDS))]
    pub state: Vec<State>,

    /// Only jobs with this label
    #[arg(long, value_name = "NAME", value_parser = args::name)]
    pub label: Vec<String>,

    /// Only jobs of this worker
    #[arg(long, value_name = "NAME", value_parser = args::name)]
    pub worker: Vec<String>,

    /// Only jobs of this group
    #[arg(long, value_name = "NAME", value_parser = args::name)]
    pub group: Vec<String>,

    /// Only jobs submitted at this moment or later
    ///
    /// 2031-05-01T06:00:00Z, @SECONDS since 1970, or 90m for 90 minutes ago.
    #[arg(long, value_name = "MOMENT")]
    pub since: Option<String>,

    /// Only jobs submitted before this moment
    #[arg(long, value_name = "MOMENT")]
    pub until: Option<String>,

    /// The order; -id is the latest first
    #[arg(long, value_name = "KEY", default_value = "id", value_parser = args::words(SORTS), allow_hyphen_values = true)]
    pub sort: ListBy,

    /// Print only how many there are
    #[arg(long, conflicts_with_all = ["limit", "all", "after"])]
    pub count: bool,

    /// Print at most this many
    ///
    /// The next page begins --after the last job that was printed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    pub limit: Option<i64>,

    /// Print all, however many there are, also on a terminal
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,

    /// Begin after this job, in the order asked for
    #[arg(long, value_name = "JOB", value_parser = args::parsed::<JobId>)]
    pub after: Option<JobId>,
}

/// The fields of a list: a job's, and the count.
const COUNT: &[Field] = &[("count", "integer: how many there are, with --count")];
const FIELDS: &[Field] = &fields::joined::<{ fields::JOB.len() + COUNT.len() }>(fields::JOB, COUNT);

impl Run for Args {
    const NAME: &'static str = "ares-list";
    const MUTATES: bool = false;
    const COLUMNS: &'static [&'static str] = fields::JOB_COLUMNS;
    const FIELDS: &'static [Field] = FIELDS;
    const ERRORS: &'static [Code] = &[];
    const EXAMPLES: &'static str = "\
$ ares-init --quiet .ares >/dev/null
$ ares-submit --label night -- true
1
$ ares-list --state queued --format '%(job) %(state)'
1 queued
$ ares-list --label day
$ ares-list --count
1
";
    const NOTES: &'static str = include_str!("notes/list.txt");

    fn run(self, cx: &mut Context) -> Result<Answer> {
        let filter = Filter {
            states: self.state,
            labels: self.label,
            workers: self.worker,
            groups: self.group,
            since: self.since.as_deref().map(|text| cx.since(text)).transpose()?,
            until: self.until.as_deref().map(|text| cx.since(text)).transpose()?,
            after: self.after,
            limit: cx.limit(self.limit, self.all),
        };
        let store = cx.store()?;
        if self.count {
            return Ok(Answer::id("count", list::count(store, &filter, self.sort)?));
        }
        list::list(store, &filter, self.sort, &mut |page| {
            let rows: Vec<Row> = page.iter().map(fields::listed).collect();
            Ok(cx.out().page(Self::COLUMNS, &rows))
        })?;
        if self.limit.is_none() && filter.limit.is_some() {
            cx.note_more(Self::NAME, "the first", list::count(store, &filter, self.sort)?, "jobs");
        }
        Ok(Answer::Nothing)
    }
}
