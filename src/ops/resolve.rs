//! Resolving what is asked for against the configuration and this machine into what a job is frozen as.

use super::Caller;
use super::ask::{Ask, COUNT_MAX, IfActive, check_words, request_digest};
use crate::domain::digest::Digest;
use crate::domain::id::JobId;
use crate::domain::spec::{Dependency, IfUncertain, Limits, OUTPUT_MAX, PROMPT_MAX, Spec, Then};
use crate::domain::time::{Span, Time};
use crate::error::{Code, Error, Result};
use crate::host::config::{Config, WorkerEntry};
use crate::host::{dir, program};
use crate::store::{Object, Spool, Store};
use crate::worker::{self, Adapter};
use std::collections::HashMap;
use std::path::Path;

/// The group of workers that share a credential directory begins with this.
const HOME_GROUP: &str = "home:";

/// A request that was resolved: ready to be committed.
#[derive(Debug)]
pub struct Resolved {
    pub(super) spec: Spec,
    /// Its key, with the digest of what was asked for.
    pub(super) key: Option<(String, Digest)>,
    pub(super) prompt: Option<Object>,
    pub(super) home: String,
    pub(super) if_active: Option<(String, IfActive)>,
}

/// Resolves requests one after the other; programs and directories that repeat are looked up once.
#[derive(Debug)]
pub struct Resolver<'a> {
    caller: &'a Caller,
    config: &'a Config,
    now: Time,
    programs: HashMap<(String, String), String>,
    /// The directory that was asked for last, and what it is.
    latest_dir: Option<(Option<String>, String)>,
}

impl<'a> Resolver<'a> {
    /// A resolver for this caller.
    pub fn new(caller: &'a Caller, config: &'a Config, now: Time) -> Self {
        Self { caller, config, now, programs: HashMap::new(), latest_dir: None }
    }

    /// Resolves one request; nothing is committed.
    pub fn resolve(&mut self, store: &Store, ask: Ask) -> Result<Resolved> {
        self.resolve_with(&store.spool(), ask)
    }

    pub(super) fn resolve_with(&mut self, spool: &Spool, ask: Ask) -> Result<Resolved> {
        let name = ask.worker.clone().unwrap_or_else(|| "command".to_owned());
        check_words(&ask)?;
        let key = ask.key.clone().map(|key| (key, request_digest(self.caller, &ask)));
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
        let dir = self.dir(ask.dir.as_deref())?;
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
        Ok(Resolved { spec, key, prompt, home, if_active: ask.if_active })
    }

    /// The absolute directory.
    fn dir(&mut self, asked: Option<&str>) -> Result<String> {
        let absolute = asked.is_some_and(|dir| Path::new(dir).is_absolute());
        let asked = asked.map(str::to_owned);
        if let Some((_, dir)) = self.latest_dir.as_ref().filter(|(latest, _)| *latest == asked) {
            return Ok(dir.clone());
        }
        let base = if absolute { Path::new("/") } else { self.caller.cwd()? };
        let dir = dir::named(base, asked.as_deref())?;
        self.latest_dir = Some((asked, dir.clone()));
        Ok(dir)
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
            _ => match (&entry.program, worker::builtin(name)) {
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
        capture: !ask.no_capture.unwrap_or(false),
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
