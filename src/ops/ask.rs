//! What is asked for, from options or from a line of a batch, and which words can be what.

use super::{Caller, record};
use crate::domain::digest::Digest;
use crate::domain::spec::{IfUncertain, Spec, Then, check_variable};
use crate::error::{Code, Error, Result};
use crate::host::config::Config;
use crate::worker::{self, Adapter};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// Whether nothing of what the worker prints is kept. Left out it is not written either, so that requests from
    /// before there was this choice have the digest that they had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_capture: Option<bool>,
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
pub(super) fn check_words(ask: &Ask) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_says_nothing_of_it_is_digested_as_before_there_was_the_choice() {
        let text = |ask: &Ask| serde_json::to_string(ask).unwrap();
        assert!(!text(&Ask::default()).contains("no-capture"));
        assert!(text(&Ask { no_capture: Some(true), ..Ask::default() }).contains("\"no-capture\":true"));
    }
}
