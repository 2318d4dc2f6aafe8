//! Random bytes from the kernel.

use crate::error::{Code, OrCode as _, Result};
use rustix::rand::{GetRandomFlags, getrandom};

/// So many random bytes.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())
            .or_code(Code::Internal, || "cannot get random bytes".to_owned())?;
    }
    Ok(bytes)
}
