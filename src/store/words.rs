//! The one place where a row's columns become values. What does not read is damage and names its row and its column; no
//! default stands in for it.

use crate::domain::digest::Digest;
use rusqlite::types::{FromSql, Type};
use rusqlite::{Error, Row};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;

/// A row's columns, read one after the other: to look each up by its name costs more than to read it. The first ones name
/// the row.
pub(super) struct Columns<'a, 'b> {
    row: &'a Row<'b>,
    next: usize,
    of: &'static str,
    keys: usize,
}

/// What stands in a column and is nothing that ares writes there.
#[derive(Debug)]
pub(super) struct Unread(String);

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unread {}

/// How much of what does not read is shown, in characters.
const SHOWN: usize = 40;

impl<'a, 'b> Columns<'a, 'b> {
    /// The columns of a row of this kind, whose first `keys` columns name it.
    pub(super) fn of(row: &'a Row<'b>, of: &'static str, keys: usize) -> Self {
        Self { row, next: 0, of, keys }
    }

    fn unread(&self, at: usize, why: impl fmt::Display) -> Error {
        use rusqlite::types::ValueRef;
        let shown = |at: usize| match self.row.get_ref(at) {
            Ok(ValueRef::Integer(number)) => number.to_string(),
            Ok(ValueRef::Text(text)) => String::from_utf8_lossy(text).into_owned(),
            Ok(ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_)) | Err(_) => "?".to_owned(),
        };
        let key = (0..self.keys).map(shown).collect::<Vec<_>>().join(".");
        let column = self.row.as_ref().column_name(at).unwrap_or("?").to_owned();
        let said = format!("column '{column}' of {} {key} does not read: {why}", self.of);
        Error::FromSqlConversionFailure(at, Type::Text, Box::new(Unread(said)))
    }

    fn step(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    /// A plain value.
    pub(super) fn next<T: FromSql>(&mut self) -> rusqlite::Result<T> {
        let at = self.step();
        self.row.get(at).map_err(|error| self.unread(at, error))
    }

    /// Text that is only looked at; none where there is none.
    fn maybe_text(&mut self) -> rusqlite::Result<Option<&'a str>> {
        let at = self.step();
        self.row.get_ref(at)?.as_str_or_null().map_err(|error| self.unread(at, error))
    }

    fn text(&mut self) -> rusqlite::Result<&'a str> {
        let at = self.next;
        self.maybe_text()?.ok_or_else(|| self.unread(at, "there is nothing"))
    }

    /// One of a list of words.
    pub(super) fn word<T>(&mut self, parse: impl FnOnce(&str) -> Option<T>) -> rusqlite::Result<T> {
        let (at, text) = (self.next, self.text()?);
        parse(text).ok_or_else(|| self.unread(at, format_args!("'{}' is no word of ours", cut(text))))
    }

    /// The same where there may be none.
    pub(super) fn maybe_word<T>(&mut self, parse: impl FnOnce(&str) -> Option<T>) -> rusqlite::Result<Option<T>> {
        let (at, text) = (self.next, self.maybe_text()?);
        let Some(text) = text else { return Ok(None) };
        parse(text).map(Some).ok_or_else(|| self.unread(at, format_args!("'{}' is no word of ours", cut(text))))
    }

    /// JSON that this crate wrote.
    pub(super) fn json<T: DeserializeOwned>(&mut self) -> rusqlite::Result<T> {
        let (at, text) = (self.next, self.text()?);
        serde_json::from_str(text).map_err(|error| self.unread(at, error))
    }

    /// JSON that is handed on as it is, once it reads as this.
    pub(super) fn json_text<T: DeserializeOwned>(&mut self) -> rusqlite::Result<Option<String>> {
        let (at, text) = (self.next, self.maybe_text()?);
        let Some(text) = text else { return Ok(None) };
        serde_json::from_str::<T>(text).map_err(|error| self.unread(at, error))?;
        Ok(Some(text.to_owned()))
    }

    /// Any JSON, handed on as it is.
    pub(super) fn any_json(&mut self) -> rusqlite::Result<String> {
        let at = self.next;
        self.json_text::<Value>()?.ok_or_else(|| self.unread(at, "there is nothing"))
    }

    /// A digest; none where there is none.
    pub(super) fn maybe_digest(&mut self) -> rusqlite::Result<Option<Digest>> {
        let at = self.next;
        let Some(bytes) = self.next::<Option<Vec<u8>>>()? else { return Ok(None) };
        Digest::from_bytes(&bytes).map(Some).ok_or_else(|| self.unread(at, "it is no digest"))
    }

    /// A digest.
    pub(super) fn digest(&mut self) -> rusqlite::Result<Digest> {
        let at = self.next;
        self.maybe_digest()?.ok_or_else(|| self.unread(at, "there is nothing"))
    }
}

fn cut(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}
