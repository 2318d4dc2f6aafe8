//! ares-gc: retention, and giving back what is not needed.

use super::context::here;
use super::{Answer, Context, Field, Row, Run, args};
use crate::domain::time::Span;
use crate::error::{Code, Error, Result};
use crate::ops::gc::{self, Order, Swept};
use std::path::PathBuf;

/// Remove finished jobs that are old, and give back what nothing needs
///
/// With --older-than or --keep finished jobs are removed with all that only they have: attempts, output, usage, events,
/// their lines in the log. With both, a job goes only where neither keeps it. What is queued, running, uncertain or held
/// always stays, and so does what it refers to; a conversation goes as a whole or stays.
///
/// Without them nothing of the record is removed: only content that nothing refers to, files that crashes left, free pages
/// and the write-ahead log.
///
/// What went, or with --dry-run would go, is one record.
#[derive(clap::Args)]
pub struct Args {
    /// Remove only jobs that ended longer ago than this
    #[arg(long, value_name = "AGE", value_parser = args::span)]
    pub older_than: Option<Span>,

    /// Remove only jobs beyond the N that ended last
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub keep: Option<i64>,

    /// Write receipts of jobs that are gone here, and remove them
    ///
    /// A new file, or a directory in which one is made. It is synced before any receipt is removed. At most 20000 receipts
    /// leave at once. Without this option receipts stay.
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub export: Option<PathBuf>,

    /// Print what would go, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

impl Run for Args {
    const NAME: &'static str = "ares-gc";
    const MUTATES: bool = true;
    const COLUMNS: &'static [&'static str] =
        &["jobs", "objects", "files", "bytes", "pages", "frames", "receipts", "segment"];
    const FIELDS: &'static [Field] = &[
        ("jobs", "integer: jobs that were removed"),
        ("objects", "integer: pieces of content, such as prompts and outputs, that nothing refers to any more"),
        ("files", "integer: files, of content and of what crashes left"),
        ("bytes", "integer: bytes of that content and of those files"),
        (
            "pages",
            "integer: pages of the database, which were free and are given back; with --dry-run those that are free already",
        ),
        ("frames", "integer: how many frames the write-ahead log had, which is cut to nothing"),
        ("receipts", "integer: receipts that were exported"),
        ("segment", "text: the file that they are in"),
    ];
    const ERRORS: &'static [Code] = &[Code::BadInput];
    const EXAMPLES: &'static str = "\
$ ares-init --quiet .ares >/dev/null
$ for n in 1 2 3 4 5; do ares-submit --quiet -- echo $n >/dev/null; done
$ ares-run --drain --quiet >/dev/null
$ ares-gc --keep 2 --dry-run --format '%(jobs) jobs, %(objects) objects'
3 jobs, 3 objects
$ ares-gc --keep 2 --export . --format '%(jobs) jobs, %(receipts) receipts in %(segment)'
3 jobs, 6 receipts in [..]/receipts-000000000001-000000000006.jsonl
$ ares-list --format '%(job) %(state)'
4 succeeded
5 succeeded
$ ares-show 3
ares-show: ARES_NOT_FOUND: job 3 is gone: removed by the ares-gc of [..]
hint: see ares-log --verb gc
? 14
$ ares-fsck --exported .
";
    const NOTES: &'static str = include_str!("notes/gc.txt");

    fn run(self, cx: &mut Context) -> Result<Answer> {
        let export = self.export.map(|path| here().map(|here| here.join(path))).transpose()?;
        let order = Order { older_than: self.older_than, keep: self.keep, export };
        if self.dry_run {
            if cx.op_id().is_some() {
                return Err(Error::new(Code::Usage, "--dry-run changes nothing, so it takes no --op-id"));
            }
            cx.reads_only();
            return Ok(Answer::rows(Self::COLUMNS, vec![row(&gc::dry_run(cx.store()?, &order)?)]));
        }
        let (swept, left) = gc::gc(cx.store()?, cx.op_id().map(str::to_owned), &order)?;
        if left.files > 0 {
            cx.note(&format!("{} files stay for now: content is being written", left.files));
        }
        if let Some(why) = &left.log {
            cx.note(&format!("the write-ahead log stays for now: {why}"));
        }
        Ok(Answer::rows(Self::COLUMNS, vec![row(&swept)]))
    }
}

fn row(swept: &Swept) -> Row {
    Row::new()
        .with("jobs", swept.jobs)
        .with("objects", swept.objects)
        .with("files", swept.files)
        .with("bytes", swept.bytes)
        .with("pages", swept.pages)
        .with("frames", swept.frames)
        .with("receipts", swept.receipts)
        .with("segment", swept.segment.clone())
}
