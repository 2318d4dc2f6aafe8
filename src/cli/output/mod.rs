//! The one printer of all commands, and the only place that writes to standard output. It knows records and modes,
//! not what they are about.
//!
//! INVARIANT `commit-then-print`: what a command changed is committed before any of its answer is written, so a write
//! that fails loses words only, and says so with a status of its own.

pub mod escape;
pub mod table;
pub mod template;
pub mod value;

use crate::error::{Code, Error, Result};
use std::io::{self, ErrorKind, Write};
use table::{Look, Table};
use template::Template;
pub use value::{Row, Value};

/// What a command answers.
#[derive(Debug)]
pub enum Answer {
    /// Records: these columns unless all fields are asked for.
    Rows {
        /// The columns that are shown without asking, in order; new ones are added at the end only.
        columns: &'static [&'static str],
        /// The records.
        rows: Vec<Row>,
    },
    /// What was made: only the first field of each record is printed, and never under a header.
    Id(Vec<Row>),
    /// One thing with all its fields, a line each: name and value.
    Record(Row),
    /// Stored bytes as they are, in every mode.
    Raw(Vec<u8>),
    /// Nothing to say.
    Nothing,
    /// A plain no: its words go to standard error, unless quiet, and its class is the exit status.
    No(Error),
    /// The exit status of a program that was run for the caller.
    Status(u8),
}

impl Answer {
    /// Records with these columns.
    pub fn rows(columns: &'static [&'static str], rows: Vec<Row>) -> Self {
        Self::Rows { columns, rows }
    }

    /// One thing that was made.
    pub fn id(name: &'static str, value: impl Into<Value>) -> Self {
        Self::Id(vec![Row::new().with(name, value)])
    }
}

/// How records are printed.
#[derive(Clone, Debug)]
pub enum Mode {
    /// Aligned, under a header.
    Table(Look),
    /// TAB between fields, a line each, escaped.
    Lines,
    /// TAB between fields, NUL after each record, never escaped.
    Nul,
    /// One object per line with all fields.
    Json,
    /// A format of the caller's; raw and ended by NUL with `-z`.
    Format(Template, bool),
}

/// Writes an answer, whole or piece by piece. A failed write is kept until [`Printer::finish`], so that work that goes
/// on while it prints is not cut short by a reader that went away.
pub struct Printer {
    out: Box<dyn Write>,
    mode: Mode,
    table: Option<Table>,
    failed: Option<io::Error>,
}

impl Printer {
    /// A printer on standard output.
    pub fn stdout(mode: Mode) -> Self {
        Self::on(Box::new(io::BufWriter::with_capacity(1 << 16, io::stdout())), mode)
    }

    /// A printer on anything.
    pub fn on(out: Box<dyn Write>, mode: Mode) -> Self {
        Self { out, mode, table: None, failed: None }
    }

    /// Prints one record at once, for commands that follow something. Says whether anyone still reads; a command that
    /// only reads ends when nobody does, one that acts goes on.
    pub fn row(&mut self, columns: &'static [&'static str], row: &Row) -> bool {
        if self.table.is_none() {
            self.table = Some(Table::followed(columns));
        }
        self.rows(columns, std::slice::from_ref(row));
        self.flush()
    }

    /// Prints some of many records. Says whether anyone still reads.
    pub fn page(&mut self, columns: &'static [&'static str], rows: &[Row]) -> bool {
        self.rows(columns, rows);
        self.flush()
    }

    /// Prints stored bytes at once, as they are. Says whether anyone still reads.
    pub fn raw(&mut self, bytes: &[u8]) -> bool {
        self.write(bytes);
        self.flush()
    }

    /// Prints an answer; what it says on standard error is not this printer's.
    pub fn answer(&mut self, answer: &Answer) {
        match answer {
            Answer::Rows { columns, rows } => self.rows(columns, rows),
            Answer::Id(rows) => rows.iter().for_each(|row| self.id(row)),
            Answer::Raw(bytes) => self.write(bytes),
            Answer::Record(row) => self.fields(row),
            Answer::Nothing | Answer::No(_) | Answer::Status(_) => {}
        }
    }

    /// The final flush, and what became of all writes. After a change any failed write is `ARES_OUTPUT_LOST`; on a
    /// command that only reads, a reader that went away is no failure.
    pub fn finish(mut self, changed: bool) -> Result<()> {
        self.flush();
        match self.failed {
            None => Ok(()),
            Some(error) if changed => Err(Error::new(Code::OutputLost, format!("cannot write the output: {error}"))),
            Some(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            Some(error) => Err(Error::new(Code::OutputFailed, format!("cannot write the output: {error}"))),
        }
    }

    fn rows(&mut self, columns: &'static [&'static str], rows: &[Row]) {
        let Mode::Table(look) = self.mode else {
            return rows.iter().for_each(|row| self.record(columns.iter().copied(), row));
        };
        if rows.is_empty() {
            return;
        }
        let mut table = self.table.take().filter(|table| table.has(columns)).unwrap_or_else(|| Table::new(columns));
        table.fit(rows, look);
        self.write(table.lines(rows, look).as_bytes());
        self.table = Some(table);
    }

    fn fields(&mut self, row: &Row) {
        let end = match &self.mode {
            Mode::Json | Mode::Format(..) => return self.record(std::iter::empty(), row),
            Mode::Table(look) => {
                let text = table::fields(row, *look);
                return self.write(text.as_bytes());
            }
            Mode::Lines => b'\n',
            Mode::Nul => b'\0',
        };
        for (name, value) in row.fields() {
            let value = value.bytes();
            let value = if end == b'\0' { value } else { escape::field(&value).into_bytes() };
            self.write(&[name.as_bytes(), b"\t", &value, &[end]].concat());
        }
    }

    fn id(&mut self, row: &Row) {
        let first = row.fields().first().map(|(name, _)| *name);
        self.record(first.into_iter(), row);
    }

    fn record(&mut self, columns: impl Iterator<Item = &'static str>, row: &Row) {
        let join = |cell: &dyn Fn(&Value) -> Vec<u8>| columns.map(|name| cell(row.get(name))).collect::<Vec<_>>();
        let (mut bytes, end) = match &self.mode {
            Mode::Table(_) | Mode::Lines => {
                (join(&|value| escape::field(&value.bytes()).into_bytes()).join(&b'\t'), b'\n')
            }
            Mode::Nul => (join(&Value::bytes).join(&b'\t'), b'\0'),
            Mode::Json => (row.json().into_bytes(), b'\n'),
            Mode::Format(template, nul) => (template.apply(row, *nul), if *nul { b'\0' } else { b'\n' }),
        };
        bytes.push(end);
        self.write(&bytes);
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(bytes).err();
        }
    }

    fn flush(&mut self) -> bool {
        if self.failed.is_none() {
            self.failed = self.out.flush().err();
        }
        self.failed.is_none()
    }
}

/// Writes words for people, already escaped, to standard error. There is nobody left to tell when that fails.
pub fn say(words: &str) {
    let _nobody_left = io::stderr().write_all(format!("{words}\n").as_bytes());
}

#[cfg(test)]
mod tests;
