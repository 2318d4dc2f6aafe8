//! What is only ever added: permits and the receipts of their use, events, findings, resolutions.

use super::{Columns, Ledger, Sql as _, View};
use crate::domain::digest::Digest;
use crate::domain::id::{AttemptId, JobId};
use crate::domain::job::Decision;
use crate::domain::outcome::Outcome;
use crate::domain::time::Time;
use crate::error::{Code, Error, Result};
use rusqlite::{OptionalExtension as _, params};

/// One link of the chain.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// Its place.
    pub seq: i64,
    /// What it is a receipt of.
    pub kind: String,
    /// About what.
    pub subject: String,
    /// The digest of the link.
    pub digest: Digest,
}

/// Authority for one effect of an attempt.
#[derive(Clone, Debug)]
pub struct Permit {
    /// Its number.
    pub id: i64,
    /// What it permits, as a word.
    pub effect: String,
    /// On what.
    pub target: String,
    /// Its state, as a word.
    pub state: String,
    /// What happened, as a word, once that is settled.
    pub outcome: Option<String>,
}

/// A decision about something uncertain.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// What was decided.
    pub decision: String,
    /// The digest of the evidence that it was made on.
    pub evidence: Option<Digest>,
    /// By whom, as JSON.
    pub by: String,
    /// Why.
    pub because: String,
    /// When.
    pub at: Time,
}

/// Something that was noticed.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Of what kind.
    pub kind: String,
    /// What, as JSON.
    pub body: String,
    /// Content that belongs to it.
    pub object: Option<Digest>,
    /// When.
    pub at: Time,
}

/// Length-prefixed fields: the canonical bytes of a receipt's body.
pub(super) fn canonical(fields: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in fields {
        bytes.extend_from_slice(&u32::try_from(field.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend_from_slice(field.as_bytes());
    }
    bytes
}

impl Ledger<'_> {
    /// Issues and consumes the permit of a dispatch in one transaction with it, and commits its preflight receipt.
    pub(super) fn consume_dispatch(&mut self, attempt: AttemptId, effect: &str, binding: &Digest) -> Result<i64> {
        let what = "consume the permit";
        let name = attempt.to_string();
        let sql = "INSERT INTO permits (job, attempt_n, actor, effect, target, binding, issued_at)
                   VALUES (?1, ?2, ?3, 'dispatch', ?4, ?5, ?6)";
        let row = params![attempt.job.0, attempt.n, self.by, effect, binding.bytes(), self.now.0];
        self.connection.prepare_cached(sql).and_then(|mut s| s.execute(row)).sql("issue the permit")?;
        let permit = self.connection.last_insert_rowid();
        let body = canonical(&[&permit.to_string(), &binding.to_string(), &self.now.0.to_string()]);
        let receipt = self.receipt("preflight", &name, &body)?;
        let sql = "UPDATE permits SET state = 'consumed', consumed_at = ?2, preflight = ?3
                   WHERE id = ?1 AND state = 'issued'";
        let row = params![permit, self.now.0, receipt];
        match self.connection.prepare_cached(sql).and_then(|mut s| s.execute(row)).sql(what)? {
            1 => Ok(permit),
            _ => Err(Error::new(Code::PermitDenied, format!("permit {permit} is not issued any more"))),
        }
    }

    /// Records the outcome of a consumed permit, with its receipt.
    pub(super) fn settle_permit(
        &mut self,
        attempt: AttemptId,
        permit: i64,
        outcome: Outcome,
        facts: &[&str],
    ) -> Result<()> {
        let mut fields = vec![outcome.word()];
        fields.extend_from_slice(facts);
        let (name, record) = (permit.to_string(), self.attempt_record(attempt)?.to_string());
        fields.extend([name.as_str(), record.as_str()]);
        let receipt = self.receipt("outcome", &attempt.to_string(), &canonical(&fields))?;
        let sql = "UPDATE permits SET state = 'settled', outcome = ?2, settled_at = ?3, duration_ms = ?3 - consumed_at,
                     receipt = ?4 WHERE id = ?1 AND state = 'consumed'";
        let row = params![permit, outcome.word(), self.now.0, receipt];
        let changed = self.connection.prepare_cached(sql).and_then(|mut s| s.execute(row)).sql("settle the permit")?;
        if changed == 1 {
            return Ok(());
        }
        Err(Error::new(Code::Fenced, format!("permit {permit} of {attempt} is settled already")))
    }

    /// Adds a link to the chain: digest = H(previous, seq, kind, subject, body digest).
    pub(super) fn receipt(&mut self, kind: &str, subject: &str, body: &[u8]) -> Result<i64> {
        let what = "write the receipt";
        let sql = "SELECT seq, digest FROM receipts ORDER BY seq DESC LIMIT 1";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?));
        let last = self.connection.prepare_cached(sql).and_then(|mut s| s.query_row([], read).optional()).sql(what)?;
        let (seq, previous) = last.map_or((1, vec![0; 32]), |(seq, digest)| (seq + 1, digest));
        let body_digest = Digest::of("ares.receipt.body.1", &[body]);
        let digest = link(&previous, seq, kind, subject, &body_digest);
        let sql = "INSERT INTO receipts (seq, previous, kind, subject, body, bytes, digest)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let row = params![seq, previous, kind, subject, body_digest.bytes(), body, digest.bytes()];
        self.connection.prepare_cached(sql).and_then(|mut s| s.execute(row)).sql(what)?;
        Ok(seq)
    }

    /// Puts an event into the outbox; a second one of the same subject and kind is refused by the schema.
    pub fn event(&mut self, subject: &str, kind: &str, job: Option<JobId>, body: &str) -> Result<()> {
        let sql = "INSERT INTO events (subject, kind, job, body, at) VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = params![subject, kind, job.map(|job| job.0), body, self.now.0];
        self.connection.prepare_cached(sql).and_then(|mut s| s.execute(row)).sql("write the event").map(drop)
    }

    /// Notes something that belongs to no state.
    pub fn finding(&mut self, kind: &str, subject: &str, body: &str, object: Option<&Digest>) -> Result<()> {
        let sql = "INSERT INTO findings (kind, subject, body, object, at) VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = params![kind, subject, body, object.map(|digest| digest.bytes().as_slice()), self.now.0];
        self.connection.prepare_cached(sql).and_then(|mut s| s.execute(row)).sql("write the finding").map(drop)
    }

    /// Writes a decision beside an uncertain attempt; the first one wins.
    pub(super) fn insert_resolution(
        &mut self,
        attempt: AttemptId,
        decision: Decision,
        by: &str,
        because: &str,
        evidence: Option<&Digest>,
    ) -> Result<()> {
        if let Some(first) = self.resolution(attempt)? {
            let said = format!("{attempt} was decided '{}' because: {}", first.decision, first.because);
            return Err(Error::new(Code::AlreadyDecided, said));
        }
        let sql = "INSERT INTO resolutions (kind, subject, decision, evidence, by, because, at)
                   VALUES ('attempt', ?1, ?2, ?3, ?4, ?5, ?6)";
        let by = serde_json::json!({ "by": by, "process": self.by }).to_string();
        let evidence = evidence.map(|digest| digest.bytes().as_slice());
        let row = params![attempt.to_string(), decision.word(), evidence, by, because, self.now.0];
        self.connection.execute(sql, row).sql("write the decision").map(drop)
    }
}

/// What a dispatch permits: this attempt of exactly this frozen job, and no other.
pub fn binding(attempt: AttemptId, spec: &Digest, nonce: &Digest) -> Digest {
    Digest::of("ares.dispatch.1", &[attempt.to_string().as_bytes(), spec.bytes(), nonce.bytes()])
}

/// The digest of one link.
pub(super) fn link(previous: &[u8], seq: i64, kind: &str, subject: &str, body: &Digest) -> Digest {
    let fields: [&[u8]; 5] = [previous, &seq.to_be_bytes(), kind.as_bytes(), subject.as_bytes(), body.bytes()];
    Digest::of("ares.receipt.1", &fields)
}

impl View<'_> {
    /// The decision about an attempt, if there is one.
    pub fn resolution(&self, attempt: AttemptId) -> Result<Option<Resolution>> {
        let sql = "SELECT subject, decision, by, because, at, evidence FROM resolutions WHERE kind = 'attempt' AND subject = ?1";
        let mut statement = self.connection.prepare_cached(sql).sql("read the decision")?;
        let read = |row: &rusqlite::Row<'_>| {
            let columns = &mut Columns::of(row, "the decision on attempt", 1);
            columns.next::<String>()?;
            Ok(Resolution {
                decision: columns.word(Decision::parse)?.word().to_owned(),
                by: columns.any_json()?,
                because: columns.next()?,
                at: Time(columns.next()?),
                evidence: columns.maybe_digest()?,
            })
        };
        statement.query_row([attempt.to_string()], read).optional().sql("read the decision")
    }

    /// What was noticed about a subject.
    pub fn findings(&self, subject: &str) -> Result<Vec<Finding>> {
        let sql = "SELECT id, kind, body, object, at FROM findings WHERE subject = ?1 ORDER BY id";
        let mut statement = self.connection.prepare_cached(sql).sql("read findings")?;
        let read = |row: &rusqlite::Row<'_>| {
            let columns = &mut Columns::of(row, "finding", 1);
            columns.next::<i64>()?;
            Ok(Finding {
                kind: columns.next()?,
                body: columns.any_json()?,
                object: columns.maybe_digest()?,
                at: Time(columns.next()?),
            })
        };
        statement.query_map([subject], read).and_then(Iterator::collect).sql("read findings")
    }

    /// What an attempt was permitted to do, in order, the first of which was its dispatch.
    pub fn permits_of(&self, attempt: AttemptId, first: i64) -> Result<Vec<Permit>> {
        let sql = "SELECT id, effect, target, state, outcome FROM permits
                   WHERE id >= ?3 AND job = ?1 AND attempt_n = ?2 ORDER BY id";
        let mut statement = self.connection.prepare_cached(sql).sql("read permits")?;
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Permit {
                id: row.get(0)?,
                effect: row.get(1)?,
                target: row.get(2)?,
                state: row.get(3)?,
                outcome: row.get(4)?,
            })
        };
        let rows = statement.query_map(params![attempt.job.0, attempt.n, first], read);
        rows.and_then(Iterator::collect).sql("read permits")
    }

    /// The receipts of a permit: of its use, and of its outcome.
    pub fn receipts(&self, permit: i64) -> Result<Vec<Receipt>> {
        let sql = "SELECT r.seq, r.kind, r.subject, r.digest FROM permits p JOIN receipts r
                   ON r.seq IN (p.preflight, p.receipt) WHERE p.id = ?1 ORDER BY r.seq";
        let mut statement = self.connection.prepare_cached(sql).sql("read receipts")?;
        let read = |row: &rusqlite::Row<'_>| {
            let columns = &mut Columns::of(row, "receipt", 1);
            Ok(Receipt {
                seq: columns.next()?,
                kind: columns.next()?,
                subject: columns.next()?,
                digest: columns.digest()?,
            })
        };
        statement.query_map([permit], read).and_then(Iterator::collect).sql("read receipts")
    }
}
