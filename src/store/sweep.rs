//! What nothing refers to: content, rows of jobs that were removed, old lines of the log, files that no row names, free
//! pages, the write-ahead log. All of it is looked for without a lock and looked at again under it, in small pieces.

use super::jobs::erased::Json as _;
use super::objects::{file_of, objects_lock};
use super::{Columns, Ledger, Sql as _, Store, View};
use crate::domain::digest::Digest;
use crate::domain::id::JobId;
use crate::domain::time::Time;
use crate::error::Result;
use crate::host::{clock, dir, lock};
use rusqlite::{named_params, params};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// How long files are removed under the write lock before others get their turn.
const FILES_TURN: Duration = Duration::from_millis(30);

/// How many pages are given back in one transaction.
const PAGES_TURN: usize = 256;

/// How often it is tried to cut the write-ahead log to nothing while someone reads from it, and the pause between.
const CUT_TRIES: u32 = 20;
const CUT_PAUSE: Duration = Duration::from_millis(25);

/// Content that nothing refers to and rows that belong to nothing, as they were found.
#[derive(Debug, Default)]
pub struct Spare {
    /// Digest, size, and whether it is a file.
    objects: Vec<(Digest, i64, bool)>,
    /// The numbers of rows, for each of [`STRAYS`].
    strays: Vec<Vec<i64>>,
    /// The last rows then: what refers to content since is among those after them.
    seen: Marks,
}

impl Spare {
    /// How many things they are.
    pub fn count(&self) -> usize {
        self.objects.len() + self.strays.iter().map(Vec::len).sum::<usize>()
    }

    /// What would go.
    pub fn going(&self) -> Gone {
        let mut gone = Gone { strays: self.strays.iter().map(Vec::len).sum(), ..Gone::default() };
        self.objects.iter().for_each(|(digest, size, file)| gone.object(*digest, *size, *file));
        gone
    }
}

/// The highest numbers of the tables whose new rows may refer to content.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    job: i64,
    event: i64,
    resolution: i64,
}

/// What was removed from the database.
#[derive(Debug, Default)]
pub struct Gone {
    /// How many pieces of content.
    pub objects: i64,
    /// How many bytes of it were in the database.
    pub bytes: i64,
    /// Content whose file nobody names any more, with its size.
    pub files: Vec<Loose>,
    /// How many rows that belonged to nothing.
    pub strays: usize,
}

impl Gone {
    fn object(&mut self, digest: Digest, size: i64, file: bool) {
        self.objects += 1;
        if file {
            self.files.push(Loose { path: PathBuf::new(), digest: Some(digest), size });
        } else {
            self.bytes += size;
        }
    }
}

/// A file under `objects/` that no row named when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loose {
    path: PathBuf,
    /// Whose content it is; none of a file that was being written.
    digest: Option<Digest>,
    /// Its size.
    pub size: i64,
}

/// A table whose rows belong to jobs without referring to them, how a row tells its job, and which rows are meant. The
/// row with the highest number of each always stays, so that no number is given twice.
const STRAYS: &[(&str, &str, &str)] = &[
    ("permits", "job", "job IS NOT NULL"),
    ("events", "job", "job IS NOT NULL"),
    ("findings", "CAST(subject AS INTEGER)", "CAST(subject AS INTEGER) > 0"),
    ("stops", "CAST(subject AS INTEGER)", "scope = 'job'"),
    // Decisions and removals stay told. A batch has one line for all its jobs, which follow each other and were submitted
    // at the same moment.
    (
        "operations",
        "CAST(subject AS INTEGER)",
        "op_id IS NULL AND at < :horizon AND subject <> '' AND verb NOT IN ('gc', 'decide') AND (verb <> 'submit'
         OR (SELECT j.submitted_at FROM jobs j WHERE j.id > CAST(t.subject AS INTEGER)
             AND j.id NOT IN (SELECT value FROM json_each(?1)) ORDER BY j.id LIMIT 1) IS NOT t.at)",
    ),
];

/// Content that is referred to by anything but these jobs and what would go with them.
const UNUSED: &str = "WITH gone(id) AS (SELECT value FROM json_each(?1)), used(digest) AS (
      SELECT prompt FROM jobs WHERE prompt IS NOT NULL AND id NOT IN gone
      UNION ALL SELECT result FROM attempts WHERE result IS NOT NULL AND job NOT IN gone
      UNION ALL SELECT stdout FROM attempts WHERE stdout IS NOT NULL AND job NOT IN gone
      UNION ALL SELECT stderr FROM attempts WHERE stderr IS NOT NULL AND job NOT IN gone
      UNION ALL SELECT object FROM findings WHERE object IS NOT NULL AND id NOT IN (SELECT value FROM json_each(?2))
      UNION ALL SELECT evidence FROM resolutions WHERE evidence IS NOT NULL)
    SELECT digest, size, bytes IS NULL FROM objects WHERE digest NOT IN (SELECT digest FROM used)";

/// Content that is referred to although it was found unused: by rows that came since, or by jobs that stayed after all.
/// Whatever ends an attempt adds an event to it.
const USED_SINCE: &str = "WITH gone(id) AS (SELECT value FROM json_each(:gone)), ended(result, stdout, stderr) AS (
      SELECT a.result, a.stdout, a.stderr FROM events e JOIN attempts a ON a.job = e.job AND e.subject = a.job || '.' || a.n
        WHERE e.id > :event
      UNION ALL SELECT result, stdout, stderr FROM attempts WHERE job IN gone)
    SELECT prompt FROM jobs WHERE id > :job UNION ALL SELECT prompt FROM jobs WHERE id IN gone
    UNION ALL SELECT result FROM ended UNION ALL SELECT stdout FROM ended UNION ALL SELECT stderr FROM ended
    UNION ALL SELECT object FROM findings WHERE object IS NOT NULL
    UNION ALL SELECT evidence FROM resolutions WHERE id > :resolution";

impl View<'_> {
    /// What nothing refers to once these jobs are gone. It reads all rows that may refer to something, and nobody waits
    /// for it. Lines of the log go up to the horizon; without one they all stay.
    pub fn spare(&self, gone: &[JobId], horizon: Option<Time>) -> Result<Spare> {
        let what = "look for what is not used";
        let gone = gone.json();
        let mut strays = Vec::new();
        for (table, job, rows) in STRAYS {
            let sql = format!(
                "SELECT t.id FROM {table} t WHERE {} AND t.id < (SELECT max(id) FROM {table}) AND (
                 {job} IN (SELECT value FROM json_each(?1)) OR NOT EXISTS (SELECT 1 FROM jobs k WHERE k.id = {job}))",
                rows.replace(":horizon", &horizon.map_or(i64::MIN, |time| time.0).to_string())
            );
            let mut statement = self.connection.prepare(&sql).sql(what)?;
            strays.push(statement.query_map([&gone], |row| row.get(0)).and_then(Iterator::collect).sql(what)?);
        }
        let findings: &Vec<i64> = &strays[2];
        let mut statement = self.connection.prepare(UNUSED).sql(what)?;
        let read = |row: &rusqlite::Row<'_>| {
            let columns = &mut Columns::of(row, "an object", 0);
            Ok((columns.digest()?, columns.next()?, columns.next()?))
        };
        let objects =
            statement.query_map(params![gone, findings.json()], read).and_then(Iterator::collect).sql(what)?;
        Ok(Spare { objects, strays, seen: self.marks()? })
    }

    fn marks(&self) -> Result<Marks> {
        let sql = "SELECT (SELECT coalesce(max(id), 0) FROM jobs), (SELECT coalesce(max(id), 0) FROM events),
                   (SELECT coalesce(max(id), 0) FROM resolutions)";
        let read =
            |row: &rusqlite::Row<'_>| Ok(Marks { job: row.get(0)?, event: row.get(1)?, resolution: row.get(2)? });
        self.connection.query_row(sql, [], read).sql("look for the last rows")
    }

    /// How many pages of the database hold nothing.
    pub fn free_pages(&self) -> Result<i64> {
        self.connection.query_row("PRAGMA freelist_count", [], |row| row.get(0)).sql("count the free pages")
    }

    /// Of these files, those that no row names.
    pub fn loose(&self, files: Vec<Loose>) -> Result<Vec<Loose>> {
        let named = |digest: &Digest| self.object_size(digest).map(|size| size.is_some());
        let mut loose = Vec::new();
        for file in files {
            if !file.digest.as_ref().map(named).transpose()?.unwrap_or(false) {
                loose.push(file);
            }
        }
        Ok(loose)
    }
}

impl Ledger<'_> {
    /// Removes what was found spare and still is, at most so many things. `gone` are the jobs that it was found without.
    /// Only within [`Store::unreferenced`].
    pub fn sweep(&mut self, found: &Spare, gone: &[JobId], most: usize) -> Result<Gone> {
        let what = "remove what is not used";
        let (mut swept, mut left) = (Gone::default(), most);
        for ((table, job, _), ids) in STRAYS.iter().zip(&found.strays) {
            let some = &ids[..ids.len().min(left)];
            left -= some.len();
            let sql = format!(
                "DELETE FROM {table} AS t WHERE t.id IN (SELECT value FROM json_each(?1))
                 AND t.id < (SELECT max(id) FROM {table}) AND NOT EXISTS (SELECT 1 FROM jobs k WHERE k.id = {job})"
            );
            if !some.is_empty() {
                swept.strays +=
                    self.connection.prepare_cached(&sql).and_then(|mut s| s.execute([some.json()])).sql(what)?;
            }
        }
        let mut statement = self.connection.prepare_cached(USED_SINCE).sql(what)?;
        let Marks { job, event, resolution } = found.seen;
        let given = named_params! { ":gone": gone.json(), ":job": job, ":event": event, ":resolution": resolution };
        let used: BTreeSet<Option<Vec<u8>>> =
            statement.query_map(given, |row| row.get(0)).and_then(Iterator::collect).sql(what)?;
        let mut statement = self.connection.prepare_cached("DELETE FROM objects WHERE digest = ?1").sql(what)?;
        for (digest, size, file) in found.objects.iter().take(left) {
            let bytes = digest.bytes();
            if !used.contains(&Some(bytes.to_vec())) && statement.execute([bytes]).sql(what)? == 1 {
                swept.object(*digest, *size, *file);
            }
        }
        Ok(swept)
    }
}

impl Store {
    /// Every file under `objects/`. They are listed before a row is asked for, so one that is named by then was named
    /// before it could be taken for a leftover.
    pub fn content_files(&self) -> Result<Vec<Loose>> {
        let root = self.root.join("objects");
        let mut files = Vec::new();
        for folder in dir::names(&root)? {
            for name in dir::names(&root.join(&folder))? {
                let path = root.join(&folder).join(&name);
                let digest = Digest::parse(&format!("{folder}{name}"));
                // What has another name is not ours, except what we were writing.
                let ours = digest.is_some() || (name.starts_with('.') && name.ends_with(".tmp"));
                let Ok(meta) = path.symlink_metadata() else { continue };
                if ours && !meta.is_dir() {
                    files.push(Loose { path, digest, size: i64::try_from(meta.len()).unwrap_or(i64::MAX) });
                }
            }
        }
        Ok(files)
    }

    /// Removes files that no row names. Gives how many stay because someone is about to name some.
    pub fn remove_loose(&mut self, files: &[Loose]) -> Result<usize> {
        let mut left = files;
        while !left.is_empty() {
            let removed = self.write(clock::now(), |ledger| {
                let Some(_alone) = lock::try_lock(&objects_lock(ledger.root))? else { return Ok(0) };
                let began = clock::mark();
                let mut removed = 0;
                for file in left {
                    if ledger.loose(vec![file.clone()])?.is_empty() {
                        removed += 1;
                        continue;
                    }
                    let path = file.digest.as_ref().map_or(file.path.clone(), |digest| file_of(ledger.root, digest));
                    dir::remove_file(&path)?;
                    removed += 1;
                    if began.elapsed() > FILES_TURN {
                        break;
                    }
                }
                Ok(removed)
            })?;
            if removed == 0 {
                break;
            }
            left = &left[removed..];
        }
        Ok(left.len())
    }

    /// Gives free pages back to the file system, a few in each transaction.
    pub fn give_back_pages(&mut self) -> Result<()> {
        while self.read(|view| view.free_pages())? > 0 {
            let given = self.write(clock::now(), |ledger| {
                let before = ledger.free_pages()?;
                let sql = format!("PRAGMA incremental_vacuum({PAGES_TURN})");
                let mut statement = ledger.connection.prepare(&sql).sql("give pages back")?;
                let mut rows = statement.query([]).sql("give pages back")?;
                while rows.next().sql("give pages back")?.is_some() {}
                drop(rows);
                Ok(before - ledger.free_pages()?)
            })?;
            if given <= 0 {
                break;
            }
        }
        Ok(())
    }

    /// How many frames the write-ahead log has.
    pub fn log_frames(&self) -> Result<i64> {
        self.checkpoint("NOOP").map(i64::from).sql("look at the write-ahead log")
    }

    /// Copies the write-ahead log into the database and cuts it to nothing. Most of it is copied while others write; who
    /// still reads from it is waited for a moment without any lock. Says why it is not empty, where it is not.
    pub fn cut_log(&mut self) -> Result<Option<String>> {
        if let Err(error) = self.checkpoint_now("PASSIVE") {
            return Ok(Some(error.to_string()));
        }
        for _ in 0..CUT_TRIES {
            {
                let _order = lock::lock(&self.root.join("locks/write.lock"), self.wait)?;
                self.empty_wal();
            }
            if self.log_frames()? == 0 {
                return Ok(None);
            }
            std::thread::sleep(CUT_PAUSE);
        }
        Ok(Some("someone reads from it".to_owned()))
    }
}
