//! ares-submit: queue one job, or many. What is given here is resolved and frozen by the operation.

use super::context::read;
use super::{Answer, Context, Field, Run, args, ops_todo};
use crate::domain::id::JobId;
use crate::domain::spec::{IfUncertain, PROMPT_MAX, Then};
use crate::domain::time::Span;
use crate::error::{Code, Error, Result};
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

/// The largest batch: 64 MiB.
const BATCH_MAX: usize = 64 << 20;

/// Queue one job, or many
///
/// The job's number is printed. Everything about it is resolved and frozen now: program, worker, model, options,
/// prompt, directory and limits; a later change of defaults cannot change it.
///
/// What follows -- is a command for a worker that runs commands, and otherwise the words of the prompt, joined by
/// spaces. With no words the prompt is read from --file, or from standard input. A prompt is never an option's value.
#[derive(clap::Args)]
pub struct Args {
    /// The worker that does it
    ///
    /// A name from config.toml, or one that is built in: command, codex, claude, hermes, ollama.
    #[arg(short, long, value_name = "NAME", default_value = "command", value_parser = args::name)]
    pub worker: String,

    /// The model to ask for; default the worker's own
    #[arg(short, long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Read the prompt from a file
    ///
    /// - is standard input. A prompt has at most 1 MiB.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "words")]
    pub file: Option<PathBuf>,

    /// Run it in this directory; default the current one
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub dir: Option<PathBuf>,

    /// Pass this environment variable on to the worker
    ///
    /// The value is read when the job is dispatched and never stored. May be given several times.
    #[arg(long, value_name = "NAME")]
    pub env: Vec<String>,

    /// Set an option of the worker's adapter
    ///
    /// May be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = args::pair)]
    pub option: Vec<(String, String)>,

    /// Stop an attempt after this long; default never
    ///
    /// What a stopped attempt did is not known: it ends uncertain.
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    pub timeout: Option<Span>,

    /// Stop an attempt that printed nothing for this long after its start
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    pub timeout_first: Option<Span>,

    /// Stop an attempt that prints nothing for this long
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    pub timeout_idle: Option<Span>,

    /// Time between asking a worker to end and ending it
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = args::span)]
    pub grace: Span,

    /// Bound of each output stream in bytes; k, M and G are powers of 1024
    ///
    /// A worker that prints more is stopped, and its output is cut with a mark.
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = args::bytes)]
    pub output_max: i64,

    /// Higher runs first
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub priority: i64,

    /// Do not start before this moment
    ///
    /// 2031-05-01T06:00:00Z, @SECONDS since 1970, or +DURATION from now.
    #[arg(long, value_name = "MOMENT")]
    pub not_before: Option<String>,

    /// Wait for this job to succeed
    ///
    /// May be given several times. What happens when it ends otherwise is said by the next three options.
    #[arg(long, value_name = "JOB", value_parser = args::parsed::<JobId>)]
    pub after: Vec<JobId>,

    /// What to do when one of them failed
    #[arg(long, value_name = "WHAT", default_value = "hold", value_parser = args::words(Then::WORDS))]
    pub after_failed: Then,

    /// What to do when one of them was cancelled
    #[arg(long, value_name = "WHAT", default_value = "hold", value_parser = args::words(Then::WORDS))]
    pub after_cancelled: Then,

    /// What to do while one of them is uncertain
    #[arg(long, value_name = "WHAT", default_value = "hold", value_parser = args::words(Then::WORDS))]
    pub after_uncertain: Then,

    /// Count it in this concurrency group
    ///
    /// Without it, jobs of one credential directory are a group of width 1, and commands are in none.
    #[arg(long, value_name = "NAME", value_parser = args::name)]
    pub group: Option<String>,

    /// How many of the group may run at once; default 1, or what config.toml says
    #[arg(long, value_name = "N", requires = "group", value_parser = clap::value_parser!(i64).range(1..))]
    pub width: Option<i64>,

    /// Add a label
    ///
    /// May be given several times.
    #[arg(long, value_name = "NAME", value_parser = args::name)]
    pub label: Vec<String>,

    /// How many tries it may have
    ///
    /// Only failures that are recognised as worth another try use more than one.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i64).range(1..=1000))]
    pub max_tries: i64,

    /// Wait before the second try; doubled for each further one, an hour at most
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = args::span)]
    pub retry_delay: Span,

    /// What to do with an attempt that ends uncertain
    ///
    /// hold waits for a decision, retry does it again whatever it did, fail counts it as failed.
    #[arg(long, value_name = "WHAT", default_value = "hold", value_parser = args::words(IfUncertain::WORDS))]
    pub if_uncertain: IfUncertain,

    /// Submit at most once under this key
    ///
    /// Repeated with the same key and the same job, the first job's number is printed; with another job it is a
    /// conflict. Keys outlive their jobs.
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,

    /// What to do while a job with this label has not ended: skip, queue or fail
    #[arg(long, num_args = 2, value_names = ["LABEL", "skip|queue|fail"])]
    pub if_active: Vec<String>,

    /// Continue the session of this job
    #[arg(long = "continue", value_name = "JOB", value_parser = args::parsed::<JobId>)]
    pub continues: Option<JobId>,

    /// Queue one job for each record of standard input, all in one transaction
    ///
    /// A record is a line, or with -z ends with NUL: a JSON object with the long options' names as keys, and argv or
    /// prompt. Unknown keys are errors that name line and column. The options given beside it are the defaults.
    #[arg(long, conflicts_with_all = ["file", "words"])]
    pub stdin: bool,

    /// The command, or the words of the prompt
    #[arg(last = true, value_name = "WORD")]
    pub words: Vec<OsString>,
}

/// What to do while a job with the label has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfActive {
    /// Submit nothing and say no.
    Skip,
    /// Wait for it.
    Queue,
    /// Fail with a conflict.
    Fail,
}

impl Args {
    /// The prompt, unless the words are a command.
    pub fn prompt(&self) -> Result<Vec<u8>> {
        let text = match &self.file {
            Some(file) => read(file, PROMPT_MAX)?,
            None if !self.words.is_empty() => {
                self.words.iter().map(|word| word.as_encoded_bytes()).collect::<Vec<_>>().join(&b' ')
            }
            None if std::io::stdin().is_terminal() => {
                return Err(Error::new(Code::Usage, "no prompt was given")
                    .hint("write it after --, in a file with --file, or to standard input"));
            }
            None => read(Path::new("-"), PROMPT_MAX)?,
        };
        if text.len() > PROMPT_MAX {
            return Err(Error::new(Code::InputTooLarge, format!("the prompt is larger than {PROMPT_MAX} bytes")));
        }
        Ok(text)
    }

    /// The records of a batch with their numbers, from 1; empty ones are left out.
    pub fn batch(&self, cx: &Context) -> Result<Vec<(usize, Vec<u8>)>> {
        let end = if cx.null() { b'\0' } else { b'\n' };
        let text = read(Path::new("-"), BATCH_MAX)?;
        let records = text.split(|byte| *byte == end).enumerate();
        Ok(records.filter(|(_, r)| !r.trim_ascii().is_empty()).map(|(at, r)| (at + 1, r.to_vec())).collect())
    }

    /// The label to look at, and what to do.
    pub fn if_active(&self) -> Result<Option<(String, IfActive)>> {
        let [label, what] = self.if_active.as_slice() else { return Ok(None) };
        let what = match what.as_str() {
            "skip" => IfActive::Skip,
            "queue" => IfActive::Queue,
            "fail" => IfActive::Fail,
            other => {
                return Err(Error::new(Code::Usage, format!("'{other}' is not known to --if-active"))
                    .hint("write --if-active LABEL skip, queue or fail"));
            }
        };
        let label = args::name(label)
            .map_err(|hint| Error::new(Code::Usage, format!("'{label}' is not a label")).hint(hint))?;
        Ok(Some((label, what)))
    }
}

impl Run for Args {
    const NAME: &'static str = "ares-submit";
    const MUTATES: bool = true;
    const COLUMNS: &'static [&'static str] = &["job"];
    const FIELDS: &'static [Field] = &[("job", "integer: the job")];
    const ERRORS: &'static [Code] = &[
        Code::BadInput,
        Code::InputTooLarge,
        Code::BadConfig,
        Code::UnknownWorker,
        Code::WorkerRefused,
        Code::KeyConflict,
        Code::Active,
        Code::SessionBroken,
        Code::SessionUnknown,
        Code::NotFound,
    ];
    const EXAMPLES: &'static str = "\
$ ares-init --quiet .ares >/dev/null
$ ares-submit -- sort -u /etc/hostname
1
$ ares-submit --key nightly --label night -- true
2
$ ares-submit --key nightly --label night -- true
2
$ printf '{\"argv\":[\"true\"]}\\n{\"argv\":[\"false\"]}\\n' | ares-submit --stdin
3
4
";

    fn run(self, _cx: &mut Context) -> Result<Answer> {
        ops_todo("submit") // WIRE: ops::submit, one or the batch → Answer::Id(rows of "job")
    }
}
