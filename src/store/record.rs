//! What the rows of an attempt that is over say beside the facts that its receipt spells out, as one digest in that
//! receipt: who owned it and when, its words, its event, what it used, its permit, its session, and who submitted its job. None
//! of it changes any more. Decisions and stops have a receipt of all that they say.

use super::evidence::canonical;
use super::{Sql as _, View};
use crate::domain::digest::Digest;
use crate::domain::id::AttemptId;
use crate::error::Result;
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension as _, Row, params};

/// Everything of an attempt that is over and does not change.
const ATTEMPT: &str =
    "SELECT a.job, a.n, a.session, a.nonce_digest, a.owner_lock, a.owner, a.keeper, a.permit, a.claimed_at,
    a.dispatched_at, a.ended_at, a.code, a.detail, a.model_asked, a.model_served, e.id, e.job, e.body, e.at, r.job,
    r.attempt_n, r.model, r.input, r.cached, r.output, r.reasoning, r.calls, r.cost, r.at, p.actor, p.target,
    s.name, s.worker, s.credential_home, j.submitted_by, j.submitted_at
  FROM attempts a JOIN jobs j ON j.id = a.job JOIN sessions s ON s.id = a.session
  LEFT JOIN events e ON e.subject = ?3 AND e.kind = 'attempt.settled'
  LEFT JOIN runs r ON r.session = a.session AND r.turn = ?3
  LEFT JOIN permits p ON p.id = a.permit WHERE a.job = ?1 AND a.n = ?2";

/// Everything of a decision, with its event.
const DECISION: &str = "SELECT r.id, r.kind, r.subject, r.decision, r.evidence, r.by, r.because, r.at, e.id, e.job, e.body, e.at,
    f.body, f.object FROM resolutions r LEFT JOIN events e ON e.subject = r.subject AND e.kind = 'attempt.resolved'
  LEFT JOIN findings f ON f.subject = r.subject AND f.kind = 'adopted-answer' WHERE r.kind = 'attempt' AND r.subject = ?1";

/// Everything of a stop but when it was lifted.
const STOP: &str = "SELECT id, scope, subject, kind, decision, hard, by, because, at FROM stops WHERE id = ?1";

/// A row's values, each with its kind, so that no two rows read alike.
fn digest(row: &Row<'_>) -> rusqlite::Result<Digest> {
    let mut fields: Vec<Vec<u8>> = Vec::with_capacity(row.as_ref().column_count());
    for at in 0..row.as_ref().column_count() {
        fields.push(match row.get_ref(at)? {
            ValueRef::Null => b"n".to_vec(),
            ValueRef::Integer(number) => [&b"i"[..], &number.to_be_bytes()].concat(),
            ValueRef::Real(number) => [&b"r"[..], &number.to_be_bytes()].concat(),
            ValueRef::Text(text) => [b"t", text].concat(),
            ValueRef::Blob(bytes) => [b"b", bytes].concat(),
        });
    }
    let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
    Ok(Digest::of("ares.record.1", &fields))
}

impl View<'_> {
    /// The digest of an attempt's record.
    pub(super) fn attempt_record(&self, id: AttemptId) -> Result<Digest> {
        let mut statement = self.connection.prepare_cached(ATTEMPT).sql("read the record")?;
        statement.query_row(params![id.job.0, id.n, id.to_string()], digest).sql("read the record")
    }

    /// The body of the receipt of a decision.
    pub(super) fn decision_record(&self, attempt: &str) -> Result<Option<Vec<u8>>> {
        let mut statement = self.connection.prepare_cached(DECISION).sql("read the decision")?;
        let digest = statement.query_row([attempt], digest).optional().sql("read the decision")?;
        Ok(digest.map(|digest| canonical(&[&digest.to_string()])))
    }

    /// The body of the receipt of a stop.
    pub(super) fn stop_record(&self, stop: i64) -> Result<Vec<u8>> {
        let mut statement = self.connection.prepare_cached(STOP).sql("read the stop")?;
        let digest = statement.query_row([stop], digest).sql("read the stop")?;
        Ok(canonical(&[&digest.to_string()]))
    }
}
