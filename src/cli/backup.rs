//! ares-backup: a consistent copy, and a store made of one.

use super::context::absolute;
use super::{Answer, Context, Field, Run};
use crate::error::{Code, OrCode as _, Result};
use crate::ops::backup;
use std::path::PathBuf;

/// Copy a store while it is in use, or make a store of a copy
///
/// The copy is one moment of the store: its database, objects and configuration, verified before the directory gets
/// its name. It is refused as a store where it lies, so that nothing runs from it by mistake.
///
/// With --restore the copy becomes a store in a new directory. Jobs that were queued at the moment of the copy are
/// queued there again, whatever became of them since: look at them before a runner does.
#[derive(clap::Args)]
pub struct Args {
    /// Where the copy goes, or with --restore the new store; must not exist
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub dir: PathBuf,

    /// Make a store of this copy instead
    #[arg(long, value_name = "BACKUP", value_hint = clap::ValueHint::DirPath, conflicts_with = "store")]
    pub restore: Option<PathBuf>,
}

impl Run for Args {
    const NAME: &'static str = "ares-backup";
    const MUTATES: bool = false;
    const COLUMNS: &'static [&'static str] = &["backup"];
    const FIELDS: &'static [Field] = &[("backup", "text: the absolute path of what was made")];
    const ERRORS: &'static [Code] = &[Code::StoreDamaged, Code::NotFound];
    const EXAMPLES: &'static str = "\
$ ares-init --quiet .ares >/dev/null
$ ares-submit -- true
1
$ ares-backup copy
[..]/copy
$ ares-list --store copy
ares-list: ARES_STORE_COPIED: [..]
...
? 5
$ ares-backup --restore copy again
[..]/again
$ ares-list --store again --format '%(job) %(state)'
1 queued
";
    const NOTES: &'static str = include_str!("notes/backup.txt");

    fn run(self, cx: &mut Context) -> Result<Answer> {
        let dir = absolute(&self.dir)?;
        match &self.restore {
            Some(copy) => backup::restore(copy, &dir, Some(cx.wait_lock()))?,
            None => backup::backup(cx.store()?, &dir)?,
        }
        let shown = dir.canonicalize().or_code(Code::StoreUnusable, || format!("cannot find '{}'", dir.display()))?;
        Ok(Answer::id("backup", shown.to_string_lossy().into_owned()))
    }
}
