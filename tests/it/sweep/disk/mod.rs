//! A disk that fails, or loses what was not synced, under the store's own code: the steps of some jobs' lives are made
//! in this process, each in a store that is opened anew, as every command does.

mod fail;
mod power;
mod vfs;

use crate::harness::Lab;
use crate::stock::column;
use ares::domain::id::Handle;
use ares::domain::outcome::Outcome;
use ares::error::Result;
use ares::host::clock;
use ares::host::config::Config;
use ares::ops::ask::Ask;
use ares::ops::{Caller, claim, settle, submit};
use ares::store::{self, Store, Wanted};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The steps of one job: submitted, claimed, settled.
const STEPS: usize = 3;

/// A store in a directory of its own.
struct Shelf {
    _lab: Lab,
    root: PathBuf,
    caller: Caller,
}

/// The database and its log as they are at one moment.
#[derive(Clone, Default)]
struct Image {
    database: Vec<u8>,
    log: Vec<u8>,
}

impl Shelf {
    fn new() -> Self {
        let lab = Lab::new();
        let root = lab.path().canonicalize().unwrap().join("store");
        assert!(store::create(&root, false, None).unwrap());
        let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
        let caller = Caller { env, cwd: Some(lab.path().to_owned()), attempt: None };
        Self { _lab: lab, root, caller }
    }

    fn open(&self) -> Result<Store> {
        Store::open(&self.root, Some(Duration::from_secs(5)))
    }

    /// Makes a step under its own operation id, so that it can be repeated; gives the handle that a claim answers with.
    fn step(&self, store: &mut Store, at: usize, handle: Option<&str>) -> Result<Option<String>> {
        let (config, op_id) = (Config::default(), Some(format!("step-{at}")));
        match at % STEPS {
            0 => {
                // A prompt that takes a few pages, so that the database grows.
                let prompt = Some("word ".repeat(400 + at * 40));
                let ask = Ask { argv: Some(vec!["cat".to_owned()]), prompt, ..Ask::default() };
                submit::submit(store, clock::now(), &self.caller, &config, op_id, ask).map(|_| None)
            }
            1 => {
                let owner = claim::Owner::process(std::process::id().cast_signed())?;
                let claimed = claim::claim(store, &config, op_id, &Wanted::default(), &owner, false)?;
                Ok(claimed.map(|claimed| claimed.handle))
            }
            _ => {
                let handle: Handle = handle.expect("it was claimed").parse()?;
                settle::settle(store, op_id, &said(handle)).map(|_| None)
            }
        }
    }

    /// The state of every job, past the store.
    #[expect(clippy::disallowed_methods, reason = "a test looks past the commands")]
    fn states(&self) -> Vec<String> {
        let db = rusqlite::Connection::open(self.root.join("ares.db")).unwrap();
        db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        column(&db, "SELECT state FROM jobs ORDER BY id")
    }

    fn image(&self) -> Image {
        let read = |name: &str| fs::read(self.root.join(name)).unwrap_or_default();
        Image { database: read("ares.db"), log: read("ares.db-wal") }
    }

    /// Puts the files into the store's place, without the memory that the processes shared.
    fn put(&self, image: &Image) {
        fs::write(self.root.join("ares.db"), &image.database).unwrap();
        fs::write(self.root.join("ares.db-wal"), &image.log).unwrap();
        let _none = fs::remove_file(self.root.join("ares.db-shm"));
    }

    /// What does not hold in the store, by its own account.
    fn faults(&self) -> std::result::Result<(), String> {
        let faults = self.open().and_then(|store| store.check(true));
        match faults {
            Ok(faults) if faults.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }
}

/// The states of all jobs after so many steps.
fn states_after(steps: usize) -> Vec<String> {
    let jobs = steps.div_ceil(STEPS);
    let word = |job: usize| match steps - job * STEPS {
        1 => "queued",
        2 => "running",
        _ => "succeeded",
    };
    (0..jobs).map(|job| word(job).to_owned()).collect()
}

fn said(handle: Handle) -> settle::Say {
    settle::Say {
        handle,
        outcome: Outcome::Ok,
        code: None,
        because: String::new(),
        exit: Some(0),
        signal: None,
        result: Some(b"done".to_vec()),
        usage: None,
        lasting: false,
        blameless: false,
        retry: false,
    }
}
