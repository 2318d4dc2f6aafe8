//! ares-claim: take the next job, for a script that owns it or around a command.

use super::fail::object;
use super::{Answer, Context, Field, Row, Run, args};
use crate::error::{Code, Error, OrCode as _, Result};
use crate::host::config::Config;
use crate::host::spawn::Status;
use crate::ops::claim::{self, Owner};
use crate::ops::{show, wrap};
use crate::store::Store;
use std::ffi::OsString;
use std::path::PathBuf;

/// Take the next job that may run
///
/// The highest priority first, then the oldest. The handle is printed, such as 42.1-k3x9q2mw7a: settling needs it. With
/// nothing to claim the status is 1.
///
/// The claim lasts as long as its owner. A script is its own owner through --owner-fd, the lock on a descriptor that
/// it keeps open, or --owner, its process. It is about to act, so the attempt is running at once; --reserve only
/// claims.
///
/// With -- CMD the command is run for the job instead, with the handle in ARES_HANDLE, and its end settles the attempt.
/// It keeps the caller's standard streams, and its exit status is passed on; 125 is a failure of ares itself. A command
/// cannot be run at most once under an --op-id, so the two do not go together.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("by").args(["owner_file", "owner_fd", "owner", "command"]).required(true))]
pub struct Args {
    /// Print the path of a fresh owner file, and claim nothing
    #[arg(long, conflicts_with_all = ["reserve", "label", "group", "worker", "job", "capture", "report", "op_id"])]
    pub owner_file: bool,

    /// Own the claim through this descriptor of an owner file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(3..))]
    pub owner_fd: Option<i32>,

    /// Own the claim through this process, such as $$
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub owner: Option<i32>,

    /// Only claim: the job is kept from others, and nothing is dispatched
    ///
    /// Such an attempt cannot be settled ok or error, as it never began. It ends with its owner, or when it is settled
    /// void; then the job is queued again and no try was burnt.
    #[arg(long, conflicts_with = "command")]
    pub reserve: bool,

    /// Which job
    #[command(flatten)]
    pub which: args::Which,

    /// Store the command's output with the attempt instead of passing it on
    ///
    /// The values of variables that the job names are replaced in it, see ares-workers(7); those of the rest of our
    /// environment, which the command has too, are not.
    #[arg(long, requires = "command")]
    pub capture: bool,

    /// Write to this file, as JSON, whether ares itself failed
    ///
    /// Where a command is run its exit status is all that the status can say. The file gets the object that --json
    /// prints for a failure, as {"error":{...}}, and otherwise the status that was passed on, as {"status":0}.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, requires = "command")]
    pub report: Option<PathBuf>,

    /// The command to run for the job
    #[arg(last = true, value_name = "CMD", value_hint = clap::ValueHint::CommandWithArguments, conflicts_with = "op_id")]
    pub command: Vec<OsString>,
}

impl Run for Args {
    const NAME: &'static str = "ares-claim";
    const MUTATES: bool = true;
    const WRAPS: bool = true;
    const COLUMNS: &'static [&'static str] = &["handle"];
    const FIELDS: &'static [Field] = &[
        ("handle", "text: the handle that settling needs"),
        ("job", "integer: the job"),
        ("attempt", "text: the attempt, JOB.N"),
        ("worker", "text: the worker"),
        ("argv", "json: the command, a list"),
        ("prompt", "bytes: the prompt"),
        ("dir", "text: the working directory"),
        ("path", "text: the owner file, with --owner-file"),
    ];
    const ERRORS: &'static [Code] =
        &[Code::NothingToClaim, Code::Stopped, Code::Uncertain, Code::Fenced, Code::ReceiptFailed, Code::NotFound];
    const EXAMPLES: &'static str = "\
$ ares-init --quiet .ares >/dev/null
$ ares-submit -- true
1
$ exec 9>>\"$(ares-claim --owner-file)\"
$ handle=$(ares-claim --owner-fd 9)
$ ares-settle \"$handle\" ok
$ ares-claim --owner-fd 9
ares-claim: ARES_NOTHING_TO_CLAIM: [..]
? 1
";
    const NOTES: &'static str = include_str!("notes/claim.txt");

    fn run(self, cx: &mut Context) -> Result<Answer> {
        let report = self.report.clone();
        let answer = self.claim(cx);
        if let Some(path) = report {
            write_report(&path, &answer)?;
        }
        answer
    }
}

impl Args {
    fn claim(self, cx: &mut Context) -> Result<Answer> {
        let store = cx.store()?;
        if self.owner_file {
            return Ok(Answer::id("path", wrap::owner_file(store)?));
        }
        let config = Config::load(store.root())?;
        let (job, wanted) = (self.which.job, self.which.wanted());
        if !self.command.is_empty() {
            let caller = cx.caller(store);
            let wrapped = wrap::wrap(store, &caller, &config, &wanted, &self.command, self.capture)?;
            let Some(wrapped) = wrapped else { return Ok(Answer::No(claim::why_not(store, job)?)) };
            if let Status::NotExecuted(errno) = wrapped.status {
                let (name, why) = (self.command[0].to_string_lossy(), std::io::Error::from_raw_os_error(errno));
                cx.note(&format!(
                    "ares-claim: {}: cannot execute '{name}': {why}; job {} is queued again",
                    Code::CannotExecute,
                    wrapped.handle.attempt.job
                ));
            }
            if let Some(words) = wrap::left_words(wrapped.left) {
                cx.note(&format!("ares-claim: attempt {} has ended and {words}", wrapped.handle.attempt));
            }
            return Ok(Answer::Status(wrapped.status.passed_on()));
        }
        let owner = match (self.owner_fd, self.owner) {
            (Some(fd), _) => Owner::inherited(store, fd)?,
            (None, Some(pid)) => Owner::process(pid)?,
            (None, None) => return Err(Error::new(Code::Usage, "no owner")),
        };
        let claimed = claim::claim(store, &config, cx.op_id().map(str::to_owned), &wanted, &owner, self.reserve)?;
        match claimed {
            Some(claimed) => answer(store, claimed, cx.wants_fields()),
            None => Ok(Answer::No(claim::why_not(store, job)?)),
        }
    }
}

/// The handle, and where fields are asked for what there is to do.
fn answer(store: &Store, claimed: claim::Claimed, fields: bool) -> Result<Answer> {
    let row = Row::new().with("handle", claimed.handle.clone()).with("job", claimed.job);
    if !fields {
        return Ok(Answer::Id(vec![row]));
    }
    let handle: crate::domain::id::Handle = claimed.handle.parse()?;
    let shown = show::job(store, claimed.job)?;
    let prompt = show::prompt(store, handle.attempt.job)?;
    let argv: Vec<String> = std::iter::once(shown.job.spec.program).chain(shown.job.spec.argv).collect();
    let row = row
        .with("attempt", handle.attempt)
        .with("worker", shown.job.spec.worker)
        .with("argv", serde_json::json!(argv))
        .with("prompt", prompt)
        .with("dir", shown.job.spec.dir);
    Ok(Answer::Id(vec![row]))
}

/// Always written anew, so that the report of an earlier run is never taken for this one's.
fn write_report(path: &std::path::Path, answer: &Result<Answer>) -> Result<()> {
    let text = match answer {
        Err(error) | Ok(Answer::No(error)) => object(error, error.code.class().exit()),
        Ok(Answer::Status(status)) => serde_json::json!({ "status": status }).to_string(),
        Ok(_) => "{}".to_owned(),
    };
    std::fs::write(path, text + "\n")
        .or_code(Code::OutputFailed, || format!("cannot write the report '{}'", path.display()))
}
