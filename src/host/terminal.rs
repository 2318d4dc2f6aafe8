//! What stands behind standard output: a terminal, or a reader that may go away.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::os::fd::AsFd;

/// The columns of the terminal behind this descriptor; `None` where it does not say.
pub fn width(fd: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(fd).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// Whether this stream takes a line now, without making its writer wait. A stream that cannot be asked is taken to.
pub fn takes(fd: impl AsFd) -> bool {
    let mut asked = [PollFd::new(&fd, PollFlags::OUT)];
    poll(&mut asked, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
}

/// Whether nobody can read what is written here any more; told without writing.
pub fn reader_gone(fd: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Whether this process is in front of its terminal, which then sends what is typed to the whole group.
pub fn is_ours() -> bool {
    let group = File::open("/dev/tty").ok().and_then(|tty| rustix::termios::tcgetpgrp(tty).ok());
    group.is_some_and(|group| group == rustix::process::getpgrp())
}
