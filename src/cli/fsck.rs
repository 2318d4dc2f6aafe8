//! ares-fsck: verify everything.

use super::{Answer, Context, Field, Row, Run};
use crate::error::{Code, Error, Result};
use crate::ops::fsck;
use crate::store::Fault;
use std::path::PathBuf;

/// Verify everything in a store
///
/// Checks the pages of the database, every rule between its rows, the chain of receipts, all digests, and the modes
/// and leftovers of the files around it. Each thing that does not hold is one record.
///
/// The status is 0 when all holds, 1 when a rule does not, and 6 when bytes are not what was written.
#[derive(clap::Args)]
pub struct Args {
    /// Have every page and every index entry looked at; slower
    #[arg(long)]
    pub full: bool,

    /// First put right what cannot lose anything: leftovers and modes
    #[arg(long)]
    pub repair: bool,

    /// Check these files of exported receipts too
    ///
    /// A directory stands for the files in it that ares-gc named. Exported receipts of which no file is among them are told.
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub exported: Vec<PathBuf>,
}

impl Run for Args {
    const NAME: &'static str = "ares-fsck";
    const MUTATES: bool = false;
    const COLUMNS: &'static [&'static str] = &["rule", "subject", "detail"];
    const FIELDS: &'static [Field] = &[
        ("rule", "text: which rule does not hold; a stable word"),
        ("subject", "text: what breaks it"),
        ("detail", "text: in words"),
        ("damage", "boolean: whether bytes are not what was written"),
    ];
    const ERRORS: &'static [Code] = &[Code::Findings, Code::StoreDamaged];
    const EXAMPLES: &'static str = "\
$ ares-init --quiet .ares >/dev/null
$ ares-submit -- true
1
$ ares-run --quiet >/dev/null
$ ares-fsck --full
$ chmod 0755 .ares/locks/write.lock
$ ares-fsck --format '%(rule)'
mode
ares-fsck: ARES_FINDINGS: [..]
...
? 1
$ ares-fsck --repair
";
    const NOTES: &'static str = include_str!("notes/fsck.txt");

    fn run(self, cx: &mut Context) -> Result<Answer> {
        let store = cx.store()?;
        let mut faults = fsck::fsck(store, self.full, self.repair)?;
        if !self.exported.is_empty() {
            faults.extend(fsck::exported(store, &self.exported)?);
        }
        let row = |fault: &Fault| {
            Row::new()
                .with("rule", fault.rule)
                .with("subject", fault.subject.clone())
                .with("detail", fault.detail.clone())
                .with("damage", fault.damage)
        };
        cx.out().answer(&Answer::rows(Self::COLUMNS, faults.iter().map(row).collect()));
        let damaged = faults.iter().filter(|fault| fault.damage).count();
        match (faults.len(), damaged) {
            (0, _) => Ok(Answer::Nothing),
            (n, 0) => Ok(Answer::No(Error::new(Code::Findings, format!("things that do not hold: {n}")))),
            (_, n) => Err(Error::new(Code::StoreDamaged, format!("things that are not what was written: {n}"))),
        }
    }
}
