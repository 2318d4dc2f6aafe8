//! Where one call is put to the test again and again: its store as it was before, the faults by strace, and what has to
//! hold afterwards.

use super::cases::{Case, Kind, prelude};
use crate::harness::{Lab, Ran, has, skipped};
use crate::stock::picture;
use rusqlite::config::DbConfig;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// What is kept beside the files of the case.
const OWN: [&str; 3] = ["saved", "look", "trace"];

/// One call with the store that it is made in.
pub(super) struct Bench {
    lab: Lab,
    case: &'static Case,
    before: String,
    after: String,
    answer: Ran,
    calls: Vec<(String, usize)>,
    known: Mutex<HashMap<u64, String>>,
}

/// What the command came to under a fault.
pub(super) struct Struck {
    pub(super) ran: Ran,
    trace: String,
}

impl Struck {
    /// The calls that the fault happened to, as strace shows them.
    pub(super) fn injected(&self) -> impl Iterator<Item = &str> {
        self.trace.lines().filter(|line| line.ends_with("(INJECTED)"))
    }

    /// The files that were written after their last sync that succeeded, of those whose sync failed, and directories
    /// whose sync failed. The database counts only by its log.
    pub(super) fn unsynced(&self) -> BTreeSet<&str> {
        let (mut written, mut files, mut failed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for line in self.trace.lines() {
            let Some((call, path)) = line.split_once('>').and_then(|(head, _)| head.split_once('<')) else { continue };
            let (syncs, bad) = (call.contains("sync("), line.ends_with("(INJECTED)"));
            match (syncs, bad) {
                (true, true) if !path.ends_with("ares.db") => drop(failed.insert(path)),
                (true, true) => {}
                (true, false) => {
                    written.remove(path);
                    failed.remove(path);
                }
                (false, _) => {
                    written.insert(path);
                    files.insert(path);
                }
            }
        }
        failed.into_iter().filter(|path| !files.contains(path) || written.contains(path)).collect()
    }
}

impl Bench {
    /// The call, made once without a fault. `None`, and counted, where nothing may be traced.
    pub(super) fn new(case: &'static Case) -> Option<Self> {
        if !has("strace") {
            return None;
        }
        if !cfg!(debug_assertions) && case.before.contains("fault ") {
            skipped("a release build has no fault points");
            return None;
        }
        let lab = Lab::new();
        let nothing = Ran { status: 0, out: String::new(), err: String::new() };
        let (before, after) = (String::new(), String::new());
        let mut bench = Self { lab, case, before, after, answer: nothing, calls: Vec::new(), known: Mutex::default() };
        let ran = bench.script(&format!("set -e; ares-init -q >/dev/null; {}", case.before));
        assert_eq!(ran.status, 0, "{}: before: {ran:?}", case.name);
        fs::create_dir(bench.path("saved")).unwrap();
        mirror(bench.lab.path(), &bench.path("saved"));
        bench.before = bench.look();
        bench.answer = bench.traced("strace -qq -o trace");
        if bench.answer.err.contains("strace:") {
            skipped("strace may not trace here");
            return None;
        }
        assert_eq!(bench.answer.status, 0, "{}: {:?}", case.name, bench.answer);
        let trace = fs::read_to_string(bench.path("trace")).unwrap();
        bench.calls = calls(&trace);
        bench.after = bench.look();
        let again = bench.again();
        assert_eq!(again, Ok(()), "{}: without a fault", case.name);
        Some(bench)
    }

    pub(super) fn case(&self) -> &'static Case {
        self.case
    }

    /// The calls of the command from the first of its own lines on: each with its number among those of its name.
    pub(super) fn calls(&self) -> &[(String, usize)] {
        &self.calls
    }

    fn path(&self, name: &str) -> PathBuf {
        self.lab.path().join(name)
    }

    fn script(&self, script: &str) -> Ran {
        self.bash("", script)
    }

    fn traced(&self, tracer: &str) -> Ran {
        self.bash(tracer, self.case.call)
    }

    fn bash(&self, tracer: &str, script: &str) -> Ran {
        let text = format!("{}{script}", prelude());
        let mut command = self.lab.command("/bin/bash");
        command.args(["-c", &text]).env("ME", std::process::id().to_string()).env("TRACE", tracer);
        command.output().map(crate::harness::ran).expect("it starts")
    }

    /// Makes the call with this fault, in the store as it was.
    pub(super) fn strike(&self, call: &str, inject: &str) -> Struck {
        mirror(&self.path("saved"), self.lab.path());
        let with = if call.contains("sync") { "pwrite64,fsync,fdatasync" } else { call };
        let ran = self.traced(&format!("strace -qq -y -o trace -e trace={with} -e inject={call}:{inject}"));
        Struck { ran, trace: fs::read_to_string(self.path("trace")).unwrap_or_default() }
    }

    /// What the store looks like, and whether everything is exactly as a call before has left it: then what comes of it
    /// was tried.
    pub(super) fn left(&self) -> (String, bool) {
        // Its keeper and its worker may be about to leave something more.
        if self.case.kind == Kind::Runs {
            return (self.look(), false);
        }
        let mut hasher = DefaultHasher::new();
        digest(self.lab.path(), &mut hasher);
        let mut known = self.known.lock().unwrap();
        match known.entry(hasher.finish()) {
            Entry::Occupied(seen) => (seen.get().clone(), true),
            Entry::Vacant(new) => (new.insert(self.look()).clone(), false),
        }
    }

    /// All states and counts. It is read from a copy, so that nothing is recovered before the next command comes.
    #[expect(clippy::disallowed_methods, reason = "a test looks past the commands")]
    fn look(&self) -> String {
        let folder = self.path("look");
        let _none = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        for name in ["ares.db", "ares.db-wal"] {
            let _none = fs::copy(self.path(".ares").join(name), folder.join(name));
        }
        if fs::metadata(folder.join("ares.db")).map_or(0, |meta| meta.len()) == 0 {
            return String::new();
        }
        let db = rusqlite::Connection::open(folder.join("ares.db")).unwrap();
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        picture(&db)
    }

    /// Whether this is all of the change.
    pub(super) fn is_applied(&self, seen: &str) -> bool {
        match self.case.kind {
            Kind::Once | Kind::Steps => seen == self.after,
            Kind::Runs => seen.contains("jobs: succeeded"),
        }
    }

    /// Whether this is nothing of it.
    pub(super) fn is_untouched(&self, seen: &str) -> bool {
        seen == self.before
    }

    /// Repeats the call: it gives the answer that it gave, applies once, and everything completes.
    pub(super) fn again(&self) -> Result<(), String> {
        let ran = self.script(self.case.again);
        if ran.status != 0 {
            return Err(format!("repeated: {ran:?}"));
        }
        fs::write(self.path("answer"), &ran.out).unwrap();
        let (first, now) = (self.lab.normal(&self.answer.out), self.lab.normal(&ran.out));
        if self.case.call.contains("--op-id") && first != now {
            return Err(format!("repeated, it says {now:?} instead of {first:?}"));
        }
        let (seen, wanted) = (self.look(), &self.after);
        let same = match self.case.kind {
            Kind::Once => seen == *wanted,
            Kind::Steps => without_log(&seen) == without_log(wanted),
            Kind::Runs => true,
        };
        if !same {
            return Err(format!("repeated, it came to\n{seen}instead of\n{wanted}"));
        }
        self.completes()
    }

    /// The store is whole, and every job ends, having run once.
    fn completes(&self) -> Result<(), String> {
        let checks: [(&str, &[i32]); 5] = [
            ("ares-fsck -q 2>&1 | grep -v leftover; exit ${PIPESTATUS[0]}", &[0, 1]),
            ("ares-reconcile -q && ares-fsck --repair -q", &[0]),
            ("ares-fsck --full", &[0]),
            (self.case.heal, &[0]),
            ("[ \"$(ares-list --count)\" = \"$(ares-list --state succeeded --state cancelled --count)\" ]", &[0]),
        ];
        for (script, statuses) in checks {
            let ran = self.script(script);
            if !statuses.contains(&ran.status) {
                return Err(format!("{script}: {ran:?}\n{}", self.look()));
            }
        }
        let runs = fs::read_to_string(self.path("runs")).unwrap_or_default();
        let jobs: BTreeSet<&str> = runs.lines().filter_map(|name| name.split('.').next()).collect();
        if (jobs.len(), runs.lines().count()) == (self.case.runs, self.case.runs) {
            return Ok(());
        }
        Err(format!("{} jobs were to run once: {runs:?}", self.case.runs))
    }

    /// The first answer, for comparing.
    pub(super) fn is_answer(&self, out: &str) -> bool {
        !out.is_empty() && self.lab.normal(out) == self.lab.normal(&self.answer.out)
    }

    /// What the repetition answered.
    pub(super) fn repeated(&self) -> String {
        fs::read_to_string(self.path("answer")).unwrap_or_default()
    }
}

/// What a step was cut off from saying in the log, its repetition says again.
fn without_log(picture: &str) -> Vec<&str> {
    picture.lines().filter(|line| !line.starts_with("operations ")).collect()
}

/// The calls of a trace, each with its number among those of its name.
pub(super) fn trace_of(trace: &str) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let names = trace.lines().filter_map(|line| line.split_once('(')).map(|(name, _)| name);
    let number = |name| {
        let count = counts.entry(name).or_default();
        *count += 1;
        (name.to_owned(), *count)
    };
    names.filter(|name| !name.contains(['+', '-', '<', ' '])).map(number).collect()
}

/// The calls from the first line of ours on, which sets the mask of modes.
fn calls(trace: &str) -> Vec<(String, usize)> {
    let all = trace_of(trace);
    let begun = all.iter().position(|(name, _)| name == "umask");
    all[begun.unwrap_or_else(|| panic!("a command begins with its umask:\n{trace}"))..].to_vec()
}

/// Everything that stands in a directory.
fn digest(folder: &Path, hasher: &mut DefaultHasher) {
    for name in names(folder) {
        let path = folder.join(&name);
        let meta = path.symlink_metadata().unwrap();
        (&name, meta.permissions().mode()).hash(hasher);
        if meta.is_dir() {
            digest(&path, hasher);
        } else {
            fs::read(&path).unwrap().hash(hasher);
        }
    }
}

/// What stands in a directory, apart from what is ours.
fn names(folder: &Path) -> BTreeSet<PathBuf> {
    let names = fs::read_dir(folder).unwrap().map(|entry| PathBuf::from(entry.unwrap().file_name()));
    names.filter(|name| !OWN.iter().any(|own| name == Path::new(own))).collect()
}

/// Makes one directory hold what the other does. A store that is in both stays the same directory.
fn mirror(from: &Path, to: &Path) {
    let (wanted, found) = (names(from), names(to));
    for name in &found {
        let path = to.join(name);
        match (path.is_dir(), wanted.contains(name) && from.join(name).is_dir()) {
            (true, true) => {}
            (true, false) => fs::remove_dir_all(path).unwrap(),
            (false, _) => fs::remove_file(path).unwrap(),
        }
    }
    for name in &wanted {
        let (from, to) = (from.join(name), to.join(name));
        if from.is_dir() {
            let _there = fs::create_dir(&to);
            mirror(&from, &to);
            fs::set_permissions(&to, fs::metadata(&from).unwrap().permissions()).unwrap();
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}
