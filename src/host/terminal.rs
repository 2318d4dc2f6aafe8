//! What the terminal is like.

use std::os::fd::AsFd;

/// The columns of the terminal behind this descriptor; `None` where it does not say.
pub fn width(fd: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(fd).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}
