//! Aligned columns for a terminal. A table changes how records look, never which fields are there: cells too long for
//! the terminal are cut with a visible mark, and no column is left out.

use super::escape;
use super::value::{Row, Value};

/// A cell is not cut below this width to make a table fit; a table that still does not fit is wider than the terminal.
const NARROW: usize = 10;

/// A column of free text is cut to this before any other is cut at all: half a code or half a moment says nothing.
const ROOMY: usize = 20;

/// How a table may look.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Whether states are coloured.
    pub color: bool,
    /// Columns of the terminal, where they are known.
    pub width: Option<usize>,
}

/// The columns of one table with the widths that they have so far.
#[derive(Debug)]
pub struct Table {
    columns: &'static [&'static str],
    widths: Vec<usize>,
    headed: bool,
}

impl Table {
    /// A table of these columns.
    pub fn new(columns: &'static [&'static str]) -> Self {
        Self { columns, widths: columns.iter().map(|name| wide(name)).collect(), headed: false }
    }

    /// A table whose records come one by one: it has room for the words that are yet to come, so that later lines stand
    /// under the earlier ones.
    pub fn followed(columns: &'static [&'static str]) -> Self {
        let mut table = Self::new(columns);
        for (width, name) in table.widths.iter_mut().zip(columns) {
            let usual = match *name {
                "state" | "outcome" => "succeeded".len(),
                "code" => "ARES_STOPPED_RUNNING".len(),
                _ => 0,
            };
            *width = usual.max(*width);
        }
        table
    }

    /// Whether it is a table of these columns.
    pub fn has(&self, columns: &[&str]) -> bool {
        self.columns == columns
    }

    /// Makes room for these records, then cuts the widest columns until the line fits.
    pub fn fit(&mut self, rows: &[Row], look: Look) {
        for (width, name) in self.widths.iter_mut().zip(self.columns) {
            let most = rows.iter().map(|row| wide(&cell(row.get(name)))).max().unwrap_or(0);
            *width = most.max(*width);
        }
        let Some(limit) = look.width else { return };
        let gaps = 2 * self.widths.len().saturating_sub(1);
        while self.widths.iter().sum::<usize>() + gaps > limit {
            let widest = self.widths.iter().copied().max().unwrap_or(0);
            // The last column is what a record says of itself, as long as it likes: it gives way first.
            let last = self.widths.last().is_some_and(|last| *last > NARROW && widest <= ROOMY);
            let at =
                if last { self.widths.len() - 1 } else { self.widths.iter().rposition(|w| *w == widest).unwrap_or(0) };
            match self.widths.get_mut(at).filter(|width| **width > NARROW) {
                Some(width) => *width -= 1,
                None => break,
            }
        }
    }

    /// The lines of these records, under the header when they are the first.
    pub fn lines(&mut self, rows: &[Row], look: Look) -> String {
        let mut out = String::new();
        if !std::mem::replace(&mut self.headed, true) {
            let names = self.columns.iter().map(|name| (name.to_uppercase(), "", false));
            self.line(&mut out, names);
        }
        for row in rows {
            let cells = self.columns.iter().map(|name| {
                let value = row.get(name);
                let color = if look.color { paint(name, value) } else { "" };
                (cell(value), color, matches!(value, Value::Int(_)))
            });
            self.line(&mut out, cells);
        }
        out
    }

    fn line(&self, out: &mut String, cells: impl Iterator<Item = (String, &'static str, bool)>) {
        let mut line = String::new();
        for (at, ((text, color, right), width)) in cells.zip(&self.widths).enumerate() {
            let text = cut(&text, *width);
            let pad = " ".repeat(width.saturating_sub(wide(&text)));
            let text = if color.is_empty() { text } else { format!("\u{1b}[{color}m{text}\u{1b}[0m") };
            line.push_str(if at == 0 { "" } else { "  " });
            line.push_str(&if right { pad + &text } else { text + &pad });
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// A value in a table. A moment is shown to the minute, in UTC: a column of milliseconds is read by nobody.
fn cell(value: &Value) -> String {
    let text = value.shown();
    match value {
        Value::Time(_) if text.len() > 16 => text[..16].replace('T', " "),
        _ => text,
    }
}

/// One record with all its fields, a line each. Fields without a value are left out here, for people; what is nested has
/// its own fields as name=value, and a list of records an indented paragraph for each.
pub fn fields(row: &Row, look: Look) -> String {
    let shown: Vec<_> = row.fields().iter().filter(|(_, value)| !is_empty(value)).collect();
    let width = shown.iter().map(|(name, _)| wide(name)).max().unwrap_or(0);
    let mut out = String::new();
    for (name, value) in shown {
        let pad = " ".repeat(width - wide(name));
        match value {
            Value::Json(serde_json::Value::Array(items)) if items.iter().any(serde_json::Value::is_object) => {
                out.push_str(&format!("{name}\n"));
                items.iter().for_each(|item| out.push_str(&filled(&pairs(item), 2, look)));
                continue;
            }
            Value::Json(item @ serde_json::Value::Object(_)) => {
                let text = filled(&pairs(item), width + 2, look);
                out.push_str(&format!("{name}{pad}  {}\n", text.trim()));
                continue;
            }
            _ => {}
        }
        let color = if look.color { paint(name, value) } else { "" };
        let text = value.shown();
        let text = if color.is_empty() { text } else { format!("\u{1b}[{color}m{text}\u{1b}[0m") };
        out.push_str(&format!("{name}{pad}  {text}\n"));
    }
    out
}

/// Words in lines that fit the terminal: the first begins at this indent, the others two columns further.
fn filled(words: &[String], indent: usize, look: Look) -> String {
    let (mut out, mut line) = (String::new(), String::new());
    for word in words {
        let full = look.width.is_some_and(|limit| !line.trim().is_empty() && wide(&line) + 2 + wide(word) > limit);
        if full {
            out.push_str(&format!("{line}\n"));
        }
        match (full, line.is_empty()) {
            (true, _) => line = " ".repeat(indent + 2),
            (false, true) => line = " ".repeat(indent),
            (false, false) => line.push_str("  "),
        }
        line.push_str(word);
    }
    out + &line + "\n"
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Text(text) => text.is_empty(),
        Value::Json(serde_json::Value::Array(items)) => items.is_empty(),
        Value::Json(serde_json::Value::Object(map)) => map.is_empty(),
        Value::Bool(_) | Value::Int(_) | Value::Time(_) | Value::Span(_) | Value::Bytes(_) | Value::Json(_) => false,
    }
}

/// A record inside a record: its fields that have a value, as name=value; one level deeper they are named by both.
fn pairs(item: &serde_json::Value) -> Vec<String> {
    let Some(map) = item.as_object() else { return vec![escape::json(item)] };
    let empty = |value: &serde_json::Value| match value {
        serde_json::Value::Null => true,
        serde_json::Value::String(text) => text.is_empty(),
        serde_json::Value::Array(items) => items.is_empty(),
        serde_json::Value::Object(map) => map.is_empty(),
        serde_json::Value::Bool(_) | serde_json::Value::Number(_) => false,
    };
    let pair = |(name, value): (&String, &serde_json::Value)| match value {
        serde_json::Value::String(text) => vec![format!("{name}={}", escape::field(text.as_bytes()))],
        serde_json::Value::Object(_) => pairs(value).iter().map(|inner| format!("{name}.{inner}")).collect(),
        serde_json::Value::Array(items) if items.iter().all(serde_json::Value::is_object) => {
            let named = |mut words: Vec<String>| {
                words.iter_mut().take(1).for_each(|first| *first = format!("{name}: {first}"));
                words
            };
            items.iter().flat_map(|item| named(pairs(item))).collect()
        }
        value => vec![format!("{name}={}", escape::json(value))],
    };
    map.iter().filter(|(_, value)| !empty(value)).flat_map(pair).collect()
}

/// The colour of a state or an outcome; nothing else is coloured.
fn paint(column: &str, value: &Value) -> &'static str {
    let ("state" | "outcome", Value::Text(word)) = (column, value) else { return "" };
    match word.as_str() {
        "succeeded" | "ok" => "32",
        "failed" | "error" => "31",
        "uncertain" | "ambiguous" => "1;33",
        "claimed" | "running" => "36",
        "cancelled" | "void" => "2",
        _ => "",
    }
}

/// How many columns of a terminal the text takes: two for the wide scripts, none for marks that combine.
fn wide(text: &str) -> usize {
    text.chars()
        .map(|c| match u32::from(c) {
            0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
            0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f => 2,
            0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1f64f | 0x1f900..=0x1f9ff | 0x20000..=0x3fffd => 2,
            _ => 1,
        })
        .sum()
}

fn cut(text: &str, width: usize) -> String {
    if wide(text) <= width {
        return text.to_owned();
    }
    let (mut out, mut used) = (String::new(), 1);
    for c in text.chars() {
        used += wide(c.encode_utf8(&mut [0; 4]));
        if used > width {
            break;
        }
        out.push(c);
    }
    out + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Look = Look { color: false, width: None };

    fn table(rows: &[Row], look: Look) -> String {
        let mut table = Table::new(&["job", "state", "detail"]);
        table.fit(rows, look);
        table.lines(rows, look)
    }

    #[test]
    fn columns_are_aligned_under_their_names() {
        let rows = [
            Row::new().with("job", 7).with("state", "succeeded").with("detail", "日本"),
            Row::new().with("job", 1234).with("state", "queued"),
        ];
        assert_eq!(table(&rows, PLAIN), "JOB   STATE      DETAIL\n   7  succeeded  日本\n1234  queued     -\n");
    }

    #[test]
    fn a_narrow_terminal_cuts_cells_and_keeps_columns() {
        let rows = [Row::new().with("job", 7).with("state", "failed").with("detail", "x".repeat(90))];
        let text = table(&rows, Look { color: false, width: Some(40) });
        assert!(text.lines().all(|line| wide(line) <= 40), "{text}");
        assert!(text.contains("DETAIL") && text.contains('…'), "{text}");
        let text = table(&rows, Look { color: false, width: Some(5) });
        assert!(text.contains("DETAIL"), "{text}");
    }

    #[test]
    fn the_last_column_gives_way_first() {
        let row = Row::new().with("job", 7).with("state", "ARES_EXIT_STATUS").with("detail", "x".repeat(90));
        let text = table(&[row], Look { color: false, width: Some(40) });
        assert_eq!(text, "JOB  STATE             DETAIL\n  7  ARES_EXIT_STATUS  xxxxxxxxxxxxxxxx…\n");
    }

    #[test]
    fn a_record_is_filled_to_the_width_and_loses_nothing() {
        let inner = serde_json::json!([{ "a": "x".repeat(20), "b": { "c": 1, "d": null }, "e": "y".repeat(20) }]);
        let row = Row::new().with("job", 7).with("usage", serde_json::json!({ "input": 5 })).with("attempts", inner);
        let text = fields(&row, Look { color: false, width: Some(40) });
        let (x, y) = ("x".repeat(20), "y".repeat(20));
        assert_eq!(text, format!("job       7\nusage     input=5\nattempts\n  a={x}  b.c=1\n    e={y}\n"));
    }

    #[test]
    fn only_states_are_coloured() {
        let rows = [Row::new().with("job", 7).with("state", "failed").with("detail", "failed")];
        let text = table(&rows, Look { color: true, width: None });
        assert_eq!(text.matches('\u{1b}').count(), 2, "{text:?}");
    }
}
