//! Durable orders that something must not go on.

use super::{Columns, Ledger, Sql as _, View};
use crate::domain::id::JobId;
use crate::domain::job::Decision;
use crate::domain::time::Time;
use crate::error::Result;
use rusqlite::{OptionalExtension as _, params};

/// A stop in force.
#[derive(Clone, Debug)]
pub struct Stop {
    /// Its number.
    pub id: i64,
    /// What is decided of an attempt that ends uncertain because of it; `None` leaves it uncertain.
    pub decision: Option<Decision>,
    /// Whether the worker is ended without grace.
    pub hard: bool,
    /// Why.
    pub because: String,
    /// Since when.
    pub at: Time,
}

/// The word of a stop that decides nothing.
const HOLD: &str = "hold";

impl Ledger<'_> {
    /// Orders a job to stop.
    pub fn insert_stop(&mut self, job: JobId, decision: Option<Decision>, hard: bool, because: &str) -> Result<i64> {
        let sql = "INSERT INTO stops (scope, subject, decision, hard, by, because, at)
                   VALUES ('job', ?1, ?2, ?3, ?4, ?5, ?6)";
        let by = format!("\"{}\"", self.by);
        let row = params![job.to_string(), decision.map_or(HOLD, Decision::word), hard, by, because, self.now.0];
        self.connection.execute(sql, row).sql("order the stop")?;
        let stop = self.connection.last_insert_rowid();
        let record = self.stop_record(stop)?;
        self.receipt("stop", &job.to_string(), &record).map(|_| stop)
    }
}

impl Ledger<'_> {
    /// Lifts the stops of a job that someone decided to run again.
    pub(super) fn lift_stops(&mut self, job: JobId) -> Result<()> {
        let sql = "UPDATE stops SET lifted_at = ?2 WHERE scope = 'job' AND subject = ?1 AND lifted_at IS NULL";
        self.connection.execute(sql, params![job.to_string(), self.now.0]).sql("lift the stop").map(drop)
    }
}

impl View<'_> {
    /// The latest stop of a job that is in force.
    pub fn stop_of(&self, job: JobId) -> Result<Option<Stop>> {
        let sql = "SELECT id, decision, hard, because, at FROM stops
                   WHERE scope = 'job' AND subject = ?1 AND lifted_at IS NULL ORDER BY id DESC LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql).sql("look for a stop")?;
        let read = |row: &rusqlite::Row<'_>| {
            let columns = &mut Columns::of(row, "stop", 1);
            let decision = |word: &str| if word == HOLD { Some(None) } else { Decision::parse(word).map(Some) };
            Ok(Stop {
                id: columns.next()?,
                decision: columns.word(decision)?,
                hard: columns.next()?,
                because: columns.next()?,
                at: Time(columns.next()?),
            })
        };
        statement.query_row([job.to_string()], read).optional().sql("look for a stop")
    }
}
