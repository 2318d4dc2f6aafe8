//! What jobs hand to agents, checked before it is frozen: prompts, options with a closed set of values, single words.

use super::refused;
use crate::domain::spec::{PROMPT_MAX, Spec};
use crate::error::{Code, Error, Result};

/// Options of an adapter with their values.
pub(super) type Choices = &'static [(&'static str, &'static [&'static str])];

/// Options of an adapter with what checks their values.
pub(super) type Free = &'static [(&'static str, fn(&str) -> Result<()>)];

/// Refuses a prompt that is missing, too long, or no text.
pub(super) fn check_prompt(agent: &str, prompt: Option<&[u8]>) -> Result<()> {
    let prompt = prompt.unwrap_or_default();
    if prompt.iter().all(u8::is_ascii_whitespace) {
        return Err(
            refused(format!("{agent} needs a prompt")).hint("write it after --, or hand it over on standard input")
        );
    }
    if prompt.len() > PROMPT_MAX {
        return Err(Error::new(
            Code::InputTooLarge,
            format!("the prompt has {} bytes; {agent} takes at most {PROMPT_MAX}", prompt.len()),
        )
        .hint("put it into a file of the working directory and name the file in the prompt"));
    }
    if let Err(bad) = std::str::from_utf8(prompt) {
        return Err(refused(format!("the prompt is not UTF-8 from byte {} on", bad.valid_up_to())));
    }
    match prompt.iter().position(|byte| *byte == 0) {
        Some(at) => Err(refused(format!("the prompt contains a NUL at byte {at}"))),
        None => Ok(()),
    }
}

/// Refuses options that the agent does not have, and values that an option does not take; `free` checks those whose
/// values are not of a closed set.
pub(super) fn check_options(agent: &str, spec: &Spec, choices: Choices, free: Free) -> Result<()> {
    for (name, value) in &spec.options {
        if let Some((_, check)) = free.iter().find(|(known, _)| known == name) {
            check(value)?;
            continue;
        }
        let Some((_, values)) = choices.iter().find(|(known, _)| known == name) else {
            let known: Vec<&str> =
                choices.iter().map(|(known, _)| *known).chain(free.iter().map(|(known, _)| *known)).collect();
            return Err(refused(format!("{agent} has no option '{name}'"))
                .hint(format!("its options are {}", known.join(", "))));
        };
        if !values.contains(&value.as_str()) {
            return Err(refused(format!("'{value}' is no value of {agent}'s option '{name}'"))
                .hint(format!("write one of {}", values.join(", "))));
        }
    }
    spec.model.as_deref().map_or(Ok(()), |model| check_word("model", model))
}

/// A word that stands as an argument of its own must not look like an option.
pub(super) fn check_word(what: &str, word: &str) -> Result<()> {
    if word.is_empty() || word.starts_with('-') || word.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(refused(format!("'{}' is no name of a {what}", word.escape_debug())));
    }
    Ok(())
}

/// The value of an option.
pub(super) fn option<'a>(spec: &'a Spec, name: &str) -> Option<&'a str> {
    spec.options.get(name).map(String::as_str)
}

/// Whether an option is `on`.
pub(super) fn on(spec: &Spec, name: &str) -> bool {
    option(spec, name) == Some("on")
}
