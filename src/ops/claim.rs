//! Taking the next job that may run: for a script that is its own owner, or for a runner.

use crate::domain::digest::Digest;
use crate::domain::id::{Handle, JobId};
use crate::domain::job::{Now, State};
use crate::domain::moves::Word as _;
use crate::error::{Code, Error, OrCode as _, Result};
use crate::host::config::Config;
use crate::host::process::Identity;
use crate::host::{clock, lock, random};
use crate::store::{Claim, Done, JobRow, Ledger, Request, Store, Wanted};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Who claims: found alive by its lock, or by its identity where it holds none.
#[derive(Debug)]
pub struct Owner {
    /// Its identity, as JSON.
    pub identity: String,
    /// Its lock file's name under `locks/`; empty for an owner by identity alone.
    pub lock: String,
    /// What keeps the lock, where this process does.
    held: Option<lock::Lock>,
}

impl Owner {
    /// This process: it holds a lock file of its own until it ends.
    pub fn this_process(store: &Store) -> Result<Self> {
        let path = fresh_file(store)?;
        let held = lock::try_lock(&path)?
            .ok_or_else(|| Error::new(Code::Internal, format!("'{}' is locked already", path.display())))?;
        // Not before: a used file that nobody holds is anyone's to remove.
        held.mark_used();
        Ok(Self { identity: own_identity()?, lock: name_of(&path), held: Some(held) })
    }

    /// The process that handed down this open owner file; it stays alive for as long as the file is kept open.
    pub fn inherited(store: &Store, fd: i32) -> Result<Self> {
        let path = lock::lock_inherited(fd, &store.locks())?;
        Ok(Self { identity: own_identity()?, lock: name_of(&path), held: None })
    }

    /// The process with this number, told by its identity.
    pub fn process(pid: i32) -> Result<Self> {
        let none =
            || Error::new(Code::Usage, format!("no process {pid}")).hint("give the shell's own number: --owner $$");
        let identity = Identity::of(pid)?.ok_or_else(none)?;
        let identity =
            serde_json::to_string(&identity).or_code(Code::Internal, || "cannot write an identity".to_owned())?;
        Ok(Self { identity, lock: String::new(), held: None })
    }

    /// The lock that this process holds, for a child to inherit.
    pub fn held(&self) -> Option<&lock::Lock> {
        self.held.as_ref()
    }

    /// Removes the lock file of an owner that has nothing open any more. The lock is still held then, and nobody ever
    /// makes another file of this name.
    pub fn retire(self) {
        if let Some(held) = &self.held
            && let Err(error) = std::fs::remove_file(held.path())
        {
            tracing::debug!(%error, "the owner file stays");
        }
    }
}

fn own_identity() -> Result<String> {
    let identity = Identity::own()?;
    serde_json::to_string(&identity).or_code(Code::Internal, || "cannot write our identity".to_owned())
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Makes a fresh owner file for a shell to open and keep open.
pub fn fresh_file(store: &Store) -> Result<PathBuf> {
    let random: String = random::bytes::<6>()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = store.locks().join(format!("owner-{}-{random}", std::process::id()));
    lock::make(&path)?;
    Ok(path)
}

/// What a script's claim answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// The handle to settle with.
    pub handle: String,
    /// The job.
    pub job: JobId,
}

/// Claims for a script. The script is about to act, so the attempt is dispatched at once unless only a reservation is
/// asked for. `None` when nothing may run now.
pub fn claim(
    store: &mut Store,
    config: &Config,
    op_id: Option<String>,
    wanted: &Wanted,
    owner: &Owner,
    reserve: bool,
) -> Result<Option<Claimed>> {
    let asked = [wanted.job.map_or_else(String::new, |job| job.to_string())]
        .into_iter()
        .chain([&wanted.label, &wanted.group, &wanted.worker].map(|word| word.clone().unwrap_or_default()))
        .chain([reserve.to_string()])
        .collect::<Vec<_>>();
    let fields: Vec<&[u8]> = asked.iter().map(String::as_bytes).collect();
    let request = Request::new(op_id, || Digest::of("ares.claim.1", &fields));
    let random = random::bytes()?;
    let once = |store: &mut Store| {
        store.operate(clock::now(), "claim", &request, |ledger| {
            let (next, kept_back) = next(ledger, config, wanted, owner, random)?;
            let Some((job, handle)) = next else { return Err(nothing(kept_back)) };
            if !reserve {
                ledger.dispatch(handle.attempt, None, "script", &binding(&job, &handle))?;
            }
            Ok(Done::new(handle.attempt.to_string(), Claimed { handle: handle.to_string(), job: handle.attempt.job }))
        })
    };
    match once(store) {
        Err(error) if error.code == Code::NothingToClaim => {
            // A dead owner may fill a group, or hold the only job: look who is alive, once, and try again.
            if super::reconcile::pass(store, false)?.changed == 0 {
                return Ok(None);
            }
            once(store)
                .map(Some)
                .or_else(|error| if error.code == Code::NothingToClaim { Ok(None) } else { Err(error) })
        }
        other => other.map(Some),
    }
}

fn nothing(kept_back: bool) -> Error {
    let why = if kept_back { "every group that has one is full" } else { "no job may run now" };
    Error::new(Code::NothingToClaim, why)
}

/// Why nothing was claimed. A job that was named and is uncertain or held is a failure, which only a decision ends; all
/// else is a plain no.
pub fn why_not(store: &Store, named: Option<JobId>) -> Result<Error> {
    let Some(id) = named else { return Ok(nothing(false)) };
    let job = store.read(|view| view.job(id))?;
    if job.state == State::Uncertain {
        return Err(Error::new(Code::Uncertain, format!("job {id} waits for a decision")));
    }
    if job.is_held() {
        let said = format!("job {id} is held after five releases in a row");
        return Err(Error::new(Code::Held, said)
            .hint(format!("see ares show {id} for why it did not start, then ares reconcile {id} --decide retry")));
    }
    let why = match (job.state, job.hold.word()) {
        (State::Queued, "") => format!("job {id} waits for its moment, its group or its session"),
        (State::Queued, hold) => format!("job {id} is held: {hold}"),
        (state, _) => format!("job {id} is {}", state.word()),
    };
    Ok(Error::new(Code::NothingToClaim, why))
}

/// Claims the next job in an open transaction.
pub(super) fn next(
    ledger: &mut Ledger<'_>,
    config: &Config,
    wanted: &Wanted,
    owner: &Owner,
    random: [u8; 10],
) -> Result<(Option<(JobRow, Handle)>, bool)> {
    ledger.wake_due()?;
    if let Some(named) = wanted.job {
        ledger.job_now(named)?;
    }
    let (ready, kept_back) = ledger.next_ready(wanted, |group| config.width(group))?;
    let Some(id) = ready else { return Ok((None, kept_back)) };
    let job = ledger.job(id)?;
    let Now::Queued(queued) = Now::new(job.facts, job.state) else {
        return Err(Error::new(Code::Internal, format!("job {id} was offered and is not queued")));
    };
    let claim = Claim { owner: &owner.identity, owner_lock: &owner.lock, random };
    let handle = ledger.claim(queued, job.session, job.spec.model.as_deref(), &claim)?;
    Ok((Some((job, handle)), kept_back))
}

/// What a dispatch permits: this attempt of exactly this frozen job, and no other.
pub(super) fn binding(job: &JobRow, handle: &Handle) -> Digest {
    crate::store::binding(handle.attempt, &job.spec_digest, &handle.nonce_digest())
}
