//! The options that every command has, and how values on a command line are read. It knows no command.

use crate::domain::id::JobId;
use crate::domain::time::Span;
use crate::error::Error;
use crate::store::Wanted;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use std::str::FromStr;

/// The options of every command.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Common options")]
pub struct Common {
    /// Use the store in this directory
    ///
    /// Without it, $ARES_DIR; without that, the nearest .ares upward from the current directory, if it belongs to
    /// the caller.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub store: Option<PathBuf>,

    /// Wait at most this long for the store
    ///
    /// After it the command ends with status 4 and has applied nothing. A plain number is seconds; 0 does not wait.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = span)]
    pub wait_lock: Span,

    /// Print one JSON object per line, with all fields
    ///
    /// A failure is also printed as an object, on standard error.
    #[arg(long, conflicts_with_all = ["null", "format"])]
    pub json: bool,

    /// End records with NUL and escape nothing
    ///
    /// Fields stay separated by TAB. Where a command reads records, they end with NUL too.
    #[arg(short = 'z', long)]
    pub null: bool,

    /// Print each record in this format
    ///
    /// %(field) is a field, %% a percent sign; \t, \n, \0 and \\ are read as in C. An unknown field is an error that
    /// names the known ones, before anything is done.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,

    /// Print no notes and no plain no
    ///
    /// Failures are printed all the same.
    #[arg(short, long)]
    pub quiet: bool,
}

/// The option of every command that changes something.
#[derive(clap::Args, Debug)]
pub struct Operation {
    /// Apply this at most once under this id
    ///
    /// Repeated with the same id and the same request, the command applies nothing and gives the first answer; with
    /// another request it ends with status 3. An id has at most 128 letters, digits and ._:-
    #[arg(long, value_name = "ID", value_parser = op_id)]
    pub op_id: Option<String>,
}

/// Which jobs a command takes.
#[derive(clap::Args, Clone, Debug)]
pub struct Which {
    /// Only jobs with this label
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub label: Option<String>,

    /// Only jobs of this group
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub group: Option<String>,

    /// Only jobs of this worker
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub worker: Option<String>,

    /// Only this job
    ///
    /// Where it cannot run, the status says why: 10 when it is uncertain.
    #[arg(long, value_name = "JOB", value_parser = parsed::<JobId>)]
    pub job: Option<JobId>,
}

impl Which {
    /// The same as a claimer asks for it.
    pub fn wanted(self) -> Wanted {
        Wanted { job: self.job, label: self.label, group: self.group, worker: self.worker }
    }
}

/// Reads what the domain can read; says how to write it where it cannot.
pub fn parsed<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse::<T>().map_err(|error| error.advice().to_owned())
}

/// Reads a length of time.
pub fn span(text: &str) -> Result<Span, String> {
    parsed(text)
}

/// Reads a number of bytes: plain, or with k, M or G for powers of 1024.
pub fn bytes(text: &str) -> Result<i64, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    let count = if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse::<i64>().ok() } else { None };
    count.and_then(|count| count.checked_mul(unit)).ok_or_else(|| "write 65536, 64k, 16M or 1G".to_owned())
}

/// Reads an amount of money in USD, exactly, as nano-USD.
pub fn usd(text: &str) -> Result<i64, String> {
    let bad = || "write an amount of USD such as 0.25, with nine decimals at most".to_owned();
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 9 {
        return Err(bad());
    }
    let nano: i64 = format!("{part:0<9}").parse().map_err(|_| bad())?;
    let whole: i64 = whole.parse().map_err(|_| bad())?;
    whole.checked_mul(1_000_000_000).and_then(|whole| whole.checked_add(nano)).ok_or_else(bad)
}

/// Reads `NAME=VALUE`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    if name.is_empty() { Err("the name is missing".to_owned()) } else { Ok((name.to_owned(), value.to_owned())) }
}

/// Reads the name of a label, a group or a worker.
pub fn name(text: &str) -> Result<String, String> {
    if !crate::ops::ask::is_name(text) {
        return Err("a name has at most 128 letters, digits and ._:/@+- and does not begin with -".to_owned());
    }
    Ok(text.to_owned())
}

fn op_id(text: &str) -> Result<String, String> {
    let clean = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
    if text.is_empty() || text.len() > 128 || !text.bytes().all(clean) {
        return Err("an id has at most 128 letters, digits and ._:-".to_owned());
    }
    Ok(text.to_owned())
}

/// Reads one of the domain's words; help and completions show them all.
pub fn words<T>(list: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    PossibleValuesParser::new(list.iter().map(|(word, _)| *word)).try_map(move |given| {
        list.iter().find(|(word, _)| *word == given).map(|(_, value)| *value).ok_or("unknown word")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_exactly_or_refused() {
        assert_eq!(bytes("64k"), Ok(65536));
        assert_eq!(usd("0.25"), Ok(250_000_000));
        assert_eq!(usd("12"), Ok(12_000_000_000));
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        for bad in ["", "-1", "1T", "9999999999G", "+5"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
        for bad in ["", ".5", "1.", "1e3", "-1", "0.0000000001", "99999999999"] {
            assert!(usd(bad).is_err(), "{bad}");
        }
        for bad in ["", "-x", "a b", "a\n", "a\u{202e}"] {
            assert!(name(bad).is_err(), "{bad:?}");
        }
        assert!(op_id("cron-2031-05-01").is_ok() && op_id("a b").is_err());
    }
}
