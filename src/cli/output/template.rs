//! `--format`: text with `%(field)` in it, as `git for-each-ref` has it.

use super::escape;
use super::value::Row;
use crate::error::{Code, Error, Result};

/// A parsed format.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Field(String),
}

impl Template {
    /// Reads a format: `%(field)`, `%%`, and the escapes `\t`, `\n`, `\0`, `\\`. Only the fields in `known` may be named.
    pub fn parse(format: &str, known: &[&str]) -> Result<Self> {
        let bad = |why: String| Error::new(Code::Usage, format!("{why} in the format '{format}'"));
        let (mut pieces, mut text, mut rest) = (Vec::new(), String::new(), format);
        while let Some(at) = rest.find(['%', '\\']) {
            text.push_str(&rest[..at]);
            let mark = &rest[at..];
            if let Some(named) = mark.strip_prefix("%(") {
                let end = named.find(')').ok_or_else(|| bad("'%(' is not closed".to_owned()))?;
                let name = &named[..end];
                if !known.contains(&name) {
                    let hint = format!("known fields: {}", known.join(", "));
                    return Err(bad(format!("unknown field '{name}'")).hint(hint));
                }
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Field(name.to_owned()));
                rest = &named[end + 1..];
                continue;
            }
            let length = 1 + mark.chars().nth(1).map_or(0, char::len_utf8);
            text.push(match &mark[..length] {
                "%%" => '%',
                "\\t" => '\t',
                "\\n" => '\n',
                "\\0" => '\0',
                "\\\\" => '\\',
                other => {
                    return Err(bad(format!("unknown '{other}'")).hint("write %(field), %%, \\t, \\n, \\0 or \\\\"));
                }
            });
            rest = &mark[length..];
        }
        text.push_str(rest);
        pieces.push(Piece::Text(text));
        Ok(Self(pieces))
    }

    /// The record in this format; the fields escaped, unless raw.
    pub fn apply(&self, row: &Row, raw: bool) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Field(name) if raw => out.extend(row.get(name).bytes()),
                Piece::Field(name) => out.extend(escape::field(&row.get(name).bytes()).into_bytes()),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_percents_and_escapes() {
        let row = Row::new().with("job", 42).with("detail", "a\tb");
        let check = |format: &str, raw, text: &str| {
            let template = Template::parse(format, &["job", "detail", "none"]).unwrap();
            assert_eq!(String::from_utf8(template.apply(&row, raw)).unwrap(), text, "{format}");
        };
        check("%(job)", false, "42");
        check("100%% of %(job)\\t%(detail)|%(none)|", false, "100% of 42\ta\\tb||");
        check("%(detail)\\0\\n\\\\", true, "a\tb\0\n\\");
    }

    #[test]
    fn what_is_unknown_is_refused_by_name() {
        let error = Template::parse("%(jbo)", &["job", "state"]).unwrap_err();
        assert_eq!(error.code, Code::Usage);
        assert!(error.message.contains("'jbo'") && error.advice().contains("job, state"), "{error}");
        for bad in ["%(job", "%x", "%", "\\q", "\\", "%é"] {
            assert!(Template::parse(bad, &["job"]).is_err(), "{bad}");
        }
    }
}
