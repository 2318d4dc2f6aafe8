//! How the values of a batch's record are read: each is checked where it stands, so that a mistake is told with its
//! column.

use crate::domain::spec::check_variable;
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

/// Names of variables. A mistake does not repeat what was given: it may be a secret.
pub(super) fn variables<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names: Vec<String> = many(from)?;
    names.iter().try_for_each(|name| check_variable(name)).map_err(D::Error::custom)?;
    Ok(names)
}
