//! Starts processes, through duct and nothing else: the keeper, the workers, the commands that a wrapper runs, and
//! siblings of this process. It decides nothing about them. duct's errors and its `Debug` output hold arguments and
//! environment, so neither is ever printed, and every expression is unchecked.

use super::setup;
use crate::error::{Code, Error, OrCode, Result};
use rustix::fs::Mode;
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal, setsid};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

/// The first argument that makes any of the commands the keeper.
pub const KEEPER_ARGUMENT: &str = "__keeper";

/// This very program, also after it was replaced or removed.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// What of our own environment the keeper gets; the workers get none of it.
#[cfg(debug_assertions)]
const KEEPER_ENVIRONMENT: &[&str] = &["PATH", "ARES_LOG", "ARES_FAULT"];
#[cfg(not(debug_assertions))]
const KEEPER_ENVIRONMENT: &[&str] = &["PATH", "ARES_LOG"];

/// The variable that tells a sibling which process started it. The workers get it from nobody.
pub const SIBLING_OF: &str = "ARES_SIBLING_OF";

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// With this exit status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// It could not be executed, for this reason.
    NotExecuted(i32),
}

impl Status {
    fn of(output: &Output) -> Self {
        match (output.status.code(), output.status.signal()) {
            (Some(code), _) => Self::Exit(code),
            (None, signal) => Self::Signal(signal.unwrap_or(0)),
        }
    }

    /// The exit status by which a wrapper passes this on, as `env` and `timeout` do.
    pub fn passed_on(self) -> u8 {
        let number = match self {
            Self::Exit(code) => code,
            Self::Signal(signal) => 128 + signal,
            Self::NotExecuted(errno) if errno == Errno::NOENT.raw_os_error() => 127,
            Self::NotExecuted(_) => 126,
        };
        u8::try_from(number).unwrap_or(u8::MAX)
    }
}

/// A process that was started here.
pub struct Child {
    handle: duct::Handle,
    pid: i32,
}

impl Child {
    fn start(expression: &duct::Expression) -> io::Result<Self> {
        let handle = expression.unchecked().start()?;
        let pid = handle.pids().first().and_then(|pid| i32::try_from(*pid).ok());
        Ok(Self { pid: pid.ok_or(io::ErrorKind::NotFound)?, handle })
    }

    /// Its number, which is its own until it was waited for.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits for its end and reaps it.
    pub fn wait(&self) -> Result<Status> {
        self.handle.wait().map(Status::of).or_code(Code::Internal, || format!("cannot wait for process {}", self.pid))
    }

    /// Waits for its end at most this long; `None` when it still runs.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Option<Status>> {
        // duct adds it to the present moment, which must not overflow.
        let timeout = timeout.min(Duration::from_secs(86_400));
        let output = self.handle.wait_timeout(timeout);
        output
            .map(|output| output.map(Status::of))
            .or_code(Code::Internal, || format!("cannot wait for process {}", self.pid))
    }
}

/// The error number of a failed start; a string with a NUL in it never reaches the kernel and has none.
pub(super) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())
}

/// Starts this executable as a keeper that talks over the given socket.
#[expect(clippy::disallowed_methods, reason = "three variables are handed on to a process of ours, none is read")]
pub(super) fn keeper(executable: &Path, socket: OwnedFd) -> io::Result<Child> {
    let inherited = KEEPER_ENVIRONMENT.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let umask = format!("{:o}", setup::inherited_umask().bits());
    let expression = duct::cmd(executable, [KEEPER_ARGUMENT, &umask])
        .full_env(inherited)
        .stdin_file(socket)
        .stdout_null()
        .stderr_null()
        .before_spawn(|command| {
            command.arg0("ares-keeper");
            Ok(())
        });
    Child::start(&expression)
}

/// What a worker is started with.
pub(super) struct Worker<'a> {
    pub(super) program: OsString,
    pub(super) args: &'a [String],
    pub(super) env: &'a [(String, String)],
    pub(super) dir: &'a Path,
    pub(super) stdin: Option<File>,
    pub(super) stdout: File,
    pub(super) stderr: File,
    /// Held by the worker and everything below it that does not close it.
    pub(super) lock: BorrowedFd<'a>,
}

/// Starts a worker in a session of its own, which ends with the thread that calls this.
pub(super) fn worker(worker: Worker<'_>) -> io::Result<Child> {
    let lock = worker.lock.as_raw_fd();
    let keeper = getpid();
    let expression = duct::cmd(worker.program, worker.args)
        .full_env(worker.env.iter().map(|(name, value)| (name, value)))
        .dir(worker.dir)
        .stdout_file(worker.stdout)
        .stderr_file(worker.stderr)
        .before_spawn(move |command| {
            enter_session(command, lock, keeper);
            Ok(())
        });
    let expression = match worker.stdin {
        Some(file) => expression.stdin_file(file),
        None => expression.stdin_null(),
    };
    Child::start(&expression)
}

#[expect(unsafe_code, reason = "the standard library runs code between fork and exec only on our word")]
fn enter_session(command: &mut Command, lock: RawFd, keeper: Pid) {
    let umask = setup::inherited_umask();
    let enter = move || {
        setsid()?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The keeper may have died before the call above; then nobody would send the signal.
        if getppid() != Some(keeper) {
            return Err(Errno::SRCH.into());
        }
        // SAFETY: the lock outlives the spawn that runs this; see the caller.
        fcntl_setfd(unsafe { BorrowedFd::borrow_raw(lock) }, FdFlags::empty())?;
        setup::default_ending();
        rustix::process::umask(umask);
        Ok(())
    };
    // SAFETY: `enter` makes system calls only, allocates nothing and takes no lock.
    unsafe { command.pre_exec(enter) };
}

#[expect(unsafe_code, reason = "the standard library runs code between fork and exec only on our word")]
fn restore_umask(command: &mut Command) {
    let umask: Mode = setup::inherited_umask();
    let restore = move || {
        rustix::process::umask(umask);
        Ok(())
    };
    // SAFETY: one system call, which cannot fail.
    unsafe { command.pre_exec(restore) };
}

/// Starts a command with the caller's own streams, directory, umask and environment, and these variables besides.
/// The error is that of the kernel; [`run_inherited`] makes a status of it.
pub fn start_inherited(program: &OsStr, args: &[OsString], env: &[(&str, &str)]) -> io::Result<Child> {
    let mut expression = duct::cmd(program, args);
    for (name, value) in env {
        expression = expression.env(name, value);
    }
    Child::start(&expression.before_spawn(|command| {
        restore_umask(command);
        Ok(())
    }))
}

/// Runs a command with the caller's own streams, directory, umask and environment, and these variables besides.
pub fn run_inherited(program: &OsStr, args: &[OsString], env: &[(&str, &str)]) -> Result<Status> {
    match start_inherited(program, args, env) {
        Ok(child) => child.wait(),
        Err(error) => Ok(Status::NotExecuted(errno(&error))),
    }
}

/// Starts this program once more with these arguments and the caller's own streams.
pub fn sibling(args: &[OsString]) -> Result<Child> {
    let own_name = std::env::args_os().next().unwrap_or_default();
    let expression = duct::cmd(Path::new(OWN_PROGRAM), args).env(SIBLING_OF, std::process::id().to_string());
    let expression = expression.before_spawn(move |command| {
        command.arg0(&own_name);
        restore_umask(command);
        Ok(())
    });
    // The words of the error may hold arguments; its number does not.
    Child::start(&expression).map_err(|error| {
        let reason = io::Error::from_raw_os_error(errno(&error));
        Error::new(Code::StoreUnusable.fitting(&reason), format!("cannot start another process: {reason}"))
    })
}

/// Starts this program so many times with the same arguments, and waits for all of them.
pub fn siblings(count: usize, args: &[OsString]) -> Result<Vec<Status>> {
    let started: Vec<Result<Child>> = (0..count).map(|_| sibling(args)).collect();
    // Those that did start are waited for before the failure of another is told.
    let ended: Vec<Result<Status>> = started.into_iter().map(|child| child?.wait()).collect();
    ended.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Status {
        run_inherited(OsStr::new("sh"), &["-c".into(), script.into()], &[("ARES_TEST_ADDED", "7")]).unwrap()
    }

    #[test]
    fn a_wrapped_command_passes_its_status_on() {
        assert_eq!(shell("exit $ARES_TEST_ADDED"), Status::Exit(7));
        assert_eq!(shell("kill -9 $$").passed_on(), 137);
        assert_eq!(run_inherited(OsStr::new("/no/such"), &[], &[]).unwrap().passed_on(), 127);
        assert_eq!(run_inherited(OsStr::new("/etc/passwd"), &[], &[]).unwrap().passed_on(), 126);
    }

    #[test]
    fn waiting_with_a_limit_gives_up() {
        let child = start_inherited(OsStr::new("sleep"), &["0.2".into()], &[]).unwrap();
        assert_eq!(child.wait_timeout(Duration::from_millis(10)).unwrap(), None);
        assert_eq!(child.wait_timeout(Duration::MAX).unwrap(), Some(Status::Exit(0)));
    }
}
