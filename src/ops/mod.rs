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
pub mod gc;
pub mod init;
pub mod list;
pub mod reconcile;
mod record;
pub mod resolve;
pub mod run;
pub mod settle;
pub mod show;
pub mod stop;
pub mod submit;
pub mod tidy;
pub mod wait;
pub mod wrap;

use crate::domain::id::AttemptId;
use crate::error::{Code, Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Who calls, and from where: what the command line found out, so that nothing here reads the environment.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The environment, for what workers are given of it.
    pub env: BTreeMap<String, String>,
    /// The current directory; `None` where it cannot be told, as when it was removed: most commands do without.
    pub cwd: Option<PathBuf>,
    /// The attempt that we run inside of, if the caller is a worker of this store.
    pub attempt: Option<AttemptId>,
}

impl Caller {
    /// The current directory, for what cannot do without.
    pub fn cwd(&self) -> Result<&Path> {
        self.cwd.as_deref().ok_or_else(|| {
            Error::new(Code::Usage, "the current directory is gone or cannot be read")
                .hint("go to one that is there, or name every directory and file by its absolute path")
        })
    }

    /// The current directory as bytes, for a digest; none where it is gone.
    pub fn cwd_bytes(&self) -> &[u8] {
        self.cwd.as_deref().map_or(&[], |cwd| cwd.as_os_str().as_encoded_bytes())
    }

    /// A variable of the environment.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str)
    }
}
