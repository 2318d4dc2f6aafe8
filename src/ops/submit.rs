//! Queueing jobs: what is asked for is resolved against the configuration and this machine, frozen, and committed. One
//! job or a whole batch is one transaction.

use super::Caller;
use crate::domain::digest::Digest;
use crate::domain::id::JobId;
use crate::domain::spec::{Dependency, IfUncertain, Limits, OUTPUT_MAX, PROMPT_MAX, Spec, Then};
use crate::domain::time::{Span, Time};
use crate::error::{Code, Error, Result};
use crate::host::config::{Config, WorkerEntry};
use crate::host::{dir, program};
use crate::store::{Done, Ledger, NewJob, Object, Request, Store};
use crate::worker::{self, Adapter};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

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
    /// Refuse.
    Fail,
}

/// One job as it is asked for, from options or from a line of a batch; what is left out is defaulted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Ask {
    /// The worker; `command` where it is left out.
    pub worker: Option<String>,
    /// A command's program and arguments.
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
    pub env: Vec<String>,
    /// Options of the adapter.
    pub option: BTreeMap<String, String>,
    /// Time-outs, as `30m`.
    pub timeout: Option<String>,
    /// Until the first output.
    pub timeout_first: Option<String>,
    /// Between two outputs.
    pub timeout_idle: Option<String>,
    /// Between asking the worker to end and ending it.
    pub grace: Option<String>,
    /// Bytes of each output stream.
    pub output_max: Option<i64>,
    /// Higher runs first.
    pub priority: i64,
    /// Not to be claimed before this moment.
    pub not_before: Option<String>,
    /// Jobs to wait for.
    pub after: Vec<i64>,
    /// What to do when one of them failed.
    pub after_failed: Option<Then>,
    /// What to do when one of them was cancelled.
    pub after_cancelled: Option<Then>,
    /// What to do while one of them is uncertain.
    pub after_uncertain: Option<Then>,
    /// The concurrency group.
    pub group: Option<String>,
    /// Its width, where the configuration has none.
    pub width: Option<i64>,
    /// Labels.
    pub label: Vec<String>,
    /// How many tries it may have.
    pub max_tries: Option<i64>,
    /// The wait before the second try.
    pub retry_delay: Option<String>,
    /// What happens when an attempt ends uncertain.
    pub if_uncertain: Option<IfUncertain>,
    /// The key that makes the submission idempotent.
    pub key: Option<String>,
    /// A label and what to do when a job with it has not ended.
    pub if_active: Option<(String, IfActive)>,
    /// The job whose session is continued.
    #[serde(rename = "continue")]
    pub continues: Option<i64>,
}

/// What came of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Submitted {
    /// Queued as this job, or as it was the first time.
    Job(JobId),
    /// Not queued, because this job has not ended.
    Skipped(JobId),
}

/// A request that was resolved: ready to be committed.
#[derive(Debug)]
pub struct Resolved {
    spec: Spec,
    asked: Digest,
    prompt: Option<Object>,
    home: String,
    key: Option<String>,
    if_active: Option<(String, IfActive)>,
}

/// Resolves requests one after the other; programs that repeat are looked up once.
#[derive(Debug)]
pub struct Resolver<'a> {
    caller: &'a Caller,
    config: &'a Config,
    now: Time,
    programs: HashMap<(String, String), String>,
}

/// Queues one job.
pub fn submit(store: &mut Store, now: Time, caller: &Caller, config: &Config, op_id: Option<String>, ask: Ask) -> Result<Submitted> {
    let request = Request { op_id, digest: request_digest(caller, &ask) };
    let resolved = Resolver::new(caller, config, now).resolve(store, ask)?;
    store.operate(now, "submit", &request, |ledger| {
        let submitted = queue(ledger, caller, resolved)?;
        Ok(done(&[submitted], submitted))
    })
}

/// Queues many jobs in one transaction, all or none. `next` gives them one after the other and fails with the place of
/// a bad one; it reads from a spool, never from a pipe, because the transaction is open.
pub fn submit_many(
    store: &mut Store,
    now: Time,
    caller: &Caller,
    config: &Config,
    request: &Request,
    mut next: impl FnMut(&mut dyn FnMut(Ask) -> Result<()>) -> Result<()>,
) -> Result<Vec<Submitted>> {
    let spool = store.spool();
    let mut resolver = Resolver::new(caller, config, now);
    store.operate(now, "submit", request, |ledger| {
        let mut all = Vec::new();
        next(&mut |ask| {
            let resolved = resolver.resolve_with(&spool, ask)?;
            all.push(queue(ledger, caller, resolved)?);
            Ok(())
        })?;
        Ok(done(&all.clone(), all))
    })
}

fn done<T>(submitted: &[Submitted], answer: T) -> Done<T> {
    let (mut jobs, mut skipped) = (submitted.iter().filter_map(|s| if let Submitted::Job(job) = s { Some(job) } else { None }), 0);
    let first = jobs.next().map_or_else(String::new, ToString::to_string);
    let more = jobs.count();
    submitted.iter().for_each(|s| skipped += usize::from(matches!(s, Submitted::Skipped(_))));
    let mut done = Done::new(first, answer);
    if let Some(Submitted::Skipped(active)) = submitted.iter().find(|s| matches!(s, Submitted::Skipped(_))) {
        done.note = format!("skipped {skipped}: job {active} has not ended");
    } else if more > 0 {
        done.note = format!("and {more} more");
    }
    done
}

/// The digest of a request, so that a repetition can be told from another one. It covers what was asked for, not what
/// it resolved to: the same line of a crontab is the same request after a change of the configuration.
fn request_digest(caller: &Caller, ask: &Ask) -> Digest {
    let text = serde_json::to_vec(ask).unwrap_or_default();
    Digest::of("ares.submit.1", &[caller.cwd.as_os_str().as_encoded_bytes(), &text, ask.input.as_deref().unwrap_or_default()])
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

    fn resolve_with(&mut self, spool: &crate::store::Spool, ask: Ask) -> Result<Resolved> {
        let name = ask.worker.clone().unwrap_or_else(|| "command".to_owned());
        check_words(&ask)?;
        let asked = request_digest(self.caller, &ask);
        let entry = self.config.worker.get(&name).cloned().unwrap_or_default();
        let builtin = worker::builtin(&name);
        if builtin.is_none() && !self.config.worker.contains_key(&name) {
            return Err(Error::new(Code::UnknownWorker, format!("no worker '{name}'")));
        }
        let adapter = match (&entry.adapter, &builtin) {
            (Some(named), _) => Adapter::parse(named)
                .ok_or_else(|| Error::new(Code::BadConfig, format!("worker '{name}' has the unknown adapter '{named}'")))?,
            (None, Some(builtin)) => builtin.adapter,
            (None, None) => Adapter::parse(&name)
                .ok_or_else(|| Error::new(Code::BadConfig, format!("worker '{name}' names no adapter")))?,
        };
        let input = prompt_of(&ask)?;
        let dir = dir::named(&self.caller.cwd, ask.dir.as_deref())?;
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
            // Two turns at once in one credential directory may log each other out.
            if adapter.keeps_session() { format!("{HOME_GROUP}{}:{home}", adapter.name()) } else { String::new() }
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
                    return Err(Error::new(Code::Usage, "no command").hint("write it after --, as in: ares submit -- sort names.txt"));
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
            let found = program::named(&key.0, dir, self.caller.var("PATH").unwrap_or("/usr/bin:/bin"))?;
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
        Some(bytes) if bytes.len() > PROMPT_MAX => {
            Err(Error::new(Code::InputTooLarge, format!("the prompt has {} bytes; at most {PROMPT_MAX} are handed over", bytes.len())))
        }
        _ => Ok(bytes),
    }
}

/// Refuses words that cannot be names or arguments.
fn check_words(ask: &Ask) -> Result<()> {
    let names = ask.label.iter().chain(&ask.env).chain(&ask.group).chain(&ask.key).chain(&ask.worker).chain(ask.if_active.iter().map(|(label, _)| label));
    for name in names {
        if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
            let shown: String = name.chars().take(40).flat_map(char::escape_default).collect();
            return Err(Error::new(Code::BadInput, format!("'{shown}' is not a name: 1 to 200 bytes without control characters")));
        }
    }
    if ask.argv.iter().flatten().any(|arg| arg.contains('\0')) {
        return Err(Error::new(Code::BadInput, "an argument contains a NUL byte"));
    }
    Ok(())
}

fn positive(what: &str, value: i64) -> Result<i64> {
    if (1..=1_000_000).contains(&value) { Ok(value) } else { Err(Error::new(Code::Usage, format!("{what} must be 1 to 1000000"))) }
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
        grace: span(ask.grace.as_deref())?.unwrap_or(Span(5000)),
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

/// Commits one resolved request as a job.
fn queue(ledger: &mut Ledger<'_>, caller: &Caller, resolved: Resolved) -> Result<Submitted> {
    let Resolved { mut spec, asked, prompt, home, key, if_active } = resolved;
    if let Some(key) = &key
        && let Some((digest, job)) = ledger.key(key)?
    {
        if digest == asked {
            return Ok(Submitted::Job(job));
        }
        return Err(Error::new(Code::KeyConflict, format!("key '{key}' belongs to job {job}, which is another request")));
    }
    if let Some((label, then)) = &if_active {
        let active = ledger.active(label)?;
        match (active.first(), then) {
            (None, _) => {}
            (Some(job), IfActive::Skip) => return Ok(Submitted::Skipped(*job)),
            (Some(job), IfActive::Fail) => {
                return Err(Error::new(Code::Active, format!("job {job} with label '{label}' has not ended")));
            }
            (Some(_), IfActive::Queue) => wait_for(&mut spec, &active),
        }
        // The label that guards is also the label that the next one looks for.
        if !spec.labels.contains(label) {
            spec.labels.push(label.clone());
            spec.labels.sort();
        }
    }
    for dependency in &spec.after {
        ledger.job_now(dependency.on)?;
    }
    let session = session_of(ledger, &mut spec, &home)?;
    if let Some(prompt) = &prompt {
        ledger.put(prompt)?;
    }
    let submitted_by = submitted_by(caller);
    let job = ledger.insert_job(&NewJob { spec: &spec, session, submitted_by: &submitted_by })?;
    if let Some(parent) = caller.attempt
        && let Ok(parent_attempt) = ledger.attempt(parent)
    {
        ledger.insert_edge(session, parent_attempt.session, parent)?;
    }
    if let Some(key) = &key {
        ledger.insert_key(key, &asked, job)?;
    }
    Ok(Submitted::Job(job))
}

fn submitted_by(caller: &Caller) -> String {
    let uid = rustix::process::geteuid().as_raw();
    let attempt = caller.attempt.map(|attempt| attempt.to_string());
    serde_json::json!({ "uid": uid, "pid": std::process::id(), "attempt": attempt }).to_string()
}

/// Waits for these jobs however they end; while one is uncertain, it counts as not ended.
fn wait_for(spec: &mut Spec, jobs: &[JobId]) {
    for job in jobs.iter().filter(|job| !spec.after.iter().any(|d| d.on == **job)).copied().collect::<Vec<_>>() {
        let run = Then::Run;
        spec.after.push(Dependency { on: job, on_failed: run, on_cancelled: run, on_uncertain: Then::Hold });
    }
}

/// A session of its own, or the one that is continued: then every earlier job of it comes first.
fn session_of(ledger: &mut Ledger<'_>, spec: &mut Spec, home: &str) -> Result<i64> {
    let Some(continued) = spec.continues else { return ledger.insert_session(&spec.worker, home) };
    let before = ledger.job(continued)?;
    if before.spec.worker != spec.worker {
        let said = format!("job {continued} was done by '{}', not by '{}'", before.spec.worker, spec.worker);
        return Err(Error::new(Code::BadInput, said).hint("a session can be continued by its own worker only"));
    }
    if !Adapter::parse(&before.spec.adapter).is_some_and(Adapter::keeps_session) {
        return Err(Error::new(Code::WorkerRefused, format!("worker '{}' keeps no session to continue", spec.worker)));
    }
    match ledger.session(before.session)? {
        Some(session) if session.broken => {
            Err(Error::new(Code::SessionBroken, format!("the session of job {continued} is broken: {}", session.reason)))
        }
        Some(_) => {
            let earlier = ledger.jobs_of_session(before.session)?;
            wait_for(spec, &earlier);
            Ok(before.session)
        }
        None => Err(Error::new(Code::StoreDamaged, format!("job {continued} has lost its session"))),
    }
}
