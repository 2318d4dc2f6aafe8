//! ares-log: the operations, in order.

use super::{Answer, Context, Field, Row, Run};
use crate::error::{Code, Result};
use crate::ops::list;
use crate::store::{Operation, Operations};

/// Show who changed what, and when
///
/// Every command that changed something is one operation, with the user, the process, the operation id and the answer
/// that it gave. They are printed the oldest first: all of them, except on a terminal, where without --all or --limit the
/// latest 100 are.
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

    /// Print the latest so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    pub limit: Option<i64>,

    /// Print all, however many there are, also on a terminal
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,

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
        let which = Operations {
            since: self.since.as_deref().map(|text| cx.since(text)).transpose()?,
            until: self.until.as_deref().map(|text| cx.since(text)).transpose()?,
            verb: self.verb,
            subject: self.subject,
        };
        let store = cx.store()?;
        let row = |operation: Operation| {
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
        let latest = cx.limit(self.limit, self.all);
        list::log(store, &which, latest, &mut |page| {
            let rows: Vec<Row> = page.into_iter().map(row).collect();
            Ok(cx.out().page(Self::COLUMNS, &rows))
        })?;
        if self.limit.is_none() && latest.is_some() {
            cx.note_more(Self::NAME, "the latest", list::count_log(store, &which)?, "operations");
        }
        Ok(Answer::Nothing)
    }
}
