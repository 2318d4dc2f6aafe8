//! The judgement: what the record says afterwards against what was seen, printed and done outside it.

use super::Lab;
use super::load::{Load, Pass};
use super::look::{self, Moment, Notes, record};
use super::process;
use super::strike::{Kill, Victim};
use rusqlite::params;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// How often it is decided and run until everything has ended.
const ROUNDS: usize = 8;

/// Looks until nothing is claimed or running any more.
const LOOKS: usize = 1500;

/// What must not be, with examples.
pub(crate) type Wrong = BTreeMap<&'static str, Vec<String>>;

pub(crate) const LOST: &str = "acknowledged submissions lost";
pub(crate) const END_LOST: &str = "acknowledged ends lost";
pub(crate) const JOBS: &str = "jobs lost, made twice or never ended";
pub(crate) const DOUBLED: &str = "effects doubled";
pub(crate) const AGAIN: &str = "workers begun again without a decision";
pub(crate) const MISSING: &str = "effects missing";
pub(crate) const NEVER: &str = "uncertain, although it never started";
pub(crate) const RECORDED: &str = "uncertain, although its end was recorded";
pub(crate) const UNHIT: &str = "uncertain, although only its owner was killed, or nothing";
pub(crate) const WRONG: &str = "failed or succeeded, although it was not so";
pub(crate) const OPEN: &str = "not classified by the next reconcile";
pub(crate) const FSCK: &str = "findings of fsck";
pub(crate) const LEFT: &str = "processes and files left behind";

/// In the order in which they are told.
pub(crate) const MUST_BE_ZERO: [&str; 13] =
    [LOST, END_LOST, JOBS, DOUBLED, AGAIN, MISSING, NEVER, RECORDED, UNHIT, WRONG, OPEN, FSCK, LEFT];

/// What is counted beside it.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) uncertain: usize,
    pub(crate) retried: usize,
    pub(crate) adopted: usize,
    pub(crate) held: usize,
    pub(crate) attempts: usize,
    /// Numbers that submissions printed, and ends that runners printed.
    pub(crate) acknowledged: (usize, usize),
}

pub(crate) struct Judge<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) load: &'a Load<'a>,
    pub(crate) kills: &'a [Kill],
    pub(crate) wrong: Wrong,
    pub(crate) counts: Counts,
    /// How often each job was decided to be done again.
    again: BTreeMap<usize, usize>,
}

/// Why an attempt should not be uncertain; `None` where nobody can tell how it ended.
pub(crate) fn falsely(name: &str, notes: &Notes, kills: &[Kill]) -> Option<&'static str> {
    if !notes.begun {
        return Some(NEVER);
    }
    if notes.exited {
        return Some(RECORDED);
    }
    let explains = |kill: &Kill| {
        let at = |(hit, notes): &(String, Notes)| hit == name && notes.begun && !notes.ended;
        kill.victim != Victim::Owner && kill.hit.iter().any(at)
    };
    (!kills.iter().any(explains)).then_some(UNHIT)
}

impl<'a> Judge<'a> {
    pub(crate) fn new(lab: &'a Lab, load: &'a Load<'a>, kills: &'a [Kill]) -> Self {
        let wrong = MUST_BE_ZERO.into_iter().map(|name| (name, Vec::new())).collect();
        Self { lab, load, kills, wrong, counts: Counts::default(), again: BTreeMap::new() }
    }

    pub(crate) fn find(&mut self, name: &'static str, what: String) {
        self.wrong.entry(name).or_default().push(what);
    }

    /// Decides and runs until everything has ended.
    pub(crate) fn heal(&mut self) {
        let mut judged = BTreeSet::new();
        for _ in 0..ROUNDS {
            self.rest();
            let (uncertain, held) = self.waiting();
            if self.unfinished() == 0 {
                return;
            }
            for name in uncertain {
                if judged.insert(name.clone()) {
                    self.counts.uncertain += 1;
                    let notes = Notes::read(&self.lab.folder(&name));
                    let false_one = falsely(&name, &notes, self.kills);
                    false_one.into_iter().for_each(|wrong| self.find(wrong, format!("{name}: {notes:?}")));
                }
                let job = name.split_once('.').unwrap().0;
                let key = self.key(job);
                let what = self.evidence(key);
                *self.again.entry(key).or_default() += usize::from(what == "retry");
                self.counts.retried += usize::from(what == "retry");
                self.counts.adopted += usize::from(what != "retry");
                self.decide(job, what);
            }
            for job in held {
                self.counts.held += 1;
                self.decide(&job, "no-effect");
            }
            let drain = ["--drain", "--quiet", "-j", "3"];
            let _status = self.lab.command("ares-run", &drain).status().unwrap();
        }
    }

    /// Waits until nothing is claimed or running.
    fn rest(&self) {
        for _ in 0..LOOKS {
            let _status = self.lab.command("ares-reconcile", &["--quiet"]).status().unwrap();
            if look::open(self.lab).is_ok_and(|open| open.is_empty()) {
                return;
            }
            sleep(Duration::from_millis(20));
        }
    }

    fn column(&self, query: &str) -> Vec<String> {
        let record = record(self.lab).unwrap();
        let mut query = record.prepare(query).unwrap();
        let rows = query.query_map([], |row| row.get(0)).unwrap();
        rows.map(|row| row.unwrap()).collect()
    }

    fn waiting(&self) -> (Vec<String>, Vec<String>) {
        let uncertain = self.column("SELECT job || '.' || n FROM attempts WHERE state = 'uncertain'");
        (uncertain, self.column("SELECT '' || id FROM jobs WHERE hold = 'releases'"))
    }

    fn unfinished(&self) -> usize {
        self.column("SELECT '' || id FROM jobs WHERE ended_at IS NULL").len()
    }

    fn key(&self, job: &str) -> usize {
        self.column(&format!("SELECT substr(key, 2) FROM keys WHERE job = {job}"))[0].parse().unwrap()
    }

    /// What the effect outside speaks for.
    fn evidence(&self, key: usize) -> &'static str {
        match (lines(&self.lab.effect(key)), Load::status(key)) {
            (0, _) => "retry",
            (_, 0) => "ok",
            _ => "error",
        }
    }

    fn decide(&mut self, job: &str, what: &str) {
        let args = [job, "--decide", what, "--because", "its effect was looked at"];
        let output = self.lab.command("ares-reconcile", &args).output().unwrap();
        if !output.status.success() {
            self.find(JOBS, format!("{job} could not be decided: {}", output.status));
        }
    }

    /// After the healing: the record against what was acknowledged and done.
    pub(crate) fn jobs(&mut self) {
        let record = record(self.lab).unwrap();
        let acknowledged = self.load.acknowledged();
        self.counts.acknowledged.0 = acknowledged.len();
        for (key, job) in acknowledged {
            let text = "SELECT count(*) FROM keys JOIN jobs ON jobs.id = keys.job WHERE key = ?1 AND job = ?2";
            let found: i64 = record.query_row(text, params![format!("k{key}"), job], |row| row.get(0)).unwrap();
            if found != 1 {
                self.find(LOST, format!("{job}, of key k{key}"));
            }
        }
        for key in 0..self.load.jobs() {
            let text = "SELECT state FROM jobs JOIN keys ON jobs.id = keys.job WHERE key = ?1";
            let state = record.query_row(text, [format!("k{key}")], |row| row.get::<_, String>(0));
            let state = state.unwrap_or_else(|_| "missing".to_owned());
            let should = if Load::status(key) == 0 { "succeeded" } else { "failed" };
            match state.as_str() {
                "succeeded" | "failed" if state != should => self.find(WRONG, format!("k{key} {state}")),
                "succeeded" | "failed" => {}
                _ => self.find(JOBS, format!("k{key} {state}")),
            }
            self.effects(key);
        }
        let rows: i64 = record.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).unwrap();
        if rows != self.load.jobs() as i64 {
            self.find(JOBS, format!("{rows} rows of {} jobs", self.load.jobs()));
        }
        let attempts: i64 = record.query_row("SELECT count(*) FROM attempts", [], |row| row.get(0)).unwrap();
        self.counts.attempts = attempts as usize;
    }

    /// What a job did outside.
    fn effects(&mut self, key: usize) {
        let file = self.lab.effect(key);
        match lines(&file) {
            0 => self.find(MISSING, format!("k{key}")),
            1 => {}
            count => self.find(DOUBLED, format!("k{key}: {count}")),
        }
        let begun = lines(&file.with_extension("begun"));
        let allowed = 1 + self.again.get(&key).copied().unwrap_or(0);
        if begun > allowed {
            self.find(AGAIN, format!("k{key}: {begun} times, {allowed} allowed"));
        }
    }

    /// Every end that a runner printed is in the record.
    pub(crate) fn ends(&mut self) {
        let record = record(self.lab).unwrap();
        let files = fs::read_dir(&self.lab.dir).unwrap().flatten().map(|entry| entry.path());
        for path in files.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ran-")))
        {
            let text = fs::read_to_string(path).unwrap();
            for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
                self.counts.acknowledged.1 += 1;
                let (name, outcome) = line.trim().split_once(' ').unwrap();
                let (job, n) = name.split_once('.').unwrap();
                let text = "SELECT outcome FROM attempts WHERE job = ?1 AND n = ?2";
                let found = record.query_row(text, params![job, n], |row| row.get::<_, Option<String>>(0));
                if found.as_ref().is_ok_and(|found| found.as_deref() == Some(outcome)) {
                    continue;
                }
                self.find(END_LOST, format!("{name} {outcome}, recorded is {found:?}"));
            }
        }
    }

    /// How long each kill waited for a reconcile that had classified everything; and what that one had left open of those
    /// whose owner, keeper and worker died at once.
    pub(crate) fn waits(&mut self, passes: &[Pass]) -> Vec<Duration> {
        let mut waits = Vec::new();
        for kill in self.kills {
            let Some(pass) = passes.iter().find(|pass| pass.began >= kill.gone) else {
                self.find(OPEN, "there was no reconcile after the last kill".to_owned());
                continue;
            };
            waits.push(pass.ended - kill.at);
            let whole = matches!(kill.victim, Victim::Three | Victim::All);
            // A worker that was not yet known by its number may have lived on for a moment.
            let known = |notes: &Notes| !notes.begun || notes.worker.is_some();
            let left = kill.hit.iter().filter(|(name, notes)| whole && known(notes) && pass.open.contains(name));
            left.for_each(|(name, _)| self.find(OPEN, format!("{name}, killed {}", kill.moment.words())));
        }
        waits.sort_unstable();
        waits
    }

    /// What is left of it all.
    pub(crate) fn rest_is_clean(&mut self) {
        let output = self.lab.command("ares-fsck", &[]).stdout(std::process::Stdio::piped()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().for_each(|line| self.find(FSCK, line.to_owned()));
        if text.is_empty() && !output.status.success() {
            self.find(FSCK, output.status.to_string());
        }
        let names = fs::read_dir(self.lab.store.join("attempts")).unwrap().flatten();
        names.for_each(|entry| self.find(LEFT, entry.path().display().to_string()));
        process::marked(&self.lab.marks(None)).into_iter().for_each(|pid| self.find(LEFT, format!("process {pid}")));
    }
}

fn lines(file: &Path) -> usize {
    fs::read_to_string(file).unwrap_or_default().lines().count()
}

/// How many kills there were at each moment, of each victim.
pub(crate) fn table(kills: &[Kill]) -> BTreeMap<(Moment, Victim), usize> {
    let mut table = BTreeMap::new();
    kills.iter().for_each(|kill| *table.entry((kill.moment, kill.victim)).or_default() += 1);
    table
}

#[test]
fn uncertain_is_allowed_only_where_nobody_can_tell() {
    let kill = |victim: Victim, notes: &Notes| {
        let now = std::time::Instant::now();
        let hit = vec![("1.1".to_owned(), notes.clone())];
        [Kill { at: now, gone: now, victim, moment: Moment::Running, hit }]
    };
    let runs = Notes { begun: true, worker: Some(7), ..Notes::default() };
    let ended = Notes { ended: true, exited: true, ..runs.clone() };
    let signalled = Notes { exited: false, ..ended.clone() };
    for victim in [Victim::Keeper, Victim::Worker, Victim::Three, Victim::All] {
        assert_eq!(falsely("1.1", &runs, &kill(victim, &runs)), None);
        assert_eq!(falsely("1.1", &signalled, &kill(victim, &runs)), None);
        assert_eq!(falsely("1.1", &Notes::default(), &kill(victim, &Notes::default())), Some(NEVER));
        assert_eq!(falsely("1.1", &runs, &kill(victim, &Notes::default())), Some(UNHIT), "before it began");
        assert_eq!(falsely("1.1", &ended, &kill(victim, &ended)), Some(RECORDED));
        assert_eq!(falsely("1.1", &signalled, &kill(victim, &ended)), Some(UNHIT), "when it was over");
        assert_eq!(falsely("1.2", &runs, &kill(victim, &runs)), Some(UNHIT), "another one was");
    }
    assert_eq!(falsely("1.1", &runs, &kill(Victim::Owner, &runs)), Some(UNHIT));
    assert_eq!(falsely("1.1", &runs, &[]), Some(UNHIT));
}
