//! What is said of a job: its states and the moves between them, why it is not offered, what may be decided of it. The
//! moves themselves are made in `step.rs`.

pub use super::step::{Facts, Job, Move, Now, at};

use super::moves::states;

states! {
    /// Where a job is. The last three are terminal and never change.
    State "job" {
        /// Waits to be claimed.
        Queued "queued",
        /// Claimed; nothing was dispatched, so losing it costs nothing.
        Claimed "claimed",
        /// Dispatched; it may have had an effect.
        Running "running",
        /// Nobody can tell how it ended; only a resolution leaves this.
        Uncertain "uncertain",
        /// Done.
        Succeeded "succeeded",
        /// Failed, known to have ended.
        Failed "failed",
        /// Will not be done.
        Cancelled "cancelled",
    }
    Queued => Claimed, Cancelled;
    Claimed => Queued, Running, Failed, Cancelled;
    Running => Queued, Succeeded, Failed, Cancelled, Uncertain;
    Uncertain => Queued, Succeeded, Failed, Cancelled;
}

impl State {
    /// Whether nothing will change any more.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// Why a queued job is not offered to claimers; a reason beside the state, no state of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It may run.
    None,
    /// It waits for another job.
    Dependency,
    /// It waits for a checkpoint.
    Checkpoint,
    /// A pause is in force.
    Pause,
    /// It was released five times in a row: only a decision offers it again.
    Releases,
}

impl Hold {
    /// Every reason with its word; no reason is the empty word.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        ("", Self::None),
        ("dependency", Self::Dependency),
        ("checkpoint", Self::Checkpoint),
        ("pause", Self::Pause),
        ("releases", Self::Releases),
    ];

    /// The word of this reason.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, hold)| *hold == self).map_or("", |(word, _)| word)
    }

    /// The reason of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, hold)| *hold)
    }
}

/// After this many releases in a row a job is held, so that a worker that never starts cannot spin.
pub const RELEASES_MAX: i64 = 5;

/// What someone decides of an uncertain job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It did what it should: succeeded.
    Ok,
    /// It failed: failed.
    Error,
    /// It had no effect: queued again, burns no try.
    NoEffect,
    /// Do it again whatever it did: queued again, burns a try.
    Retry,
    /// Give it up: cancelled.
    Abandon,
}

impl Decision {
    /// Every decision with its word.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        ("ok", Self::Ok),
        ("error", Self::Error),
        ("no-effect", Self::NoEffect),
        ("retry", Self::Retry),
        ("abandon", Self::Abandon),
    ];

    /// The word of this decision.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, decision)| *decision == self).map_or("", |(word, _)| word)
    }

    /// The decision of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, decision)| *decision)
    }
}
