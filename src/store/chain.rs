//! The chain of receipts, for [`super::check`]: its links and bodies, and what they say held against the rows.

use super::evidence::{binding, canonical, link};
use super::{Fault, Sql as _, View};
use crate::domain::digest::Digest;
use crate::domain::id::AttemptId;
use crate::error::Result;
use rusqlite::{OptionalExtension as _, params};
use std::collections::BTreeSet;

/// A receipt, as far as what it says goes.
struct Said<'a> {
    seq: i64,
    kind: &'a str,
    subject: &'a str,
    bytes: &'a [u8],
}

impl View<'_> {
    /// Recomputes every link of the chain and every body's digest.
    pub(super) fn check_receipts(&self) -> Result<Vec<Fault>> {
        let sql = "SELECT seq, previous, kind, subject, body, digest, bytes FROM receipts ORDER BY seq";
        let mut statement = self.connection.prepare(sql).sql("check the receipts")?;
        let mut rows = statement.query([]).sql("check the receipts")?;
        let stops = self.stops_told()?;
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
                None if seq != 1 && !self.exported_before(seq, &previous)? => {
                    bad("follows one that is gone, or another than its segment ends with")
                }
                Some(_) | None => {}
            }
            let body_digest = Digest::from_bytes(&body);
            if body_digest.map(|body| link(&previous, seq, &kind, &subject, &body)) != Digest::from_bytes(&digest) {
                bad("is not what its digest says");
            }
            if Some(Digest::of("ares.receipt.body.1", &[&bytes])) != body_digest {
                bad("has another body than its digest says");
            }
            let said = Said { seq, kind: &kind, subject: &subject, bytes: &bytes };
            if !self.holds(&said, &stops)? {
                bad(&format!("is about {subject}, of which a row says otherwise"));
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
                Some(bytes) if bytes != canonical(&fields) && !self.is_recorded(&subject, &fields, &bytes)? => {
                    faults.push(Fault::damage(
                        "outcome-receipt",
                        subject,
                        "is not what its receipt says, or its job, session, event, permit or run is not",
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(faults)
    }

    /// The same with the digest of the rest of the record; receipts from before there was one do without it.
    fn is_recorded(&self, attempt: &str, fields: &[&str], bytes: &[u8]) -> Result<bool> {
        let record = self.attempt_record(attempt.parse::<AttemptId>()?)?.to_string();
        Ok(canonical(&[fields, &[&record]].concat()) == bytes)
    }

    /// Whether the rows say what this receipt does. Of a job that was removed there are no rows any more.
    fn holds(&self, said: &Said<'_>, stops: &BTreeSet<(String, Vec<u8>)>) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM jobs WHERE id = CAST(?1 AS INTEGER))";
        let mut statement = self.connection.prepare_cached(sql).sql("check the receipts")?;
        if !statement.query_row([said.subject], |row| row.get::<_, bool>(0)).sql("check the receipts")? {
            return Ok(true);
        }
        match (said.kind, said.subject.parse::<AttemptId>()) {
            ("preflight", Ok(attempt)) => self.holds_preflight(said, attempt),
            ("release", Ok(attempt)) => Ok(canonical(&[&self.attempt_record(attempt)?.to_string()]) == said.bytes),
            ("decision", Ok(_)) => Ok(self.decision_record(said.subject)?.as_deref() == Some(said.bytes)),
            ("stop", _) => Ok(stops.contains(&(said.subject.to_owned(), said.bytes.to_vec()))),
            _ => Ok(true),
        }
    }

    /// The permit that was consumed with it, and that it binds this attempt of exactly this job.
    fn holds_preflight(&self, said: &Said<'_>, attempt: AttemptId) -> Result<bool> {
        let sql = "SELECT p.id, p.binding, p.consumed_at, j.spec_digest, a.nonce_digest FROM attempts a
                   JOIN jobs j ON j.id = a.job JOIN permits p ON p.id = a.permit
                   WHERE a.job = ?1 AND a.n = ?2 AND p.preflight = ?3";
        let mut statement = self.connection.prepare_cached(sql).sql("check the receipts")?;
        let read = |row: &rusqlite::Row<'_>| {
            let columns = &mut super::Columns::of(row, "permit", 1);
            let permit: i64 = columns.next()?;
            let (bound, at) = (columns.digest()?, columns.next::<i64>()?);
            Ok((permit, bound, at, columns.digest()?, columns.digest()?))
        };
        let row = statement.query_row(params![attempt.job.0, attempt.n, said.seq], read).optional();
        let Some((permit, bound, at, spec, nonce)) = row.sql("check the receipts")? else { return Ok(false) };
        let body = canonical(&[&permit.to_string(), &bound.to_string(), &at.to_string()]);
        Ok(body == said.bytes && bound == binding(attempt, &spec, &nonce))
    }

    /// What the receipts of all stops must say, with their subjects.
    fn stops_told(&self) -> Result<BTreeSet<(String, Vec<u8>)>> {
        let mut statement = self.connection.prepare("SELECT id, subject FROM stops").sql("check the receipts")?;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
        let rows: Vec<_> = statement.query_map([], read).and_then(Iterator::collect).sql("check the receipts")?;
        rows.into_iter().map(|(id, subject)| Ok((subject, self.stop_record(id)?))).collect()
    }
}
