//! What time it is. The wall clock is for people; only the monotonic clock measures.

use crate::domain::time::Time;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The wall clock now. It may jump either way; nothing but calendars follows it.
#[expect(clippy::disallowed_methods, reason = "the one place that asks")]
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A mark on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Mark(Instant);

/// A mark now.
#[expect(clippy::disallowed_methods, reason = "the one place that asks")]
pub fn mark() -> Mark {
    Mark(Instant::now())
}

impl Mark {
    /// How long ago this was.
    pub fn elapsed(&self) -> Duration {
        mark().0.saturating_duration_since(self.0)
    }

    /// How long until this much after the mark; zero when it is past.
    pub fn left(&self, span: Duration) -> Duration {
        span.saturating_sub(self.elapsed())
    }
}
