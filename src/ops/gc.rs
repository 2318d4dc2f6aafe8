//! Taking away what is not needed any more. Each step is worth keeping by itself, so that a death between two of them
//! costs nothing that the next call does not make good:
//!
//! 1. finished jobs that no retention keeps are removed in parts, each with its line in the log;
//! 2. receipts of jobs that are gone are written to a file, where that is asked for;
//! 3. the last part, what nothing refers to any more, and the receipts leave in one transaction, which keeps the answer;
//! 4. then files that no row names, free pages and the write-ahead log, which are no part of the record.
//!
//! What is to go is looked for without a lock, and looked at again under it.

use super::tidy::{self, Leftover};
use crate::domain::digest::Digest;
use crate::domain::id::JobId;
use crate::domain::time::{Span, Time};
use crate::error::{Code, Error, OrCode as _, Result};
use crate::fault;
use crate::host::{clock, dir};
use crate::store::{Done, Gone, Loose, REMOVED, Request, Retention, Retirable, Segment, Spare, Store, told_removed};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// How many jobs go in one transaction.
const JOBS_AT_ONCE: usize = 500;

/// How many things that nothing refers to go in one transaction.
const SPARE_AT_ONCE: usize = 2_000;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// Keep finished jobs that ended within this span.
    pub older_than: Option<Span>,
    /// Keep the newest so many finished jobs.
    pub keep: Option<i64>,
    /// Write receipts of jobs that are gone to this file, or to a new file in this directory, and remove them.
    pub export: Option<PathBuf>,
}

/// What went, or would go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swept {
    /// Jobs, with all that only they had.
    pub jobs: i64,
    /// Pieces of content.
    pub objects: i64,
    /// Files.
    pub files: i64,
    /// The bytes of content and files.
    pub bytes: i64,
    /// Pages of the database; not known beforehand.
    pub pages: Option<i64>,
    /// Frames that the write-ahead log had.
    pub frames: i64,
    /// Receipts that were exported.
    pub receipts: i64,
    /// The file that they are in.
    pub segment: Option<String>,
}

/// What could not be done now and is done by the next call.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// Files that stay because someone is about to name some.
    pub files: usize,
    /// Why the write-ahead log stays, where it does.
    pub log: Option<String>,
}

/// What is to be removed in the end, as it was found.
struct Found {
    last: Retirable,
    going: Vec<JobId>,
    spare: Spare,
    loose: Vec<Loose>,
    leftovers: Vec<Leftover>,
    segment: Option<(Segment, PathBuf)>,
}

impl Order {
    fn retention(&self, now: Time) -> Retention {
        let since = self.older_than.map(|span| Time(now.0.saturating_sub(span.0)));
        Retention { since, newest: self.keep }
    }

    /// A place that cannot be written to is told before anything is removed.
    fn check(&self) -> Result<()> {
        self.export.iter().try_for_each(|export| target(export, "").map(drop))
    }

    fn request(&self, op_id: Option<String>) -> Request {
        let number = |value: Option<i64>| value.map_or_else(String::new, |value| value.to_string());
        let export = self.export.as_ref().map_or_else(String::new, |path| path.display().to_string());
        let fields = [number(self.older_than.map(|span| span.0)), number(self.keep), export];
        let fields: Vec<&[u8]> = fields.iter().map(String::as_bytes).collect();
        Request::new(op_id, || Digest::of("ares.gc.1", &fields))
    }
}

/// Says what would go, and changes nothing.
pub fn dry_run(store: &Store, order: &Order) -> Result<Swept> {
    order.check()?;
    let frames = store.log_frames()?;
    let all = store.read(|view| view.retirable(&order.retention(clock::now())))?;
    let found = look(store, order, all)?;
    let jobs = i64::try_from(found.going.len()).unwrap_or(i64::MAX);
    let pages = Some(store.read(|view| view.free_pages())?);
    let mut swept = Swept { jobs, frames, pages, ..Swept::default() };
    swept.add(&found.spare.going());
    swept.add_files(&found);
    if let Some((segment, path)) = &found.segment {
        (swept.receipts, swept.segment) = (segment.count(), Some(path.display().to_string()));
    }
    Ok(swept)
}

/// Takes away what is not needed any more.
pub fn gc(store: &mut Store, op_id: Option<String>, order: &Order) -> Result<(Swept, Left)> {
    let request = order.request(op_id);
    if let Some(first) = store.repeated::<Swept>("gc", &request)? {
        // The first time may have ended between its last commit and what follows it.
        let loose = loose(store)?;
        return Ok((first, clean(store, &loose, &tidy::leftovers(store)?)?));
    }
    order.check()?;
    let now = clock::now();
    let mut swept = Swept { frames: store.log_frames()?, ..Swept::default() };
    let all = store.read(|view| view.retirable(&order.retention(now)))?;
    let horizon = all.horizon;
    let mut parts = all.parts(JOBS_AT_ONCE);
    let last = parts.pop().unwrap_or_default();
    for part in &parts {
        let gone = remove_part(store, |ledger| Ok((ledger.retire(part)?, Gone::default())));
        swept.jobs += gone.map_err(|error| in_the_middle(error, swept.jobs))?.0;
        fault::point("gc.part");
    }
    loop {
        let spare = store.read(|view| view.spare(&[], horizon))?;
        if spare.count() <= SPARE_AT_ONCE {
            break;
        }
        let (_, gone) = remove_part(store, |ledger| Ok((Vec::new(), ledger.sweep(&spare, &[], SPARE_AT_ONCE)?)))?;
        // Their files are counted with those that no row names.
        swept.objects += gone.objects;
        swept.bytes += gone.bytes;
        if gone.strays == 0 && gone.objects == 0 {
            break;
        }
    }
    let found = look(store, order, last)?;
    let written = export(&found)?;
    fault::point("gc.exported");
    let before = swept.jobs;
    let first = commit(store, &request, &found, swept).map_err(|error| in_the_middle(error, before));
    let cut = first.as_ref().is_ok_and(|(swept, _)| swept.segment.is_some());
    if let (Some((segment, path)), true, false) = (&found.segment, written, cut) {
        withdraw(store, segment, path, first.is_ok())?;
    }
    let (swept, files) = first?;
    fault::point("gc.committed");
    let left = clean(store, &[found.loose, files].concat(), &found.leftovers)?;
    Ok((swept, left))
}

/// A failure after some parts went says so.
fn in_the_middle(mut error: Error, jobs: i64) -> Error {
    if jobs > 0 {
        error.message += &format!("; {jobs} jobs were removed before, the next call goes on");
    }
    error
}

impl Swept {
    fn add(&mut self, gone: &Gone) {
        self.objects += gone.objects;
        self.files += i64::try_from(gone.files.len()).unwrap_or(i64::MAX);
        self.bytes += gone.bytes + gone.files.iter().map(|file| file.size).sum::<i64>();
    }

    fn add_files(&mut self, found: &Found) {
        self.files += i64::try_from(found.loose.len()).unwrap_or(i64::MAX);
        self.files += found.leftovers.iter().map(|leftover| leftover.files).sum::<i64>();
        self.bytes += found.loose.iter().map(|file| file.size).sum::<i64>();
        self.bytes += found.leftovers.iter().map(|leftover| leftover.bytes).sum::<i64>();
    }

    /// The line of the log.
    fn note(&self, gone: &[JobId]) -> String {
        let counted =
            [(self.objects, "objects"), (self.files, "files"), (self.bytes, "bytes"), (self.receipts, "receipts")];
        let counted = counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        told_removed(gone).into_iter().chain(counted).collect::<Vec<_>>().join("; ")
    }
}

/// Removes a part in a transaction of its own, with its own line in the log: there is no change without its line.
fn remove_part(
    store: &mut Store,
    body: impl FnOnce(&mut crate::store::Ledger<'_>) -> Result<(Vec<JobId>, Gone)>,
) -> Result<(i64, Gone)> {
    store.unreferenced(|store| {
        store.write(clock::now(), |ledger| {
            let (jobs, gone) = body(ledger)?;
            let mut swept = Swept::default();
            swept.add(&gone);
            if !jobs.is_empty() || gone.objects > 0 || gone.strays > 0 {
                let done = Done { note: swept.note(&jobs), ..Done::new(REMOVED, ()) };
                ledger.record("gc", None, &done)?;
            }
            Ok((i64::try_from(jobs.len()).unwrap_or(i64::MAX), gone))
        })
    })
}

/// Looks for everything that the last transaction is to remove. Files are listed before rows are read.
fn look(store: &Store, order: &Order, last: Retirable) -> Result<Found> {
    let (files, leftovers) = (store.content_files()?, tidy::leftovers(store)?);
    let going = last.jobs();
    let (spare, loose, segment) = store.read(|view| {
        let segment = if order.export.is_some() { view.segment(&going)? } else { None };
        Ok((view.spare(&going, last.horizon)?, view.loose(files)?, segment))
    })?;
    let segment = match (segment, &order.export) {
        (Some(segment), Some(export)) => {
            let path = target(export, &segment.file_name())?;
            Some((segment, path))
        }
        _ => None,
    };
    Ok(Found { last, going, spare, loose, leftovers, segment })
}

/// The file that receipts are written to under this name.
fn target(export: &Path, name: &str) -> Result<PathBuf> {
    let path = if export.is_dir() { export.join(name) } else { export.to_owned() };
    let folder = path.parent().unwrap_or(Path::new("/"));
    let named = folder.canonicalize().or_code(Code::BadInput, || format!("no directory '{}'", folder.display()))?;
    Ok(named.join(path.file_name().unwrap_or_default()))
}

/// Writes the receipts to their file, durably. Says whether the file was made. One that is there already with the same
/// content was made by a call that did not get further.
fn export(found: &Found) -> Result<bool> {
    let Some((segment, path)) = &found.segment else { return Ok(false) };
    if path.symlink_metadata().is_ok() {
        let most = u64::try_from(segment.bytes.len()).unwrap_or(u64::MAX);
        if dir::read_bounded(path, most).is_ok_and(|bytes| bytes == segment.bytes) {
            return Ok(false);
        }
        return Err(Error::new(Code::Usage, format!("'{}' is there already", path.display()))
            .hint("name a directory, or a file that does not exist"));
    }
    dir::write_durable(path, &segment.bytes)?;
    Ok(true)
}

/// Takes back a file whose receipts did not leave, unless another call accounted for the same file. Where it is not known
/// whether they left, the file stays.
fn withdraw(store: &Store, segment: &Segment, path: &Path, known: bool) -> Result<()> {
    if known && !store.read(|view| view.knows_segment(segment))? {
        dir::remove_file(path)?;
    }
    Ok(())
}

/// The last transaction: gives the answer, and the files of content that it removed.
fn commit(store: &mut Store, request: &Request, found: &Found, before: Swept) -> Result<(Swept, Vec<Loose>)> {
    let mut files = Vec::new();
    let swept = store.unreferenced(|store| {
        store.operate(clock::now(), "gc", request, |ledger| {
            let mut swept = before;
            let jobs = ledger.retire(&found.last)?;
            swept.jobs += i64::try_from(jobs.len()).unwrap_or(i64::MAX);
            let gone = ledger.sweep(&found.spare, &found.going, usize::MAX)?;
            swept.add(&gone);
            swept.add_files(found);
            if let Some((segment, path)) = &found.segment
                && ledger.cut_segment(segment)?
            {
                (swept.receipts, swept.segment) = (segment.count(), Some(path.display().to_string()));
            }
            let pages = ledger.free_pages()?;
            swept.pages = Some(pages);
            let changed =
                [swept.jobs, swept.objects, swept.files, swept.receipts, pages].iter().any(|count| *count > 0);
            let note = swept.note(&jobs);
            let changed = changed || gone.strays > 0;
            files = gone.files;
            Ok(Done { note, changed, ..Done::new(REMOVED, swept) })
        })
    })?;
    Ok((swept, files))
}

fn loose(store: &Store) -> Result<Vec<Loose>> {
    let files = store.content_files()?;
    store.read(|view| view.loose(files))
}

/// What is no part of the record: files, free pages, the write-ahead log. What is asked for is committed by now, so a
/// store that is busy is left to the next call.
fn clean(store: &mut Store, loose: &[Loose], leftovers: &[Leftover]) -> Result<Left> {
    let busy = |error: Error| if error.code == Code::StoreBusy { Ok(()) } else { Err(error) };
    let files = store.remove_loose(loose).or_else(|error| busy(error).map(|()| loose.len()))?;
    leftovers.iter().try_for_each(|leftover| tidy::remove(store, leftover).or_else(busy))?;
    fault::point("gc.cleaned");
    store.give_back_pages().or_else(busy)?;
    fault::point("gc.vacuumed");
    let log = store.cut_log().or_else(|error| busy(error).map(|()| Some("someone writes to it".to_owned())))?;
    Ok(Left { files, log })
}
