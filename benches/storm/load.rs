//! The load under which is killed: submitters, runners and a loop of reconciles, and what they acknowledged. The effect
//! of each job is one line in a file of its own, counted outside ares.

use super::look::record;
use super::{Lab, Plant};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::ops::Range;
use std::process::Child;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Jobs in one submission.
const BATCH: usize = 8;

/// Fewer queued jobs than this are too few.
const QUEUED_MIN: i64 = 16;

/// The pause between two reconciles.
const PAUSE: Duration = Duration::from_millis(10);

/// What every job does: it says that it begins, works, has its effect, works on, and ends with its status.
const WORK: &str = "echo $ARES_ATTEMPT >>\"$0.begun\"; sleep 0.0$1; echo $ARES_ATTEMPT >>\"$0\"; sleep 0.0$2; exit $3";
const TWICE: &str = "echo $ARES_ATTEMPT >>\"$0.begun\"; echo $ARES_ATTEMPT | tee -a \"$0\" >>\"$0\"";
const BY_ITSELF: &str = "echo $ARES_ATTEMPT >>\"$0.begun\"; echo $ARES_ATTEMPT >>\"$0\"; kill -9 $$";

/// One complete reconcile.
pub(crate) struct Pass {
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    /// What was claimed or running after it.
    pub(crate) open: BTreeSet<String>,
}

/// What is asked for, and what was acknowledged.
pub(crate) struct Load<'a> {
    lab: &'a Lab,
    plant: Option<Plant>,
    /// The job in which something is wrong on purpose.
    planted: AtomicUsize,
    over: AtomicBool,
    keys: AtomicUsize,
    files: AtomicUsize,
    /// Submissions that were killed and are to be repeated.
    again: Mutex<Vec<Range<usize>>>,
    /// Key and number of what was printed.
    acknowledged: Mutex<Vec<(usize, i64)>>,
}

/// A submission under way.
pub(crate) struct Submission {
    pub(crate) child: Child,
    keys: Range<usize>,
    told: String,
}

impl<'a> Load<'a> {
    pub(crate) fn new(lab: &'a Lab, plant: Option<Plant>) -> Self {
        let (again, acknowledged) = Default::default();
        let (keys, files, over) = Default::default();
        Self { lab, plant, planted: AtomicUsize::new(usize::MAX), over, keys, files, again, acknowledged }
    }

    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// How many jobs were asked for.
    pub(crate) fn jobs(&self) -> usize {
        self.keys.load(Ordering::SeqCst)
    }

    pub(crate) fn acknowledged(&self) -> Vec<(usize, i64)> {
        let mut all = self.acknowledged.lock().unwrap().clone();
        if self.plant == Some(Plant::Lost) {
            all.push((0, i64::from(i32::MAX)));
        }
        all
    }

    /// The status that a job ends with by itself: some fail.
    pub(crate) fn status(key: usize) -> u8 {
        if key % 8 == 7 { 3 } else { 0 }
    }

    fn line(&self, key: usize) -> String {
        let planted = self.plant.filter(|_| key == self.planted.load(Ordering::SeqCst));
        let script = match planted {
            Some(Plant::Double) => TWICE,
            Some(Plant::Uncertain) => BY_ITSELF,
            _ => WORK,
        };
        let status = if planted == Some(Plant::Failed) { 3 } else { Self::status(key) };
        let file = self.lab.effect(key).display().to_string();
        let argv = ["sh", "-c", script, &file, &(key % 4).to_string(), &(key / 4 % 4).to_string(), &status.to_string()];
        let mut line = serde_json::json!({ "argv": argv, "key": format!("k{key}") });
        if key.is_multiple_of(3) {
            // What hands something over is claimed in one commit and dispatched in the next.
            line["prompt"] = "words".into();
        }
        format!("{line}\n")
    }

    /// A submission of jobs that nobody asked for yet.
    pub(crate) fn begin(&self) -> Submission {
        let first = self.keys.fetch_add(BATCH, Ordering::SeqCst);
        self.submit(first..first + BATCH)
    }

    fn submit(&self, keys: Range<usize>) -> Submission {
        let at = self.files.fetch_add(1, Ordering::SeqCst);
        let file = |what: &str| self.lab.dir.join(format!("{what}-{at}"));
        fs::write(file("batch"), keys.clone().map(|key| self.line(key)).collect::<String>()).unwrap();
        let told = file("told");
        let mut command = self.lab.command("ares-submit", &["--stdin"]);
        command.stdin(File::open(file("batch")).unwrap()).stdout(File::create(&told).unwrap());
        Submission { child: command.spawn().unwrap(), keys, told: told.display().to_string() }
    }

    /// Waits for a submission and keeps what it printed; what it did not print is asked for again.
    pub(crate) fn finish(&self, mut submission: Submission) {
        submission.child.wait().unwrap();
        let text = fs::read_to_string(&submission.told).unwrap();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let numbers: Vec<i64> = whole.map(|line| line.trim().parse().unwrap()).collect();
        if numbers.len() < BATCH {
            self.again.lock().unwrap().push(submission.keys.clone());
        }
        self.acknowledged.lock().unwrap().extend(submission.keys.zip(numbers));
    }

    /// Asks for the job that is wrong, where one is, after the last kill: so it is that alone which is wrong.
    pub(crate) fn plant(&self) {
        if self.plant.is_some() {
            self.planted.store(self.jobs(), Ordering::SeqCst);
            self.finish(self.begin());
        }
    }

    /// Repeats what was killed.
    pub(crate) fn repeat(&self) {
        let again = std::mem::take(&mut *self.again.lock().unwrap());
        again.into_iter().for_each(|keys| self.finish(self.submit(keys)));
    }

    /// Keeps the queue filled.
    pub(crate) fn keep_filled(&self) {
        let queued = "SELECT count(*) FROM jobs WHERE state = 'queued'";
        while !self.over.load(Ordering::SeqCst) {
            self.repeat();
            let count = record(self.lab).and_then(|record| record.query_row(queued, [], |row| row.get::<_, i64>(0)));
            if count.is_ok_and(|count| count < QUEUED_MIN) {
                self.finish(self.begin());
            }
            sleep(PAUSE);
        }
    }

    /// Reconciles again and again; gives the passes that came to their end.
    pub(crate) fn keep_reconciling(&self) -> Vec<Pass> {
        let mut passes = Vec::new();
        while !self.over.load(Ordering::SeqCst) {
            passes.extend(self.reconcile());
            sleep(PAUSE);
        }
        // The last kill has one after it.
        passes.extend(self.reconcile());
        passes
    }

    fn reconcile(&self) -> Option<Pass> {
        let began = Instant::now();
        let status = self.lab.command("ares-reconcile", &["--quiet"]).status().unwrap();
        let ended = Instant::now();
        // 10 and 1 say that something waits for a decision.
        if !matches!(status.code(), Some(0 | 1 | 10)) {
            return None;
        }
        let open = super::look::open(self.lab).ok()?.into_iter().map(|open| open.name).collect();
        Some(Pass { began, ended, open })
    }
}
