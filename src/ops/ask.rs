//! What is asked for, from options or from a line of a batch, and how it is resolved against the configuration and this
//! machine into what a job is frozen as.

use super::{Caller, record};
use crate::domain::digest::Digest;
use crate::domain::id::JobId;
use crate::domain::spec::{Dependency, IfUncertain, Limits, OUTPUT_MAX, PROMPT_MAX, Spec, Then, check_variable};
use crate::domain::time::{Span, Time};
use crate::error::{Code, Error, Result};
use crate::host::config::{Config, WorkerEntry};
use crate::host::{dir, program};
use crate::store::{Object, Spool, Store};
use crate::worker::{self, Adapter};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The group of workers that share a credential directory begins with this.
const HOME_GROUP: &str = "home:";

/// What to do when a job with the label has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IfActive {
    /// Queue nothing, and say so in the log.
    Skip,
    /// Queue it to run after them.
    Queue,
    /// Queue it in the place of those that have not begun.
    Latest,
    /// Refuse.
    Fail,
}

impl IfActive {
    /// Every choice with its word.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("skip", Self::Skip), ("queue", Self::Queue), ("latest", Self::Latest), ("fail", Self::Fail)];

    /// The choice of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, choice)| *choice)
    }
}

/// One job as it is asked for, from options or from a line of a batch; what is left out is defaulted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Ask {
    /// The worker; `command` where it is left out.
    #[serde(deserialize_with = "record::name")]
    pub worker: Option<String>,
    /// A command's program and arguments.
    #[serde(deserialize_with = "record::argv")]
    pub argv: Option<Vec<String>>,
    /// What is handed over on standard input.
    pub prompt: Option<String>,
    /// The same for bytes that are no text; never in a batch.
    #[serde(skip)]
    pub input: Option<Vec<u8>>,
    /// The model to ask for.
    pub model: Option<String>,
    /// The working directory.
    pub dir: Option<String>,
    /// Names of variables to pass on.
    #[serde(deserialize_with = "record::variables")]
    pub env: Vec<String>,
    /// Options of the adapter.
    pub option: BTreeMap<String, String>,
    /// Time-outs, as `30m`.
    #[serde(deserialize_with = "record::span")]
    pub timeout: Option<String>,
    /// Until the first output.
    #[serde(deserialize_with = "record::span")]
    pub timeout_first: Option<String>,
    /// Between two outputs.
    #[serde(deserialize_with = "record::span")]
    pub timeout_idle: Option<String>,
    /// Between asking the worker to end and ending it.
    #[serde(deserialize_with = "record::span")]
    pub grace: Option<String>,
    /// Bytes of each output stream.
    #[serde(deserialize_with = "record::positive")]
    pub output_max: Option<i64>,
    /// Higher runs first.
    pub priority: i64,
    /// Not to be claimed before this moment.
    #[serde(deserialize_with = "record::when")]
    pub not_before: Option<String>,
    /// Jobs to wait for.
    #[serde(deserialize_with = "record::jobs")]
    pub after: Vec<i64>,
    /// What to do when one of them failed.
    pub after_failed: Option<Then>,
    /// What to do when one of them was cancelled.
    pub after_cancelled: Option<Then>,
    /// What to do while one of them is uncertain.
    pub after_uncertain: Option<Then>,
    /// The concurrency group.
    #[serde(deserialize_with = "record::name")]
    pub group: Option<String>,
    /// Its width, where the configuration has none.
    #[serde(deserialize_with = "record::count")]
    pub width: Option<i64>,
    /// Labels.
    #[serde(deserialize_with = "record::names")]
    pub label: Vec<String>,
    /// How many tries it may have.
    #[serde(deserialize_with = "record::count")]
    pub max_tries: Option<i64>,
    /// The wait before the second try.
    #[serde(deserialize_with = "record::span")]
    pub retry_delay: Option<String>,
    /// What happens when an attempt ends uncertain.
    pub if_uncertain: Option<IfUncertain>,
    /// The key that makes the submission idempotent.
    #[serde(deserialize_with = "record::key")]
    pub key: Option<String>,
    /// A label and what to do when a job with it has not ended.
    #[serde(deserialize_with = "record::active")]
    pub if_active: Option<(String, IfActive)>,
    /// The job whose session is continued.
    #[serde(rename = "continue", deserialize_with = "record::positive")]
    pub continues: Option<i64>,
}

/// A request that was resolved: ready to be committed.
#[derive(Debug)]
pub struct Resolved {
    pub(super) spec: Spec,
    pub(super) asked: Digest,
    pub(super) prompt: Option<Object>,
    pub(super) home: String,
    pub(super) key: Option<String>,
    pub(super) if_active: Option<(String, IfActive)>,
}

/// Resolves requests one after the other; programs that repeat are looked up once.
#[derive(Debug)]
pub struct Resolver<'a> {
    caller: &'a Caller,
    config: &'a Config,
    now: Time,
    programs: HashMap<(String, String), String>,
}

/// Whether this worker is given a command; all others are given a prompt.
pub fn takes_command(config: &Config, worker: Option<&str>) -> bool {
    let name = worker.unwrap_or("command");
    let named = config.worker.get(name).and_then(|entry| entry.adapter.as_deref()).and_then(Adapter::parse);
    named.or_else(|| worker::builtin(name).map(|builtin| builtin.adapter)).is_none_or(|a| matches!(a, Adapter::Command))
}

/// Whether this job is a command, and not a turn of an agent.
pub fn is_command(spec: &Spec) -> bool {
    Adapter::parse(&spec.adapter).is_none_or(|adapter| matches!(adapter, Adapter::Command))
}

/// The digest of a request, so that a repetition can be told from another one. It covers what was asked for, not what
/// it resolved to: the same line of a crontab is the same request after a change of the configuration.
pub(super) fn request_digest(caller: &Caller, ask: &Ask) -> Digest {
    let text = serde_json::to_vec(ask).unwrap_or_default();
    Digest::of("ares.submit.1", &[caller.cwd_bytes(), &text, ask.input.as_deref().unwrap_or_default()])
}

impl<'a> Resolver<'a> {
    /// A resolver for this caller.
    pub fn new(caller: &'a Caller, config: &'a Config, now: Time) -> Self {
        Self { caller, config, now, programs: HashMap::new() }
    }

    /// Resolves one request; nothing is committed.
    pub fn resolve(&mut self, store: &Store, ask: Ask) -> Result<Resolved> {
        self.resolve_with(&store.spool(), ask)
    }

    pub(super) fn resolve_with(&mut self, spool: &Spool, ask: Ask) -> Result<Resolved> {
        let name = ask.worker.clone().unwrap_or_else(|| "command".to_owned());
        check_words(&ask)?;
        let asked = request_digest(self.caller, &ask);
        let entry = self.config.worker.get(&name).cloned().unwrap_or_default();
        let builtin = worker::builtin(&name);
        if builtin.is_none() && !self.config.worker.contains_key(&name) {
            return Err(Error::new(Code::UnknownWorker, format!("no worker '{name}'")));
        }
        let adapter = match (&entry.adapter, &builtin) {
            (Some(named), _) => Adapter::parse(named).ok_or_else(|| {
                Error::new(Code::BadConfig, format!("worker '{name}' has the unknown adapter '{named}'"))
            })?,
            (None, Some(builtin)) => builtin.adapter,
            (None, None) => Adapter::parse(&name)
                .ok_or_else(|| Error::new(Code::BadConfig, format!("worker '{name}' names no adapter")))?,
        };
        let input = prompt_of(&ask)?;
        let absolute = ask.dir.as_deref().is_some_and(|dir| Path::new(dir).is_absolute());
        let base = if absolute { Path::new("/") } else { self.caller.cwd()? };
        let dir = dir::named(base, ask.dir.as_deref())?;
        let (program, argv) = self.program(adapter, &name, &entry, ask.argv.clone(), &dir)?;
        let home = entry.home.clone().unwrap_or_default();
        let prompt = input.as_deref().map(|bytes| spool.prepare(bytes)).transpose()?;
        let mut options = entry.options.clone();
        options.extend(ask.option.clone());
        let mut env: Vec<String> = entry.env.iter().chain(&ask.env).cloned().collect();
        env.sort();
        env.dedup();
        let mut labels = ask.label.clone();
        labels.sort();
        labels.dedup();
        let group = ask.group.clone().or_else(|| entry.group.clone()).unwrap_or_else(|| {
            // Two turns at once in one credential directory may log each other out. Without a directory of its own, a
            // worker uses its program's.
            let default = program.rsplit('/').next().unwrap_or_default();
            let home = if home.is_empty() { default } else { &home };
            if adapter.keeps_session() { format!("{HOME_GROUP}{home}") } else { String::new() }
        });
        let spec = Spec {
            worker: name,
            adapter: adapter.name().to_owned(),
            model: ask.model.clone().or_else(|| entry.model.clone()),
            program,
            argv,
            options,
            prompt: prompt.as_ref().map(|object| object.digest),
            dir,
            env,
            limits: limits(&ask, &entry, builtin.as_ref())?,
            max_tries: positive("--max-tries", ask.max_tries.unwrap_or(1))?,
            retry_delay: span(ask.retry_delay.as_deref())?.unwrap_or(Span(1000)),
            if_uncertain: ask.if_uncertain.unwrap_or(IfUncertain::Hold),
            group,
            width: positive("--width", ask.width.unwrap_or(1))?,
            priority: ask.priority,
            not_before: match &ask.not_before {
                Some(text) => crate::domain::time::moment(text, self.now)?,
                None => Time(0),
            },
            labels,
            after: dependencies(&ask),
            continues: ask.continues.map(JobId),
            config_digest: self.config.digest,
        };
        adapter.check(&spec, input.as_deref())?;
        Ok(Resolved { spec, asked, prompt, home, key: ask.key, if_active: ask.if_active })
    }

    /// The absolute program and its arguments.
    fn program(
        &mut self,
        adapter: Adapter,
        name: &str,
        entry: &WorkerEntry,
        argv: Option<Vec<String>>,
        dir: &str,
    ) -> Result<(String, Vec<String>)> {
        let mut argv = argv.unwrap_or_default();
        let named = match adapter {
            Adapter::Command if entry.program.is_none() => {
                if argv.is_empty() {
                    return Err(Error::new(Code::Usage, "no command")
                        .hint("write it after --, as in: ares submit -- sort names.txt"));
                }
                argv.remove(0)
            }
            Adapter::Command | Adapter::Codex => match (&entry.program, worker::builtin(name)) {
                (Some(program), _) => program.clone(),
                (None, Some(builtin)) => builtin.program.to_owned(),
                (None, None) => adapter.name().to_owned(),
            },
        };
        if !matches!(adapter, Adapter::Command) && !argv.is_empty() {
            return Err(Error::new(Code::Usage, format!("worker '{name}' takes a prompt, not a command")));
        }
        let key = (named, dir.to_owned());
        if !self.programs.contains_key(&key) {
            // Nothing has failed yet: a name that is no program's is a mistake of the caller.
            let mistaken = |error: Error| match error.code {
                Code::CannotExecute => Error::new(Code::UnknownProgram, error.message),
                _ => error,
            };
            let path = self.caller.var("PATH").unwrap_or("/usr/bin:/bin");
            let found = program::named(&key.0, dir, path).map_err(mistaken)?;
            self.programs.insert(key.clone(), found);
        }
        let args = entry.args.iter().cloned().chain(argv).collect();
        Ok((self.programs[&key].clone(), args))
    }
}

fn prompt_of(ask: &Ask) -> Result<Option<Vec<u8>>> {
    let bytes = match (&ask.prompt, &ask.input) {
        (Some(_), Some(_)) => return Err(Error::new(Code::Usage, "a prompt is given twice")),
        (Some(text), None) => Some(text.clone().into_bytes()),
        (None, input) => input.clone(),
    };
    match &bytes {
        Some(bytes) if bytes.len() > PROMPT_MAX => Err(Error::new(
            Code::InputTooLarge,
            format!("the prompt has {} bytes; at most {PROMPT_MAX} are handed over", bytes.len()),
        )),
        _ => Ok(bytes),
    }
}

/// Whether this can be the name of a label, a group or a worker: one that any option, list and shell can carry.
pub fn is_name(text: &str) -> bool {
    let clean = |c: char| c.is_alphanumeric() || "._:/@+-".contains(c);
    !text.is_empty() && text.len() <= 128 && !text.starts_with('-') && text.chars().all(clean)
}

/// Refuses what cannot be the name of a variable, without repeating it.
pub fn check_env(names: &[String]) -> Result<()> {
    names
        .iter()
        .try_for_each(|name| check_variable(name))
        .map_err(|why| Error::new(Code::Usage, format!("--{why}")).hint("its value is read when the job is dispatched"))
}

/// Refuses what cannot be the name of a label, a group or a worker.
pub(super) fn check_name(name: &str) -> std::result::Result<(), String> {
    let rule = "at most 128 letters, digits and ._:/@+-, not beginning with -";
    if is_name(name) { Ok(()) } else { Err(not_a_name(name, rule)) }
}

/// Refuses what cannot be a key.
pub(super) fn check_key(key: &str) -> std::result::Result<(), String> {
    let bad = key.is_empty() || key.len() > 200 || key.chars().any(char::is_control);
    if bad { Err(not_a_name(key, "1 to 200 bytes without control characters")) } else { Ok(()) }
}

fn not_a_name(name: &str, rule: &str) -> String {
    let shown: String = name.chars().take(40).flat_map(char::escape_default).collect();
    format!("'{shown}' is not a name: {rule}")
}

/// What an argument must not contain.
pub(super) const NUL: &str = "an argument contains a NUL byte";

/// Refuses words that cannot be names or arguments. In a batch most are refused as they are read, with their column.
fn check_words(ask: &Ask) -> Result<()> {
    let bad = |why: String| Error::new(Code::BadInput, why);
    let active = ask.if_active.iter().map(|(label, _)| label);
    let mut names = ask.label.iter().chain(&ask.group).chain(&ask.worker).chain(active);
    names.try_for_each(|name| check_name(name)).map_err(bad)?;
    ask.key.iter().try_for_each(|key| check_key(key)).map_err(bad)?;
    check_env(&ask.env)?;
    if ask.argv.iter().flatten().any(|arg| arg.contains('\0')) {
        return Err(bad(NUL.to_owned()));
    }
    Ok(())
}

/// How many tries a job may have, and how wide a group may be.
pub(super) const COUNT_MAX: i64 = 1_000_000;

fn positive(what: &str, value: i64) -> Result<i64> {
    if (1..=COUNT_MAX).contains(&value) {
        Ok(value)
    } else {
        Err(Error::new(Code::Usage, format!("{what} must be 1 to {COUNT_MAX}")))
    }
}

fn span(text: Option<&str>) -> Result<Option<Span>> {
    text.map(str::parse).transpose()
}

fn limits(ask: &Ask, entry: &WorkerEntry, builtin: Option<&worker::Builtin>) -> Result<Limits> {
    let pick = |asked: &Option<String>, configured: &Option<String>, default: Option<Span>| -> Result<Option<Span>> {
        let text = asked.as_deref().or(configured.as_deref());
        // Zero says: no time-out, whatever the worker's default is.
        Ok(span(text)?.or(default).filter(|span| span.0 > 0))
    };
    let default = builtin.map(|builtin| builtin.limits);
    let output_max = ask.output_max.unwrap_or(OUTPUT_MAX);
    if output_max < 1 {
        return Err(Error::new(Code::Usage, "--output-max must be at least 1"));
    }
    Ok(Limits {
        timeout: pick(&ask.timeout, &entry.timeout, default.and_then(|l| l.timeout))?,
        timeout_first: pick(&ask.timeout_first, &entry.timeout_first, default.and_then(|l| l.timeout_first))?,
        timeout_idle: pick(&ask.timeout_idle, &entry.timeout_idle, default.and_then(|l| l.timeout_idle))?,
        grace: span(ask.grace.as_deref())?.or(default.map(|l| l.grace)).unwrap_or(Span(10_000)),
        output_max,
    })
}

/// What failed or was cancelled cancels those after it, as in a shell's `&&`; what is uncertain holds them.
fn dependencies(ask: &Ask) -> Vec<Dependency> {
    let mut after: Vec<i64> = ask.after.clone();
    after.sort_unstable();
    after.dedup();
    let dependency = |on| Dependency {
        on: JobId(on),
        on_failed: ask.after_failed.unwrap_or(Then::Cancel),
        on_cancelled: ask.after_cancelled.unwrap_or(Then::Cancel),
        on_uncertain: ask.after_uncertain.unwrap_or(Then::Hold),
    };
    after.into_iter().map(dependency).collect()
}
