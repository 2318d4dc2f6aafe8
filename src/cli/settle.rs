//! ares-settle: record how an attempt ended.

use super::{Answer, Context, Field, Row, Run, args, fields};
use crate::domain::id::Handle;
use crate::domain::job::Hold;
use crate::domain::outcome::clean;
use crate::domain::outcome::{Outcome, Usage};
use crate::error::{Code, Error, Result};
use crate::ops::settle::{Say, settle};
use std::path::PathBuf;

/// The largest result: 8 MiB.
const RESULT_MAX: usize = 8 << 20;

/// Record how an attempt ended
///
/// ok and error are known ends. ambiguous says that it may have taken effect and nobody can tell; only a decision ends
/// that. void says that it never acted: it burns no try.
///
/// Settling twice in the same way is no error; in another way it is a conflict. What comes after the attempt was given
/// away is kept as evidence and changes nothing. Nothing is printed, unless --json or --format asks for it. A job whose
/// fifth attempt in a row is void is held until someone decides, which is told on standard error.
#[derive(clap::Args)]
pub struct Args {
    /// The handle that ares-claim printed
    #[arg(value_name = "HANDLE", value_parser = args::parsed::<Handle>)]
    pub handle: Handle,

    /// What happened
    #[arg(value_name = "OUTCOME", value_parser = args::words(Outcome::WORDS))]
    pub outcome: Outcome,

    /// Read the result from a file; - is standard input
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub result: Option<PathBuf>,

    /// The code of the end, such as ARES_RATE_LIMITED
    #[arg(long, value_name = "CODE", value_parser = code)]
    pub code: Option<Code>,

    /// One line on why
    #[arg(long, value_name = "TEXT")]
    pub because: Option<String>,

    /// The exit status that was seen
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=255))]
    pub exit: Option<i32>,

    /// Tokens used: JSON, or pairs such as input=1200,output=80
    ///
    /// Known: input, cached, output, reasoning, calls.
    #[arg(long, value_name = "USAGE", value_parser = usage)]
    pub usage: Option<Usage>,

    /// What it cost, in USD with nine decimals at most
    #[arg(long, value_name = "USD", value_parser = args::usd)]
    pub cost: Option<i64>,

    /// Of a void attempt: trying again would end the same way
    #[arg(long)]
    pub lasting: bool,

    /// Of an error: it is worth another try, if tries are left
    #[arg(long, conflicts_with = "no_retry")]
    pub retry: bool,

    /// Of an error: it is not worth another try; the default
    #[arg(long)]
    pub no_retry: bool,
}

fn code(text: &str) -> std::result::Result<Code, String> {
    Code::parse(text).ok_or_else(|| "see ares-errors(7) for the codes".to_owned())
}

/// Reads usage as a JSON object, or as name=number pairs.
fn usage(text: &str) -> std::result::Result<Usage, String> {
    let object = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| error.to_string())?
    } else {
        let mut map = serde_json::Map::new();
        for part in text.split(',') {
            let (name, number) = part.split_once('=').ok_or("write input=N,output=N")?;
            let number: i64 = number.parse().map_err(|_| format!("'{number}' is not a number"))?;
            if map.insert(name.to_owned(), number.into()).is_some() {
                return Err(format!("'{name}' is given twice"));
            }
        }
        serde_json::Value::Object(map)
    };
    let usage: Usage = serde_json::from_value(object).map_err(|error| error.to_string())?;
    let negative = [usage.input, usage.cached, usage.output, usage.reasoning, usage.calls].iter().any(|n| *n < 0);
    if negative { Err("a number is negative".to_owned()) } else { Ok(usage) }
}

impl Args {
    /// Usage and cost together; a cost in both must be the same.
    pub fn spent(&self) -> Result<Option<Usage>> {
        let Some(cost) = self.cost else { return Ok(self.usage.clone()) };
        let usage = self.usage.clone().unwrap_or_default();
        match usage.cost_nano {
            Some(other) if other != cost => Err(Error::new(Code::Usage, "--cost and --usage tell different costs")),
            _ => Ok(Some(Usage { cost_nano: Some(cost), ..usage })),
        }
    }

    /// The bytes of the result, where one is given.
    pub fn result_bytes(&self, max: usize) -> Result<Option<Vec<u8>>> {
        self.result.as_deref().map(|path| super::context::read(path, max)).transpose()
    }
}

impl Run for Args {
    const NAME: &'static str = "ares-settle";
    const MUTATES: bool = true;
    const COLUMNS: &'static [&'static str] = &["attempt", "outcome", "state"];
    const FIELDS: &'static [Field] = &[
        ("job", "integer: the job"),
        ("attempt", "text: the attempt, JOB.N"),
        ("outcome", "ok, error, ambiguous or void"),
        ("state", "the state of the job after it"),
        ("hold", "text: releases, where the job is held after its fifth release in a row"),
    ];
    const ERRORS: &'static [Code] =
        &[Code::NotYours, Code::Fenced, Code::AlreadyDecided, Code::IllegalMove, Code::Survivors, Code::NotFound];
    const EXAMPLES: &'static str = "\
$ ares-init --quiet .ares >/dev/null
$ ares-submit -- true
1
$ handle=$(ares-claim --owner $$)
$ echo done | ares-settle \"$handle\" ok --result - --usage input=1200,output=80 --cost 0.0042
$ ares-show 1 --output result
done
";
    const NOTES: &'static str = include_str!("notes/settle.txt");

    fn run(self, cx: &mut Context) -> Result<Answer> {
        let usage = self.spent()?;
        let result = self.result_bytes(RESULT_MAX)?;
        let store = cx.store()?;
        let say = Say {
            handle: self.handle,
            outcome: self.outcome,
            code: self.code,
            because: clean(self.because.as_deref().unwrap_or("")),
            exit: self.exit,
            signal: None,
            result,
            usage,
            lasting: self.lasting,
            blameless: false,
            retry: self.retry,
        };
        let settled = settle(store, cx.op_id().map(str::to_owned), &say)?;
        if settled.held {
            cx.warn(&fields::held(Self::NAME, say.handle.attempt.job));
        }
        if !cx.wants_fields() {
            return Ok(Answer::Nothing);
        }
        let row = Row::new()
            .with("job", say.handle.attempt.job)
            .with("attempt", settled.attempt)
            .with("outcome", say.outcome.word())
            .with("state", settled.state)
            .with("hold", settled.held.then(|| Hold::Releases.word()));
        Ok(Answer::rows(Self::COLUMNS, vec![row]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_json_or_pairs() {
        let wanted = Usage { input: 5, output: 2, ..Usage::default() };
        assert_eq!(usage("input=5,output=2"), Ok(wanted.clone()));
        assert_eq!(usage(r#"{"input":5,"output":2}"#), Ok(wanted));
        for bad in ["", "input", "input=x", "inptu=5", "input=-1", "input=1,input=2", "{", r#"{"x":1}"#] {
            assert!(usage(bad).is_err(), "{bad}");
        }
    }
}
