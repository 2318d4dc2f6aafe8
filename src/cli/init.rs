//! ares-init: make a store, or upgrade one.

use super::context::{Place, absolute};
use super::{Answer, Context, Field, Run};
use crate::error::{Code, OrCode as _, Result};
use crate::ops::init;
use std::path::PathBuf;

/// Make a store, or upgrade one
///
/// A store is a directory of mode 0700 that belongs to the caller. Where there is one of this version already, nothing
/// happens. A store of an older version is refused without --upgrade, and a copied or unpacked one without --adopt.
#[derive(clap::Args)]
pub struct Args {
    /// The directory; default $ARES_DIR, else .ares
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath, conflicts_with = "store")]
    pub dir: Option<PathBuf>,

    /// Upgrade a store of an older version
    ///
    /// Stop everything that uses it, and make a copy of its directory, first.
    #[arg(long, conflicts_with = "adopt")]
    pub upgrade: bool,

    /// Accept a store that was copied or unpacked here
    ///
    /// Read its config.toml first: it names programs that will be run. Its queued jobs are queued here too; what was
    /// running where it came from is uncertain here, and what was only claimed is queued again.
    #[arg(long)]
    pub adopt: bool,

    /// Accept a file system whose locks cannot be trusted
    ///
    /// On a network file system two machines may run one job twice.
    #[arg(long)]
    pub unsafe_fs: bool,
}

impl Run for Args {
    const NAME: &'static str = "ares-init";
    const MUTATES: bool = true;
    const COLUMNS: &'static [&'static str] = &["store"];
    const FIELDS: &'static [Field] = &[("store", "text: the absolute path of the store")];
    const ERRORS: &'static [Code] = &[Code::StoreCopied, Code::StoreNetwork, Code::SchemaOld, Code::SchemaNew];
    const EXAMPLES: &'static str = "\
$ ares-init queue
[..]/queue
$ ares-init queue
[..]/queue
";
    const NOTES: &'static str = include_str!("notes/init.txt");

    fn run(self, cx: &mut Context) -> Result<Answer> {
        let dir = match self.dir {
            Some(dir) => dir,
            None => match cx.place()? {
                Place::Named(dir) => dir,
                Place::Upward(here) => here.join(".ares"),
            },
        };
        let dir = absolute(&dir)?;
        let wait = Some(cx.wait_lock());
        let op_id = cx.op_id().map(str::to_owned);
        if self.upgrade {
            let before = init::upgrade(&dir, op_id, wait)?;
            cx.note(&format!("version {before} is version {} now", crate::store::VERSION));
        } else if self.adopt {
            init::adopt(&dir, op_id, wait)?;
        } else {
            init::init(&dir, self.unsafe_fs, op_id, wait)?;
        }
        let shown = dir.canonicalize().or_code(Code::StoreUnusable, || format!("cannot find '{}'", dir.display()))?;
        Ok(Answer::id("store", shown.to_string_lossy().into_owned()))
    }
}
