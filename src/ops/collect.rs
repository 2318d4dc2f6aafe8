//! What an attempt's files say of its end: read through its adapter, bounded in memory, and made ready to be stored.
//! The runner and the reconciler use the same eyes.

use crate::domain::outcome::{Cause, Report, Seen};
use crate::error::{Code, OrCode as _, Result};
use crate::host::dir;
use crate::store::{Object, Settlement, Spool};
use crate::worker::{Reader, Said};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// How much of standard error an adapter is shown.
const STDERR_TAIL: u64 = 64 << 10;

/// Follows an attempt's standard output through its adapter.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    reader: Reader,
    offset: u64,
}

impl Follower {
    /// Follows the attempt whose files are here.
    pub fn new(folder: &Path, reader: Reader) -> Self {
        Self { path: folder.join("stdout"), reader, offset: 0 }
    }

    /// Reads what is new and gives what was said; memory stays small whatever the worker prints.
    pub fn follow(&mut self) -> Result<Vec<Said>> {
        let what = || format!("cannot read '{}'", self.path.display());
        let mut said = Vec::new();
        let Ok(mut file) = File::open(&self.path) else { return Ok(said) };
        file.seek(SeekFrom::Start(self.offset)).or_code(Code::StoreUnusable, what)?;
        let mut block = [0; 16 << 10];
        loop {
            match file.read(&mut block).or_code(Code::StoreUnusable, what)? {
                0 => return Ok(said),
                n => {
                    self.offset += n as u64;
                    said.extend(self.reader.feed(&block[..n]));
                }
            }
        }
    }

    /// Reads to the end and says what the attempt came to.
    pub fn finish(mut self, folder: &Path, seen: &Seen) -> Result<Report> {
        self.follow()?;
        let stderr = dir::tail(&folder.join("stderr"), STDERR_TAIL).map(|(bytes, _)| bytes).unwrap_or_default();
        Ok(self.reader.finish(seen, &stderr))
    }
}

/// The evidence of an attempt, prepared to be named by its settlement.
#[derive(Debug)]
pub struct Evidence {
    report: Report,
    seen: Option<Seen>,
    result: Option<Object>,
    stdout: Option<Object>,
    stderr: Option<Object>,
}

impl Evidence {
    /// Gathers what is in an attempt's directory.
    pub fn gather(spool: &Spool, folder: &Path, seen: Option<Seen>, report: Report) -> Result<Self> {
        let started = seen.as_ref().is_none_or(|seen| seen.cause != Cause::NotExecuted);
        let file = |name: &str| if started { spool.prepare_file(&folder.join(name)) } else { Ok(None) };
        let (stdout, stderr) = (file("stdout")?, file("stderr")?);
        let result = match &report.answer {
            Some(answer) if !answer.is_empty() => Some(spool.prepare(answer)?),
            Some(_) => None,
            None => stdout.clone(),
        };
        Ok(Self { report, seen, result, stdout, stderr })
    }

    /// What the worker is said to have done.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The settlement that names all of it.
    pub fn settlement(&self) -> Settlement<'_> {
        Settlement {
            report: &self.report,
            seen: self.seen.as_ref(),
            result: self.result.clone(),
            stdout: self.stdout.clone(),
            stderr: self.stderr.clone(),
        }
    }
}
