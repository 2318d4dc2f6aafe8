//! Receipts that left: a prefix of the chain, written to a file before its rows are removed. What remains begins after
//! the segment, and the segment's file can be held against its row at any time.

use super::evidence::link;
use super::jobs::erased::Json as _;
use super::{Fault, Ledger, Sql as _, Store, View};
use crate::domain::digest::Digest;
use crate::domain::id::JobId;
use crate::error::{Code, Error, Result};
use crate::host::dir;
use rusqlite::{OptionalExtension as _, params};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How many receipts leave at once: they are removed in one transaction.
const SEGMENT_MAX: i64 = 20_000;

/// The largest file that is read as a segment.
const FILE_MAX: u64 = 1 << 30;

/// The form of a segment's file.
const FORM: &str = "ares.receipts.1";

/// The first line of a segment's file.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    segment: String,
    store: String,
    first: i64,
    last: i64,
    previous: String,
}

/// Each further line: one receipt with its body.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    seq: i64,
    kind: String,
    subject: String,
    body: String,
    body_digest: String,
    digest: String,
}

/// A prefix of the chain, ready to be written.
#[derive(Debug)]
pub struct Segment {
    /// Its first receipt.
    pub first: i64,
    /// Its last one.
    pub last: i64,
    last_digest: Digest,
    /// What its file holds.
    pub bytes: Vec<u8>,
}

impl Segment {
    /// How many receipts it has.
    pub fn count(&self) -> i64 {
        self.last - self.first + 1
    }

    /// What its file is called where nobody chose a name.
    pub fn file_name(&self) -> String {
        format!("receipts-{:012}-{:012}.jsonl", self.first, self.last)
    }

    fn file_digest(&self) -> Digest {
        Digest::of_content(&self.bytes)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| u8::try_from(digit(*pair.first()?)? * 16 + digit(*pair.get(1)?)?).ok();
    text.as_bytes().chunks(2).map(byte).collect()
}

impl View<'_> {
    /// The receipts that may leave once these jobs are gone: those before the first one of a job that is still there, and
    /// never the last of all, which the next one follows. None where the chain begins with one that stays.
    pub fn segment(&self, gone: &[JobId]) -> Result<Option<Segment>> {
        let what = "read the receipts";
        let sql = "SELECT (SELECT min(seq) FROM receipts), min(coalesce((SELECT r.seq FROM receipts r WHERE
                     CAST(r.subject AS INTEGER) NOT IN (SELECT value FROM json_each(?1))
                     AND EXISTS (SELECT 1 FROM jobs j WHERE j.id = CAST(r.subject AS INTEGER)) ORDER BY r.seq LIMIT 1),
                   9223372036854775807), (SELECT max(seq) FROM receipts)) - 1";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?));
        let (Some(first), Some(last)) = self.connection.query_row(sql, [gone.json()], read).sql(what)? else {
            return Ok(None);
        };
        let last = last.min(first + SEGMENT_MAX - 1);
        if last < first {
            return Ok(None);
        }
        let sql = "SELECT seq, kind, subject, bytes, body, digest, previous FROM receipts
                   WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq";
        let mut statement = self.connection.prepare(sql).sql(what)?;
        let mut rows = statement.query([first, last]).sql(what)?;
        let (mut bytes, mut last_digest) = (Vec::new(), None);
        while let Some(row) = rows.next().sql(what)? {
            let blob = |at| row.get::<_, Vec<u8>>(at).sql(what);
            let line = Line {
                seq: row.get(0).sql(what)?,
                kind: row.get(1).sql(what)?,
                subject: row.get(2).sql(what)?,
                body: hex(&blob(3)?),
                body_digest: hex(&blob(4)?),
                digest: hex(&blob(5)?),
            };
            if bytes.is_empty() {
                let store = self.meta("id")?.unwrap_or_default();
                let head = Head { segment: FORM.to_owned(), store, first, last, previous: hex(&blob(6)?) };
                bytes.extend_from_slice(format!("{}\n", head.json()).as_bytes());
            }
            bytes.extend_from_slice(format!("{}\n", line.json()).as_bytes());
            last_digest = Digest::from_bytes(&blob(5)?);
        }
        let lost = || Error::new(Code::StoreDamaged, format!("the receipts {first} to {last} do not read"));
        Ok(Some(Segment { first, last, last_digest: last_digest.ok_or_else(lost)?, bytes }))
    }

    /// Whether a segment's file is accounted for.
    pub fn knows_segment(&self, segment: &Segment) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM segments WHERE file_digest = ?1)";
        self.connection.query_row(sql, [segment.file_digest().bytes()], |row| row.get(0)).sql("read the segments")
    }

    /// The segments must follow one another from the first receipt on, and the chain must follow the last of them.
    pub(super) fn check_segments(&self) -> Result<Vec<Fault>> {
        let what = "check the segments";
        let mut statement = self.connection.prepare("SELECT first, last FROM segments ORDER BY first").sql(what)?;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let rows: Vec<_> = statement.query_map([], read).and_then(Iterator::collect).sql(what)?;
        let (mut faults, mut next) = (Vec::new(), 1);
        for (first, last) in &rows {
            if *first != next || last < first {
                faults.push(Fault::damage("segment", format!("segment {first}"), "does not follow the one before it"));
            }
            next = last + 1;
        }
        let sql = "SELECT min(seq) FROM receipts";
        let begins: Option<i64> = self.connection.query_row(sql, [], |row| row.get(0)).sql(what)?;
        if !rows.is_empty() && begins != Some(next) {
            faults.push(Fault::damage("segment", format!("receipt {next}"), "is gone, which follows the last segment"));
        }
        Ok(faults)
    }

    /// A file against its row and its own digests; gives the segment that it is.
    fn check_segment_file(&self, path: &Path) -> Result<std::result::Result<i64, Fault>> {
        let shown = path.display().to_string();
        let damage = |why: &str| Ok(Err(Fault::damage("segment-file", shown.clone(), why)));
        let bytes = dir::read_bounded(path, FILE_MAX)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines();
        let head = lines.next().and_then(|line| serde_json::from_str::<Head>(line).ok());
        let Some(head) = head.filter(|head| head.segment == FORM) else { return damage("is not a segment") };
        if Some(&head.store) != self.meta("id")?.as_ref() {
            return Ok(Err(Fault::broken("segment-file", shown, "is of another store")));
        }
        let sql = "SELECT last, last_digest, file_digest FROM segments WHERE first = ?1";
        let read =
            |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, Vec<u8>>(2)?));
        let row = self.connection.query_row(sql, [head.first], read).optional().sql("check the segments")?;
        let Some((last, last_digest, file_digest)) = row.filter(|(last, _, _)| *last == head.last) else {
            let why = "was left by an export that was not finished: its receipts are still in the store";
            return Ok(Err(Fault::broken("segment-file", shown, why)));
        };
        if Digest::of_content(&bytes).bytes().as_slice() != file_digest {
            return damage("has changed");
        }
        let mut expected = (head.first, unhex(&head.previous));
        for line in lines {
            let line = serde_json::from_str::<Line>(line).ok();
            let digest = line.as_ref().and_then(|line| follows(&expected, line));
            let Some(digest) = digest else { return damage("does not hold together") };
            expected = (expected.0 + 1, Some(digest.bytes().to_vec()));
        }
        if expected != (last + 1, Some(last_digest)) {
            return damage("ends elsewhere than its row says");
        }
        Ok(Ok(head.first))
    }
}

/// The digest of a line that follows these; none where it does not.
fn follows((seq, previous): &(i64, Option<Vec<u8>>), line: &Line) -> Option<Digest> {
    let body = Digest::parse(&line.body_digest)?;
    let whole = Digest::of("ares.receipt.body.1", &[&unhex(&line.body)?]) == body;
    let digest = link(previous.as_deref()?, *seq, &line.kind, &line.subject, &body);
    (whole && line.seq == *seq && digest.to_string() == line.digest).then_some(digest)
}

impl Store {
    /// Holds files of segments against their rows. A segment of which there is no file among them is told too.
    pub fn check_segment_files(&self, files: &[std::path::PathBuf]) -> Result<Vec<Fault>> {
        self.read(|view| {
            let (mut faults, mut found) = (Vec::new(), Vec::new());
            for file in files {
                match view.check_segment_file(file)? {
                    Ok(first) => found.push(first),
                    Err(fault) => faults.push(fault),
                }
            }
            let sql = "SELECT first, last FROM segments ORDER BY first";
            let mut statement = view.connection.prepare(sql).sql("check the segments")?;
            let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
            let rows: Vec<_> = statement.query_map([], read).and_then(Iterator::collect).sql("check the segments")?;
            let missing = rows.into_iter().filter(|(first, _)| !found.contains(first));
            faults.extend(missing.map(|(first, last)| {
                let why = "was exported, and no whole file of it was named";
                Fault::broken("segment-file", format!("receipts {first} to {last}"), why)
            }));
            Ok(faults)
        })
    }
}

impl Ledger<'_> {
    /// Removes the receipts of a segment whose file is durable, and accounts for it. Says whether that was done: not where
    /// the chain begins elsewhere by now, or one of their jobs stayed.
    pub fn cut_segment(&mut self, segment: &Segment) -> Result<bool> {
        let what = "remove the receipts";
        let Segment { first, last, last_digest, .. } = segment;
        let sql = "SELECT (SELECT min(seq) FROM receipts) = ?1 AND (SELECT max(seq) FROM receipts) > ?2
                   AND EXISTS (SELECT 1 FROM receipts WHERE seq = ?2 AND digest = ?3)
                   AND NOT EXISTS (SELECT 1 FROM receipts r JOIN jobs j ON j.id = CAST(r.subject AS INTEGER)
                     WHERE r.seq BETWEEN ?1 AND ?2)";
        let holds: bool =
            self.connection.query_row(sql, params![first, last, last_digest.bytes()], |row| row.get(0)).sql(what)?;
        if !holds {
            return Ok(false);
        }
        let sql =
            "INSERT INTO segments (first, last, last_digest, file_digest, exported_at) VALUES (?1, ?2, ?3, ?4, ?5)";
        let file_digest = segment.file_digest();
        let row = params![first, last, last_digest.bytes(), file_digest.bytes(), self.now.0];
        self.connection.execute(sql, row).sql(what)?;
        self.connection.execute("DELETE FROM receipts WHERE seq BETWEEN ?1 AND ?2", [first, last]).sql(what)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_reads_back_what_it_wrote() {
        assert_eq!(unhex(&hex(&[0, 15, 255])), Some(vec![0, 15, 255]));
        assert!(unhex("0").is_none() && unhex("zz").is_none());
    }
}
