//! Decisions about what nobody can tell, and about what is held: each is taken once, and stands beside the record.

use super::reconcile::living;
use super::{Caller, evidence};
use crate::domain::digest::Digest;
use crate::domain::id::{AttemptId, JobId};
use crate::domain::job::{Decision, State};
use crate::domain::moves::Word as _;
use crate::error::{Code, Error, Result};
use crate::fault;
use crate::host::signals::Signals;
use crate::host::{clock, dir, keeper};
use crate::store::{Done, Ledger, Request, Resolution, Store};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The word for a job that is held after its releases.
pub const HELD: &str = "held";

/// What a decision answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The attempt that was decided.
    pub attempt: String,
    /// The job's state, as a word.
    pub state: String,
    /// What it was before, as a word: uncertain or held.
    #[serde(default = "uncertain")]
    pub found: String,
}

/// What every job was that an answer of an earlier version is about.
fn uncertain() -> String {
    State::Uncertain.word().to_owned()
}

/// A decision about an uncertain job.
#[derive(Clone, Debug)]
pub struct Order {
    /// The job.
    pub job: JobId,
    /// What is decided.
    pub decision: Decision,
    /// Why.
    pub because: String,
    /// The digest of the evidence that it is made on; it is refused when there is other evidence by now.
    pub seen: Option<Digest>,
}

/// Decides an uncertain job, by a resolution that is added with its evidence. Running it again is refused while
/// anything of the old attempt lives. A job that is held after five releases is offered again by `retry`.
pub fn decide(store: &mut Store, caller: &Caller, op_id: Option<String>, order: &Order) -> Result<Decided> {
    let Order { job, decision, because, seen } = order;
    if because.trim().is_empty() {
        return Err(Error::new(Code::Usage, "a decision needs its reason").hint("add --because TEXT"));
    }
    let text = seen.map_or_else(String::new, |digest| digest.to_string());
    let fields: [&[u8]; 4] = [&job.0.to_be_bytes(), decision.word().as_bytes(), because.as_bytes(), text.as_bytes()];
    let request = Request::new(op_id, || Digest::of("ares.decide.1", &fields));
    match store.repeated("decide", &request)? {
        Some(first) => clear(store, first),
        None => apply(store, caller, &request, order),
    }
}

fn apply(store: &mut Store, caller: &Caller, request: &Request, order: &Order) -> Result<Decided> {
    let Order { job, decision, because, seen } = order;
    let found = store.read(|view| view.job(*job))?;
    let latest = AttemptId { job: *job, n: found.facts.attempt };
    if found.state != State::Uncertain {
        return store.operate(clock::now(), "decide", request, |ledger| decide_at_rest(ledger, latest, *decision));
    }
    fault::point("decide.asked");
    if matches!(decision, Decision::Retry | Decision::NoEffect) {
        refuse_survivors(store, latest)?;
    }
    let packet = evidence::gather(store, caller, *job)?;
    if seen.is_some_and(|seen| seen != packet.digest) {
        // Another decision changes the evidence too, and is what is to be told then.
        if let Some(first) = store.read(|view| view.resolution(latest))? {
            return Err(already(latest, &first));
        }
        let said = format!("the evidence of {latest} is {} by now", packet.digest);
        return Err(Error::new(Code::Conflict, said).hint("look at it again with ares-reconcile JOB"));
    }
    let kept = store.spool().prepare(packet.text().as_bytes())?;
    let answer = if *decision == Decision::Ok { evidence::answer(store, caller, latest)? } else { None };
    let answer = answer.map(|answer| store.spool().prepare(answer.as_bytes())).transpose()?;
    fault::point("decide.looked");
    let decided = store.operate(clock::now(), "decide", request, |ledger| {
        let evidence = ledger.put(&kept)?;
        if let Some(answer) = &answer {
            let digest = ledger.put(answer)?;
            ledger.finding("adopted-answer", &latest.to_string(), "{}", Some(&digest))?;
        }
        let state = ledger.resolve(latest, *decision, "operator", because, Some(&evidence))?;
        let (attempt, state) = (latest.to_string(), state.word().to_owned());
        Ok(Done::new(latest.to_string(), Decided { attempt, state, found: uncertain() }))
    })?;
    clear(store, decided)
}

/// Removes what the decided attempt left. It is done again when a decision is repeated: the first time may have ended
/// between its commit and this. The attempt is named by the answer, as the job may have another one by now.
fn clear(store: &Store, decided: Decided) -> Result<Decided> {
    let folder = store.attempt_dir(decided.attempt.parse()?);
    // What is still alive holds its lock there, and may yet say how it ended.
    if !keeper::worker_lock_held(&folder)? {
        dir::clear_attempt_dir(&folder);
    }
    Ok(decided)
}

/// What can be decided of a job that is not uncertain: one that is held after its releases is offered again.
fn decide_at_rest(ledger: &mut Ledger<'_>, latest: AttemptId, decision: Decision) -> Result<Done<Decided>> {
    if matches!(decision, Decision::Retry | Decision::NoEffect) && ledger.unhold(latest.job)? {
        let (attempt, state) = (latest.to_string(), State::Queued.word().to_owned());
        let decided = Decided { attempt, state, found: HELD.to_owned() };
        return Ok(Done::new(latest.to_string(), decided));
    }
    if ledger.job(latest.job)?.is_held() {
        let said = format!("job {} is held and nothing of it ran, so it is only offered again", latest.job);
        return Err(Error::new(Code::IllegalMove, said).hint("use --decide retry, or cancel it with ares stop"));
    }
    match ledger.resolution(latest)? {
        Some(first) => Err(already(latest, &first)),
        None => Err(Error::new(Code::IllegalMove, format!("job {} is not uncertain", latest.job))),
    }
}

fn already(id: AttemptId, first: &Resolution) -> Error {
    Error::new(Code::AlreadyDecided, format!("{id} was decided '{}' because: {}", first.decision, first.because))
}

/// Waits for what is left of an attempt to end, then decides as the evidence proposes.
pub fn adopt(
    store: &mut Store,
    caller: &Caller,
    op_id: Option<String>,
    job: JobId,
    signals: &mut Signals,
) -> Result<Decided> {
    // What is adopted may differ from one look to the next; what was asked for does not.
    let request = Request::new(op_id, || Digest::of("ares.adopt.1", &[&job.0.to_be_bytes()]));
    if let Some(first) = store.repeated("decide", &request)? {
        return clear(store, first);
    }
    let latest = store.read(|view| Ok(AttemptId { job, n: view.job(job)?.facts.attempt }))?;
    let at_rest = |store: &mut Store| {
        store.operate(clock::now(), "decide", &request, |ledger| decide_at_rest(ledger, latest, Decision::Ok))
    };
    if latest.n == 0 {
        return at_rest(store);
    }
    while living(store, latest)?.any() {
        if signals.count() > 0 {
            return Err(Error::new(Code::Timeout, "the wait was interrupted; nothing was decided"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let packet = evidence::gather(store, caller, job)?;
    let none = || {
        Error::new(Code::Uncertain, format!("the evidence of {latest} speaks for nothing"))
            .hint("look at it with ares-reconcile JOB, then --decide")
    };
    let proposal = match packet.proposal {
        Some(proposal) => proposal,
        None if packet.state == State::Uncertain => return Err(none()),
        None => return at_rest(store),
    };
    let because = format!("adopted: {}", proposal.reason);
    let order = Order { job, decision: proposal.decision, because, seen: Some(packet.digest) };
    apply(store, caller, &request, &order)
}

/// Processes of an attempt that are still alive stand in the way of running it again.
fn refuse_survivors(store: &Store, attempt: AttemptId) -> Result<()> {
    let living = living(store, attempt)?;
    if !living.any() {
        return Ok(());
    }
    Err(Error::new(Code::Survivors, format!("processes of attempt {attempt} are alive: {living}")))
}
