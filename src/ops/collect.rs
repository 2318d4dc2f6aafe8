//! What an attempt's files say of its end: read through its adapter, bounded in memory, and made ready to be stored.
//! The runner and the reconciler use the same eyes.

use crate::domain::outcome::{Cause, Outcome, Report, Seen};
use crate::error::Result;
use crate::host::dir;
use crate::host::growing::Growing;
use crate::store::{Object, Settlement, Spool};
use crate::worker::{Reader, Said};
use std::path::Path;

/// How much of standard error an adapter is shown.
const STDERR_TAIL: u64 = 64 << 10;

/// Follows an attempt's standard output through its adapter.
#[derive(Debug)]
pub struct Follower {
    stdout: Growing,
    reader: Reader,
    capture: bool,
}

impl Follower {
    /// Follows the attempt whose files are here. Of a job whose output is not kept nothing else is known of it, and what
    /// it said in words is told nowhere.
    pub fn new(folder: &Path, reader: Reader, capture: bool) -> Self {
        Self { stdout: Growing::new(&folder.join("stdout")), reader, capture }
    }

    /// Reads what is new and gives what was said; memory stays small whatever the worker prints.
    pub fn follow(&mut self) -> Result<Vec<Said>> {
        let Self { stdout, reader, .. } = self;
        let mut all = Vec::new();
        stdout.read(&mut |bytes| {
            all.extend(reader.feed(bytes).into_iter().filter(|said| !matches!(said, Said::Event(_))));
            Ok(true)
        })?;
        Ok(all)
    }

    /// Reads to the end and says what the attempt came to.
    pub fn finish(mut self, folder: &Path, seen: &Seen) -> Result<Report> {
        let listens = self.reader.listens();
        if listens {
            self.follow()?;
        }
        let stderr = dir::tail(&folder.join("stderr"), STDERR_TAIL).map(|(bytes, _)| bytes).unwrap_or_default();
        let report = self.reader.finish(seen, &stderr);
        Ok(if self.capture || !listens { report } else { report.wordless(seen) })
    }
}

/// Removes what an attempt printed whose end is recorded and whose job keeps nothing of it; the rest of its files stays
/// until someone has decided what it came to.
pub fn forget(folder: &Path) {
    for name in ["stdout", "stderr"] {
        dir::clear_file(&folder.join(name));
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
    /// Gathers what is in an attempt's directory, or nothing of it.
    pub fn gather(spool: &Spool, folder: &Path, seen: Option<Seen>, report: Report, capture: bool) -> Result<Self> {
        let started = capture && seen.as_ref().is_none_or(|seen| seen.cause != Cause::NotExecuted);
        let file = |name: &str| if started { spool.prepare_file(&folder.join(name)) } else { Ok(None) };
        let (stdout, stderr) = (file("stdout")?, file("stderr")?);
        let result = match &report.answer {
            Some(answer) if !answer.is_empty() => Some(spool.prepare(answer)?),
            // What did not end well has no answer; what it printed is kept as its output.
            None if report.outcome == Outcome::Ok => stdout.clone(),
            Some(_) | None => None,
        };
        Ok(Self { report, seen, result, stdout, stderr })
    }

    /// What is known of an attempt whose worker was never started.
    pub fn nothing(report: Report) -> Self {
        Self { report, seen: None, result: None, stdout: None, stderr: None }
    }

    /// The same where a program that cannot be executed is not the job's own: the job is offered again, and nothing is
    /// counted against it.
    #[must_use]
    pub fn blameless(mut self) -> Self {
        self.report.blameless = true;
        self
    }

    /// What the worker is said to have done.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// What was seen of its end.
    pub fn seen(&self) -> Option<&Seen> {
        self.seen.as_ref()
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
