//! ares-demo: the main job on real input, in a store that is thrown away.

use super::{Answer, Context, Field, Row, Run};
use crate::domain::moves::Word as _;
use crate::error::{Code, Result};
use crate::ops::demo::{self, Shown};

/// Show the main job at work in a throw-away store
///
/// Makes a store in a temporary directory, queues commands over real files, one that fails, and two turns of a worker
/// whose second resumes the first one's session; runs them outside this process, and lists what became of each.
/// No agent and no network are needed, and nothing outside that directory is touched.
#[derive(clap::Args)]
pub struct Args {
    /// Keep the store, and print where it is
    #[arg(long)]
    pub keep: bool,
}

impl Run for Args {
    const NAME: &'static str = "ares-demo";
    const MUTATES: bool = false;
    const COLUMNS: &'static [&'static str] = &["job", "state", "asked", "answer"];
    const FIELDS: &'static [Field] = &[
        ("job", "integer: the job"),
        ("state", "what became of it"),
        ("asked", "text: the command line that queued it"),
        ("answer", "text: the first line of its answer, or of its errors"),
        ("code", "text: why, for everything but a plain success"),
    ];
    const ERRORS: &'static [Code] = &[];
    const EXAMPLES: &'static str = "\
$ ares-demo --quiet --format '%(job) %(state)'
1 succeeded
2 succeeded
3 failed
4 succeeded
5 succeeded
";

    fn run(self, cx: &mut Context) -> Result<Answer> {
        cx.note("five jobs in a store of their own, each queued by the command line shown, run by one runner");
        let demo = demo::run(&cx.environment(), self.keep)?;
        let row = |shown: &Shown| {
            Row::new()
                .with("job", shown.job)
                .with("state", shown.state.word())
                .with("asked", shown.asked.clone())
                .with("answer", shown.answer.clone())
                .with("code", shown.code.clone())
        };
        cx.out().answer(&Answer::rows(Self::COLUMNS, demo.jobs.iter().map(row).collect()));
        match demo.kept {
            Some(path) => cx.note(&format!("the store is kept: ares list --store '{path}'")),
            None => {
                cx.note("job 3 failed on purpose, and that is recorded like any other end; the store is gone again")
            }
        }
        Ok(Answer::Nothing)
    }
}
