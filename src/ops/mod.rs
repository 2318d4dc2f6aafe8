//! One file per verb: its whole story, top to bottom. Never prints, knows no command line and no SQL.

pub mod ask;
pub mod backup;
pub mod claim;
pub mod collect;
pub mod decide;
pub mod demo;
pub mod dispatch;
pub mod evidence;
pub mod fleet;
pub mod fsck;
pub mod init;
pub mod reconcile;
mod record;
pub mod run;
pub mod settle;
pub mod show;
pub mod stop;
pub mod submit;
pub mod wait;
pub mod wrap;

use crate::domain::id::AttemptId;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Who calls, and from where: what the command line found out, so that nothing here reads the environment.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The environment, for what workers are given of it.
    pub env: BTreeMap<String, String>,
    /// The current directory.
    pub cwd: PathBuf,
    /// The attempt that we run inside of, if the caller is a worker of this store.
    pub attempt: Option<AttemptId>,
}

impl Caller {
    /// A variable of the environment.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str)
    }
}
