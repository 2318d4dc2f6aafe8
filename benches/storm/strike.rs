//! The kills. A runner and its keeper are stopped at a random moment, it is looked how far they had come, and if that is
//! the moment that is wanted, or any will do, they are killed; else they go on and it is tried again.

use super::load::Load;
use super::look::{self, Moment, Notes, Open};
use super::process::{self, Stat};
use super::{Dice, Lab};
use rustix::process::Signal;
use std::fs::File;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How many runners are at work, and how many there may be with those that were started to be killed early.
const RUNNERS: usize = 4;
const RUNNERS_MAX: usize = 7;

/// How often a wanted moment is tried for before any will do.
const TRIES: usize = 40;

/// How often one runner is stopped, looked at and let go on.
const STEPS: usize = 20;

/// How often it is looked for the end of a worker.
const AWAIT: usize = 2000;

/// A moment that had fewer of the kills so far, in percent, is wanted.
const SHARE: usize = 4;

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Victim {
    Owner,
    Keeper,
    Worker,
    /// Owner, keeper and worker of one attempt.
    Three,
    /// Every runner, keeper and worker of the store.
    All,
    Reconcile,
    Submit,
}

impl Victim {
    pub(crate) const ALL: [Self; 7] =
        [Self::Owner, Self::Keeper, Self::Worker, Self::Three, Self::All, Self::Reconcile, Self::Submit];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Keeper => "keeper",
            Self::Worker => "worker",
            Self::Three => "these three",
            Self::All => "all at once",
            Self::Reconcile => "reconcile",
            Self::Submit => "submit",
        }
    }
}

/// One kill.
pub(crate) struct Kill {
    pub(crate) at: Instant,
    /// When the last of them was gone.
    pub(crate) gone: Instant,
    pub(crate) victim: Victim,
    pub(crate) moment: Moment,
    /// The attempts that were hit, and what their keepers had written by then.
    pub(crate) hit: Vec<(String, Notes)>,
}

struct Runner {
    child: Child,
    /// Whether it only looks after runners that are its children.
    fleet: bool,
    /// Whether it was asked to end. A second time would be once too often: it would end its worker.
    asked: bool,
}

pub(crate) struct Striker<'a> {
    lab: &'a Lab,
    load: &'a Load<'a>,
    dice: Dice,
    runners: Vec<Runner>,
    started: usize,
    /// How often it was looked what a victim was doing.
    pub(crate) looks: usize,
    pub(crate) kills: Vec<Kill>,
}

impl<'a> Striker<'a> {
    pub(crate) fn new(lab: &'a Lab, load: &'a Load<'a>, dice: Dice) -> Self {
        Self { lab, load, dice, runners: Vec::new(), started: 0, looks: 0, kills: Vec::new() }
    }

    pub(crate) fn strike(&mut self, count: usize) {
        while self.kills.len() < count {
            self.tend();
            let scarce = self.scarce();
            let tries = if scarce.is_some() { TRIES } else { 1 };
            for left in (0..tries).rev() {
                let victim = self.victim(scarce);
                if let Some(kill) = self.kill(victim, scarce.filter(|_| left > 0)) {
                    self.kills.push(kill);
                    break;
                }
                self.tend();
            }
        }
        self.calm();
    }

    /// A moment that had too few of the kills so far.
    fn scarce(&mut self) -> Option<Moment> {
        let had = |moment: &Moment| self.kills.iter().filter(|kill| kill.moment == *moment).count();
        let all = Moment::ALL.into_iter();
        let few: Vec<Moment> = all.filter(|moment| had(moment) * 100 < (self.kills.len() + 1) * SHARE).collect();
        self.dice.pick(&few)
    }

    /// Who may be killed at this moment, or at any.
    fn victim(&mut self, moment: Option<Moment>) -> Victim {
        use Victim::{All, Keeper, Owner, Reconcile, Submit, Three, Worker};
        let from: &[Victim] = match moment {
            Some(Moment::Submit) => &[Submit],
            Some(Moment::Reconcile) => &[Reconcile],
            Some(Moment::Running) => &[Owner, Keeper, Worker, Three, All],
            Some(_) => &[Owner, Keeper, Three, All],
            None => &[Owner, Owner, Keeper, Keeper, Worker, Worker, Three, All, Reconcile, Submit],
        };
        self.dice.pick(from).unwrap()
    }

    fn kill(&mut self, victim: Victim, wanted: Option<Moment>) -> Option<Kill> {
        let kill = match victim {
            Victim::Submit | Victim::Reconcile => self.kill_command(victim),
            Victim::Worker => self.kill_worker(wanted),
            _ => self.kill_runner(victim, wanted),
        };
        kill.filter(|kill| wanted.is_none_or(|wanted| wanted == kill.moment))
    }

    /// A random pause: where any moment will do it is as likely to be long as short, else most are short.
    fn pause(&mut self, wanted: Option<Moment>) {
        let most = if wanted.is_some() { 100 << self.dice.roll(6) } else { 30_000 };
        sleep(Duration::from_micros(self.dice.roll(most)));
    }

    fn kill_command(&mut self, victim: Victim) -> Option<Kill> {
        let submission = if victim == Victim::Submit { Some(self.load.begin()) } else { None };
        let reconcile = if submission.is_none() { Some(self.lab.command("ares-reconcile", &[])) } else { None };
        let mut reconcile = reconcile.map(|mut command| command.spawn().unwrap());
        // Neither takes long.
        self.pause(Some(Moment::Reconcile));
        let child = submission.as_ref().map(|submission| &submission.child).or(reconcile.as_ref());
        let pid = child.unwrap().id().cast_signed();
        let (stood, at) = (process::stop(pid), Instant::now());
        process::send(pid, Signal::KILL);
        submission.into_iter().for_each(|submission| self.load.finish(submission));
        reconcile.iter_mut().for_each(|child| assert!(child.wait().is_ok()));
        let moment = if victim == Victim::Submit { Moment::Submit } else { Moment::Reconcile };
        stood.then(|| Kill { at, gone: Instant::now(), victim, moment, hit: Vec::new() })
    }

    fn kill_worker(&mut self, wanted: Option<Moment>) -> Option<Kill> {
        self.pause(wanted);
        let runs = |open: &Open| open.notes.worker.is_some() && !open.notes.ended;
        let open: Vec<Open> = look::open(self.lab).ok()?.into_iter().filter(runs).collect();
        let name = self.dice.pick(&open)?.name;
        // It may have ended meanwhile, and its number have gone to another one.
        let pid = Notes::read(&self.lab.folder(&name)).worker?;
        let ours = || process::marked(&self.lab.marks(Some(&name))).contains(&pid);
        if !ours() || !process::stop(pid) {
            return None;
        }
        let notes = Notes::read(&self.lab.folder(&name));
        if !ours() || notes.ended {
            process::send(pid, Signal::CONT);
            return None;
        }
        let at = Instant::now();
        process::kill(&[pid]);
        let (victim, moment, hit) = (Victim::Worker, Moment::Running, vec![(name, notes)]);
        Some(Kill { at, gone: Instant::now(), victim, moment, hit })
    }

    fn kill_runner(&mut self, victim: Victim, wanted: Option<Moment>) -> Option<Kill> {
        let owner = self.some_runner(wanted)?;
        let (keeper, moment, open) = self.catch(owner, victim, wanted)?;
        let own: Vec<Open> = open.into_iter().filter(|open| open.owner == Some(owner)).collect();
        let pair: Vec<i32> = keeper.into_iter().chain([owner]).collect();
        let (mut dying, hit) = match victim {
            Victim::Owner => (vec![owner], own),
            Victim::Keeper => (keeper.into_iter().collect(), own),
            Victim::All => self.stop_all(&pair),
            _ => ([pair.clone(), self.stop_workers(&own)].concat(), own),
        };
        self.dice.shuffle(&mut dying);
        let at = Instant::now();
        process::kill(&dying);
        let gone = Instant::now();
        pair.iter().filter(|pid| !dying.contains(pid)).for_each(|pid| process::send(*pid, Signal::CONT));
        let hit = hit.into_iter().map(|open| (open.name, open.notes)).collect();
        Some(Kill { at, gone, victim, moment, hit })
    }

    /// Stops a runner and its keeper and looks, and lets them go on for a moment, until they are where they are wanted.
    /// Gives them stopped.
    fn catch(
        &mut self,
        owner: i32,
        victim: Victim,
        wanted: Option<Moment>,
    ) -> Option<(Option<i32>, Moment, Vec<Open>)> {
        for _ in 0..STEPS {
            if !process::stop(owner) {
                return None;
            }
            let keeper = process::children(owner).first().copied().filter(|keeper| process::stop(*keeper));
            self.looks += 1;
            let seen = look::open(self.lab).and_then(|open| Ok((look::moment(self.lab, owner, &open)?, open)));
            if let Ok((moment, open)) = seen
                && wanted.is_none_or(|wanted| wanted == moment)
                && (victim != Victim::Keeper || keeper.is_some())
            {
                return Some((keeper, moment, open));
            }
            keeper.into_iter().chain([owner]).for_each(|pid| process::send(pid, Signal::CONT));
            // Where any will do, that it was not to be had ends it.
            wanted?;
            sleep(Duration::from_micros(self.dice.roll(800)));
        }
        None
    }

    /// Stops whatever runs of these attempts; their keepers stand, so that nothing new is started.
    fn stop_workers(&self, attempts: &[Open]) -> Vec<i32> {
        let mut stopped: Vec<i32> = Vec::new();
        for open in attempts {
            let marks = self.lab.marks(Some(&open.name));
            // One that was stopped starts no other, so this comes to an end.
            while let Some(pid) = process::marked(&marks).into_iter().find(|pid| !stopped.contains(pid)) {
                process::stop(pid);
                stopped.push(pid);
            }
        }
        stopped
    }

    /// Stops every runner, keeper and worker; gives them and what is open then.
    fn stop_all(&self, stopped: &[i32]) -> (Vec<i32>, Vec<Open>) {
        let mut all = stopped.to_vec();
        let stop = |pid: i32, all: &mut Vec<i32>| {
            if !all.contains(&pid) && process::stop(pid) {
                all.push(pid);
            }
        };
        for pid in self.mains().into_iter().chain(self.runners()) {
            stop(pid, &mut all);
            for keeper in process::children(pid) {
                stop(keeper, &mut all);
            }
        }
        // Those that were left by others, too.
        let open = look::open(self.lab).unwrap_or_default();
        for pid in open.iter().filter_map(|open| open.owner).chain(open.iter().filter_map(|open| open.keeper)) {
            stop(pid, &mut all);
        }
        let open = look::open(self.lab).unwrap_or(open);
        all.extend(self.stop_workers(&open));
        let notes = |open: Open| Open { notes: Notes::read(&self.lab.folder(&open.name)), ..open };
        (all, open.into_iter().map(notes).collect())
    }

    fn mains(&self) -> Vec<i32> {
        self.runners.iter().map(|runner| runner.child.id().cast_signed()).collect()
    }

    /// The processes that claim.
    fn runners(&self) -> Vec<i32> {
        let each = self.runners.iter().flat_map(|runner| {
            let pid = runner.child.id().cast_signed();
            if runner.fleet { process::children(pid) } else { vec![pid] }
        });
        each.filter(|pid| process::lives(*pid)).collect()
    }

    /// One of them, after a pause. Where a short moment is wanted, the pause begins at the end of its worker; or it is a
    /// fresh one, where the moment comes early.
    fn some_runner(&mut self, wanted: Option<Moment>) -> Option<i32> {
        let runners = self.runners();
        let early = matches!(wanted, Some(Moment::BeforeClaim | Moment::Claimed | Moment::Dispatched));
        let pid = if early && runners.len() < RUNNERS_MAX && self.dice.roll(2) == 0 {
            self.start(false)
        } else if matches!(wanted, None | Some(Moment::BeforeClaim | Moment::Running)) {
            self.dice.pick(&runners)?
        } else {
            let runs =
                |open: &Open| open.notes.worker.is_some() && open.owner.is_some_and(|pid| runners.contains(&pid));
            let open: Vec<Open> = look::open(self.lab).ok()?.into_iter().filter(runs).collect();
            let open = self.dice.pick(&open)?;
            self.await_end(&open);
            open.owner?
        };
        self.pause(wanted);
        Stat::of(pid).filter(Stat::lives).map(|_| pid)
    }

    /// Waits until the end of a worker is written down, which none of the load's takes long for.
    fn await_end(&self, open: &Open) {
        let exit = self.lab.folder(&open.name).join("exit");
        for _ in 0..AWAIT {
            if exit.exists() || !self.lab.folder(&open.name).exists() {
                return;
            }
            sleep(Duration::from_micros(50));
        }
    }

    fn start(&mut self, fleet: bool) -> i32 {
        let mut args = vec!["--wait", "--format", "%(attempt) %(outcome)"];
        if fleet {
            args.extend(["-j", "2"]);
        }
        let told = self.lab.dir.join(format!("ran-{}", self.started));
        self.started += 1;
        let mut command = self.lab.command("ares-run", &args);
        let child = command.stdout(Stdio::from(File::create(told).unwrap())).spawn().unwrap();
        let pid = child.id().cast_signed();
        self.runners.push(Runner { child, fleet, asked: false });
        pid
    }

    /// Keeps enough runners at work, and not too many.
    fn tend(&mut self) {
        self.runners.retain_mut(|runner| matches!(runner.child.try_wait(), Ok(None)));
        let count = self.runners().len();
        if count >= RUNNERS_MAX
            && let Some(at) = self.runners.iter().position(|runner| !runner.asked)
        {
            self.ask(at);
        }
        // A fleet that was just started has no runners yet.
        let going_on = self.runners.iter().filter(|runner| !runner.asked);
        let coming: usize = going_on.map(|runner| if runner.fleet { 2 } else { 1 }).sum();
        for _ in coming..RUNNERS {
            let fleet = self.dice.roll(3) == 0;
            self.start(fleet);
        }
    }

    fn ask(&mut self, at: usize) {
        if !std::mem::replace(&mut self.runners[at].asked, true) {
            process::send(self.runners[at].child.id().cast_signed(), Signal::TERM);
        }
    }

    /// Ends the runners in good order.
    fn calm(&mut self) {
        (0..self.runners.len()).for_each(|at| self.ask(at));
        self.runners.iter_mut().for_each(|runner| assert!(runner.child.wait().is_ok()));
    }
}
