//! The keeper's side: the small companion process of an owner. It is the parent of the owner's workers and outlives the
//! owner; it carries out one attempt after another, and ends when the owner is gone and nothing runs. It has one
//! thread, opens no database and knows no job.
//!
//! INVARIANT `keeper-without-store`: the keeper opens no database, so that nothing of it can hold up another process or
//! be held up, and a worker never inherits a descriptor of the store.
//!
//! It must be started from a main that has opened nothing yet.

mod attempt;
mod output;
mod sweep;
mod watch;

use super::process::Identity;
use super::setup;
use super::wire::{Answer, Lines, Order};
use crate::error::{Code, OrCode, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, Rlimit, getpid, set_child_subreaper, setrlimit, setsid};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// The whole life of a keeper; its standard input is the socket to its owner.
pub fn keeper_main() -> ExitCode {
    match prepare().and_then(serve) {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody reads what a keeper might print; the owner sees its end.
        Err(error) => ExitCode::from(error.code.class().exit()),
    }
}

fn prepare() -> Result<Lines> {
    let what = || "cannot become a keeper".to_owned();
    setup::close_inherited();
    setup::prepare()?;
    let umask = std::env::args_os().nth(2).and_then(|text| u32::from_str_radix(text.to_str()?, 8).ok());
    if let Some(umask) = umask {
        setup::inherit_umask(Mode::from(umask & 0o777));
    }
    setup::default_all();
    // The owner decides what an interrupt means; a keeper that died of one would take its workers along.
    setup::ignore_ending();
    match setsid() {
        // A leader of its own group already: then no terminal's signals reach it either way.
        Ok(_) | Err(Errno::PERM) => {}
        Err(error) => return Err(error).or_code(Code::Internal, what),
    }
    set_child_subreaper(Some(getpid())).or_code(Code::Internal, what)?;
    // A core may hold a worker's secrets.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).or_code(Code::Internal, what)?;
    rustix::thread::set_name(c"ares-keeper").or_code(Code::Internal, what)?;
    // It may live for days and must not keep a file system from being unmounted.
    rustix::process::chdir("/").or_code(Code::Internal, what)?;
    let socket = fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).or_code(Code::Internal, what)?;
    Ok(Lines::new(UnixStream::from(socket)))
}

fn serve(mut owner: Lines) -> Result<()> {
    owner.send(&Answer::Hello(Identity::own()?))?;
    let mut survivors = Vec::new();
    loop {
        owner.fill()?;
        match owner.next()? {
            Some(Order::Go(start)) => {
                let seen = attempt::carry_out(&start, &mut owner, &mut survivors)?;
                // An owner that is gone reads the attempt's directory, or another does.
                let _gone = owner.send(&Answer::Ended(seen));
            }
            // It ended before the stop arrived.
            Some(Order::Stop { .. }) => {}
            None if owner.closed() => return Ok(()),
            None => match poll(&mut [PollFd::new(&owner, PollFlags::IN)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).or_code(Code::Internal, || "cannot wait for the owner".to_owned()),
            },
        }
    }
}
