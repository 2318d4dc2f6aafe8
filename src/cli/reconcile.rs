//! ares-reconcile: find what crashes left, do what is safe, take decisions.

use super::{Answer, Context, Field, Row, Run, args, fields};
use crate::domain::digest::Digest;
use crate::domain::id::{AttemptId, JobId};
use crate::domain::job::{Decision, State};
use crate::domain::moves::Word as _;
use crate::domain::outcome::clean;
use crate::error::{Code, Error, Result};
use crate::host::signals::Signals;
use crate::ops::decide::{self, Order};
use crate::ops::evidence::{self, Packet};
use crate::ops::reconcile::{self, Became, Found, Pass};
use crate::ops::{show, tidy};
use crate::store::Attempt;

/// Find what crashes left, and mend or decide it
///
/// Every claimed or running attempt whose owner is gone is looked at. What provably never started is queued again; what
/// has a record of its end is settled by it; a worker that is alive is left alone. The rest is uncertain. Nothing
/// uncertain is repeated without a decision.
///
/// With JOB the evidence of its latest attempt is shown: what was seen, the ends of its output, its last events, what
/// the worker's own store says (read only), the state of the directory's repository with a lock that was left, all jobs
/// that came of it, its permits, processes that are still alive; and what the evidence speaks for, if it does. It decides
/// nothing.
///
/// With --decide the job is decided: ok and error say how it ended, no-effect queues it again without burning a try,
/// retry does it again whatever it did, abandon cancels it. The decision is added beside the record, with its evidence.
/// A job that is held after five releases in a row never ran: retry and no-effect offer it again, and ares-stop cancels
/// it.
///
/// The status is 10 while anything that was asked for is uncertain, else 1 while a job of it is held.
#[derive(clap::Args)]
pub struct Args {
    /// Show the evidence of this job, or decide it
    #[arg(value_name = "JOB", value_parser = args::parsed::<JobId>)]
    pub job: Option<JobId>,

    /// Show what would be done, and change nothing
    #[arg(long, conflicts_with_all = ["decide", "adopt", "stop_survivors"])]
    pub dry_run: bool,

    /// Decide the job, which must be uncertain, or held for retry and no-effect
    ///
    /// Whoever decides says why, with --because.
    #[arg(long, value_name = "WHAT", requires = "job", value_parser = args::words(Decision::WORDS))]
    pub decide: Option<Decision>,

    /// One line on why; it is kept with the decision
    #[arg(long, value_name = "TEXT", requires = "decide")]
    pub because: Option<String>,

    /// Decide only on this evidence: refuse when it has changed since
    #[arg(long, value_name = "DIGEST", requires = "decide", value_parser = digest)]
    pub seen: Option<Digest>,

    /// Wait for what is left of the attempt to end, then decide as the evidence proposes
    #[arg(long, requires = "job", conflicts_with = "decide")]
    pub adopt: bool,

    /// End what is left of the attempt first; each process is identified before it gets a signal
    #[arg(long, requires = "job")]
    pub stop_survivors: bool,
}

fn digest(text: &str) -> std::result::Result<Digest, String> {
    Digest::parse(text).ok_or_else(|| "write the 64 digits that ares-reconcile JOB shows".to_owned())
}

impl Run for Args {
    const NAME: &'static str = "ares-reconcile";
    const MUTATES: bool = true;
    const COLUMNS: &'static [&'static str] = &["attempt", "found", "done", "state", "detail", "code"];
    const FIELDS: &'static [Field] = &[
        ("attempt", "text: the attempt, JOB.N"),
        (
            "found",
            "text: alive, orphaned, never-started, ended, unknown, uncertain or held; none of a job that was at rest",
        ),
        ("done", "text: nothing, released, held, settled, uncertain or decided"),
        ("state", "the state of the job after it"),
        ("detail", "text: one line on the evidence"),
        ("job", "integer: the job"),
        ("code", "text: the code of the end"),
        ("proposal", "text: the decision that the evidence speaks for, with JOB"),
        ("reason", "text: why"),
        ("survivors", "json: processes of the attempt that are alive, a list"),
        ("digest", "text: the digest of the evidence, for --seen"),
        ("evidence", "json: everything there is to see"),
    ];
    const ERRORS: &'static [Code] = &[
        Code::Uncertain,
        Code::Held,
        Code::AlreadyDecided,
        Code::Conflict,
        Code::Survivors,
        Code::IllegalMove,
        Code::NotFound,
    ];
    const EXAMPLES: &'static str = "\
$ ares-init --quiet .ares >/dev/null
$ ares-reconcile
$ ares-submit --timeout 200ms --grace 100ms -- sleep 60
1
$ ares-run --quiet >/dev/null
...
? 10
$ seen=$(ares-reconcile 1 --format '%(digest)' 2>/dev/null)
? 10
$ ares-reconcile 1 --decide abandon --because 'it only slept' --seen \"$seen\" --format '%(attempt) %(state)'
1.1 cancelled
";
    const NOTES: &'static str = include_str!("notes/reconcile.txt");

    fn run(self, cx: &mut Context) -> Result<Answer> {
        if cx.op_id().is_some() && self.decide.is_none() && !self.adopt {
            return Err(Error::new(Code::Usage, "--op-id goes with --decide")
                .hint("a look may be repeated as often as you like"));
        }
        let Some(job) = self.job else { return self.pass(cx) };
        let store = cx.store()?;
        let caller = cx.caller(store);
        let pass = if self.dry_run { None } else { Some(reconcile::pass(store, false)?) };
        if self.stop_survivors {
            let id = show::job(store, job)?.job.facts;
            let left = evidence::stop_survivors(store, AttemptId { job, n: id.attempt })?;
            if left.any() {
                return Err(Error::new(Code::Survivors, format!("could not be ended: {left}")));
            }
        }
        let op_id = cx.op_id().map(str::to_owned);
        let decided = match self.decide {
            Some(decision) => {
                let because = clean(self.because.as_deref().unwrap_or(""));
                decide::decide(store, &caller, op_id, &Order { job, decision, because, seen: self.seen })?
            }
            None if self.adopt => decide::adopt(store, &caller, op_id, job, &mut Signals::listen()?)?,
            None => return packet(cx, &evidence::gather(store, &caller, job)?, pass.as_ref()),
        };
        let row = Row::new()
            .with("attempt", decided.attempt)
            .with("found", decided.found)
            .with("done", "decided")
            .with("state", decided.state)
            .with("detail", self.because)
            .with("job", job);
        Ok(Answer::rows(Self::COLUMNS, vec![row]))
    }
}

impl Args {
    /// One look at everything.
    fn pass(&self, cx: &mut Context) -> Result<Answer> {
        if self.dry_run {
            cx.reads_only();
        }
        let store = cx.store()?;
        let pass = reconcile::pass(store, self.dry_run)?;
        if !self.dry_run {
            tidy::tidy(store)?;
        }
        let mut rows: Vec<Row> = pass.found.iter().map(row).collect();
        let (uncertain, held) = (reconcile::uncertain(store)?, reconcile::held(store)?);
        let listed = |attempt: &&Attempt| pass.found.iter().any(|found| found.attempt == attempt.id);
        let waits = |found: &'static str, state: State| move |attempt: &Attempt| waiting(attempt, found, state);
        rows.extend(uncertain.iter().filter(|one| !listed(one)).map(waits("uncertain", State::Uncertain)));
        rows.extend(held.iter().filter(|one| !listed(one)).map(waits(decide::HELD, State::Queued)));
        cx.out().answer(&Answer::rows(Self::COLUMNS, rows));
        let jobs =
            |attempts: &[Attempt]| fields::jobs(&attempts.iter().map(|attempt| attempt.id.job).collect::<Vec<JobId>>());
        if !uncertain.is_empty() {
            let mut said = format!("attempts that wait for a decision: {}, of {}", uncertain.len(), jobs(&uncertain));
            if !held.is_empty() {
                said += &format!("; held after five releases in a row: {}", jobs(&held));
            }
            return Err(Error::new(Code::Uncertain, said));
        }
        if !held.is_empty() {
            return Err(Error::new(Code::Held, format!("held after five releases in a row: {}", jobs(&held))));
        }
        Ok(Answer::Nothing)
    }
}

/// The evidence of one attempt.
fn packet(cx: &mut Context, packet: &Packet, pass: Option<&Pass>) -> Result<Answer> {
    let proposal = packet.proposal.as_ref();
    let found = pass.and_then(|pass| pass.found.iter().find(|found| found.attempt == packet.attempt));
    let (found, done) = match found.map(became) {
        Some((found, done, _)) => (Some(found), done),
        None if packet.held => (Some(decide::HELD), "nothing"),
        None => ((packet.state == State::Uncertain).then_some("uncertain"), "nothing"),
    };
    let row = Row::new()
        .with("attempt", packet.attempt)
        .with("found", found)
        .with("done", done)
        .with("job", packet.attempt.job)
        .with("state", packet.state.word())
        .with("proposal", proposal.map(|proposal| proposal.decision.word()))
        .with("reason", proposal.map(|proposal| proposal.reason.clone()))
        .with("survivors", serde_json::json!(packet.survivors))
        .with("digest", packet.digest.to_string())
        .with("evidence", packet.evidence.clone());
    cx.out().answer(&Answer::Record(row));
    if packet.state == State::Uncertain {
        let said = format!("attempt {} waits for a decision", packet.attempt);
        return Err(Error::new(Code::Uncertain, said).hint("decide it with --decide WHAT --because TEXT"));
    }
    if packet.held {
        let said = format!("job {} is held after five releases in a row", packet.attempt.job);
        return Err(Error::new(Code::Held, said));
    }
    Ok(Answer::Nothing)
}

/// What an attempt was found to be, what was done, and the state that its job has by it.
fn became(found: &Found) -> (&'static str, &'static str, Option<State>) {
    match found.became {
        Became::Alive => ("alive", "nothing", None),
        Became::Orphaned => ("orphaned", "nothing", None),
        Became::Released(state) => ("never-started", if found.held { "held" } else { "released" }, Some(state)),
        Became::Settled(State::Uncertain) => ("unknown", "uncertain", Some(State::Uncertain)),
        Became::Settled(state) => ("ended", if found.held { "held" } else { "settled" }, Some(state)),
    }
}

fn row(found: &Found) -> Row {
    let (what, done, state) = became(found);
    Row::new()
        .with("attempt", found.attempt)
        .with("found", what)
        .with("done", done)
        .with("state", state.map(|state| state.word().to_owned()))
        .with("detail", found.detail.clone())
        .with("job", found.attempt.job)
        .with("code", found.code.map(|code| code.name().to_owned()))
}

fn waiting(attempt: &Attempt, found: &'static str, state: State) -> Row {
    Row::new()
        .with("attempt", attempt.id)
        .with("found", found)
        .with("done", "nothing")
        .with("state", state.word())
        .with("detail", attempt.detail.clone())
        .with("job", attempt.id.job)
        .with("code", attempt.code.clone())
}
