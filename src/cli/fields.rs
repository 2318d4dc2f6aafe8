//! The fields that several commands print, with the names of the store's tables. It knows no command.

use super::Field;

/// What is printed of a job.
pub const JOB: &[Field] = &[
    ("job", "integer: the job"),
    ("state", "queued, claimed, running, uncertain, succeeded, failed or cancelled"),
    ("worker", "text: the worker"),
    ("attempt", "integer: the N of its latest attempt; 0 before the first claim"),
    ("tries", "integer: attempts that were dispatched and not void"),
    ("submitted", "time: when it was submitted"),
    ("ended", "time: when it ended"),
    ("detail", "text: what it is, or how it ended"),
    ("code", "text: the code of its end"),
    ("hold", "text: why it is not offered: dependency, checkpoint, pause or releases"),
    ("model", "text: the model asked for"),
    ("priority", "integer: higher runs first"),
    ("group", "text: the concurrency group"),
    ("labels", "json: the labels, a list"),
    ("dir", "text: the working directory"),
    ("not_before", "time: not to be claimed before this"),
    ("max_tries", "integer: how many tries it may have"),
    ("session", "text: the id of the worker's session, once it is known"),
    ("spec_digest", "text: SHA-256 over everything that was frozen at submission"),
];

/// The columns of a job that are shown without asking.
pub const JOB_COLUMNS: &[&str] = &["job", "state", "worker", "tries", "submitted", "detail"];

/// What is printed of an attempt's end.
pub const END: &[Field] = &[
    ("job", "integer: the job"),
    ("attempt", "text: the attempt, JOB.N"),
    ("outcome", "ok, error, ambiguous or void"),
    ("state", "the state of the job after it"),
    ("code", "text: why, for everything but a plain success"),
    ("detail", "text: one line on it"),
];

/// The columns of an attempt's end that are shown without asking.
pub const END_COLUMNS: &[&str] = &["attempt", "outcome", "state", "code", "detail"];
