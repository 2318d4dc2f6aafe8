//! What owner and keeper say to each other: lines of JSON over a socket pair, of bounded length. It knows neither what
//! a line asks for nor who carries it out. The values of a worker's environment pass through here and nowhere else, so
//! no error repeats what was read.

use super::process::Identity;
use crate::domain::outcome::{Cause, Seen};
use crate::error::{Code, Error, OrCode, Result};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// The longest line: four times what the kernel takes as arguments and environment of one program.
const LINE_MAX: usize = 8 << 20;

/// Everything the keeper needs to carry out one attempt.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The attempt's name, such as `42.1`.
    pub attempt: String,
    /// The store's directory; it is only a name to the keeper.
    pub store: String,
    /// The attempt's own directory, absolute.
    pub dir: PathBuf,
    /// The program, absolute.
    pub program: String,
    /// Its arguments, without the program itself.
    pub args: Vec<String>,
    /// Its complete environment.
    pub env: Vec<(String, String)>,
    /// The directory it runs in, absolute.
    pub cwd: String,
    /// The file that it reads as standard input; else `/dev/null`.
    pub stdin: Option<PathBuf>,
    /// How long it may run.
    pub timeout_ms: Option<i64>,
    /// How long it may take to print something.
    pub timeout_first_ms: Option<i64>,
    /// How long it may print nothing; before the first output only where no time for that is set.
    pub timeout_idle_ms: Option<i64>,
    /// How long it may take to end after it was asked to.
    pub grace_ms: i64,
    /// How many bytes it may print to each of its two streams.
    pub output_max: i64,
    /// The names of those variables of its environment whose values are replaced in what it prints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<String>,
    /// Whether what it prints goes nowhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discard: bool,
}

impl Start {
    /// Whether it can be handed over; what cannot is more than the kernel takes.
    pub fn fits(&self) -> bool {
        serde_json::to_vec(self).is_ok_and(|line| line.len() < LINE_MAX - 16)
    }
}

impl fmt::Debug for Start {
    /// The name only: the rest may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Start").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

/// What the owner asks for.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    Go(Box<Start>),
    Stop { cause: Cause, hard: bool },
}

/// What the keeper answers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Hello(Identity),
    Ended(Seen),
}

/// One end of the socket pair.
pub(super) struct Lines {
    stream: UnixStream,
    buffer: Vec<u8>,
    /// How much of the buffer holds no end of a line.
    searched: usize,
    closed: bool,
}

impl Lines {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self { stream, buffer: Vec::new(), searched: 0, closed: false }
    }

    /// Whether the other end is closed; complete lines that came before may still be there.
    pub(super) fn closed(&self) -> bool {
        self.closed
    }

    /// Takes in what has arrived, without waiting. After a failure the other end counts as closed: what comes after it
    /// could not be told apart.
    pub(super) fn fill(&mut self) -> Result<()> {
        let mut chunk = [0_u8; 16 * 1024];
        while !self.closed {
            match recv(&self.stream, &mut chunk, RecvFlags::DONTWAIT) {
                Ok((0, _)) | Err(Errno::CONNRESET) => self.closed = true,
                Ok((count, _)) => self.buffer.extend_from_slice(&chunk[..count]),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.closed = true;
                    return Err(error).or_code(Code::Internal, || "owner and keeper".to_owned());
                }
            }
            if self.buffer.len() > LINE_MAX {
                self.closed = true;
                return Err(Error::new(Code::InputTooLarge, "owner and keeper: a line is too long"));
            }
        }
        Ok(())
    }

    /// The next complete line, if there is one.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return Ok(None);
        };
        let end = self.searched + end;
        let parsed = serde_json::from_slice(&self.buffer[..end]);
        self.buffer.drain(..=end);
        self.searched = 0;
        if self.buffer.is_empty() {
            // A long line must not stay in memory, nor for longer than needed.
            self.buffer = Vec::new();
        }
        // The cause would quote the line.
        parsed.map(Some).map_err(|_| {
            self.closed = true;
            Error::new(Code::Internal, "owner and keeper: a line is not understood")
        })
    }

    /// Ends the conversation for both.
    pub(super) fn close(&mut self) {
        // One that is closed already stays so.
        let _closed = self.stream.shutdown(std::net::Shutdown::Both);
        self.closed = true;
    }

    /// Sends one line whole. When this fails, the other end has not got a complete line.
    pub(super) fn send<T: Serialize>(&mut self, message: &T) -> Result<()> {
        let mut line = serde_json::to_vec(message)
            .map_err(|_| Error::new(Code::BadInput, "a path or an argument is not UTF-8 and cannot be handed over"))?;
        line.push(b'\n');
        if line.len() > LINE_MAX {
            return Err(Error::new(Code::InputTooLarge, "arguments and environment are too long"));
        }
        self.stream.write_all(&line).or_code(Code::NeverStarted, || "the keeper cannot be reached".to_owned())
    }
}

impl AsFd for Lines {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_whole_in_order_and_before_the_end() {
        let (left, right) = UnixStream::pair().unwrap();
        let (mut left, mut right) = (Lines::new(left), Lines::new(right));
        assert!(right.next::<Answer>().unwrap().is_none());
        left.stream.write_all(b"{\"ended\":{\"cause\":\"exi").unwrap();
        right.fill().unwrap();
        assert!(right.next::<Answer>().unwrap().is_none());
        left.stream.write_all(b"ted\",\"exit\":3,\"started\":1,\"ended\":2}}\n").unwrap();
        left.send(&Answer::Ended(Seen::exited(4))).unwrap();
        drop(left);
        right.fill().unwrap();
        assert!(matches!(right.next::<Answer>(), Ok(Some(Answer::Ended(seen))) if seen.exit == Some(3)));
        assert!(matches!(right.next::<Answer>(), Ok(Some(Answer::Ended(seen))) if seen.exit == Some(4)));
        assert!(right.next::<Answer>().unwrap().is_none() && right.closed());
    }

    #[test]
    fn what_is_not_understood_is_not_repeated() {
        let (mut left, right) = UnixStream::pair().unwrap();
        let mut right = Lines::new(right);
        left.write_all(b"{\"go\":\"SECRET\"}\n").unwrap();
        right.fill().unwrap();
        let error = right.next::<Order>().err().unwrap();
        assert!(!error.to_string().contains("SECRET"), "{error}");
        assert!(right.closed());
        let (mut left, right) = UnixStream::pair().unwrap();
        let mut right = Lines::new(right);
        let flood = std::thread::spawn(move || left.write_all(&vec![b'x'; LINE_MAX + 1]));
        while right.fill().is_ok() {}
        assert!(right.closed(), "a line without end is not kept");
        drop(right);
        let _broken_pipe = flood.join();
    }
}
