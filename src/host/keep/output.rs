//! Where what a worker prints goes. By itself a worker writes to the attempt's files, and the keeper does nothing. Where
//! values are to be replaced, it writes to pipes that the keeper reads: what is stored is filtered before it reaches a
//! file, so that neither a look at a running attempt nor a crash finds more. The keeper never waits for a pipe.

use crate::domain::redact::Redactor;
use crate::host::clock;
use crate::host::dir;
use crate::host::wire::Start;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How much is read at once, and how often at most before something else is looked after.
const BLOCK: usize = 64 << 10;
const ROUNDS: usize = 8;

/// The most that a pipe can hold unless the administrator raised it: what is read after the worker's end.
const PIPE_MAX: usize = 1 << 20;

const NAMES: [&str; 2] = ["stdout", "stderr"];

/// The two streams of a worker, standard output first.
pub(super) enum Output {
    /// It writes to these files itself.
    Files([File; 2]),
    /// It writes to pipes, from which this reads.
    Pipes(Box<[Stream; 2]>),
    /// Nobody is to know what it prints.
    Nowhere,
}

/// One stream that comes through a pipe.
pub(super) struct Stream {
    /// Open until the other end is closed by all who have it, or nothing more can be stored.
    pipe: Option<PipeReader>,
    /// Where it is stored, if anywhere.
    file: Option<(File, Redactor)>,
    /// How many bytes came, and how many are stored.
    heard: u64,
    stored: u64,
    /// The bound of what is stored; a little more shows that it was passed.
    max: u64,
    /// Whether something could not be stored.
    lost: bool,
}

/// What could not be opened.
pub(super) type Unopened = (&'static str, io::Error);

/// Opens both streams and gives the worker's ends of them.
pub(super) fn open(start: &Start) -> Result<(Output, [File; 2]), Unopened> {
    let file = |name: &'static str| dir::create_new(&start.dir.join(name)).map_err(|error| (name, error));
    if start.discard {
        // Who limits silence needs to be heard, who does not costs nothing.
        if start.timeout_first_ms.is_some() || start.timeout_idle_ms.is_some() {
            return piped([None, None], start);
        }
        let null = |name| OpenOptions::new().write(true).open("/dev/null").map_err(|error| (name, error));
        return Ok((Output::Nowhere, [null(NAMES[0])?, null(NAMES[1])?]));
    }
    let files = [file(NAMES[0])?, file(NAMES[1])?];
    let named = start.env.iter().filter(|(name, _)| start.redact.contains(name));
    if let Some(filter) = Redactor::new(named.map(|(name, value)| (name.as_str(), value.as_str()))) {
        let [out, err] = files;
        return piped([Some((out, filter.another())), Some((err, filter))], start);
    }
    let again = |at: usize| files[at].try_clone().map_err(|error| (NAMES[at], error));
    let theirs = [again(0)?, again(1)?];
    Ok((Output::Files(files), theirs))
}

fn piped(files: [Option<(File, Redactor)>; 2], start: &Start) -> Result<(Output, [File; 2]), Unopened> {
    let max = u64::try_from(start.output_max).unwrap_or(0);
    let [out, err] = files;
    let (out, out_end) = Stream::open(out, max).map_err(|error| (NAMES[0], error))?;
    let (err, err_end) = Stream::open(err, max).map_err(|error| (NAMES[1], error))?;
    Ok((Output::Pipes(Box::new([out, err])), [out_end, err_end]))
}

impl Stream {
    fn open(file: Option<(File, Redactor)>, max: u64) -> io::Result<(Self, File)> {
        let (pipe, theirs) = io::pipe()?;
        // Of the two ends only ours: the worker's is to wait, as it would for a file.
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        let stream = Self { pipe: Some(pipe), file, heard: 0, stored: 0, max, lost: false };
        Ok((stream, File::from(OwnedFd::from(theirs))))
    }

    /// Takes what is there, but not for ever; whether there was anything.
    fn take(&mut self, block: &mut [u8], rounds: usize) -> bool {
        let mut any = false;
        for _ in 0..rounds {
            let Some(pipe) = &mut self.pipe else { break };
            match pipe.read(block) {
                Ok(0) => self.pipe = None,
                Ok(count) => {
                    any = true;
                    self.heard += count as u64;
                    self.store(Some(&block[..count]));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.pipe = None,
            }
        }
        any
    }

    /// Stores these bytes, or at the end what was held back. What comes after the bound is not stored.
    fn store(&mut self, bytes: Option<&[u8]>) {
        let Some((file, filter)) = &mut self.file else { return };
        if self.stored > self.max || self.lost {
            return;
        }
        let mut ready = Vec::new();
        match bytes {
            Some(bytes) => filter.feed(bytes, &mut ready),
            None => filter.finish(&mut ready),
        }
        match file.write_all(&ready) {
            Ok(()) => self.stored += ready.len() as u64,
            // As with a full disk of its own the worker is to hear of it: its next write fails.
            Err(_) => (self.lost, self.pipe) = (true, None),
        }
    }
}

impl Output {
    fn streams(&mut self) -> &mut [Stream] {
        match self {
            Self::Pipes(streams) => &mut **streams,
            Self::Files(_) | Self::Nowhere => &mut [],
        }
    }

    /// What becomes readable when the worker prints something that is to be taken.
    pub(super) fn pipes(&self) -> impl Iterator<Item = &PipeReader> {
        let streams = if let Self::Pipes(streams) = self { &streams[..] } else { &[] };
        streams.iter().filter_map(|stream| stream.pipe.as_ref())
    }

    /// Takes what the worker printed; whether there was anything to take.
    pub(super) fn take(&mut self) -> bool {
        if self.pipes().next().is_none() {
            return false;
        }
        let mut block = vec![0; BLOCK];
        let mut any = false;
        for stream in self.streams() {
            any |= stream.take(&mut block, ROUNDS);
        }
        any
    }

    /// How much is stored of each stream.
    pub(super) fn stored(&self) -> [u64; 2] {
        match self {
            Self::Files(files) => files.each_ref().map(|file| file.metadata().map_or(0, |meta| meta.len())),
            Self::Pipes(streams) => streams.each_ref().map(|stream| stream.stored),
            Self::Nowhere => [0, 0],
        }
    }

    /// A number that grows with everything that is printed, stored or not; `None` where it is known from what is stored.
    pub(super) fn heard(&self) -> Option<u64> {
        if let Self::Pipes(streams) = self { Some(streams.iter().map(|stream| stream.heard).sum()) } else { None }
    }

    /// Lets this much time pass. What writes to a pipe is not kept waiting meanwhile.
    pub(super) fn pause(&mut self, span: Duration) {
        let began = clock::mark();
        loop {
            let left = began.left(span);
            let mut fds: Vec<PollFd<'_>> = self.pipes().map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
            if fds.is_empty() {
                return std::thread::sleep(left);
            }
            // A signal in between only makes the pause shorter.
            let _interrupted = poll(&mut fds, Some(&timespec(left)));
            if !self.take() && began.left(span).is_zero() {
                return;
            }
        }
    }

    /// Takes the last of it once the worker has ended and what it left was ended, and cuts what is past the bound. A
    /// pipe that someone still holds is not waited for.
    pub(super) fn finish(&mut self) {
        let mut block = Vec::new();
        for stream in self.streams() {
            block.resize(BLOCK, 0);
            stream.take(&mut block, PIPE_MAX / BLOCK);
            stream.pipe = None;
            stream.store(None);
        }
    }

    /// Cuts what is past the bound and tells which streams that were.
    pub(super) fn cut(&self, max: u64) -> Vec<String> {
        let files: [Option<&File>; 2] = match self {
            Self::Files(files) => files.each_ref().map(Some),
            Self::Pipes(streams) => streams.each_ref().map(|stream| stream.file.as_ref().map(|(file, _)| file)),
            Self::Nowhere => [None, None],
        };
        let over = |file: &File| file.metadata().is_ok_and(|meta| meta.len() > max) && file.set_len(max).is_ok();
        let named = NAMES.into_iter().zip(files);
        named.filter(|(_, file)| file.is_some_and(over)).map(|(name, _)| name.to_owned()).collect()
    }

    /// The streams of which not all could be stored.
    pub(super) fn lost(&self) -> Vec<String> {
        let Self::Pipes(streams) = self else { return Vec::new() };
        NAMES.iter().zip(streams.iter()).filter(|(_, stream)| stream.lost).map(|(name, _)| (*name).to_owned()).collect()
    }
}

/// A length of time as poll(2) takes it.
pub(super) fn timespec(span: Duration) -> Timespec {
    Timespec { tv_sec: span.as_secs().try_into().unwrap_or(0), tv_nsec: span.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter() -> Redactor {
        Redactor::new([("TOKEN", "s3cr3t-value")].into_iter()).unwrap()
    }

    #[test]
    fn a_disk_without_room_is_told_and_the_worker_hears_of_it() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (stream, mut theirs) = Stream::open(Some((full, filter())), 1 << 20).unwrap();
        let (other, _held) = Stream::open(None, 1 << 20).unwrap();
        let mut output = Output::Pipes(Box::new([stream, other]));
        theirs.write_all(b"some words").unwrap();
        assert!(output.take());
        assert_eq!(output.lost(), ["stdout"]);
        assert_eq!(theirs.write_all(b"more").unwrap_err().kind(), ErrorKind::BrokenPipe);
    }

    #[test]
    fn what_is_printed_past_the_bound_is_not_stored_and_a_held_pipe_is_not_waited_for() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("stdout");
        let (stream, mut theirs) = Stream::open(Some((dir::create_new(&path).unwrap(), filter())), 10).unwrap();
        let (other, _held) = Stream::open(None, 10).unwrap();
        let mut output = Output::Pipes(Box::new([stream, other]));
        for _ in 0..5 {
            theirs.write_all(b"12345678").unwrap();
            output.pause(Duration::from_millis(1));
        }
        assert_eq!((output.stored(), output.heard()), ([16, 0], Some(40)));
        theirs.write_all(b"s3cr3t-value").unwrap();
        output.finish();
        assert_eq!(output.cut(10), ["stdout"]);
        assert_eq!((std::fs::read(&path).unwrap().as_slice(), output.lost().len()), (&b"1234567812"[..], 0));
        assert!(theirs.write_all(b"late").is_err());
    }
}
