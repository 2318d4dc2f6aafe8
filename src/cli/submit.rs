//! ares-submit: queue one job, or many. What is given here is resolved and frozen by the operation.

use super::context::read;
use super::{Answer, Context, Field, Row, Run, Value, args};
use crate::domain::digest::Digest;
use crate::domain::id::JobId;
use crate::domain::spec::{IfUncertain, PROMPT_MAX, Then};
use crate::domain::time::Span;
use crate::error::{Code, Error, Result};
use crate::host::config::Config;
use crate::ops::Caller;
use crate::ops::ask::{Ask, IfActive, check_env, takes_command};
use crate::ops::submit::{self, Submitted};
use crate::store::{Request, Store};
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
    /// The worker that does it; default command
    ///
    /// A name from config.toml, or one that is built in: command, codex, claude, synthetic. See ares-workers(7).
    #[arg(short, long, value_name = "NAME", value_parser = args::name)]
    pub worker: Option<String>,

    /// The model to ask for; default the worker's own
    #[arg(short, long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Read the prompt, or a command's standard input, from a file
    ///
    /// With - that is our own standard input. At most 1 MiB is read, now: what the file holds later does not matter.
    /// Without it a command reads /dev/null.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub file: Option<PathBuf>,

    /// Run it in this directory; default the current one
    ///
    /// It must be there now, and is frozen as an absolute path.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub dir: Option<PathBuf>,

    /// Pass this environment variable on to the worker
    ///
    /// The value is read when the job is dispatched, and is not stored: where the worker prints it, [NAME] stands in its
    /// place. ares-workers(7) says how far that goes. A name that has no value then is noted with the attempt. May be
    /// given several times.
    #[arg(long, value_name = "NAME")]
    pub env: Vec<String>,

    /// Set an option of the worker's adapter
    ///
    /// May be given several times. The options of each adapter are in ares-workers(7).
    #[arg(long, value_name = "NAME=VALUE", value_parser = args::pair)]
    pub option: Vec<(String, String)>,

    /// Stop an attempt after this long; default the worker's own
    ///
    /// A length of time is written 500ms, 90s, 30m, 2h, 7d or 1h30m; a plain number is seconds. 0 is no time-out, also
    /// where the worker has one of its own. What a stopped attempt did is not known: it ends
    /// uncertain. A command has no time-out by itself; those of agents are in ares-workers(7).
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    pub timeout: Option<Span>,

    /// Stop an attempt that printed nothing for this long after its start; default the worker's own
    ///
    /// 0 is no time-out.
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    pub timeout_first: Option<Span>,

    /// Stop an attempt that prints nothing for this long; default the worker's own
    ///
    /// 0 is no time-out.
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    pub timeout_idle: Option<Span>,

    /// Time between asking a worker to end (SIGTERM) and ending it (SIGKILL); default 10s
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    pub grace: Option<Span>,

    /// Bound of each output stream in bytes, default 64M; k, M and G are powers of 1024
    ///
    /// A worker that prints more is stopped, and its output is cut with a mark.
    #[arg(long, value_name = "BYTES", value_parser = args::bytes)]
    pub output_max: Option<i64>,

    /// Keep nothing of what the worker prints
    ///
    /// What a command prints goes to /dev/null. What an agent prints is read while it runs, for its session and how its turn
    /// ends, and removed with its end. Neither output nor answer, events or words of the worker are stored; how it ended,
    /// its usage, its model and its session are. --output-max means nothing for a command then.
    #[arg(long)]
    pub no_capture: bool,

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

    /// What to do when one of them failed; default cancel
    #[arg(long, value_name = "WHAT", value_parser = args::words(Then::WORDS))]
    pub after_failed: Option<Then>,

    /// What to do when one of them was cancelled; default cancel
    #[arg(long, value_name = "WHAT", value_parser = args::words(Then::WORDS))]
    pub after_cancelled: Option<Then>,

    /// What to do while one of them is uncertain; default hold
    #[arg(long, value_name = "WHAT", value_parser = args::words(Then::WORDS))]
    pub after_uncertain: Option<Then>,

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

    /// How many tries it may have; default 1
    ///
    /// A command that exits with another status than 0 is tried again; an agent's turn only after a failure that is
    /// recognised as worth another try.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=1000))]
    pub max_tries: Option<i64>,

    /// Wait before the second try, default 1s; doubled for each further one, an hour at most
    #[arg(long, value_name = "DURATION", value_parser = args::span)]
    pub retry_delay: Option<Span>,

    /// What to do with an attempt that ends uncertain; default hold
    ///
    /// hold waits for a decision, retry does it again whatever it did while tries are left, fail counts it as failed.
    #[arg(long, value_name = "WHAT", value_parser = args::words(IfUncertain::WORDS))]
    pub if_uncertain: Option<IfUncertain>,

    /// Submit at most once under this key
    ///
    /// Repeated with the same key and the same job, the first job's number is printed; with another job it is a
    /// conflict. Keys outlive their jobs.
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,

    /// What to do while a job with this label has not ended: skip, queue, latest or fail
    ///
    /// skip queues nothing, queue queues it to run after them, fail is an error. latest queues it and cancels those that
    /// nobody has claimed yet; one that runs goes on, and the new one does not wait for it.
    #[arg(long, num_args = 2, value_names = ["LABEL", "skip|queue|latest|fail"])]
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

impl Args {
    /// The prompt, unless the words are a command.
    pub fn prompt(&self) -> Result<Vec<u8>> {
        let text = match &self.file {
            Some(_) if !self.words.is_empty() => {
                return Err(Error::new(Code::Usage, "a prompt was given twice, by --file and after --"));
            }
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

    /// The request as the options put it; in a batch, what the lines do not say.
    fn ask(&self) -> Result<Ask> {
        let span = |span: Option<Span>| span.map(|span| format!("{}ms", span.0));
        let dir = self.dir.as_deref().map(|dir| {
            dir.to_str()
                .map(str::to_owned)
                .ok_or_else(|| Error::new(Code::BadInput, "the directory's name is not UTF-8"))
        });
        check_env(&self.env)?;
        Ok(Ask {
            worker: self.worker.clone(),
            model: self.model.clone(),
            dir: dir.transpose()?,
            env: self.env.clone(),
            option: self.option.iter().cloned().collect(),
            timeout: span(self.timeout),
            timeout_first: span(self.timeout_first),
            timeout_idle: span(self.timeout_idle),
            grace: span(self.grace),
            output_max: self.output_max,
            no_capture: self.no_capture.then_some(true),
            priority: self.priority,
            not_before: self.not_before.clone(),
            after: self.after.iter().map(|job| job.0).collect(),
            after_failed: self.after_failed,
            after_cancelled: self.after_cancelled,
            after_uncertain: self.after_uncertain,
            group: self.group.clone(),
            width: self.width,
            label: self.label.clone(),
            max_tries: self.max_tries,
            retry_delay: span(self.retry_delay),
            if_uncertain: self.if_uncertain,
            key: self.key.clone(),
            if_active: self.if_active()?,
            continues: self.continues.map(|job| job.0),
            ..Ask::default()
        })
    }

    /// One job: the words are a command for a worker that runs commands, and a prompt for all others.
    fn one(&self, command: bool) -> Result<Ask> {
        let mut ask = self.ask()?;
        if !command {
            if self.file.is_some() && !self.words.is_empty() {
                return Err(Error::new(Code::Usage, "the prompt is given twice: with --file and after --"));
            }
            ask.input = Some(self.prompt()?);
            return Ok(ask);
        }
        let word = |word: &OsString| {
            let bad = || Error::new(Code::BadInput, format!("the argument '{}' is not UTF-8", word.to_string_lossy()));
            word.to_str().map(str::to_owned).ok_or_else(bad)
        };
        ask.argv = Some(self.words.iter().map(word).collect::<Result<_>>()?);
        // A command's input is read only where it is asked for: its standard input is the job's, not ours.
        ask.input = self.file.as_deref().map(|file| read(file, PROMPT_MAX)).transpose()?;
        Ok(ask)
    }

    /// Many jobs, from standard input, which is read to its end before anything is begun.
    fn many(&self, cx: &Context, store: &mut Store, caller: &Caller, config: &Config) -> Result<Vec<Submitted>> {
        let (end, name) = if cx.null() { (b'\0', "record") } else { (b'\n', "line") };
        let text = read(Path::new("-"), BATCH_MAX)?;
        let base = self.ask()?;
        let request = Request::new(cx.op_id().map(str::to_owned), || {
            let asked = serde_json::to_vec(&base).unwrap_or_default();
            Digest::of("ares.submit.batch.1", &[caller.cwd_bytes(), &asked, &text])
        });
        let now = cx.now();
        submit::submit_many(store, now, caller, config, &request, |queue| {
            for (at, record) in text.split(|byte| *byte == end).enumerate() {
                if record.trim_ascii().is_empty() {
                    continue;
                }
                let place = |error: Error| Error { message: format!("{name} {}: {}", at + 1, error.message), ..error };
                read_record(&base, record).and_then(&mut *queue).map_err(place)?;
            }
            Ok(())
        })
    }

    /// The label to look at, and what to do.
    pub fn if_active(&self) -> Result<Option<(String, IfActive)>> {
        let [label, what] = self.if_active.as_slice() else { return Ok(None) };
        let unknown = || {
            Error::new(Code::Usage, format!("'{what}' is not known to --if-active"))
                .hint("write --if-active LABEL skip, queue, latest or fail")
        };
        let what = IfActive::parse(what).ok_or_else(unknown)?;
        let label = args::name(label)
            .map_err(|hint| Error::new(Code::Usage, format!("'{label}' is not a label")).hint(hint))?;
        Ok(Some((label, what)))
    }
}

impl Run for Args {
    const NAME: &'static str = "ares-submit";
    const MUTATES: bool = true;
    const COLUMNS: &'static [&'static str] = &["job"];
    const FIELDS: &'static [Field] = &[
        ("job", "integer: the job; null where nothing was queued"),
        ("skipped", "integer: the job that has not ended, because of which nothing was queued"),
    ];
    const ERRORS: &'static [Code] = &[
        Code::BadInput,
        Code::InputTooLarge,
        Code::BadConfig,
        Code::UnknownWorker,
        Code::UnknownProgram,
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
    const NOTES: &'static str = include_str!("notes/submit.txt");

    fn run(self, cx: &mut Context) -> Result<Answer> {
        let store = cx.store()?;
        let (config, caller) = (Config::load(store.root())?, cx.caller(store));
        let submitted = if self.stdin {
            self.many(cx, store, &caller, &config)?
        } else {
            let command = takes_command(&config, self.worker.as_deref());
            let ask = self.one(command)?;
            vec![submit::submit(store, cx.now(), &caller, &config, cx.op_id().map(str::to_owned), ask)?]
        };
        let rows = submitted.iter().filter_map(|submitted| match submitted {
            Submitted::Job(job) => Some(Row::new().with("job", *job).with("skipped", Value::Null)),
            Submitted::Skipped(active) => {
                cx.note(&format!("ares-submit: not queued: job {active} has not ended"));
                // Who asked for fields is told of it as a record; who did not is given numbers of jobs only.
                cx.wants_fields().then(|| Row::new().with("job", Value::Null).with("skipped", *active))
            }
        });
        Ok(Answer::Id(rows.collect()))
    }
}

/// Reads one record of a batch over what the options say. The record alone is what errors are about.
fn read_record(base: &Ask, record: &[u8]) -> Result<Ask> {
    let bad = |error: serde_json::Error| {
        let text = error.to_string();
        let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
        Error::new(Code::BadInput, format!("column {}: {text}", error.column()))
    };
    // A list would be read as the values in the order of their declaration, which is nobody's promise.
    if record.trim_ascii_start().first() != Some(&b'{') {
        return Err(Error::new(Code::BadInput, "column 1: a record is a JSON object"));
    }
    let ask: Ask = serde_json::from_slice(record).map_err(bad)?;
    if *base == Ask::default() {
        return Ok(ask);
    }
    let mut all = serde_json::to_value(base).map_err(bad)?;
    let own: serde_json::Value = serde_json::from_slice(record).map_err(bad)?;
    if let (Some(all), serde_json::Value::Object(own)) = (all.as_object_mut(), own) {
        all.extend(own);
    }
    serde_json::from_value(all).map_err(bad)
}
