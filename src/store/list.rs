//! Many jobs, filtered and in an order, page by page.

use super::jobs::{COLUMNS, JobRow, erased::Json, job_row};
use super::{Sql as _, View};
use crate::domain::id::JobId;
use crate::domain::job::State;
use crate::domain::moves::Word as _;
use crate::domain::time::Time;
use crate::error::Result;
use rusqlite::params_from_iter;
use rusqlite::types::Value;

/// Which jobs to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// In one of these states; in any when empty.
    pub states: Vec<State>,
    /// With one of these labels.
    pub labels: Vec<String>,
    /// Of one of these workers.
    pub workers: Vec<String>,
    /// Of one of these groups.
    pub groups: Vec<String>,
    /// Submitted at or after this.
    pub since: Option<Time>,
    /// Submitted before this.
    pub until: Option<Time>,
    /// Only those after this one in the order asked for.
    pub after: Option<JobId>,
    /// At most so many.
    pub limit: Option<i64>,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListBy {
    /// Oldest first.
    Id,
    /// Newest first.
    IdDown,
    /// First ended first; jobs that have not ended are left out.
    Ended,
    /// Last ended first; jobs that have not ended are left out.
    EndedDown,
    /// As they would be claimed.
    Priority,
}

impl Filter {
    fn sql(&self, select: &str, by: ListBy) -> (String, Vec<Value>) {
        let mut sql = format!("SELECT {select} FROM jobs j WHERE true");
        let mut values: Vec<Value> = Vec::new();
        let mut and = |clause: &str, value: Value| {
            values.push(value);
            sql.push_str(" AND ");
            sql.push_str(&clause.replace('?', &format!("?{}", values.len())));
        };
        let states: Vec<String> = self.states.iter().map(|state| state.word().to_owned()).collect();
        for (one, many, words) in [
            ("j.state = ?", "j.state IN (SELECT value FROM json_each(?))", &states),
            ("j.worker = ?", "j.worker IN (SELECT value FROM json_each(?))", &self.workers),
            ("j.\"group\" = ?", "j.\"group\" IN (SELECT value FROM json_each(?))", &self.groups),
            (
                "j.id IN (SELECT job FROM labels WHERE label = ?)",
                "j.id IN (SELECT job FROM labels WHERE label IN (SELECT value FROM json_each(?)))",
                &self.labels,
            ),
        ] {
            match words.as_slice() {
                [] => {}
                [word] => and(one, word.clone().into()),
                words => and(many, Json::json(&words).into()),
            }
        }
        for (clause, time) in [("j.submitted_at >= ?", self.since), ("j.submitted_at < ?", self.until)] {
            if let Some(time) = time {
                and(clause, time.0.into());
            }
        }
        if let Some(after) = self.after {
            let clause = match by {
                ListBy::Id => "j.id > ?",
                ListBy::IdDown => "j.id < ?",
                ListBy::Ended => "(j.ended_at, j.id) > (SELECT ended_at, id FROM jobs WHERE id = ?)",
                ListBy::EndedDown => "(j.ended_at, j.id) < (SELECT ended_at, id FROM jobs WHERE id = ?)",
                ListBy::Priority => "(-j.priority, j.id) > (SELECT -priority, id FROM jobs WHERE id = ?)",
            };
            and(clause, after.0.into());
        }
        if matches!(by, ListBy::Ended | ListBy::EndedDown) {
            sql.push_str(" AND j.ended_at IS NOT NULL");
        }
        (sql, values)
    }
}

impl View<'_> {
    /// The jobs that the filter lets through, in this order.
    pub fn list(&self, filter: &Filter, by: ListBy) -> Result<Vec<JobRow>> {
        let (mut sql, mut values) = filter.sql(COLUMNS, by);
        sql.push_str(match by {
            ListBy::Id => " ORDER BY j.id",
            ListBy::IdDown => " ORDER BY j.id DESC",
            ListBy::Ended => " ORDER BY j.ended_at, j.id",
            ListBy::EndedDown => " ORDER BY j.ended_at DESC, j.id DESC",
            ListBy::Priority => " ORDER BY -j.priority, j.id",
        });
        values.push(filter.limit.unwrap_or(-1).into());
        sql.push_str(&format!(" LIMIT ?{}", values.len()));
        let mut statement = self.connection.prepare_cached(&sql).sql("list jobs")?;
        statement.query_map(params_from_iter(values), job_row).and_then(Iterator::collect).sql("list jobs")
    }

    /// How many jobs a list in this order has.
    pub fn count(&self, filter: &Filter, by: ListBy) -> Result<i64> {
        let (sql, values) = filter.sql("count(*)", by);
        let mut statement = self.connection.prepare_cached(&sql).sql("count jobs")?;
        statement.query_row(params_from_iter(values), |row| row.get(0)).sql("count jobs")
    }
}
