//! The worker's own conversation: ares keeps its id, never its content.

use super::moves::states;

states! {
    /// Whether a session can be continued.
    Status "session" {
        /// It can.
        Open "open",
        /// It cannot: a resume landed elsewhere, or the worker lost it.
        Broken "broken",
    }
    Open => Broken;
}

/// A session id of our own making: `YYYYMMDD_HHMMSS_` and six hex digits, the last of this number.
pub fn own_id(now: super::time::Time, number: u32) -> String {
    format!("{}_{:06x}", now.compact(), number & 0xFF_FFFF)
}
