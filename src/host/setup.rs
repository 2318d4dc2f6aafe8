//! What this process makes of what it inherited: umask, signal dispositions, signal mask, descriptors. It knows no other
//! process.

use crate::error::{Code, Error, Result};
use rustix::fs::Mode;
use std::sync::atomic::{AtomicU32, Ordering};

/// The umask of whoever started this process, for those that it starts in turn.
static INHERITED_UMASK: AtomicU32 = AtomicU32::new(0o022);

/// What a terminal or an operator sends to a whole group to end it.
const ENDING: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Called first in every main: what is made is private, the end of a child can be waited for whatever the caller
/// ignored or blocked, and the program refuses to run set-uid or set-gid.
pub fn prepare() -> Result<()> {
    let same_user = rustix::process::getuid() == rustix::process::geteuid();
    if !same_user || rustix::process::getgid() != rustix::process::getegid() {
        return Err(Error::new(Code::StoreForeign, "ares does not run set-uid or set-gid")
            .hint("remove the set-uid and set-gid bits of the program"));
    }
    INHERITED_UMASK.store(rustix::process::umask(Mode::from(0o077)).bits(), Ordering::Relaxed);
    dispositions(&[libc::SIGCHLD], libc::SIG_DFL);
    unblock();
    Ok(())
}

/// Remembers another umask than the one that [`prepare`] found: the keeper is told its owner's.
pub(super) fn inherit_umask(mask: Mode) {
    INHERITED_UMASK.store(mask.bits(), Ordering::Relaxed);
}

/// The umask that this process was started with, once [`prepare`] has run.
pub(super) fn inherited_umask() -> Mode {
    Mode::from(INHERITED_UMASK.load(Ordering::Relaxed))
}

/// Lets the signals that end a group pass by.
pub(super) fn ignore_ending() {
    dispositions(&ENDING, libc::SIG_IGN);
}

/// Undoes [`ignore_ending`]; may be called between fork and exec.
pub(super) fn default_ending() {
    dispositions(&ENDING, libc::SIG_DFL);
}

/// Forgets what the caller ignored, so that the workers do not inherit it. SIGPIPE stays ignored here; the standard
/// library resets it for every child.
pub(super) fn default_all() {
    let fixed = [libc::SIGKILL, libc::SIGSTOP, libc::SIGPIPE];
    let signals: Vec<i32> = (1..=libc::SIGSYS).filter(|signal| !fixed.contains(signal)).collect();
    dispositions(&signals, libc::SIG_DFL);
}

#[expect(unsafe_code, reason = "rustix leaves signal dispositions to the C library")]
fn dispositions(signals: &[i32], disposition: libc::sighandler_t) {
    for signal in signals {
        // SAFETY: SIG_DFL and SIG_IGN install no code of ours, and signal(2) is async-signal-safe. It cannot fail for
        // these signals.
        unsafe { libc::signal(*signal, disposition) };
    }
}

#[expect(unsafe_code, reason = "rustix leaves the signal mask to the C library")]
fn unblock() {
    // SAFETY: the set is initialised by sigemptyset before it is used; a null pointer asks for no old set.
    unsafe {
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Closes every descriptor but the standard three. Only for the very beginning of a main that opened none itself: what
/// is closed was handed down by accident, such as a script's lock, which must not live on in the keeper.
#[expect(unsafe_code, reason = "closing descriptors that nothing here owns")]
pub(super) fn close_inherited() {
    // SAFETY: no descriptor above 2 is owned by anything in this process yet. Where the call is unknown nothing is
    // closed, and descriptors live longer than they should.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
}

/// The number of this process's parent: another one once the parent has ended, as this process is its child until then.
pub fn parent() -> i32 {
    rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get())
}

/// The number of the user that we act as.
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_prepare_what_is_made_is_private() {
        prepare().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "").unwrap();
        assert_eq!(crate::host::dir::owner_and_mode(&path).unwrap().1, 0o600);
    }
}
