//! Waiting for jobs to end. A job that is uncertain or held does not end by itself, so it is not waited for.

use super::reconcile;
use crate::domain::id::JobId;
use crate::domain::job::State;
use crate::error::{Code, Error, Result};
use crate::host::clock;
use crate::host::signals::Signals;
use crate::store::{JobRow, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The longest pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// How often it is looked whether owners are alive: an owner that died would else be waited for without end.
const LOOK_AFTER_OWNERS: Duration = Duration::from_secs(1);

/// A job as it is when the wait is over.
#[derive(Clone, Debug)]
pub struct Waited {
    /// The job.
    pub job: JobRow,
    /// What it waits for that does not go on by itself, with its state.
    pub behind: Option<(JobId, State)>,
}

/// Waits until all of these jobs, or any one, have ended, or one waits for a decision. `told` hears of each as it ends, or
/// is found to wait so; then nothing of the store is held. Gives them all as they are in the end.
pub fn wait(
    store: &mut Store,
    jobs: &[JobId],
    any: bool,
    timeout: Option<Duration>,
    signals: &mut Signals,
    told: &mut dyn FnMut(&Store, JobId) -> Result<()>,
) -> Result<Vec<Waited>> {
    let began = clock::mark();
    // What has ended is not read again: it may be removed from the store while others are still waited for.
    let (mut ended, mut over) = (BTreeSet::new(), BTreeMap::<JobId, JobRow>::new());
    let (mut pause, mut seen, mut looked) = (Duration::from_millis(5), None, None::<clock::Mark>);
    loop {
        if looked.is_none_or(|mark| mark.elapsed() > LOOK_AFTER_OWNERS) {
            reconcile::pass(store, false)?;
            looked = Some(clock::mark());
        }
        let version = store.data_version()?;
        // Our own changes do not show in the version, so a pass is always followed by a look.
        if seen != Some(version) || looked.is_some_and(|mark| mark.elapsed() < pause) {
            let rows = store.read(|view| {
                let look = |id: &JobId| {
                    let job = over.get(id).map_or_else(|| view.job(*id), |job| Ok(job.clone()))?;
                    let behind = if job.state == State::Queued { view.stuck_behind(*id)? } else { None };
                    Ok(Waited { job, behind })
                };
                jobs.iter().map(look).collect::<Result<Vec<_>>>()
            })?;
            let has_ended = |waited: &Waited| waited.job.state.is_terminal();
            over.extend(rows.iter().filter(|row| has_ended(row)).map(|row| (row.job.facts.id, row.job.clone())));
            for row in rows.iter().filter(|row| has_ended(row) || undecided(row)) {
                if ended.insert(row.job.facts.id) {
                    told(store, row.job.facts.id)?;
                }
            }
            // One that is uncertain or held waits for people, who are told at once.
            if rows.iter().any(undecided) || rows.iter().all(has_ended) || (any && rows.iter().any(has_ended)) {
                return Ok(rows);
            }
            seen = Some(version);
        }
        let left = timeout.map(|timeout| began.left(timeout));
        if left == Some(Duration::ZERO) || signals.count() > 0 {
            let why = if signals.count() > 0 { "the wait was interrupted" } else { "the time to wait is over" };
            return Err(Error::new(Code::Timeout, format!("{why}; the jobs go on")));
        }
        std::thread::sleep(pause.min(left.unwrap_or(pause)));
        pause = (pause * 2).min(PAUSE);
    }
}

/// Whether only a decision makes it go on, about itself or about what it waits for.
fn undecided(waited: &Waited) -> bool {
    waited.job.state == State::Uncertain || waited.job.is_held() || waited.behind.is_some()
}
