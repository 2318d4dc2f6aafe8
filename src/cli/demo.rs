//! ares-demo: the suite at work in a throw-away store.

use super::{Answer, Context, Run, ops_todo};
use crate::error::Result;

/// Show the suite at work in a throw-away store
///
/// Makes a store in a temporary directory, queues a few commands, crashes one on purpose, reconciles it, and removes
/// the store. Nothing outside that directory is touched and no model is called.
#[derive(clap::Args)]
pub struct Args {
    /// Keep the store and print where it is
    #[arg(long)]
    pub keep: bool,
}

impl Run for Args {
    const NAME: &'static str = "ares-demo";
    const MUTATES: bool = false;
    const EXAMPLES: &'static str = "\
$ ares-demo
...
";

    fn run(self, _cx: &mut Context) -> Result<Answer> {
        ops_todo("demo") // WIRE: the demonstration
    }
}
