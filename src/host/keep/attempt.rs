//! One attempt from its first mark to its record: the order of the notes that make it provable afterwards what ran.

use super::output::{self, Output};
use super::sweep::{self, Swept};
use super::watch::{self, Watched};
use crate::domain::outcome::{Cause, Seen};
use crate::domain::time::Time;
use crate::error::{Code, Error, Result};
use crate::fault;
use crate::host::clock;
use crate::host::lock::{self, Lock};
use crate::host::process::Stat;
use crate::host::record::{self, Marks};
use crate::host::spawn::{self, Child, Status, Worker, errno};
use crate::host::wire::{Lines, Start};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// How long a reader that only tests the lock may keep it from us.
const LOCK_TRIES: u32 = 500;

/// How much is kept of what was in the way, in characters.
const WHAT_MAX: usize = 400;

/// Why nothing ran, and for people: what was in the way.
struct Unable {
    errno: i32,
    what: String,
}

impl Unable {
    fn at(what: &str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self { errno: errno(&error), what: format!("cannot open its {what}") }
    }

    /// A directory that cannot be entered.
    fn enter(cwd: &Path, errno: i32) -> Self {
        Self { errno, what: format!("cannot enter directory '{}'", cwd.display()) }
    }

    /// A program that cannot be executed. The kernel says of a missing interpreter what it says of a missing program.
    fn execute(program: &Path, error: &io::Error) -> Self {
        let errno = errno(error);
        let there = errno == Errno::NOENT.raw_os_error() && program.exists();
        let why = if there { " (its interpreter may be missing)" } else { "" };
        Self { errno, what: format!("cannot execute '{}'{why}", program.display()) }
    }
}

/// A worker that runs.
struct Running {
    child: Child,
    output: Output,
    /// Held here as well, so that a worker that closes it does not look as if its keeper had gone.
    _lock: Lock,
}

/// Carries out one attempt. It fails only where the keeper must not go on: an attempt that was begun before keeps the
/// record that it has.
pub(super) fn carry_out(start: &Start, owner: &mut Lines, survivors: &mut Vec<i32>) -> Result<Seen> {
    let began = clock::now();
    sweep::forget_dead(survivors);
    fault::point("keeper.before_mark");
    let marks = match Marks::begin(&start.dir) {
        Ok(marks) => marks,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Error::new(Code::Internal, "the attempt was begun before"));
        }
        Err(error) => return Ok(finish(start, not_executed(began, Unable::at("mark")(error)))),
    };
    fault::point("keeper.after_mark");
    let seen = begun(start, marks, began, owner, survivors);
    fault::point("keeper.before_exit");
    let seen = finish(start, seen);
    fault::point("keeper.after_exit");
    Ok(seen)
}

/// Writes the record. A full disk must not keep the owner from hearing the same over the socket.
fn finish(start: &Start, seen: Seen) -> Seen {
    let _full = record::write_exit(&start.dir, &start.attempt, &seen);
    seen
}

fn not_executed(began: Time, unable: Unable) -> Seen {
    Seen {
        cause: Cause::NotExecuted,
        exit: None,
        errno: Some(unable.errno),
        // It goes into the room that was reserved for the end.
        what: Some(unable.what.chars().take(WHAT_MAX).collect()),
        started: began.0,
        ended: clock::now().0,
        ..Seen::exited(0)
    }
}

fn begun(start: &Start, mut marks: Marks, began: Time, owner: &mut Lines, survivors: &mut Vec<i32>) -> Seen {
    let mut running = match run(start) {
        Ok(running) => running,
        Err(unable) => {
            // The record of the end says the same; without either, "about to start" is what stays, and is true.
            let _full = marks.not_executed(unable.errno, &unable.what);
            return not_executed(began, unable);
        }
    };
    let pid = running.child.pid();
    // Without this line the mark says "about to start", which claims less than is known.
    let _full = marks.started(pid);
    fault::point("keeper.after_start");
    let watched = watch::until_end(start, pid, &mut running.output, owner);
    let ended = clock::now();
    let cpu_ms = Stat::of(pid).map_or(0, |stat| stat.cpu_ms);
    let swept = end(start, &mut running, &watched, survivors);
    running.output.finish();
    let mut seen = Seen {
        cause: watched.cause,
        exit: None,
        started: began.0,
        ended: ended.0,
        cpu_ms,
        leaked: swept.leaked,
        survivors: swept.survivors,
        limit: limit(start, watched.cause),
        cut: running.output.cut(u64::try_from(start.output_max).unwrap_or(0)),
        lost: running.output.lost(),
        ..Seen::exited(0)
    };
    match swept.status {
        Some(Status::Exit(code)) => seen.exit = Some(code),
        Some(Status::Signal(signal)) => seen.signal = Some(signal),
        Some(Status::NotExecuted(_)) | None => {}
    }
    survivors.extend(&seen.survivors);
    seen
}

/// The bound that made the worker be ended.
fn limit(start: &Start, cause: Cause) -> Option<i64> {
    match cause {
        Cause::TimeoutWhole => start.timeout_ms,
        Cause::TimeoutFirst => start.timeout_first_ms,
        Cause::TimeoutIdle => start.timeout_idle_ms,
        Cause::OutputLimit => Some(start.output_max),
        Cause::Exited | Cause::NotExecuted | Cause::Stopped | Cause::Finished => None,
    }
}

/// Everything that must be there before the worker is, then the worker.
fn run(start: &Start) -> std::result::Result<Running, Unable> {
    let lock = take_lock(&start.dir.join("worker.lock"))?;
    let stdin = start.stdin.as_deref().map(open_input).transpose().map_err(Unable::at("standard input"))?;
    let (output, [stdout, stderr]) = output::open(start).map_err(|(name, error)| Unable::at(name)(error))?;
    // Entering the directory happens after the fork, where its failure could not be told from one of the program.
    let cwd = Path::new(&start.cwd);
    match std::fs::metadata(cwd) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return Err(Unable::enter(cwd, Errno::NOTDIR.raw_os_error())),
        Err(error) => return Err(Unable::enter(cwd, errno(&error))),
    }
    let program = program(start);
    let worker = Worker {
        program: program.clone(),
        args: &start.args,
        env: &start.env,
        dir: cwd,
        stdin,
        stdout,
        stderr,
        lock: lock.as_fd(),
    };
    let child = spawn::worker(worker).map_err(|error| Unable::execute(Path::new(&program), &error))?;
    Ok(Running { child, output, _lock: lock })
}

/// A program given as a relative path is meant from the worker's directory, as the kernel would take it.
fn program(start: &Start) -> OsString {
    if start.program.contains('/') {
        Path::new(&start.cwd).join(&start.program).into_os_string()
    } else {
        OsString::from(&start.program)
    }
}

fn take_lock(path: &Path) -> std::result::Result<Lock, Unable> {
    for _ in 0..LOCK_TRIES {
        match lock::try_lock(path) {
            Ok(Some(lock)) => return Ok(lock),
            // Someone looks whether it is held; that takes microseconds.
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Err(_) => return Err(Unable { errno: Errno::IO.raw_os_error(), what: "cannot take its lock".to_owned() }),
        }
    }
    Err(Unable { errno: Errno::AGAIN.raw_os_error(), what: "cannot take its lock".to_owned() })
}

/// Opens a regular file as standard input; anything else could keep the keeper waiting.
fn open_input(path: &Path) -> io::Result<File> {
    if !std::fs::symlink_metadata(path)?.is_file() {
        return Err(Errno::INVAL.into());
    }
    let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Reaps the worker and ends what it left.
fn end(start: &Start, running: &mut Running, watched: &Watched, known: &[i32]) -> Swept {
    let grace = if watched.hard { Duration::ZERO } else { watch::span(start.grace_ms) };
    if watched.given_up {
        return Swept { status: None, leaked: Vec::new(), survivors: vec![running.child.pid()] };
    }
    sweep::after(&running.child, &mut running.output, grace, known)
}
