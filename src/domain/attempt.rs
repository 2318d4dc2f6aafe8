//! One try at a job.

use super::moves::states;

states! {
    /// Where an attempt is. At most one attempt of a job, and of a session, is in one of the first three.
    State "attempt" {
        /// Claimed; nothing was dispatched.
        Claimed "claimed",
        /// Dispatched.
        Running "running",
        /// Nobody can tell how it ended.
        Uncertain "uncertain",
        /// Over, with its outcome recorded.
        Ended "ended",
    }
    Claimed => Running, Ended;
    Running => Uncertain, Ended;
    Uncertain => Ended;
}
