//! `ares` runs coding agents, and any other command, and keeps a durable account of what each one did. This page is
//! the map; the manual in `man/` says how to use it.
//!
//! # In one picture
//!
//! ```text
//!  ares-submit ─▶ ┌───────────────────────────┐ ◀─ ares-list, ares-show, ares-wait
//!  ares-stop   ─▶ │ store: one SQLite file,   │
//!                 │ lock files, output files  │ ◀─ ares-reconcile
//!  ares-run ────▶ └───────────────────────────┘
//!     │ socket pair
//!     ▼
//!  keeper (opens no database, outlives ares-run) ─▶ worker and its descendants
//! ```
//!
//! One idea is in every part: write down that you are about to act; act; write down what happened; and when the second
//! note is missing, say so instead of guessing.
//!
//! # Words
//!
//! * **store**: the directory that holds everything.
//! * **job**: one durable unit of work, frozen at submission; prints as `42`.
//! * **attempt**: one try at a job, `42.1`; N grows at every claim and is never used again.
//! * **handle**: `42.1-k3x9q2mw7a`, an attempt with the secret that settling needs.
//! * **worker**, **adapter**: who does it; the code that knows how to call one kind of it.
//! * **owner**, **keeper**: the process that claimed; its companion, which is the parent of the workers.
//! * **seen**, **outcome**: what the caller saw; what happened: ok, error, ambiguous, void. Never merged.
//! * **permit**, **receipt**: authority for one effect, used once; durable evidence of it.
//! * **resolution**: a decision on something uncertain, added beside the record.
//! * **operation**: one command that changed something.
//! * **code**, **class**: `ARES_…`, a row of one table; its exit status.
//! * **answer**: what a command returns and the one printer prints.
//!
//! # Layers
//!
//! ```text
//!  error, fault ← domain ← store | host ← worker ← ops ← cli ← bin
//! ```
//!
//! | folder | is | may use of other crates |
//! |---|---|---|
//! | [`error`], [`fault`] | the table of codes; named kill points | – |
//! | [`domain`] | the rules: no input or output, no clock | serde, jiff, sha2 |
//! | `store` | the only SQL | rusqlite |
//! | [`host`] | the only calls of the operating system | fs2, duct, sysinfo, rustix |
//! | `worker` | one file per kind of worker; no store | serde_json, toml |
//! | `ops` | one file per verb, its whole story; never prints | – |
//! | [`cli`] | one file per command: arguments, output; no rule of the domain | clap, serde_json |
//!
//! The one sideways edge is `store → host::{lock, dir}`: making and opening a store takes the kernel's locks and careful
//! files. `tests/it/laws/layers.rs` enforces the table.
//!
//! # Invariants
//!
//! Each is named where it is kept, and in the test that would fail.
//!
//! * `never-unlock`: a lock ends when its last descriptor closes, never before (`host/lock.rs`).
//! * `one-write`: one statement writes the state of a job, by compare-and-set, from a move that only the domain makes.
//! * `commit-then-print`: what changed is committed before any of the answer is written (`cli/output/mod.rs`).
//! * `go-after-commit`: no worker is started before the commit that says so is known.
//! * `nothing-waits-under-the-lock`: while the write lock is held nothing is waited for and no pipe is written.
//! * `keeper-without-store`: the keeper opens no database.
//! * `unknown-is-uncertain`: no time-out, signal or missing word makes an attempt a failure (`domain/outcome.rs`).
//! * `append-only`: receipts, events, resolutions and operations are added to and never changed.
//!
//! # Where is …
//!
//! * … a command? Its name is its file: `bin/ares-NAME.rs`, `src/cli/NAME.rs`, `src/ops/NAME.rs`, `man/ares-NAME.1`.
//! * … the list of commands? [`cli::COMMANDS`].
//! * … an error text? [`error::Code`]; the words around it are where it is made.
//! * … what states there are and what may follow? `states!` in `domain/job.rs`, `domain/attempt.rs`, `domain/moves.rs`.
//! * … what is printed, and how? [`cli::output`]; the fields of a command are in its own file.
//! * … the environment read? [`cli::context`]. The clock? [`host::clock`].
//! * … a rule of the source itself? `tests/it/laws/`.

pub mod cli;
pub mod domain;
pub mod error;
pub mod fault;
pub mod host;
pub mod ops;
pub mod store;
pub mod worker;
