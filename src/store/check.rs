//! Everything that must hold in a store, as queries and recomputed digests, for `ares-fsck`. It changes nothing.

use super::evidence::{canonical, link};
use super::{Sql as _, Store, View};
use crate::domain::digest::Digest;
use crate::domain::id::JobId;
use crate::error::{Code, Result};
use crate::fault;
use rusqlite::params;

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which rule, as a stable word.
    pub rule: &'static str,
    /// What breaks it.
    pub subject: String,
    /// In words.
    pub detail: String,
    /// Whether bytes are not what was written, so that nothing else can be trusted either.
    pub damage: bool,
}

/// The rule that content is there and is what its digest says.
const OBJECT: &str = "object";

impl Fault {
    /// Whether it keeps a copy from being one: bytes that are not what was written, or that could not be looked at.
    pub fn spoils_a_copy(&self) -> bool {
        self.damage || self.rule == OBJECT
    }

    /// A rule that does not hold.
    pub fn broken(rule: &'static str, subject: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { rule, subject: subject.into(), detail: detail.into(), damage: false }
    }

    /// Bytes that are not what was written.
    pub fn damage(rule: &'static str, subject: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { damage: true, ..Self::broken(rule, subject, detail) }
    }
}

/// Rules over rows: each query gives the subjects that break it.
const RULES: &[(&str, &str, &str)] = &[
    (
        "job-attempt-state",
        "a claimed, running or uncertain job whose latest attempt is in another state",
        "SELECT j.id FROM jobs j LEFT JOIN attempts a ON a.job = j.id AND a.n = j.attempt
         WHERE j.state IN ('claimed', 'running', 'uncertain') AND (a.state IS NULL OR a.state <> j.state)",
    ),
    (
        "attempt-at-rest",
        "an attempt that is open while its job is queued or over",
        "SELECT a.job || '.' || a.n FROM attempts a JOIN jobs j ON j.id = a.job
         WHERE a.state <> 'ended' AND (j.state IN ('queued', 'succeeded', 'failed', 'cancelled') OR a.n <> j.attempt)",
    ),
    (
        "fence",
        "a job whose fence is not its latest attempt",
        "SELECT j.id FROM jobs j WHERE j.attempt <> (SELECT coalesce(max(n), 0) FROM attempts WHERE job = j.id)",
    ),
    (
        "permit-of-attempt",
        "a dispatched attempt whose permit is missing, another's, or not consumed",
        "SELECT a.job || '.' || a.n FROM attempts a LEFT JOIN permits p ON p.id = a.permit
         WHERE a.dispatched_at IS NOT NULL
           AND (p.id IS NULL OR p.job <> a.job OR p.attempt_n <> a.n OR p.consumed_at IS NULL)",
    ),
    (
        "permit-without-outcome",
        "a permit that was consumed and has no outcome, while its attempt does not run",
        "SELECT p.id FROM permits p LEFT JOIN attempts a ON a.job = p.job AND a.n = p.attempt_n
         WHERE p.state = 'consumed' AND p.job IS NOT NULL AND coalesce(a.state, '') <> 'running'",
    ),
    (
        "permit-outcome",
        "an attempt that is over and whose permit says another outcome",
        "SELECT a.job || '.' || a.n FROM attempts a JOIN permits p ON p.id = a.permit
         WHERE a.ended_at IS NOT NULL AND a.dispatched_at IS NOT NULL AND p.outcome IS NOT a.outcome",
    ),
    (
        "preflight-receipt",
        "a consumed permit without its preflight receipt",
        "SELECT p.id FROM permits p WHERE p.consumed_at IS NOT NULL AND NOT EXISTS
           (SELECT 1 FROM receipts r WHERE r.seq = p.preflight AND r.kind = 'preflight')
         AND NOT EXISTS (SELECT 1 FROM segments s WHERE p.preflight BETWEEN s.first AND s.last)",
    ),
    (
        "resolution",
        "an ambiguous attempt that is over without a decision",
        "SELECT a.job || '.' || a.n FROM attempts a WHERE a.state = 'ended' AND a.outcome = 'ambiguous' AND NOT EXISTS
           (SELECT 1 FROM resolutions r WHERE r.kind = 'attempt' AND r.subject = a.job || '.' || a.n)",
    ),
    (
        "outcome-of-job",
        "a succeeded job whose latest attempt did not end well",
        "SELECT j.id FROM jobs j JOIN attempts a ON a.job = j.id AND a.n = j.attempt
         WHERE j.state = 'succeeded' AND a.outcome <> 'ok' AND NOT EXISTS (SELECT 1 FROM resolutions r
           WHERE r.kind = 'attempt' AND r.subject = a.job || '.' || a.n AND r.decision = 'ok')",
    ),
    (
        "event",
        "an attempt that is over and whose event is missing",
        "SELECT a.job || '.' || a.n FROM attempts a WHERE a.ended_at IS NOT NULL AND NOT EXISTS
           (SELECT 1 FROM events e WHERE e.subject = a.job || '.' || a.n AND e.kind = 'attempt.settled')",
    ),
    (
        "tries",
        "a job that counts more tries than it had attempts",
        "SELECT j.id FROM jobs j WHERE j.tries > (SELECT count(*) FROM attempts a
           WHERE a.job = j.id AND a.dispatched_at IS NOT NULL)",
    ),
    (
        "session",
        "an attempt in another session than its job",
        "SELECT a.job || '.' || a.n FROM attempts a JOIN jobs j ON j.id = a.job WHERE a.session <> j.session",
    ),
    (
        "object-named",
        "an attempt that names content which is not there",
        "SELECT a.job || '.' || a.n FROM attempts a WHERE
           (a.result IS NOT NULL AND NOT EXISTS (SELECT 1 FROM objects o WHERE o.digest = a.result))
           OR (a.stdout IS NOT NULL AND NOT EXISTS (SELECT 1 FROM objects o WHERE o.digest = a.stdout))
           OR (a.stderr IS NOT NULL AND NOT EXISTS (SELECT 1 FROM objects o WHERE o.digest = a.stderr))",
    ),
];

impl Store {
    /// Checks everything that the database can tell. `full` has SQLite look at every page and index entry.
    pub fn check(&self, full: bool) -> Result<Vec<Fault>> {
        self.read(|view| {
            let mut faults = view.check_pages(full)?;
            if faults.iter().any(|fault| fault.damage) {
                return Ok(faults);
            }
            faults.extend(view.check_rules()?);
            faults.extend(view.check_receipts()?);
            faults.extend(view.check_segments()?);
            faults.extend(view.check_specs()?);
            fault::point("check.objects");
            faults.extend(view.check_objects()?);
            Ok(faults)
        })
    }
}

impl View<'_> {
    fn check_pages(&self, full: bool) -> Result<Vec<Fault>> {
        let pragma = if full { "integrity_check" } else { "quick_check" };
        let mut statement = self.connection.prepare(&format!("PRAGMA {pragma}")).sql("check the pages")?;
        let lines: Vec<String> =
            statement.query_map([], |row| row.get(0)).and_then(Iterator::collect).sql("check the pages")?;
        let mut faults: Vec<Fault> = lines
            .into_iter()
            .filter(|line| line != "ok")
            .map(|line| Fault::damage("pages", "database", line))
            .collect();
        let mut statement = self.connection.prepare("PRAGMA foreign_key_check").sql("check the references")?;
        let read = |row: &rusqlite::Row<'_>| {
            let (table, to): (String, String) = (row.get(0)?, row.get(2)?);
            Ok(Fault::broken("reference", table, format!("refers to a row of '{to}' that is not there")))
        };
        let rows: Vec<Fault> = statement.query_map([], read).and_then(Iterator::collect).sql("check the references")?;
        faults.extend(rows);
        Ok(faults)
    }

    fn check_rules(&self) -> Result<Vec<Fault>> {
        let mut faults = Vec::new();
        for (rule, detail, sql) in RULES {
            let mut statement = self.connection.prepare(sql).sql("check a rule")?;
            let subjects: Vec<rusqlite::types::Value> =
                statement.query_map([], |row| row.get(0)).and_then(Iterator::collect).sql("check a rule")?;
            faults.extend(subjects.into_iter().map(|subject| Fault::broken(rule, shown(&subject), *detail)));
        }
        Ok(faults)
    }

    /// Recomputes every link of the chain and every body's digest.
    fn check_receipts(&self) -> Result<Vec<Fault>> {
        let sql = "SELECT seq, previous, kind, subject, body, digest, bytes FROM receipts ORDER BY seq";
        let mut statement = self.connection.prepare(sql).sql("check the receipts")?;
        let mut rows = statement.query([]).sql("check the receipts")?;
        let (mut faults, mut expected) = (Vec::new(), None::<(i64, Vec<u8>)>);
        while let Some(row) = rows.next().sql("check the receipts")? {
            let get = |at| row.get::<_, Vec<u8>>(at);
            let seq: i64 = row.get(0).sql("check the receipts")?;
            let (kind, subject): (String, String) =
                (row.get(2).sql("check the receipts")?, row.get(3).sql("check the receipts")?);
            let (previous, body, digest) = (
                get(1).sql("check the receipts")?,
                get(4).sql("check the receipts")?,
                get(5).sql("check the receipts")?,
            );
            let bytes = get(6).sql("check the receipts")?;
            let mut bad = |why: &str| faults.push(Fault::damage("receipt", format!("receipt {seq}"), why));
            match &expected {
                Some((next, last)) if *next != seq || *last != previous => bad("does not follow the one before it"),
                None if seq == 1 && previous.iter().any(|byte| *byte != 0) => bad("is the first and follows another"),
                None if seq != 1 && !self.exported_before(seq, &previous)? => bad("follows one that is gone"),
                Some(_) | None => {}
            }
            let body_digest = Digest::from_bytes(&body);
            if body_digest.map(|body| link(&previous, seq, &kind, &subject, &body)) != Digest::from_bytes(&digest) {
                bad("is not what its digest says");
            }
            if Some(Digest::of("ares.receipt.body.1", &[&bytes])) != body_digest {
                bad("has another body than its digest says");
            }
            expected = Some((seq + 1, digest));
        }
        faults.extend(self.check_outcomes()?);
        Ok(faults)
    }

    fn exported_before(&self, seq: i64, previous: &[u8]) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM segments WHERE last = ?1 - 1 AND last_digest = ?2)";
        self.connection.query_row(sql, params![seq, previous], |row| row.get(0)).sql("check the receipts")
    }

    /// What an outcome's receipt covers must be what the attempt says: outcome, code, seen, result, both streams.
    fn check_outcomes(&self) -> Result<Vec<Fault>> {
        let sql = "SELECT a.job || '.' || a.n, a.outcome, coalesce(a.code, ''), coalesce(a.seen, ''),
                     coalesce(lower(hex(a.result)), ''), coalesce(lower(hex(a.stdout)), ''),
                     coalesce(lower(hex(a.stderr)), ''), a.permit, r.bytes
                   FROM attempts a LEFT JOIN permits p ON p.id = a.permit
                   LEFT JOIN receipts r ON r.seq = p.receipt AND r.kind = 'outcome' AND r.subject = a.job || '.' || a.n
                   WHERE a.ended_at IS NOT NULL AND a.dispatched_at IS NOT NULL";
        let mut statement = self.connection.prepare(sql).sql("check the receipts")?;
        let read = |row: &rusqlite::Row<'_>| {
            let text = |at| row.get::<_, String>(at);
            let permit: i64 = row.get(7)?;
            let said = [text(1)?, text(2)?, text(3)?, text(4)?, text(5)?, text(6)?, permit.to_string()];
            Ok((text(0)?, said, row.get::<_, Option<Vec<u8>>>(8)?))
        };
        let rows = statement.query_map([], read).sql("check the receipts")?;
        let mut faults = Vec::new();
        for row in rows {
            let (subject, said, bytes) = row.sql("check the receipts")?;
            let fields: Vec<&str> = said.iter().map(String::as_str).collect();
            match bytes {
                None => faults.push(Fault::damage("outcome-receipt", subject, "has no receipt of its outcome")),
                Some(bytes) if bytes != canonical(&fields) => {
                    faults.push(Fault::damage("outcome-receipt", subject, "is not what its receipt says"));
                }
                Some(_) => {}
            }
        }
        Ok(faults)
    }

    /// Recomputes what every job was frozen as.
    fn check_specs(&self) -> Result<Vec<Fault>> {
        let mut statement = self.connection.prepare("SELECT id FROM jobs ORDER BY id").sql("check the jobs")?;
        let jobs: Vec<i64> =
            statement.query_map([], |row| row.get(0)).and_then(Iterator::collect).sql("check the jobs")?;
        let mut faults = Vec::new();
        for id in jobs.into_iter().map(JobId) {
            let mut job = self.job(id)?;
            job.spec.labels = self.labels(id)?;
            job.spec.after = self.all_dependencies(id)?.into_iter().map(|(dependency, _)| dependency).collect();
            if job.spec.digest() != job.spec_digest {
                let detail = "is not what was frozen when it was submitted";
                faults.push(Fault::damage("spec-digest", format!("job {id}"), detail));
            }
        }
        Ok(faults)
    }

    fn check_objects(&self) -> Result<Vec<Fault>> {
        let mut statement = self.connection.prepare("SELECT digest FROM objects").sql("check the objects")?;
        let digests: Vec<Vec<u8>> =
            statement.query_map([], |row| row.get(0)).and_then(Iterator::collect).sql("check the objects")?;
        let mut faults = Vec::new();
        for digest in digests.iter().filter_map(|bytes| Digest::from_bytes(bytes)) {
            match self.object(&digest) {
                Ok(_) => {}
                // A limit of ours says nothing of it.
                Err(error) if error.code == Code::SystemLimit => return Err(error),
                // One that may not be read is not one that was damaged.
                Err(error) => {
                    let damage = error.code != Code::StoreUnusable;
                    let fault = Fault::broken(OBJECT, digest.to_string(), error.message);
                    faults.push(Fault { damage, ..fault });
                }
            }
        }
        Ok(faults)
    }
}

fn shown(value: &rusqlite::types::Value) -> String {
    use rusqlite::types::Value;
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Null | Value::Real(_) | Value::Blob(_) => String::new(),
    }
}
