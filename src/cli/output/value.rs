//! What a field can be, and its form in each mode. The forms are promises; `man/ares-output.7` is written from here.

use super::escape;
use crate::domain::id::{AttemptId, Handle, JobId};
use crate::domain::time::{Span, Time};

/// The value of one field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing: an empty field, `null` in JSON.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Text.
    Text(String),
    /// A moment: RFC 3339 in UTC with milliseconds, in every mode.
    Time(Time),
    /// A length of time: milliseconds; in words on a terminal.
    Span(Span),
    /// Bytes that need not be text: `{"base64":"…"}` in JSON where they are none.
    Bytes(Vec<u8>),
    /// Something nested: JSON in every mode.
    Json(serde_json::Value),
}

impl Value {
    /// The field's bytes as they are, for the modes that escape nothing or escape later.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Null => Vec::new(),
            Self::Bool(value) => value.to_string().into_bytes(),
            Self::Int(value) => value.to_string().into_bytes(),
            Self::Text(text) => text.clone().into_bytes(),
            Self::Time(time) => time.to_string().into_bytes(),
            Self::Span(span) => span.0.to_string().into_bytes(),
            Self::Bytes(bytes) => bytes.clone(),
            Self::Json(value) => value.to_string().into_bytes(),
        }
    }

    /// The field as it is shown to people: escaped, lengths of time in words, nothing as a dash.
    pub fn shown(&self) -> String {
        match self {
            Self::Null => "-".to_owned(),
            Self::Span(span) => span.to_string(),
            other => escape::field(&other.bytes()),
        }
    }

    /// The field in JSON.
    pub fn json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Int(value) => (*value).into(),
            Self::Text(text) => text.as_str().into(),
            Self::Time(time) => time.to_string().into(),
            Self::Span(span) => span.0.into(),
            Self::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text.into(),
                Err(_) => serde_json::json!({ "base64": base64(bytes) }),
            },
            Self::Json(value) => value.clone(),
        }
    }
}

/// Base64 with padding, as RFC 4648 has it.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// Gives [`Value`] a conversion from what the domain has.
macro_rules! from {
    ($($from:ty => |$value:ident| $to:expr;)*) => {
        $(impl From<$from> for Value {
            fn from($value: $from) -> Self { $to }
        })*
    };
}

from! {
    bool => |value| Self::Bool(value);
    i64 => |value| Self::Int(value);
    String => |value| Self::Text(value);
    &str => |value| Self::Text(value.to_owned());
    Time => |value| Self::Time(value);
    Span => |value| Self::Span(value);
    Vec<u8> => |value| Self::Bytes(value);
    serde_json::Value => |value| if value.is_null() { Self::Null } else { Self::Json(value) };
    JobId => |value| Self::Int(value.0);
    AttemptId => |value| Self::Text(value.to_string());
    Handle => |value| Self::Text(value.to_string());
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// One record: named fields in order. It may have more fields than the columns that are shown without asking.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(Vec<(&'static str, Value)>);

impl Row {
    /// A record without fields.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The record with one more field.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    /// The field of this name; nothing where the record has none.
    pub fn get(&self, name: &str) -> &Value {
        self.0.iter().find(|(known, _)| *known == name).map_or(&Value::Null, |(_, value)| value)
    }

    /// The fields in order.
    pub fn fields(&self) -> &[(&'static str, Value)] {
        &self.0
    }

    /// The record as a JSON object.
    pub fn object(&self) -> serde_json::Value {
        serde_json::Value::Object(self.0.iter().map(|(name, value)| ((*name).to_owned(), value.json())).collect())
    }

    /// The record as one JSON object on one line, without the end of the line.
    pub fn json(&self) -> String {
        escape::json(&self.object())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_text_or_base64() {
        assert_eq!(Value::from(b"plain".to_vec()).json(), serde_json::json!("plain"));
        let check = |bytes: &[u8], text: &str| {
            assert_eq!(Value::from(bytes.to_vec()).json(), serde_json::json!({ "base64": text }));
        };
        check(&[0xff], "/w==");
        check(&[0xff, 0xfe], "//4=");
        check(&[0xff, 0xfe, 0xfd], "//79");
        check(&[0xff, 0, 0, 1], "/wAAAQ==");
    }

    #[test]
    fn a_row_is_an_object_in_its_own_order() {
        let row = Row::new().with("job", JobId(42)).with("label", None::<String>).with("timeout", Span(1500));
        assert_eq!(row.json(), r#"{"job":42,"label":null,"timeout":1500}"#);
        assert_eq!(row.get("timeout").shown(), "1.500s");
        assert_eq!(row.get("label").shown(), "-");
    }
}
