//! Everything that must hold in a store, as queries and recomputed digests, for `ares-fsck`. It changes nothing.

use super::rules::{JSON, RULES, UNWRITTEN};
use super::{Operations, Section, Sql as _, Store, View, open, place};
use crate::domain::digest::Digest;
use crate::domain::id::JobId;
use crate::domain::moves;
use crate::error::{Code, Result};
use crate::fault;
use rusqlite::types::Value;

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

/// How many lines of the log are read at once.
const PAGE: i64 = 1000;

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

impl Store {
    /// Checks everything that the database can tell. `full` has SQLite look at every page and index entry.
    pub fn check(&self, full: bool) -> Result<Vec<Fault>> {
        self.read(|view| {
            let mut faults = view.check_schema()?;
            if !faults.is_empty() {
                return Ok(faults);
            }
            faults.extend(view.check_pages(full)?);
            if faults.iter().any(|fault| fault.damage) {
                return Ok(faults);
            }
            faults.extend(view.check_words()?);
            if faults.iter().any(|fault| fault.damage) {
                return Ok(faults);
            }
            if let Err(error) = place::check_place(view, view.root) {
                faults.push(Fault::broken("place", "meta", error.message));
            }
            faults.extend(view.check_moves()?);
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
    /// Every table, index and trigger must be there as it was written. What stands beside them is not ours.
    fn check_schema(&self) -> Result<Vec<Fault>> {
        let found = self.subjects("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")?;
        let mut written = vec![open::without_comments(open::SCHEMA)];
        for section in Section::ALL {
            if self.has(section)? {
                written.push(open::without_comments(section.sql()));
            }
        }
        let missing = written.iter().flat_map(|text| statements(text)).filter(|statement| !found.contains(statement));
        let fault = |statement: String| {
            let subject = statement.split(['(', ' ']).skip(1).take(2).collect::<Vec<_>>().join(" ").to_lowercase();
            Fault::damage("schema", subject, "is gone, or is not as it was written")
        };
        Ok(missing.map(fault).collect())
    }

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
            faults.extend(self.subjects(sql)?.into_iter().map(|subject| Fault::broken(rule, subject, *detail)));
        }
        for (table, column, value) in UNWRITTEN {
            let sql = format!("SELECT count(*) FROM {table} WHERE {column} IS NOT {value} HAVING count(*) > 0");
            let detail = format!("has a '{column}', which this ares never writes");
            faults.extend(self.subjects(&sql)?.into_iter().map(|_| Fault::broken("unwritten", *table, detail.clone())));
        }
        Ok(faults)
    }

    /// What a query gives, as text.
    fn subjects(&self, sql: &str) -> Result<Vec<String>> {
        let mut statement = self.connection.prepare(sql).sql("check a rule")?;
        let values: Vec<Value> =
            statement.query_map([], |row| row.get(0)).and_then(Iterator::collect).sql("check a rule")?;
        Ok(values.iter().map(shown).collect())
    }

    /// Every row must read as what it is: nothing else can be said of one that does not.
    fn check_words(&self) -> Result<Vec<Fault>> {
        let mut faults = Vec::new();
        for (of, sql) in JSON {
            let detail = "holds JSON that does not read";
            faults.extend(self.subjects(sql)?.iter().map(|id| Fault::damage("unread", format!("{of} {id}"), detail)));
        }
        for id in self.numbers("SELECT id FROM jobs ORDER BY id")?.into_iter().map(JobId) {
            read(&mut faults, self.job(id))?;
            read(&mut faults, self.attempts(id))?;
            read(&mut faults, self.all_dependencies(id))?;
            read(&mut faults, self.stop_of(id))?;
        }
        for id in self.numbers("SELECT id FROM sessions ORDER BY id")? {
            read(&mut faults, self.session(id))?;
        }
        for subject in self.subjects("SELECT DISTINCT subject FROM findings UNION SELECT subject FROM resolutions")? {
            read(&mut faults, self.findings(&subject))?;
            if let Ok(attempt) = subject.parse() {
                read(&mut faults, self.resolution(attempt))?;
            }
        }
        for key in self.subjects("SELECT key FROM keys")? {
            read(&mut faults, self.key(&key))?;
        }
        let mut after = Some(0);
        while let Some(id) = after {
            let page = self.operations(&Operations::default(), id, PAGE);
            after = page.as_ref().ok().and_then(|page| page.last()).map(|last| last.id);
            read(&mut faults, page)?;
        }
        Ok(faults)
    }

    fn numbers(&self, sql: &str) -> Result<Vec<i64>> {
        let mut statement = self.connection.prepare(sql).sql("check the rows")?;
        statement.query_map([], |row| row.get(0)).and_then(Iterator::collect).sql("check the rows")
    }

    /// The moves that the triggers look up must be those of the domain.
    fn check_moves(&self) -> Result<Vec<Fault>> {
        let found = self.subjects("SELECT kind || ' ' || old || ' ' || new FROM moves ORDER BY 1")?;
        let mut known = moves::listed();
        known.sort();
        let differ = || Fault::damage("moves", "moves", "are not the moves that ares makes");
        Ok((found != known).then(differ).into_iter().collect())
    }

    /// Recomputes what every job was frozen as.
    fn check_specs(&self) -> Result<Vec<Fault>> {
        let mut faults = Vec::new();
        for id in self.numbers("SELECT id FROM jobs ORDER BY id")?.into_iter().map(JobId) {
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
        let mut statement = self.connection.prepare("SELECT digest, size FROM objects").sql("check the objects")?;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?));
        let rows: Vec<_> = statement.query_map([], read).and_then(Iterator::collect).sql("check the objects")?;
        let mut faults = Vec::new();
        for (bytes, size) in rows {
            let Some(digest) = Digest::from_bytes(&bytes) else {
                faults.push(Fault::damage(OBJECT, "objects", "have a row without a digest"));
                continue;
            };
            match self.object(&digest) {
                Ok(content) if i64::try_from(content.len()) == Ok(size) => {}
                Ok(_) => faults.push(Fault::damage(OBJECT, digest.to_string(), "has another size than its row says")),
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

/// Tells what does not read as damage.
fn read<T>(faults: &mut Vec<Fault>, row: Result<T>) -> Result<()> {
    match row {
        Err(error) if error.code == Code::StoreDamaged => faults.push(Fault::damage("unread", "a row", error.message)),
        Err(error) if error.code == Code::NotFound => {}
        other => drop(other?),
    }
    Ok(())
}

/// The statements of a schema that make something, as SQLite keeps them.
fn statements(schema: &str) -> impl Iterator<Item = String> {
    let begun = schema.split("; CREATE ").map(|piece| piece.strip_prefix("CREATE ").unwrap_or(piece));
    begun.map(|piece| {
        let end = ["; INSERT ", "; PRAGMA "].iter().filter_map(|next| piece.find(next)).min();
        format!("CREATE {}", piece[..end.unwrap_or(piece.len())].trim_end_matches(';'))
    })
}

fn shown(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Null | Value::Real(_) | Value::Blob(_) => String::new(),
    }
}
