//! What people type: `42` is a job, `42.1` an attempt of it, `42.1-k3x9q2mw` the handle that its claim printed.

use super::digest::Digest;
use crate::error::{Code, Error, Result};
use std::fmt;
use std::str::FromStr;

/// A job's number; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct JobId(pub i64);

/// The name of an attempt: the job and N, the fence that grows at every claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId {
    /// The job.
    pub job: JobId,
    /// Its N-th claim, from 1.
    pub n: i64,
}

/// What a claim prints: the name with the nonce that consuming and settling need. Only the nonce's digest is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The attempt.
    pub attempt: AttemptId,
    /// The secret part.
    pub nonce: String,
}

/// The letters of a nonce; no two that look alike.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl Handle {
    /// A handle whose nonce is made of these random bytes.
    pub fn new(attempt: AttemptId, random: [u8; 10]) -> Self {
        let nonce = random.iter().map(|byte| char::from(LETTERS[usize::from(byte & 31)])).collect();
        Self { attempt, nonce }
    }

    /// What the store keeps of the nonce.
    pub fn nonce_digest(&self) -> Digest {
        Digest::of("ares.nonce", &[self.attempt.to_string().as_bytes(), self.nonce.as_bytes()])
    }
}

fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    if digits { text.parse().ok() } else { None }
}

impl FromStr for JobId {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::new(Code::Usage, format!("'{text}' is not a job")).hint("a job is a number such as 42");
        number(text).map(Self).ok_or_else(bad)
    }
}

impl FromStr for AttemptId {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once('.').and_then(|(job, n)| Some((number(job)?, number(n)?)));
        let bad =
            || Error::new(Code::Usage, format!("'{text}' is not an attempt")).hint("an attempt is JOB.N such as 42.1");
        parts.map(|(job, n)| Self { job: JobId(job), n }).ok_or_else(bad)
    }
}

impl FromStr for Handle {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::new(Code::Usage, format!("'{text}' is not a handle"))
                .hint("a handle is what ares-claim printed, such as 42.1-k3x9q2mw7a")
        };
        let (name, nonce) = text.split_once('-').ok_or_else(bad)?;
        let clean = !nonce.is_empty() && nonce.len() <= 32 && nonce.bytes().all(|b| LETTERS.contains(&b));
        if !clean {
            return Err(bad());
        }
        Ok(Self { attempt: name.parse().map_err(|_| bad())?, nonce: nonce.to_owned() })
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.job, self.n)
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.attempt, self.nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_print_and_parse_back() {
        let attempt = AttemptId { job: JobId(42), n: 1 };
        let handle = Handle::new(attempt, [0, 1, 2, 3, 4, 5, 6, 7, 8, 31]);
        assert_eq!(handle.to_string(), "42.1-012345678z");
        assert_eq!(handle.to_string().parse::<Handle>().unwrap(), handle);
        assert_eq!("42.1".parse::<AttemptId>().unwrap(), attempt);
        for bad in ["", "042", "-1", "4 2", "99999999999999999999", "1.0", "x"] {
            assert!(bad.parse::<JobId>().is_err(), "{bad}");
        }
        for bad in ["42", "42.1", "42.1-", "42.1-UPPER", "42.x-abc", "42.1-a/b"] {
            assert!(bad.parse::<Handle>().is_err(), "{bad}");
        }
    }
}
