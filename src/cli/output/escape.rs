//! How stored text becomes safe to print: nothing that it holds can move a cursor, end a line, or turn the direction of
//! reading. Escapes can be undone, because a backslash is escaped too.

use std::io;

/// C1 controls and the characters that turn the direction of reading.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape(bytes: &[u8], line: bool) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' if line => out.push_str("\\\\"),
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\0'..='\u{1f}' | '\u{7f}' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
                c if is_hidden(c) => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
                c => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    }
    out
}

/// One field of a line: `\t`, `\n`, `\\`, `\xNN` for other controls and bytes that are no text, `\u{…}` for the rest.
pub fn field(bytes: &[u8]) -> String {
    escape(bytes, true)
}

/// Output of a worker for a terminal: its lines and tabs stay, everything else that a terminal would act on is escaped.
pub fn text(bytes: &[u8]) -> String {
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .map(|line| line.split(|byte| *byte == b'\t').map(|part| escape(part, false)).collect::<Vec<_>>().join("\t"));
    lines.collect::<Vec<_>>().join("\n")
}

/// A message for people: as [`field`], but a backslash stays as it is.
pub fn message(text: &str) -> String {
    escape(text.as_bytes(), false)
}

/// JSON on one line, with `\u00XX` also for DEL, C1 and what turns the direction of reading, which JSON would let pass.
pub fn json(value: &serde_json::Value) -> String {
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, Careful);
    // Writing a value to memory cannot fail; a value that did would print as nothing rather than as half of it.
    match serde::Serialize::serialize(value, &mut serializer) {
        Ok(()) => String::from_utf8(out).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

/// Compact JSON whose strings hold nothing that a terminal acts on.
struct Careful;

impl serde_json::ser::Formatter for Careful {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| *c == '\u{7f}' || is_hidden(*c)) {
            writer.write_all(&rest.as_bytes()[..at])?;
            write!(writer, "\\u{:04x}", u32::from(c))?;
            rest = &rest[at + c.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_acts_on_a_terminal_passes() {
        let check = |bytes: &[u8], text: &str| assert_eq!(field(bytes), text);
        check(b"a\tb\nc\\d", r"a\tb\nc\\d");
        check(b"\x1b[31mred\x7f\r\0", r"\x1b[31mred\x7f\x0d\x00");
        check("\u{9b}31m \u{202e}txt\u{2066}".as_bytes(), r"\u{9b}31m \u{202e}txt\u{2066}");
        check(b"caf\xc3\xa9 \xff\xc3", r"café \xff\xc3");
        assert_eq!(message("C:\\x\u{1b}"), r"C:\x\x1b");
    }

    #[test]
    fn json_hides_the_same_characters_and_stays_json() {
        let value = serde_json::json!({ "k\u{202e}": "a\u{7f}\u{9b}\u{1b}é" });
        let text = json(&value);
        assert_eq!(text, r#"{"k\u202e":"a\u007f\u009b\u001bé"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
