//! SHA-256 over canonical bytes: a domain word and length-prefixed fields, so that no two lists of fields collide.

use sha2::{Digest as _, Sha256};
use std::fmt;

/// A SHA-256 digest; printed and stored as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these fields in this domain.
    pub fn of(domain: &str, fields: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        let mut put = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        put(domain.as_bytes());
        fields.iter().for_each(|field| put(field));
        Self(hash.finalize().into())
    }

    /// The digest of plain content, the one that `sha256sum` prints.
    pub fn of_content(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }

    /// The digest that a running content hash came to.
    pub fn from_content(hash: Sha256) -> Self {
        Self(hash.finalize().into())
    }

    /// Reads 64 lower-case hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// The raw 32 bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digest with these raw bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_run_together() {
        assert_ne!(Digest::of("d", &[b"ab", b"c"]), Digest::of("d", &[b"a", b"bc"]));
        assert_ne!(Digest::of("d", &[b"a"]), Digest::of("e", &[b"a"]));
        let digest = Digest::of_content(b"abc");
        assert_eq!(digest.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        assert_eq!(Digest::parse(&digest.to_string().to_uppercase()), None);
    }
}
