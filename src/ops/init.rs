//! Making a store, adopting a copied one, upgrading an old one.

use crate::domain::attempt::State as AttemptState;
use crate::domain::digest::Digest;
use crate::domain::outcome::Report;
use crate::error::{Code, Result};
use crate::host::clock;
use crate::store::{self, Done, Ledger, Request, Settlement, Store};
use std::path::Path;
use std::time::Duration;

fn request(op_id: Option<String>, what: &str) -> Request {
    Request::new(op_id, || Digest::of("ares.init.1", &[what.as_bytes()]))
}

/// Makes a store; says whether there was none before. Where there is one nothing changes, so it may be repeated as often
/// as one likes; an op-id is remembered all the same, so that no other request can have it.
pub fn init(root: &Path, unsafe_fs: bool, op_id: Option<String>, wait: Option<Duration>) -> Result<bool> {
    let made = store::create(root, unsafe_fs, wait)?;
    remember(root, request(op_id, if unsafe_fs { "make unsafe-fs" } else { "make" }), wait)?;
    Ok(made)
}

fn remember(root: &Path, request: Request, wait: Option<Duration>) -> Result<()> {
    if !request.is_explicit() {
        return Ok(());
    }
    let mut store = Store::open(&store::find(Some(root), root)?, wait)?;
    store.operate(clock::now(), "init", &request, |_| Ok(Done::new("", ())))
}

/// Makes a copied store at home here: the operator has read its `config.toml` and knows that the original rests.
pub fn adopt(root: &Path, op_id: Option<String>, wait: Option<Duration>) -> Result<()> {
    let mut store = Store::open_anywhere(&store::find(Some(root), root)?, wait)?;
    store.operate(clock::now(), "init", &request(op_id, "adopt"), |ledger| {
        if ledger.adopt()? {
            leave_to_the_original(ledger)?;
        }
        Ok(Done { note: "adopted".to_owned(), ..Done::new("", ()) })
    })
}

/// What ran when the copy was made ran elsewhere, and what became of it is not in the copy: neither a lock nor a file
/// that is missing here proves anything. What was only claimed had no effect.
fn leave_to_the_original(ledger: &mut Ledger<'_>) -> Result<()> {
    let detail = "the store was copied while it ran";
    let report = Report::ambiguous(Code::OwnerLost, detail);
    let end = Settlement { report: &report, seen: None, result: None, stdout: None, stderr: None };
    for attempt in ledger.open_attempts()? {
        match attempt.state {
            AttemptState::Running => ledger.settle(&attempt, &end).map(drop)?,
            AttemptState::Claimed => ledger.give_back(attempt.id, Code::NeverStarted, detail).map(drop)?,
            AttemptState::Uncertain | AttemptState::Ended => {}
        }
    }
    Ok(())
}

/// Brings an older store to this version; says from which it came.
pub fn upgrade(root: &Path, op_id: Option<String>, wait: Option<Duration>) -> Result<i64> {
    let before = store::upgrade(&store::find(Some(root), root)?, wait)?;
    remember(root, request(op_id, "upgrade"), wait)?;
    Ok(before)
}
