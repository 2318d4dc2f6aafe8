//! What the commands should do, in small: a list of jobs with their states, and what each command makes of it.

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

/// One command, about the jobs and open claims by their places.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Submit {
        fails: bool,
        tries: i64,
        priority: i64,
        group: bool,
        after: Option<usize>,
    },
    /// Under a key or under an id, each of them for one request: repeated, it gives the first number.
    SubmitOnce {
        key: bool,
        name: usize,
        fails: bool,
    },
    Claim,
    Settle(usize, &'static str),
    KillOwner(usize),
    Reconcile,
    Decide(usize, &'static str),
    Stop(usize),
    Drain,
    Gc,
}

/// A job as it should be.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) state: &'static str,
    pub(super) attempt: i64,
    pub(super) held: bool,
    /// Whether a removal may have taken it.
    pub(super) may_go: bool,
    fails: bool,
    tries: i64,
    max_tries: i64,
    releases: i64,
    priority: i64,
    group: bool,
    after: Option<usize>,
    stopped: bool,
    owner_dead: bool,
}

/// All that should be there.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) jobs: Vec<Job>,
    /// Submissions under a key or an id: the request and the job.
    pub(super) once: Vec<(bool, usize, bool, usize)>,
}

impl Job {
    fn new(fails: bool, max_tries: i64, priority: i64, group: bool, after: Option<usize>) -> Self {
        Self {
            state: "queued",
            attempt: 0,
            held: false,
            may_go: false,
            fails,
            tries: 0,
            max_tries,
            releases: 0,
            priority,
            group,
            after,
            stopped: false,
            owner_dead: false,
        }
    }

    pub(super) fn after(&self) -> Option<usize> {
        self.after
    }

    pub(super) fn ended(&self) -> bool {
        matches!(self.state, "succeeded" | "failed" | "cancelled")
    }
}

impl Model {
    /// The place of the job that was submitted under this name before, and whether the request is the same.
    pub(super) fn before(&self, key: bool, name: usize, fails: bool) -> Option<(usize, bool)> {
        let found = self.once.iter().find(|once| (once.0, once.1) == (key, name));
        found.map(|once| (once.3, once.2 == fails))
    }

    fn waits(&self, job: &Job) -> bool {
        job.after.is_some_and(|after| self.jobs[after].state != "succeeded")
    }

    /// The highest priority first, then the oldest; the group is one wide.
    fn next(&self) -> Option<usize> {
        let full = self.jobs.iter().any(|job| job.group && job.state == "running");
        let may = |job: &Job| !(job.held || self.waits(job) || (full && job.group));
        let ready = |job: &Job| job.state == "queued" && may(job);
        let places = (0..self.jobs.len()).filter(|at| ready(&self.jobs[*at]));
        places.max_by_key(|at| (self.jobs[*at].priority, std::cmp::Reverse(*at)))
    }

    fn claim(&mut self) -> Option<usize> {
        let at = self.next()?;
        let job = &mut self.jobs[at];
        (job.state, job.attempt, job.tries, job.owner_dead) = ("running", job.attempt + 1, job.tries + 1, false);
        Some(at)
    }

    /// What a running job comes to; what waits for one that did not succeed is cancelled.
    fn settle(&mut self, at: usize, outcome: &str, retry: bool) {
        let job = &mut self.jobs[at];
        if outcome != "void" {
            job.releases = 0;
        }
        job.state = match outcome {
            "ok" => "succeeded",
            "error" if retry && !job.stopped && job.tries < job.max_tries => "queued",
            "error" => "failed",
            "void" => {
                job.tries -= 1;
                if !job.stopped {
                    job.releases += 1;
                    job.held = job.releases >= 5;
                }
                if job.stopped { "cancelled" } else { "queued" }
            }
            _ if job.stopped => "cancelled",
            _ => "uncertain",
        };
        self.follow();
    }

    fn follow(&mut self) {
        for at in 0..self.jobs.len() {
            let before = self.jobs[at].after.map(|after| self.jobs[after].state);
            if self.jobs[at].state == "queued" && matches!(before, Some("failed" | "cancelled")) {
                self.jobs[at].state = "cancelled";
            }
        }
    }

    fn reconcile(&mut self, wrong: bool) {
        for at in 0..self.jobs.len() {
            if self.jobs[at].state == "running" && self.jobs[at].owner_dead {
                self.settle(at, if wrong { "void" } else { "ambiguous" }, false);
            }
        }
    }

    fn drain(&mut self) {
        while let Some(at) = self.claim() {
            let outcome = if self.jobs[at].fails { "error" } else { "ok" };
            self.settle(at, outcome, true);
        }
    }

    fn decide(&mut self, at: usize, decision: &str) {
        let job = &mut self.jobs[at];
        let again = matches!(decision, "retry" | "no-effect");
        if job.state == "queued" && job.held && again {
            (job.held, job.releases) = (false, 0);
        }
        if job.state != "uncertain" {
            return;
        }
        job.tries -= i64::from(decision == "no-effect");
        job.state = match decision {
            "ok" => "succeeded",
            "error" => "failed",
            "abandon" => "cancelled",
            _ => "queued",
        };
        job.stopped &= !again;
        self.follow();
    }

    fn stop(&mut self, at: usize) {
        let job = &mut self.jobs[at];
        match job.state {
            "queued" | "uncertain" => job.state = "cancelled",
            "running" => job.stopped = true,
            _ => {}
        }
        self.follow();
    }

    fn gc(&mut self) {
        let needed = |at: usize| self.jobs.iter().any(|job| !job.ended() && job.after == Some(at));
        let gone: Vec<usize> = (0..self.jobs.len()).filter(|at| self.jobs[*at].ended() && !needed(*at)).collect();
        gone.into_iter().for_each(|at| self.jobs[at].may_go = true);
    }

    fn apply(mut self, command: &Command, wrong: bool) -> Self {
        match *command {
            Command::Submit { fails, tries, priority, group, after } => {
                let after = after.filter(|after| self.may_follow(*after));
                self.jobs.push(Job::new(fails, tries, priority, group, after));
            }
            Command::SubmitOnce { key, name, fails } if self.before(key, name, fails).is_none() => {
                self.once.push((key, name, fails, self.jobs.len()));
                self.jobs.push(Job::new(fails, 1, 0, false, None));
            }
            Command::Claim => {
                if self.next().is_none() {
                    self.reconcile(wrong);
                }
                self.claim();
            }
            Command::Settle(at, outcome) if self.open(at) => self.settle(at, outcome, false),
            Command::KillOwner(at) if self.open(at) => self.jobs[at].owner_dead = true,
            Command::Decide(at, decision) => {
                self.reconcile(wrong);
                if at < self.jobs.len() {
                    self.decide(at, decision);
                }
            }
            Command::Stop(at) => {
                self.reconcile(wrong);
                if self.there(at) {
                    self.stop(at);
                }
            }
            Command::Drain => {
                self.reconcile(wrong);
                self.drain();
            }
            Command::Reconcile => self.reconcile(wrong),
            Command::Gc => self.gc(),
            _ => {}
        }
        self
    }

    /// Whether a new job may wait for this one.
    pub(super) fn may_follow(&self, at: usize) -> bool {
        self.there(at) && !matches!(self.jobs[at].state, "failed" | "cancelled")
    }

    pub(super) fn there(&self, at: usize) -> bool {
        self.jobs.get(at).is_some_and(|job| !job.may_go)
    }

    /// Whether a claim of this job is open, and its owner lives.
    pub(super) fn open(&self, at: usize) -> bool {
        self.jobs.get(at).is_some_and(|job| job.state == "running" && !job.owner_dead)
    }
}

/// The model; a wrong one takes a job whose owner died for one that never ran.
#[derive(Debug)]
pub(super) struct Reference<const WRONG: bool>;

impl<const WRONG: bool> ReferenceStateMachine for Reference<WRONG> {
    type State = Model;
    type Transition = Command;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::default()).boxed()
    }

    fn transitions(model: &Model) -> BoxedStrategy<Command> {
        let count = model.jobs.len().max(1);
        let at = 0..count;
        let running: Vec<usize> = (0..model.jobs.len()).filter(|at| model.open(*at)).collect();
        let open = prop::sample::select(if running.is_empty() { vec![0] } else { running });
        let outcome = prop::sample::select(vec!["ok", "error", "void", "void"]);
        let decision = prop::sample::select(vec!["ok", "error", "no-effect", "retry", "abandon"]);
        let after = prop::option::weighted(0.3, at.clone());
        let submit = (any::<bool>(), 1..3i64, 0..3i64, any::<bool>(), after).prop_map(
            |(fails, tries, priority, group, after)| Command::Submit { fails, tries, priority, group, after },
        );
        let once = (any::<bool>(), 0..2usize, any::<bool>());
        prop_oneof![
            5 => submit,
            2 => once.prop_map(|(key, name, fails)| Command::SubmitOnce { key, name, fails }),
            5 => Just(Command::Claim),
            4 => (open.clone(), outcome).prop_map(|(at, outcome)| Command::Settle(at, outcome)),
            3 => open.prop_map(Command::KillOwner),
            3 => Just(Command::Reconcile),
            3 => (at.clone(), decision).prop_map(|(at, decision)| Command::Decide(at, decision)),
            1 => at.prop_map(Command::Stop),
            1 => Just(Command::Drain),
            1 => Just(Command::Gc),
        ]
        .boxed()
    }

    fn apply(model: Model, command: &Command) -> Model {
        model.apply(command, WRONG)
    }
}
