//! The order in which queued jobs are offered: by priority and age over all groups that are not full, without walking
//! those that may not run.
//!
//! The indexes are named, because SQLite, which knows nothing of how many jobs are queued, would rather read all of
//! them through the index of states. A statement that cannot use its index is an error, never slow.

use super::{Ledger, Sql as _, View};
use crate::domain::id::JobId;
use crate::domain::time::Time;
use crate::error::Result;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension as _, Row, params_from_iter};

/// Which jobs a claimer wants.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only this job.
    pub job: Option<JobId>,
    /// Only jobs with this label.
    pub label: Option<String>,
    /// Only jobs of this group.
    pub group: Option<String>,
    /// Only jobs of this worker.
    pub worker: Option<String>,
}

impl Wanted {
    /// Adds its conditions, except that on the group, to a query of jobs `j`.
    fn narrow(&self, sql: &mut String, values: &mut Vec<Value>) {
        let mut and = |condition: &str, value: Value| {
            values.push(value);
            sql.push_str(&format!(" AND {}", condition.replace('?', &format!("?{}", values.len()))));
        };
        if let Some(job) = self.job {
            and("j.id = ?", job.0.into());
        }
        if let Some(label) = &self.label {
            and("EXISTS (SELECT 1 FROM labels l WHERE l.label = ? AND l.job = j.id)", label.clone().into());
        }
        if let Some(worker) = &self.worker {
            and("j.worker = ?", worker.clone().into());
        }
    }
}

impl Ledger<'_> {
    /// Offers those whose time has come.
    pub fn wake_due(&mut self) -> Result<()> {
        let sql = "UPDATE jobs INDEXED BY jobs_due SET due = 0 WHERE state = 'queued' AND due > 0 AND due <= ?1";
        self.connection.prepare_cached(sql).and_then(|mut s| s.execute([self.now.0])).sql("wake jobs").map(drop)
    }
}

impl View<'_> {
    /// The next job that may run now, by priority and then by age, over all groups that are not full. `width` gives a
    /// group's width where the configuration has one. Says also whether a full group kept some job back.
    pub fn next_ready(&self, wanted: &Wanted, width: impl Fn(&str) -> Option<i64>) -> Result<(Option<JobId>, bool)> {
        let (mut best, mut kept_back): (Option<(i64, JobId)>, bool) = (None, false);
        let mut group = match &wanted.group {
            Some(only) => Some(only.clone()),
            None => self.group_after(None)?,
        };
        while let Some(name) = group {
            if let Some((priority, job, own_width)) = self.best_of_group(&name, wanted)? {
                let limit = width(&name).unwrap_or(own_width);
                if !name.is_empty() && self.filled(&name)? >= limit {
                    kept_back = true;
                } else if best.is_none_or(|(p, j)| (priority, std::cmp::Reverse(job)) > (p, std::cmp::Reverse(j))) {
                    best = Some((priority, job));
                }
            }
            group = if wanted.group.is_some() { None } else { self.group_after(Some(&name))? };
        }
        Ok((best.map(|(_, job)| job), kept_back))
    }

    /// Groups that have something ready, one after the other, each found by one step into the index.
    fn group_after(&self, name: Option<&str>) -> Result<Option<String>> {
        let ready = "state = 'queued' AND hold = '' AND due = 0";
        let sql = match name {
            None => {
                format!("SELECT \"group\" FROM jobs INDEXED BY jobs_ready WHERE {ready} ORDER BY \"group\" LIMIT 1")
            }
            Some(_) => {
                format!(
                    "SELECT \"group\" FROM jobs INDEXED BY jobs_ready WHERE {ready} AND \"group\" > ?1 ORDER BY \"group\" LIMIT 1"
                )
            }
        };
        let mut statement = self.connection.prepare_cached(&sql).sql("look at the queue")?;
        statement.query_row(params_from_iter(name), |row| row.get(0)).optional().sql("look at the queue")
    }

    fn best_of_group(&self, group: &str, wanted: &Wanted) -> Result<Option<(i64, JobId, i64)>> {
        let mut sql = String::from(
            "SELECT j.priority, j.id, j.width FROM jobs j INDEXED BY jobs_ready
             WHERE j.state = 'queued' AND j.hold = '' AND j.due = 0
             AND j.\"group\" = ?1 AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.session = j.session AND a.state <> 'ended')",
        );
        let mut values = vec![Value::from(group.to_owned())];
        wanted.narrow(&mut sql, &mut values);
        sql.push_str(" ORDER BY j.priority DESC, j.id LIMIT 1");
        let mut statement = self.connection.prepare_cached(&sql).sql("look at the queue")?;
        let read = |row: &Row<'_>| Ok((row.get(0)?, JobId(row.get(1)?), row.get(2)?));
        statement.query_row(params_from_iter(values), read).optional().sql("look at the queue")
    }

    /// How many of a group are claimed or running: a worker that outlives its owner keeps its place.
    fn filled(&self, group: &str) -> Result<i64> {
        let sql =
            "SELECT count(*) FROM jobs INDEXED BY jobs_state WHERE state IN ('claimed', 'running') AND \"group\" = ?1";
        let mut statement = self.connection.prepare_cached(sql).sql("count a group")?;
        statement.query_row([group], |row| row.get(0)).sql("count a group")
    }

    /// When the next of the wanted jobs comes due that waits for its time only; and of those that wait for another try.
    pub fn next_due(&self, wanted: &Wanted) -> Result<(Option<Time>, Option<Time>)> {
        let mut sql = String::from(
            "SELECT min(j.due), min(j.due) FILTER (WHERE j.tries > 0) FROM jobs j INDEXED BY jobs_due
             WHERE j.state = 'queued' AND j.due > 0",
        );
        let mut values = Vec::new();
        if let Some(group) = &wanted.group {
            values.push(group.clone().into());
            sql.push_str(" AND j.\"group\" = ?1");
        }
        wanted.narrow(&mut sql, &mut values);
        let mut statement = self.connection.prepare_cached(&sql).sql("look at the queue")?;
        let read = |row: &Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?));
        let (any, retry) = statement.query_row(params_from_iter(values), read).sql("look at the queue")?;
        Ok((any.map(Time), retry.map(Time)))
    }
}
