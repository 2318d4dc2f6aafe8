//! ares-show: one thing with all its evidence, or its output.

use super::{Answer, Context, Field, Run, args, fields, ops_todo};
use crate::error::{Code, Result};

/// What of a job or an attempt is printed instead of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its standard output.
    Stdout,
    /// Its standard error.
    Stderr,
    /// The worker's answer.
    Result,
    /// What was handed over.
    Prompt,
    /// The outbox events that tell of it.
    Events,
}

impl Part {
    /// Every part with its word.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        ("stdout", Self::Stdout),
        ("stderr", Self::Stderr),
        ("result", Self::Result),
        ("prompt", Self::Prompt),
        ("events", Self::Events),
    ];
}

/// Show one thing with all its evidence
///
/// A job, an attempt, a session or a stored object. On a terminal its fields are lines of name and value; --json has
/// everything. Of a job, the output is that of its latest attempt.
///
/// Stored output is escaped on a terminal and printed as it is elsewhere, or with --raw.
#[derive(clap::Args)]
pub struct Args {
    /// What to show: 42, 42.1, a session id, or an object's digest
    #[arg(value_name = "THING")]
    pub thing: String,

    /// Go on printing until it ends
    ///
    /// Without --output the changes of its state are printed, with it what the worker prints.
    #[arg(long)]
    pub follow: bool,

    /// Print this part of it
    #[arg(long, value_name = "PART", value_parser = args::words(Part::WORDS))]
    pub output: Option<Part>,

    /// Escape nothing, also on a terminal
    #[arg(long, requires = "output")]
    pub raw: bool,
}

impl Run for Args {
    const NAME: &'static str = "ares-show";
    const MUTATES: bool = false;
    const COLUMNS: &'static [&'static str] = &["job", "state", "worker", "attempt", "code", "detail"];
    const FIELDS: &'static [Field] = fields::JOB;
    const ERRORS: &'static [Code] = &[Code::NotFound];
    const EXAMPLES: &'static str = "\
$ ares-init --quiet .ares >/dev/null
$ ares-submit -- true
1
$ ares-show 1 --format '%(job) %(state) %(worker)'
1 queued command
$ ares-show 7
ares-show: ARES_NOT_FOUND: [..]
...
? 14
";

    fn run(self, _cx: &mut Context) -> Result<Answer> {
        ops_todo("show") // WIRE: ops::show → Rows or Raw; --follow through cx.out().row or .raw until it gives false
    }
}
