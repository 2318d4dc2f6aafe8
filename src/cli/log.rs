//! ares-log: the operations, in order.

use super::{Answer, Context, Field, Row, Run};
use crate::error::{Code, Result};
use crate::ops::show;

/// Show who changed what, and when
///
/// Every command that changed something is one operation, with the user, the process, the operation id and the answer
/// that it gave. The latest --limit of those asked for are printed, the oldest first.
#[derive(clap::Args)]
pub struct Args {
    /// Only operations at this moment or later
    ///
    /// 2031-05-01T06:00:00Z, @SECONDS since 1970, or 90m for 90 minutes ago.
    #[arg(long, value_name = "MOMENT")]
    pub since: Option<String>,

    /// Only operations before this moment
    #[arg(long, value_name = "MOMENT")]
    pub until: Option<String>,

    /// Only operations of this command, such as submit
    #[arg(long, value_name = "NAME")]
    pub verb: Option<String>,

    /// Print at most this many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(i64).range(1..))]
    pub limit: i64,

    /// Only operations on this thing, such as 42 or 42.1
    #[arg(long, value_name = "THING")]
    pub subject: Option<String>,
}

impl Run for Args {
    const NAME: &'static str = "ares-log";
    const MUTATES: bool = false;
    const COLUMNS: &'static [&'static str] = &["operation", "at", "by", "verb", "subject", "detail"];
    const FIELDS: &'static [Field] = &[
        ("operation", "integer: the operation"),
        ("at", "time: when it was committed"),
        ("by", "text: the number of the user that asked for it"),
        ("verb", "text: the command without ares-"),
        ("subject", "text: what it was about"),
        ("detail", "text: one line on it"),
        ("op_id", "text: the operation id, where one was given"),
        ("pid", "integer: the process that did it"),
    ];
    const ERRORS: &'static [Code] = &[];
    const EXAMPLES: &'static str = "\
$ ares-init --quiet .ares >/dev/null
$ ares-submit -- true
1
$ ares-log --verb submit --format '%(verb) %(subject)'
submit 1
";
    const NOTES: &'static str = include_str!("notes/log.txt");

    fn run(self, cx: &mut Context) -> Result<Answer> {
        let since = self.since.as_deref().map(|text| cx.since(text)).transpose()?;
        let until = self.until.as_deref().map(|text| cx.since(text)).transpose()?;
        let store = cx.store()?;
        let latest = show::log(store, self.verb.as_deref(), self.subject.as_deref(), (since, until), self.limit)?;
        let row = |operation: crate::store::Operation| {
            let (user, pid) = operation.by.split_once(':').unwrap_or((&operation.by, ""));
            Row::new()
                .with("operation", operation.id)
                .with("at", operation.at)
                .with("by", user.to_owned())
                .with("verb", operation.verb)
                .with("subject", operation.subject)
                .with("detail", operation.note)
                .with("op_id", operation.op_id)
                .with("pid", pid.parse::<i64>().ok())
        };
        Ok(Answer::rows(Self::COLUMNS, latest.into_iter().rev().map(row).collect()))
    }
}
