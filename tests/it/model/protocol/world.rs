//! The world that the protocol is played in: what the store has committed, what the files of the attempts say, and which
//! processes live.

use ares::domain::attempt::State as AttemptState;
use ares::domain::job::State;
use ares::domain::moves::Permit;
use ares::domain::outcome::{Cause, Report, Seen};
use ares::error::Code;
use ares::worker::Adapter;

/// An attempt: the place of its job, and its N.
pub(super) type Id = (usize, usize);

/// A keeper: the place of its owner, and how many that owner had before.
pub(super) type KeeperId = (usize, u8);

/// Everything that can be told of a moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) jobs: Vec<Job>,
    pub(super) owners: Vec<Owner>,
    pub(super) lookers: Vec<Looker>,
    pub(super) operator: Operator,
    pub(super) boot: u8,
    /// What may still go wrong.
    pub(super) left: Left,
    /// A promise that a move has just broken.
    pub(super) broken: Option<&'static str>,
}

/// How often each thing may still happen, so that there is an end to what is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Left {
    pub(super) kills: u8,
    /// Commits whose answer is lost.
    pub(super) unknown: u8,
    pub(super) pauses: u8,
    pub(super) reboots: u8,
    /// Workers that are ended by a limit or an order.
    pub(super) halts: u8,
    /// Decisions to run a job again.
    pub(super) reruns: u8,
    /// How many runners are there at once; this does not grow less.
    pub(super) runners: u8,
}

/// A job: its row, its attempts, and what really happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Job {
    /// The row's state, once it is committed.
    pub(super) state: Option<State>,
    pub(super) tries: u8,
    pub(super) releases: u8,
    pub(super) held: bool,
    pub(super) attempts: Vec<Attempt>,
    /// How far its submission came, for who submits it.
    pub(super) submission: Submission,
    /// How many rows its submission made.
    pub(super) rows: u8,
    /// Effects since the last decision that it may run again.
    pub(super) effects: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Submission {
    Planned,
    /// Its answer was lost: it is repeated under its id.
    Repeated,
    /// Its number was printed.
    Printed,
}

/// An attempt's row, its files, its processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Attempt {
    pub(super) state: AttemptState,
    pub(super) owner: usize,
    pub(super) keeper: Option<KeeperId>,
    pub(super) permit: Option<Permit>,
    pub(super) boot: u8,
    pub(super) outcome: Option<Known>,
    /// What somebody was told of its end.
    pub(super) told: Option<Known>,
    pub(super) files: Files,
    pub(super) tree: Tree,
    pub(super) acted: bool,
}

/// Whose an attempt is that is over.
pub(super) const NOBODY: usize = usize::MAX;

impl Attempt {
    pub(super) fn new(owner: usize, boot: u8) -> Self {
        Self {
            state: AttemptState::Claimed,
            owner,
            keeper: None,
            permit: None,
            boot,
            outcome: None,
            told: None,
            files: Files { mark: false, exit: None },
            tree: Tree::None,
            acted: false,
        }
    }
}

/// What the keeper wrote down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Files {
    pub(super) mark: bool,
    pub(super) exit: Option<End>,
}

/// The worker and what it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Tree {
    None,
    /// The worker lives, and a child of it.
    Whole,
    /// Only the child lives; what the worker's parent saw of its end.
    Child(End),
    /// Nothing lives.
    Gone(End),
}

impl Tree {
    pub(super) fn lives(self) -> bool {
        matches!(self, Self::Whole | Self::Child(_))
    }

    /// The end of all of it; of one that had ended already, what was seen stays.
    pub(super) fn ended(self, end: End) -> Self {
        match self {
            Self::None => Self::None,
            Self::Whole => Self::Gone(end),
            Self::Child(seen) | Self::Gone(seen) => Self::Gone(seen),
        }
    }

    /// The end of the worker, which its child outlives.
    pub(super) fn orphaned(self, end: End) -> Self {
        if self == Self::Whole { Self::Child(end) } else { self }
    }
}

/// How a worker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    Zero,
    One,
    Killed,
    /// By its keeper, at a limit or an order.
    Halted,
}

/// What is known of an attempt's end, before the library makes a [`Fact`] of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Known {
    Ended(End),
    NeverStarted,
    GivenBack,
    Lost,
}

impl Known {
    /// What the library says of it.
    pub(super) fn report(self) -> Report {
        let seen = |seen: &Seen| Adapter::Command.reader(None).finish(seen, b"");
        match self {
            Self::Ended(End::Zero) => seen(&Seen::exited(0)),
            Self::Ended(End::One) => seen(&Seen::exited(1)),
            Self::Ended(End::Killed) => seen(&Seen { exit: None, signal: Some(9), ..Seen::exited(0) }),
            Self::Ended(End::Halted) => {
                seen(&Seen { cause: Cause::TimeoutWhole, exit: None, signal: Some(15), ..Seen::exited(0) })
            }
            Self::NeverStarted => Report::void(Code::NeverStarted, "", false),
            Self::GivenBack => Report { blameless: true, ..Report::void(Code::NeverStarted, "", false) },
            Self::Lost => Report::ambiguous(Code::OwnerLost, ""),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    pub(super) phase: Phase,
    /// SIGSTOP: it does nothing, and holds its lock.
    pub(super) stopped: bool,
    pub(super) keepers: u8,
    pub(super) keeper: Keeper,
    /// What its keeper said.
    pub(super) heard: Option<(Id, End)>,
}

impl Owner {
    pub(super) const UNBORN: Self =
        Self { phase: Phase::Unborn, stopped: false, keepers: 0, keeper: Keeper::None, heard: None };
}

/// What a runner is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Unborn,
    Idle,
    Claimed(Id),
    /// Only by mistake: the keeper was told, and the dispatch is not committed.
    Early(Id),
    /// The answer of the dispatch was lost.
    DispatchUnknown(Id),
    Dispatched(Id),
    Following(Id),
    Ended(Id, Known),
    /// The answer of the settlement was lost, in which this was claimed, and dispatched too or not.
    SettleUnknown(Id, Known, Option<(Id, bool)>),
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Keeper {
    None,
    Waiting,
    Told(Id),
    Marked(Id),
    Watching(Id),
    Swept(Id, End),
    Written(Id, End),
    Dead,
}

impl Keeper {
    /// The attempt that it carries out.
    pub(super) fn task(self) -> Option<Id> {
        match self {
            Self::Told(id) | Self::Marked(id) | Self::Watching(id) | Self::Swept(id, _) | Self::Written(id, _) => {
                Some(id)
            }
            Self::None | Self::Waiting | Self::Dead => None,
        }
    }
}

/// Who reconciles, or a runner that looks before it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Looker {
    Idle,
    /// It read this row.
    Read(Id, AttemptState),
    /// Its owner's lock is free.
    Free(Id),
    /// There was no record of the end.
    NoRecord(Id),
    Release(Id),
    Settle(Id, Known),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operator {
    Idle,
    /// The answer to this decision was lost, which was applied or not: it is repeated under its id.
    Unknown {
        job: usize,
        again: bool,
        applied: bool,
    },
}
