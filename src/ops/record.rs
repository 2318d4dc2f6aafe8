//! How the values of a batch's record are read: each is checked where it stands, so that a mistake is told with its
//! column.

use super::ask::{COUNT_MAX, IfActive, NUL, check_key, check_name};
use crate::domain::spec::check_variable;
use crate::domain::time::{Span, Time, moment};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IntoDeserializer, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// One value stands for a list of one.
struct OneOrMany<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one value or a list of them")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
        T::deserialize(text.into_deserializer()).map(|one| vec![one])
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Vec<T>, E> {
        T::deserialize(number.into_deserializer()).map(|one| vec![one])
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Vec<T>, E> {
        T::deserialize(number.into_deserializer()).map(|one| vec![one])
    }
}

/// One value or many.
pub(super) fn many<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    from.deserialize_any(OneOrMany(PhantomData))
}

/// A text that passes this check, where it is given.
fn checked<'de, D, E>(from: D, check: impl Fn(&str) -> Result<(), E>) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
    E: fmt::Display,
{
    let text = Option::<String>::deserialize(from)?;
    text.iter().try_for_each(|text| check(text)).map_err(D::Error::custom)?;
    Ok(text)
}

/// What an error says, with how to write it.
fn words(error: &crate::error::Error) -> String {
    format!("{}; {}", error.message, error.advice())
}

/// A length of time.
pub(super) fn span<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    checked(from, |text| text.parse::<Span>().map(drop).map_err(|error| words(&error)))
}

/// A moment.
pub(super) fn when<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    checked(from, |text| moment(text, Time(0)).map(drop).map_err(|error| words(&error)))
}

/// A key.
pub(super) fn key<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    checked(from, check_key)
}

/// The name of a worker or a group.
pub(super) fn name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    checked(from, check_name)
}

/// Names of labels.
pub(super) fn names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names: Vec<String> = many(from)?;
    names.iter().try_for_each(|name| check_name(name)).map_err(D::Error::custom)?;
    Ok(names)
}

/// A label, and what to do while a job with it has not ended.
pub(super) fn active<'de, D: Deserializer<'de>>(from: D) -> Result<Option<(String, IfActive)>, D::Error> {
    let active = Option::<(String, IfActive)>::deserialize(from)?;
    active.iter().try_for_each(|(label, _)| check_name(label)).map_err(D::Error::custom)?;
    Ok(active)
}

/// A number of at least one.
pub(super) fn positive<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    match Option::<i64>::deserialize(from)? {
        Some(number) if number < 1 => Err(D::Error::custom(format!("{number} is not at least 1"))),
        number => Ok(number),
    }
}

/// A number of tries or a width, both of which are bounded.
pub(super) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    match Option::<i64>::deserialize(from)? {
        Some(number) if !(1..=COUNT_MAX).contains(&number) => {
            Err(D::Error::custom(format!("{number} is not 1 to {COUNT_MAX}")))
        }
        number => Ok(number),
    }
}

/// Numbers of jobs.
pub(super) fn jobs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<i64>, D::Error> {
    let jobs: Vec<i64> = many(from)?;
    match jobs.iter().find(|job| **job < 1) {
        Some(job) => Err(D::Error::custom(format!("{job} is no number of a job"))),
        None => Ok(jobs),
    }
}

/// A program and its arguments.
pub(super) fn argv<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    match Option::<Vec<String>>::deserialize(from)? {
        Some(argv) if argv.iter().any(|arg| arg.contains('\0')) => Err(D::Error::custom(NUL)),
        argv => Ok(argv),
    }
}

/// Names of variables. A mistake does not repeat what was given: it may be a secret.
pub(super) fn variables<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names: Vec<String> = many(from)?;
    names.iter().try_for_each(|name| check_variable(name)).map_err(D::Error::custom)?;
    Ok(names)
}
