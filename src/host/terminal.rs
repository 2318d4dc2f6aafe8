//! What the terminal is like.

use std::fs::File;
use std::os::fd::AsFd;

/// The columns of the terminal behind this descriptor; `None` where it does not say.
pub fn width(fd: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(fd).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// Whether this process is in front of its terminal, which then sends what is typed to the whole group.
pub fn is_ours() -> bool {
    let group = File::open("/dev/tty").ok().and_then(|tty| rustix::termios::tcgetpgrp(tty).ok());
    group.is_some_and(|group| group == rustix::process::getpgrp())
}
