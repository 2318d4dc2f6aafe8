//! `config.toml` of a store: workers and groups. Unknown keys are errors, and secrets are never in it: only the names
//! of variables that hold them.

use super::dir;
use crate::domain::digest::Digest;
use crate::domain::spec::check_variable;
use crate::error::{Code, Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The largest file that is read.
const CONFIG_MAX: u64 = 1 << 20;

/// What `config.toml` says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `[worker.NAME]`.
    pub worker: BTreeMap<String, WorkerEntry>,
    /// `[group.NAME]`.
    pub group: BTreeMap<String, GroupEntry>,
    /// The digest of the file; none where there is no file.
    #[serde(skip)]
    pub digest: Option<Digest>,
}

/// One worker: how to reach it and its defaults, all of which a job freezes when it is submitted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerEntry {
    /// The adapter that speaks to it; the worker's name where it is left out.
    pub adapter: Option<String>,
    /// The program, absolute or found on PATH.
    pub program: Option<String>,
    /// Arguments that come first.
    pub args: Vec<String>,
    /// Names of variables that it is given.
    pub env: Vec<String>,
    /// Where it keeps its credentials; two workers of one home share a concurrency group.
    pub home: Option<String>,
    /// The model to ask for.
    pub model: Option<String>,
    /// The time-out of an attempt, as `30m`.
    pub timeout: Option<String>,
    /// The time-out until the first output.
    pub timeout_first: Option<String>,
    /// The time-out between two outputs.
    pub timeout_idle: Option<String>,
    /// The concurrency group.
    pub group: Option<String>,
    /// Options of the adapter.
    pub options: BTreeMap<String, String>,
}

/// One concurrency group.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupEntry {
    /// How many may be claimed or running at once.
    pub width: u32,
}

impl Config {
    /// Reads the configuration of a store; one without the file has the defaults.
    pub fn load(root: &Path) -> Result<Self> {
        let path = root.join("config.toml");
        let bytes = match dir::read_bounded(&path, CONFIG_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.code == Code::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let bad = |why: String| Error::new(Code::BadConfig, format!("'{}': {why}", path.display()));
        let text = std::str::from_utf8(&bytes).map_err(|error| bad(error.to_string()))?;
        let mut config: Self = toml::from_str(text).map_err(|error| bad(place_of(text, &error)))?;
        config.digest = Some(Digest::of_content(&bytes));
        for (name, entry) in &config.worker {
            let checked = entry.env.iter().try_for_each(|variable| check_variable(variable));
            checked.map_err(|why| bad(format!("worker '{name}': {why}")))?;
        }
        if let Some((name, _)) =
            config.worker.iter().find(|(_, w)| w.home.as_ref().is_some_and(|h| !h.starts_with('/')))
        {
            return Err(bad(format!("the home of worker '{name}' is not an absolute path")));
        }
        if let Some((name, _)) = config.group.iter().find(|(_, group)| group.width == 0) {
            return Err(bad(format!("group '{name}' has width 0; stop its jobs instead")));
        }
        Ok(config)
    }

    /// A group's width, where the configuration has one.
    pub fn width(&self, group: &str) -> Option<i64> {
        self.group.get(group).map(|entry| i64::from(entry.width))
    }
}

/// The message of a parse error on one line, with its line and column.
fn place_of(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', " ");
    let Some(span) = error.span() else { return message };
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("line {line}, column {column}: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Config> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.toml"), text).unwrap();
        Config::load(dir.path())
    }

    #[test]
    fn what_is_written_is_what_is_meant() {
        let config = load("[worker.c]\nadapter = \"codex\"\nargs = [\"-x\"]\n[group.g]\nwidth = 3\n").unwrap();
        assert_eq!((config.worker["c"].args.as_slice(), config.width("g")), (["-x".to_owned()].as_slice(), Some(3)));
        assert!(config.digest.is_some());
        assert_eq!(config.width("other"), None);
    }

    #[test]
    fn mistakes_have_a_place() {
        let error = load("[worker.c]\nadaptor = \"codex\"\n").unwrap_err();
        assert!(error.message.contains("line 2, column 1") && error.message.contains("adaptor"), "{error}");
        assert!(load("[worker.c]\nhome = \"x\"\n").unwrap_err().message.contains("absolute"));
        let error = load("[worker.c]\nenv = [\"KEY=canary\"]\n").unwrap_err();
        assert!(
            error.message.contains("worker 'c': env takes the name") && !error.message.contains("canary"),
            "{error}"
        );
        assert!(load("[group.g]\nwidth = 0\n").unwrap_err().message.contains("width 0"));
        assert!(load("[worker.c]\nprogram = \"a\"\nprogram = \"b\"\n").is_err());
    }
}
