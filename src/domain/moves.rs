//! The lists of legal moves of everything that has a state. The schema holds the same lists and refuses all others;
//! a test compares the two over every pair.

/// A state that is stored as a word.
pub trait Word: Copy + Eq + 'static {
    /// Every state with its word.
    const WORDS: &'static [(&'static str, Self)];
    /// Every legal move.
    const MOVES: &'static [(Self, Self)];
    /// What has the state, as the schema names it.
    const KIND: &'static str;

    /// The word of this state.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, state)| *state == self).map_or("", |(word, _)| word)
    }

    /// The state of this word.
    fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, state)| *state)
    }

    /// Whether this move is legal.
    fn may(self, to: Self) -> bool {
        Self::MOVES.contains(&(self, to))
    }
}

/// Makes an enum of states with their words and their legal moves.
macro_rules! states {
    ($(#[$doc:meta])* $name:ident $kind:literal { $($(#[$vdoc:meta])* $variant:ident $word:literal,)* } $($from:ident => $($to:ident),+;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $crate::domain::moves::Word for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)*];
            const MOVES: &'static [(Self, Self)] = &[$($((Self::$from, Self::$to),)+)*];
            const KIND: &'static str = $kind;
        }
    };
}
pub(crate) use states;

states! {
    /// A permit: single-use authority for one effect. Expiry is computed at consumption and no state.
    Permit "permit" {
        /// May be consumed once.
        Issued "issued",
        /// Consumed by a transaction that said "about to act".
        Consumed "consumed",
        /// Its outcome is recorded.
        Settled "settled",
        /// Withdrawn before use.
        Revoked "revoked",
    }
    Issued => Consumed, Revoked;
    Consumed => Settled;
}

states! {
    /// One try to hand an event to a sink.
    Delivery "delivery" {
        /// Not handed over yet.
        Pending "pending",
        /// A deliverer is about to hand it over.
        Claimed "claimed",
        /// Acknowledged by the sink.
        Delivered "delivered",
        /// Refused by the sink.
        Failed "failed",
        /// The deliverer is gone and nobody can tell.
        Uncertain "uncertain",
    }
    Pending => Claimed;
    Claimed => Pending, Delivered, Failed, Uncertain;
    Uncertain => Pending, Delivered, Failed;
}

states! {
    /// What is set aside from a budget before a dispatch.
    Reservation "reservation" {
        /// Set aside.
        Held "held",
        /// Turned into a charge.
        Charged "charged",
        /// Given back: nothing was dispatched.
        Released "released",
        /// Stays charged in full until a resolution names the charge.
        Unknown "unknown",
    }
    Held => Charged, Released, Unknown;
    Unknown => Charged, Released;
}

states! {
    /// A supervisor's verdict on a settled job.
    Review "review" {
        /// Waits for a reviewer.
        Pending "pending",
        /// A reviewer works on it.
        Claimed "claimed",
        /// The callback's end is not known.
        Uncertain "uncertain",
        /// Accepted.
        Accepted "accepted",
        /// Rejected.
        Rejected "rejected",
    }
    Pending => Claimed, Accepted, Rejected;
    Claimed => Pending, Uncertain, Accepted, Rejected;
    Uncertain => Pending, Accepted, Rejected;
}

states! {
    /// A bounded chain of jobs.
    Workflow "workflow" {
        /// Its steps go on.
        Running "running",
        /// Waits for a person.
        Held "held",
        /// All steps are done.
        Succeeded "succeeded",
        /// A step failed for good.
        Failed "failed",
        /// Stopped.
        Cancelled "cancelled",
    }
    Running => Held, Succeeded, Failed, Cancelled;
    Held => Running, Failed, Cancelled;
}

states! {
    /// One step of a workflow.
    Step "step" {
        /// Its dependencies are not done.
        Blocked "blocked",
        /// It has a job.
        Submitted "submitted",
        /// Its result waits at a checkpoint.
        Waiting "waiting",
        /// Partial, missing or uncertain: waits for a decision.
        Held "held",
        /// Done; never entered again.
        Done "done",
        /// Failed for good.
        Failed "failed",
        /// Stopped.
        Cancelled "cancelled",
    }
    Blocked => Submitted, Cancelled;
    Submitted => Waiting, Held, Done, Failed, Cancelled;
    Waiting => Held, Done, Failed, Cancelled;
    Held => Submitted, Waiting, Done, Failed, Cancelled;
}

/// Every legal move of everything, as the schema lists them: `kind old new`.
pub fn listed() -> Vec<String> {
    fn of<W: Word>() -> impl Iterator<Item = String> {
        W::MOVES.iter().map(|(old, new)| format!("{} {} {}", W::KIND, old.word(), new.word()))
    }
    let ours = of::<super::job::State>().chain(of::<super::attempt::State>()).chain(of::<super::session::Status>());
    let others = of::<Permit>().chain(of::<Delivery>()).chain(of::<Reservation>()).chain(of::<Review>());
    ours.chain(others).chain(of::<Workflow>()).chain(of::<Step>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguity_of_a_permit_has_no_way_back() {
        assert!(!Permit::Settled.may(Permit::Consumed) && !Permit::Revoked.may(Permit::Issued));
        assert_eq!(Permit::parse("consumed"), Some(Permit::Consumed));
        assert_eq!(Delivery::Uncertain.word(), "uncertain");
    }
}
