//! Taking finished jobs out of the record, with everything that only they have: which may go, and the one transaction in
//! which some of them do. What is left of them for good is said here too.
//!
//! A conversation goes as a whole or stays: what continues a session refers to its earlier jobs. Nothing goes that anything
//! unfinished waits for, was submitted by, or submitted. The last job and the last session always stay, because the next
//! number is the one after the highest.

use super::jobs::erased::Json as _;
use super::{Ledger, Sql as _, Store, View};
use crate::domain::id::JobId;
use crate::domain::job::State;
use crate::domain::moves::Word as _;
use crate::domain::spec::{Dependency, Then};
use crate::domain::time::Time;
use crate::error::{Code, Error, Result};
use rusqlite::config::DbConfig;
use rusqlite::{OptionalExtension as _, params};
use std::collections::{BTreeMap, BTreeSet};

/// Which finished jobs are kept; one that nothing keeps may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// All that ended at this moment or later.
    pub since: Option<Time>,
    /// The newest so many, by their ends.
    pub newest: Option<i64>,
}

/// Jobs that may go, as they were found.
#[derive(Clone, Debug, Default)]
pub struct Retirable {
    /// The finished jobs of each session; all of one or none.
    sessions: Vec<(i64, Vec<JobId>)>,
    /// The highest job then: only what came after it can refer to them anew.
    seen: i64,
    /// Everything that is older than this and belongs to nothing that is kept may be forgotten.
    pub horizon: Option<Time>,
}

impl Retirable {
    /// All of them.
    pub fn jobs(&self) -> Vec<JobId> {
        self.sessions.iter().flat_map(|(_, jobs)| jobs.iter().copied()).collect()
    }

    /// The same in parts of about so many jobs; at least one part, which may be empty.
    pub fn parts(self, size: usize) -> Vec<Self> {
        let (seen, horizon) = (self.seen, self.horizon);
        let empty = || Self { sessions: Vec::new(), seen, horizon };
        let (mut parts, mut room) = (vec![empty()], size);
        for (session, jobs) in self.sessions {
            if room == 0 {
                parts.push(empty());
                room = size;
            }
            room = room.saturating_sub(jobs.len());
            parts.last_mut().expect("never empty").sessions.push((session, jobs));
        }
        parts
    }
}

/// The finished jobs that no retention keeps: `?1` of the newest are passed over, and what ended at `?2` or later.
const OLD: &str = "old(id, session) AS (
    SELECT id, session FROM (SELECT id, session, ended_at FROM jobs WHERE ended_at IS NOT NULL
      ORDER BY ended_at DESC, id DESC LIMIT -1 OFFSET ?1) WHERE ended_at < ?2)";

/// The sessions that something needs which is not old.
const NEEDED: &str = "needed(session) AS (
    SELECT session FROM jobs WHERE id NOT IN (SELECT id FROM old) OR id = (SELECT max(id) FROM jobs)
    UNION SELECT max(id) FROM sessions
    UNION SELECT o.session FROM jobs w JOIN dependencies d ON d.job = w.id JOIN jobs o ON o.id = d.\"on\"
      WHERE w.ended_at IS NULL
    UNION SELECT e.parent FROM jobs w JOIN edges e ON e.child = w.session WHERE w.ended_at IS NULL
    UNION SELECT e.child FROM jobs w JOIN edges e ON e.parent = w.session WHERE w.ended_at IS NULL)";

/// The sessions that jobs after `?1` refer to: by going on with them, by waiting for one of their jobs, as parent or child.
const REFERRED_TO: &str = "WITH fresh AS (SELECT id, session FROM jobs WHERE id > ?1)
    SELECT session FROM fresh
    UNION SELECT o.session FROM fresh f JOIN dependencies d ON d.job = f.id JOIN jobs o ON o.id = d.\"on\"
    UNION SELECT e.parent FROM fresh f JOIN edges e ON e.child = f.session
    UNION SELECT e.child FROM fresh f JOIN edges e ON e.parent = f.session";

/// What a kept job waited for, as a finding about it: a job is frozen with its dependencies, and stays so.
const KEEP_DEPENDENCIES: &str = "INSERT INTO findings (kind, subject, body, at)
    SELECT 'dependency-removed', CAST(d.job AS TEXT), json_object('on', d.\"on\", 'on_failed', d.on_failed,
      'on_cancelled', d.on_cancelled, 'on_uncertain', d.on_uncertain, 'state', o.state), ?2
    FROM dependencies d JOIN jobs o ON o.id = d.\"on\"
    WHERE d.\"on\" IN (SELECT value FROM json_each(?1)) AND d.job NOT IN (SELECT value FROM json_each(?1))";

/// What goes with jobs, what refers to others first.
const OF_JOBS: &[&str] = &[
    "DELETE FROM labels WHERE job IN (SELECT value FROM json_each(?1))",
    "DELETE FROM dependencies WHERE job IN (SELECT value FROM json_each(?1))",
    "DELETE FROM dependencies WHERE \"on\" IN (SELECT value FROM json_each(?1))",
    "DELETE FROM attempts WHERE job IN (SELECT value FROM json_each(?1))",
    "DELETE FROM jobs WHERE id IN (SELECT value FROM json_each(?1))",
];

/// What goes with sessions.
const OF_SESSIONS: &[&str] = &[
    "DELETE FROM runs WHERE session IN (SELECT value FROM json_each(?1))",
    "DELETE FROM session_ids WHERE session IN (SELECT value FROM json_each(?1))",
    "DELETE FROM edges WHERE child IN (SELECT value FROM json_each(?1))",
    "DELETE FROM edges WHERE parent IN (SELECT value FROM json_each(?1))",
    "DELETE FROM sessions WHERE id IN (SELECT value FROM json_each(?1))",
];

impl Store {
    /// Runs something without SQLite's own check of references. To remove a row SQLite looks for rows that refer to it,
    /// and where that column has no index it reads the whole table, for each row that goes. Who calls this removes what
    /// refers to a row before the row, or shows that nothing does.
    pub fn unreferenced<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let check = |store: &Self, on: bool| {
            let what = "change the check of references";
            let is = store.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, on).sql(what)?;
            let failed = || Error::new(Code::Internal, format!("cannot {what}"));
            if is == on { Ok(()) } else { Err(failed()) }
        };
        check(self, false)?;
        let answer = body(self);
        check(self, true)?;
        answer
    }
}

impl View<'_> {
    /// The jobs that may go. It reads all jobs, and nobody waits for it.
    pub fn retirable(&self, retention: &Retention) -> Result<Retirable> {
        let what = "look for old jobs";
        let seen = self.highest_job()?;
        if retention.since.is_none() && retention.newest.is_none() {
            return Ok(Retirable { sessions: Vec::new(), seen, horizon: None });
        }
        let (newest, since) = (retention.newest.unwrap_or(0), retention.since.map_or(i64::MAX, |time| time.0));
        let sql = format!(
            "WITH {OLD}, {NEEDED} SELECT session, id FROM old
             WHERE session NOT IN (SELECT session FROM needed WHERE session IS NOT NULL) ORDER BY session, id"
        );
        let mut statement = self.connection.prepare(&sql).sql(what)?;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, JobId(row.get(1)?)));
        let rows: Vec<_> = statement.query_map(params![newest, since], read).and_then(Iterator::collect).sql(what)?;
        let mut sessions: BTreeMap<i64, Vec<JobId>> = BTreeMap::new();
        rows.into_iter().for_each(|(session, job)| sessions.entry(session).or_default().push(job));
        Ok(Retirable { sessions: sessions.into_iter().collect(), seen, horizon: self.horizon(newest, since)? })
    }

    /// The end of the oldest job that is kept, or the moment since when all are; none where all are kept.
    fn horizon(&self, newest: i64, since: i64) -> Result<Option<Time>> {
        let sql =
            "SELECT ended_at FROM jobs WHERE ended_at IS NOT NULL ORDER BY ended_at DESC, id DESC LIMIT 1 OFFSET ?1";
        let kept = match newest {
            0 => Some(i64::MAX),
            some => self.connection.query_row(sql, [some - 1], |row| row.get(0)).optional().sql("look for old jobs")?,
        };
        Ok(kept.map(|end: i64| Time(end.min(since))))
    }

    fn highest_job(&self) -> Result<i64> {
        let sql = "SELECT coalesce(max(id), 0) FROM jobs";
        self.connection.query_row(sql, [], |row| row.get(0)).sql("look for the last job")
    }

    /// What a job waited for that is not there any more, with the states that it ended in.
    pub fn dependencies_removed(&self, job: JobId) -> Result<Vec<(Dependency, State)>> {
        let removed = self.findings(&job.to_string())?;
        let removed = removed.into_iter().filter(|finding| finding.kind == "dependency-removed");
        let read = |body: &str| {
            let body: serde_json::Value = serde_json::from_str(body).ok()?;
            let then = |name: &str| body[name].as_str().and_then(Then::parse);
            let dependency = Dependency {
                on: JobId(body["on"].as_i64()?),
                on_failed: then("on_failed")?,
                on_cancelled: then("on_cancelled")?,
                on_uncertain: then("on_uncertain")?,
            };
            Some((dependency, State::parse(body["state"].as_str()?)?))
        };
        let unread =
            || Error::new(Code::StoreDamaged, format!("the finding 'dependency-removed' of job {job} does not read"));
        removed.map(|finding| read(&finding.body).ok_or_else(unread)).collect()
    }

    /// Everything that a job was frozen to wait for, by number, whether it is still there or not.
    pub fn all_dependencies(&self, job: JobId) -> Result<Vec<(Dependency, State)>> {
        let mut all = [self.dependencies(job)?, self.dependencies_removed(job)?].concat();
        all.sort_by_key(|(dependency, _)| dependency.on);
        Ok(all)
    }

    /// Why there is no such job: numbers are given once and in order, so one that is not there and not above the highest
    /// was removed.
    pub(super) fn missing(&self, job: JobId) -> Error {
        if job.0 < 1 || self.highest_job().is_ok_and(|highest| job.0 > highest) {
            return Error::new(Code::NotFound, format!("no job {job}"));
        }
        let when = match self.removals(job).as_deref() {
            Ok([at]) => format!(" of {}", &at.to_string()[..10]),
            Ok(_) | Err(_) => String::new(),
        };
        let decided = self.decisions(job).unwrap_or_default();
        Error::new(Code::NotFound, format!("job {job} is gone: removed by the ares-gc{when}{decided}"))
            .hint("see ares-log --verb gc")
    }

    /// What was decided about a job's attempts, in words: decisions stay when their job goes.
    fn decisions(&self, job: JobId) -> Result<String> {
        let sql = "SELECT subject, decision, because FROM resolutions
                   WHERE kind = 'attempt' AND subject > ?1 || '.' AND subject < ?1 || '/' ORDER BY id";
        let mut statement = self.connection.prepare(sql).sql("read the decisions")?;
        let read = |row: &rusqlite::Row<'_>| {
            let [attempt, decision, because] = [row.get::<_, String>(0)?, row.get(1)?, row.get(2)?];
            Ok(format!("; {attempt} was decided '{decision}' because: {because}"))
        };
        let rows: rusqlite::Result<Vec<String>> =
            statement.query_map([job.to_string()], read).and_then(Iterator::collect);
        rows.map(|rows| rows.concat()).sql("read the decisions")
    }

    /// When jobs were removed among which this one may have been.
    fn removals(&self, job: JobId) -> Result<Vec<Time>> {
        let sql = "SELECT at, note FROM operations WHERE subject = ?1 AND verb = 'gc' ORDER BY id";
        let mut statement = self.connection.prepare(sql).sql("look for the removal")?;
        let read = |row: &rusqlite::Row<'_>| Ok((Time(row.get(0)?), row.get::<_, String>(1)?));
        let rows: Vec<_> =
            statement.query_map([SUBJECT], read).and_then(Iterator::collect).sql("look for the removal")?;
        Ok(rows.into_iter().filter(|(_, note)| may_tell_of(note, job)).map(|(at, _)| at).collect())
    }
}

impl Ledger<'_> {
    /// Takes these out of the record, except what something refers to that came since they were found, or what is gone.
    /// Gives those that went. Only within [`Store::unreferenced`].
    pub fn retire(&mut self, found: &Retirable) -> Result<Vec<JobId>> {
        let what = "remove old jobs";
        let mut statement = self.connection.prepare_cached(REFERRED_TO).sql(what)?;
        let referred: BTreeSet<i64> =
            statement.query_map([found.seen], |row| row.get(0)).and_then(Iterator::collect).sql(what)?;
        let going: Vec<&(i64, Vec<JobId>)> =
            found.sessions.iter().filter(|(session, _)| !referred.contains(session)).collect();
        let jobs: Vec<i64> = going.iter().flat_map(|(_, jobs)| jobs.iter().map(|job| job.0)).collect();
        // What ended stays ended, so only another who removes jobs can have been quicker.
        let sql =
            "SELECT id FROM jobs WHERE id IN (SELECT value FROM json_each(?1)) AND ended_at IS NOT NULL ORDER BY id";
        let mut statement = self.connection.prepare_cached(sql).sql(what)?;
        let jobs: Vec<i64> =
            statement.query_map([jobs.json()], |row| row.get(0)).and_then(Iterator::collect).sql(what)?;
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let run =
            |sql: &str, ids: &str| self.connection.prepare_cached(sql).and_then(|mut s| s.execute([ids])).sql(what);
        let (jobs_json, sessions) = (jobs.json(), going.iter().map(|(session, _)| *session).collect::<Vec<_>>().json());
        let kept = self.connection.prepare_cached(KEEP_DEPENDENCIES);
        kept.and_then(|mut s| s.execute(params![jobs_json, self.now.0])).sql(what)?;
        OF_JOBS.iter().try_for_each(|sql| run(sql, &jobs_json).map(drop))?;
        OF_SESSIONS.iter().try_for_each(|sql| run(sql, &sessions).map(drop))?;
        Ok(jobs.into_iter().map(JobId).collect())
    }
}

/// What a removal is logged under.
pub const SUBJECT: &str = "store";

/// How the log tells which jobs were removed.
pub fn told(jobs: &[JobId]) -> Option<String> {
    let (first, last) = (jobs.iter().min()?, jobs.iter().max()?);
    Some(format!("removed {} jobs of {first} to {last}", jobs.len()))
}

/// Whether a line of the log may be about the removal of this job.
fn may_tell_of(note: &str, job: JobId) -> bool {
    let numbers = || {
        let (first, last) = note.strip_prefix("removed ")?.split_once(" jobs of ")?.1.split_once(" to ")?;
        let last = last.split(|c: char| !c.is_ascii_digit()).next()?;
        Some((first.parse::<i64>().ok()?, last.parse::<i64>().ok()?))
    };
    numbers().is_some_and(|(first, last)| (first..=last).contains(&job.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_divide_a_conversation() {
        let session = |id: i64, jobs: std::ops::Range<i64>| (id, jobs.map(JobId).collect::<Vec<_>>());
        let sessions = vec![session(1, 1..3), session(2, 3..8), session(3, 8..9), session(4, 9..10)];
        let parts = Retirable { sessions, seen: 9, horizon: None }.parts(4);
        assert_eq!(parts.iter().map(|part| part.jobs().len()).collect::<Vec<_>>(), [7, 2]);
        assert_eq!(Retirable::default().parts(4).len(), 1);
    }

    #[test]
    fn the_log_tells_which_jobs_were_removed() {
        let note = told(&[JobId(7), JobId(3), JobId(5)]).unwrap() + "; 4 objects";
        assert_eq!([2, 3, 6, 7, 8].map(|job| may_tell_of(&note, JobId(job))), [false, true, true, true, false]);
        assert!(!may_tell_of("3 objects", JobId(3)) && told(&[]).is_none());
    }
}
