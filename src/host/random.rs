//! Random bytes from the kernel.

use crate::error::{Code, OrCode as _, Result};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// So many random bytes.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).or_code(Code::Internal, || "cannot get random bytes".to_owned()),
        }
    }
    Ok(bytes)
}
