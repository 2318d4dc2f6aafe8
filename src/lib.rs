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
//! * **session**: a worker's own conversation, of which ares keeps the id and never the content.
//! * **owner**, **keeper**: the process that claimed; its companion, which is the parent of the workers.
//! * **seen**, **outcome**: what the caller saw; what happened: ok, error, ambiguous, void. Never merged.
//! * **permit**, **receipt**: authority for one effect, used once; durable evidence of it, in a chain of digests.
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
//! | [`error`], [`fault`] | the table of codes; named kill points, for tests | rustix |
//! | [`domain`] | the rules: no input or output, no clock | serde, serde_json, jiff, sha2 |
//! | [`store`] | the only SQL | rusqlite, serde, sha2, rustix |
//! | [`host`] | the only calls of the operating system | fs2, duct, sysinfo, rustix, libc, signal-hook, toml |
//! | [`worker`] | one file per kind of worker; no store | serde_json |
//! | [`ops`] | one file per verb, its whole story; never prints | serde_json |
//! | [`cli`] | one file per command: arguments, output; no rule of the domain | clap, serde_json |
//!
//! The one sideways edge is `store → host::{lock, dir, random, clock}`: making and opening a store takes the kernel's
//! locks, careful files, random ids and the time it was made at. `tests/it/laws/layers.rs` enforces the table, and that
//! each foreign thing has one door: fs2 in `host/lock.rs`, sysinfo in `host/process.rs`, duct in `host/spawn.rs`.
//!
//! # A job's life
//!
//! 1. **Submitted** (`ops/submit.rs`): `ops/resolve.rs` resolves it to absolute names, the adapter refuses what it can never
//!    do, content is stored by its digest, and one transaction makes the row.
//! 2. **Claimed** (`ops/claim.rs`): the owner holds its lock file, then one transaction takes the first job that may run,
//!    gives it the next N and a handle. Losing this costs nothing.
//! 3. **Dispatched** (`ops/dispatch.rs`): the attempt's directory is laid out, with the room for the record of its end, so
//!    that a disk that fills up later costs no true end; one transaction names the keeper, issues and
//!    consumes the permit, adds the preflight receipt and says `running`; then, and only then, the keeper is told to go.
//!    Where a job hands nothing over, this is done in the commit that settles the one before it and claims it, so that a
//!    queue of commands costs one commit a job. Then the directory is there before the attempt: who tidies leaves one
//!    alone that nobody has claimed, until it holds the write lock.
//! 4. **Carried out** (`host/keep/attempt.rs`): `mark` says "about to start", the worker is started with its lock held,
//!    `mark` says its number, the keeper watches limits and orders, sweeps what is left, and writes `exit`. The worker
//!    writes to files by itself; only where a job passes secrets on does the keeper read pipes, and replaces them.
//! 5. **Read** (`ops/collect.rs`, `worker/`): the adapter reads the output as it grows and says what happened.
//! 6. **Settled** (`ops/run/attempt.rs`): content is stored, and one transaction writes outcome, receipt, usage, the job's move and
//!    its event; with the next claim in the same commit. What follows it is offered, or cancelled.
//!    Who started the runner is told afterwards, and after the next worker was started: a reader that does not read keeps
//!    no worker waiting, and none from being looked after.
//! 7. **Or not**: `ops/reconcile.rs` finds attempts whose owner is gone: alive under their keeper, released because they
//!    provably never began, settled by the keeper's record, or uncertain. `ops/evidence.rs` gathers what can be seen, and
//!    a resolution (`ops/decide.rs`) ends it. An owner that was only stopped and wakes after that is fenced off by the
//!    attempt's number: it settles nothing, ends its worker (`ops/dispatch.rs`), and what it saw is a finding.
//! 8. **Removed** (`ops/gc.rs`): when it is finished, old, and nothing unfinished refers to it, it leaves in one transaction
//!    with all that only it had. Its number is never given again; its receipts leave only into an exported segment.
//!
//! # Owner and keeper
//!
//! They speak lines of JSON over a socket pair (`host/wire.rs`): the keeper says hello with its identity, the owner `go`
//! with everything that one attempt needs or `stop`, the keeper `ended` with what was seen. End of file is the owner's
//! death: the keeper lets its worker finish within its limits and ends. What it did not get to say stands in the attempt's
//! directory: `mark`, `exit`, `worker.lock`. The other way round, an order to stop is a file there, `stop`, so that it
//! reaches a keeper without an owner. The keeper is this program started again (`/proc/self/exe`), so it is always
//! of the same build.
//!
//! # Invariants
//!
//! Each is marked `INVARIANT` where it is kept; `tests/it/laws/invariants.rs` sees that this list and the marks agree.
//!
//! * `never-unlock` (`host/lock.rs`): a lock ends when its last descriptor closes, never before.
//! * `sqlite-only` (`store/mod.rs`): nobody opens the database's files but SQLite.
//! * `named-or-held` (`store/objects.rs`): a file of content that is not named yet is never taken for a leftover.
//! * `nothing-waits-under-the-lock` (`store/mod.rs`): in a transaction nothing is waited for and no pipe is written.
//! * `one-write` (`store/jobs.rs`): one statement writes a job's state, by compare-and-set, from a move that only the
//!   domain makes.
//! * `frozen` (`store/schema.sql`): what a job was frozen as does not change.
//! * `fence-grows` (`store/schema.sql`): the number of a job's latest attempt only grows.
//! * `append-only` (`store/schema.sql`): receipts, events, resolutions, findings and operations never change; some are
//!   removed with their jobs.
//! * `no-go-without-commit` (`ops/dispatch.rs`): no worker is started before the commit that says so is known.
//! * `keeper-without-store` (`host/keep.rs`): the keeper opens no database.
//! * `no-signal-to-strangers` (`host/process.rs`): a process is identified before it gets a signal.
//! * `unknown-is-uncertain` (`domain/outcome.rs`): no time-out, signal or missing word makes an attempt a failure.
//! * `secrets-by-name` (`worker/env.rs`): a secret reaches a worker only by name, and is written nowhere by us.
//! * `commit-then-print` (`cli/output/mod.rs`): what changed is committed before any of the answer is written.
//!
//! Locks are taken in one order: owner's lock file, a share of `locks/objects.lock`, `locks/write.lock`, `BEGIN IMMEDIATE`.
//! The write lock gives fairness, the transaction correctness. Who wants `objects.lock` alone takes it last and waits for
//! nobody; so a batch may share it under the write lock, where nobody else can hold it alone.
//!
//! # The files of a store
//!
//! `ares.db` with `-wal` and `-shm`; `config.toml`; `locks/` with `write.lock`, `init.lock`, `objects.lock` and one `owner-…` for each owner;
//! `attempts/42.1/` with `stdin`, `stdout`, `stderr`, `mark`, `exit`, `stop` and `worker.lock` until its evidence is stored;
//! `objects/` for content of more than 16 KiB; `tmp/`. `man/ares-store.7` says what may be done with them.
//!
//! # The schema
//!
//! Every process reads the schema of its store before it does anything, so what stands in it is paid for by all: the text
//! of 88 tables, indexes and triggers was a fifth of what a one-shot command took. `store/schema.sql` is what every store
//! needs; what only some use stands in `store/sections/` and is laid in the transaction that first writes to it. Nothing
//! has to be moved for that, and a store without a section is one in which nothing of it has happened.
//!
//! # Where is …
//!
//! * … a command? Its name is its file: `bin/ares-NAME.rs`, `src/cli/NAME.rs`, `src/ops/NAME.rs`, `man/ares-NAME.1`; what
//!   its page teaches is in `src/cli/notes/NAME.txt`.
//! * … the list of commands? [`cli::COMMANDS`].
//! * … what a worker keeps of its own? `worker/codex/kept.rs`, `worker/claude/kept.rs`; read, never written.
//! * … an error text? [`error::Code`]; the words around it are where it is made.
//! * … what states there are and what may follow? `states!` in `domain/job.rs`, `domain/attempt.rs`, `domain/moves.rs`.
//! * … a secret replaced? `domain/redact.rs`, called by `host/keep/output.rs`.
//! * … what is printed, and how? [`cli::output`]; the fields of a command are in its own file.
//! * … the environment read? [`cli::context`]. What a worker gets of it? `worker/env.rs`. The clock? [`host::clock`].
//! * … a page of section 7 written? `tests/it/laws/pages/`.
//! * … a rule of the source itself? `tests/it/laws/`.

pub mod cli;
pub mod domain;
pub mod error;
pub mod fault;
pub mod host;
pub mod ops;
pub mod store;
pub mod worker;
