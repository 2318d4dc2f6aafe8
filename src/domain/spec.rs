//! What a job is, frozen at submission: a later change of defaults cannot change it, and its digest covers all of it.

use super::digest::Digest;
use super::id::JobId;
use super::job::Decision;
use super::time::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The largest prompt that is accepted: 1 MiB, what codex accepts too.
pub const PROMPT_MAX: usize = 1 << 20;

/// The default bound of each output stream of an attempt.
pub const OUTPUT_MAX: i64 = 64 << 20;

/// Refuses what cannot name an environment variable. What was given instead may be a secret, so nobody repeats it.
pub fn check_variable(name: &str) -> Result<(), &'static str> {
    match name {
        name if name.contains('=') => Err("env takes the name of a variable, not its value"),
        name if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) => {
            Err("env takes the name of a variable: 1 to 200 bytes without control characters")
        }
        _ => Ok(()),
    }
}

/// What happens with an attempt that ends uncertain, decided beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IfUncertain {
    /// It waits for a decision.
    Hold,
    /// It is queued again, as long as tries are left.
    Retry,
    /// It counts as failed.
    Fail,
}

impl IfUncertain {
    /// Every choice with its word.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("hold", Self::Hold), ("retry", Self::Retry), ("fail", Self::Fail)];

    /// The word of this choice.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, choice)| *choice == self).map_or("", |(word, _)| word)
    }

    /// The choice of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, choice)| *choice)
    }

    /// The decision that is written as a resolution when it is used.
    pub fn decision(self, tries_left: bool) -> Option<Decision> {
        match self {
            Self::Hold => None,
            Self::Retry if tries_left => Some(Decision::Retry),
            Self::Retry => None,
            Self::Fail => Some(Decision::Error),
        }
    }
}

/// What a job does when one that it waits for ends otherwise than well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Then {
    /// It stays held.
    Hold,
    /// It is cancelled too.
    Cancel,
    /// It runs all the same.
    Run,
}

impl Then {
    /// Every choice with its word.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("hold", Self::Hold), ("cancel", Self::Cancel), ("run", Self::Run)];

    /// The word of this choice.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, choice)| *choice == self).map_or("", |(word, _)| word)
    }

    /// The choice of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, choice)| *choice)
    }
}

/// One job that another waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The job waited for.
    pub on: JobId,
    /// When it failed.
    pub on_failed: Then,
    /// When it was cancelled.
    pub on_cancelled: Then,
    /// While it is uncertain.
    pub on_uncertain: Then,
}

/// Limits of one attempt, kept by its keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// For the whole attempt.
    pub timeout: Option<Span>,
    /// Until the first output.
    pub timeout_first: Option<Span>,
    /// Between two outputs.
    pub timeout_idle: Option<Span>,
    /// Between asking a worker to end and ending it.
    pub grace: Span,
    /// Bytes of each output stream.
    pub output_max: i64,
    /// Whether what the worker prints is kept.
    #[serde(default = "kept", skip_serializing_if = "is_kept")]
    pub capture: bool,
}

/// What a worker prints is kept unless a job says otherwise; jobs that say nothing of it read and are written as ever.
fn kept() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_kept(capture: &bool) -> bool {
    *capture
}

/// Everything about a job that was resolved at submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The name of the worker, as in `config.toml`.
    pub worker: String,
    /// The adapter that speaks to it.
    pub adapter: String,
    /// The model asked for.
    pub model: Option<String>,
    /// The absolute program.
    pub program: String,
    /// The program's arguments: a command's own, or those that the worker's entry fixes.
    pub argv: Vec<String>,
    /// Options of the adapter, by name.
    pub options: BTreeMap<String, String>,
    /// What is handed over on standard input.
    pub prompt: Option<Digest>,
    /// The working directory.
    pub dir: String,
    /// Names of environment variables to pass on; values are read at dispatch and never stored.
    pub env: Vec<String>,
    /// Limits of an attempt.
    pub limits: Limits,
    /// How many tries it may have.
    pub max_tries: i64,
    /// The wait before its second try.
    pub retry_delay: Span,
    /// What happens when one ends uncertain.
    pub if_uncertain: IfUncertain,
    /// The concurrency group; empty for none.
    pub group: String,
    /// How many of the group may be claimed or running at once.
    pub width: i64,
    /// Higher runs first.
    pub priority: i64,
    /// Not to be claimed before this; 0 for at once.
    pub not_before: Time,
    /// Labels, sorted.
    pub labels: Vec<String>,
    /// Jobs that it waits for.
    pub after: Vec<Dependency>,
    /// The job whose session it continues.
    pub continues: Option<JobId>,
    /// The digest of the configuration that it was resolved with.
    pub config_digest: Option<Digest>,
}

impl Spec {
    /// A job that asks for nothing but this; what the adapters' tests start from.
    pub fn plain(adapter: &str, program: &str, argv: &[&str], limits: Limits) -> Self {
        Self {
            worker: adapter.to_owned(),
            adapter: adapter.to_owned(),
            model: None,
            program: program.to_owned(),
            argv: argv.iter().map(|&arg| arg.to_owned()).collect(),
            options: BTreeMap::new(),
            prompt: None,
            dir: "/srv/job".to_owned(),
            env: Vec::new(),
            limits,
            max_tries: 1,
            retry_delay: Span(0),
            if_uncertain: IfUncertain::Hold,
            group: String::new(),
            width: 1,
            priority: 0,
            not_before: Time(0),
            labels: Vec::new(),
            after: Vec::new(),
            continues: None,
            config_digest: None,
        }
    }

    /// The digest over everything above, in a fixed order.
    pub fn digest(&self) -> Digest {
        let mut fields: Vec<Vec<u8>> = Vec::new();
        let mut text = |value: &str| fields.push(value.as_bytes().to_vec());
        text(&self.worker);
        text(&self.adapter);
        text(self.model.as_deref().unwrap_or(""));
        text(&self.program);
        text(&self.argv.len().to_string());
        self.argv.iter().for_each(|arg| text(arg));
        text(&self.options.len().to_string());
        self.options.iter().for_each(|(name, value)| {
            text(name);
            text(value);
        });
        text(&self.prompt.map_or_else(String::new, |digest| digest.to_string()));
        text(&self.dir);
        text(&self.env.len().to_string());
        self.env.iter().for_each(|name| text(name));
        let span = |span: Option<Span>| span.map_or_else(String::new, |s| s.0.to_string());
        text(&span(self.limits.timeout));
        text(&span(self.limits.timeout_first));
        text(&span(self.limits.timeout_idle));
        text(&self.limits.grace.0.to_string());
        text(&self.limits.output_max.to_string());
        text(&self.max_tries.to_string());
        text(&self.retry_delay.0.to_string());
        text(self.if_uncertain.word());
        text(&self.group);
        text(&self.width.to_string());
        text(&self.priority.to_string());
        text(&self.not_before.0.to_string());
        text(&self.labels.len().to_string());
        self.labels.iter().for_each(|label| text(label));
        text(&self.after.len().to_string());
        for dependency in &self.after {
            text(&dependency.on.to_string());
            text(dependency.on_failed.word());
            text(dependency.on_cancelled.word());
            text(dependency.on_uncertain.word());
        }
        text(&self.continues.map_or_else(String::new, |job| job.to_string()));
        text(&self.config_digest.map_or_else(String::new, |digest| digest.to_string()));
        // What was frozen before there was this choice has the digest that it had.
        if !self.limits.capture {
            text("no-capture");
        }
        let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        Digest::of("ares.spec.1", &fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_from_before_there_was_a_choice_keep_what_is_printed_and_their_form() {
        let text = r#"{"timeout":null,"timeout_first":null,"timeout_idle":5,"grace":1,"output_max":2}"#;
        let limits: Limits = serde_json::from_str(text).unwrap();
        assert!(limits.capture);
        assert_eq!(serde_json::to_string(&limits).unwrap(), text);
        let none = Limits { capture: false, ..limits };
        let text = serde_json::to_string(&none).unwrap();
        assert_eq!(serde_json::from_str::<Limits>(&text).unwrap(), none);
    }
}
