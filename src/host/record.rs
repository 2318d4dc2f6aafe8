//! The files by which an attempt's directory tells what the keeper did: `mark`, `exit` and `stop`. They count within one
//! boot only and so are never synced. It knows their form, not when they are written.

use super::{dir, process};
use crate::domain::digest::Digest;
use crate::domain::outcome::{Cause, Seen};
use crate::error::{Code, Error, OrCode, Result};
use crate::host::clock;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The most that is read of such a file.
const FILE_MAX: u64 = 1 << 20;

/// What becomes `exit`: its room is taken before the worker is started.
const STAGED: &str = "exit.tmp";

/// What is said where a record cannot be told from one of an earlier boot.
const NO_BOOT: &str = "cannot read the id of this boot";

/// How much room that is: a block of most file systems.
const ROOM: u64 = 4096;

/// How many numbers of processes of each kind fit into it beside the rest.
const PIDS_MAX: usize = 50;

/// How far the keeper came, as `mark` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It did not begin: within the boot of the keeper's identity this proves that the worker never ran. After another
    /// boot it proves nothing, because the file was not synced.
    Missing,
    /// The whole directory is gone, which is there before anything is dispatched: it tells nothing.
    Lost,
    /// It was about to start the worker; whether it did is not known.
    AboutToStart,
    /// It started the worker under this number.
    Started {
        /// The worker's process id, which is also its group and session.
        pid: i32,
    },
    /// The program could not be executed: nothing ran.
    NotExecuted {
        /// Why.
        errno: i32,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
enum State {
    AboutToStart,
    Started {
        pid: i32,
    },
    /// `what` is for people: which of the program, the directory or a file was in the way.
    NotExecuted {
        errno: i32,
        what: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    state: State,
    boot: String,
    at: i64,
}

/// `mark`, open for appending.
pub(super) struct Marks(File);

impl Marks {
    /// Makes the file and says in it that the worker is about to start. A mark that is there already belongs to an
    /// earlier order for the same attempt.
    pub(super) fn begin(folder: &Path) -> std::io::Result<Self> {
        let mut marks = Self(dir::create_new(&folder.join("mark"))?);
        marks.append(State::AboutToStart)?;
        Ok(marks)
    }

    pub(super) fn started(&mut self, pid: i32) -> std::io::Result<()> {
        self.append(State::Started { pid })
    }

    pub(super) fn not_executed(&mut self, errno: i32, what: &str) -> std::io::Result<()> {
        self.append(State::NotExecuted { errno, what: what.to_owned() })
    }

    fn append(&mut self, state: State) -> std::io::Result<()> {
        let boot = process::boot_id()?.unwrap_or_default().to_owned();
        let line = seal(&Line { state, boot, at: clock::now().0 })?;
        // One write for the whole line: what follows it proves that it is complete.
        self.0.write_all(&line)
    }
}

/// What stands before and behind the digest at the end of a line.
const SEAL: (&str, &str) = (",\"digest\":\"", "\"}");

/// A line that ends with the digest of the rest, so that no turned bit makes another truth of it.
fn seal(line: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let text = serde_json::to_string(line)?;
    let (digest, open) = (Digest::of_content(text.as_bytes()), &text[..text.len() - 1]);
    Ok(format!("{open}{}{digest}{}\n", SEAL.0, SEAL.1).into_bytes())
}

/// The rest of a whole line whose digest holds.
fn unseal(line: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?.strip_suffix(SEAL.1)?;
    let (open, digest) = line.rsplit_once(SEAL.0)?;
    let text = format!("{open}}}");
    (Digest::parse(digest)? == Digest::of_content(text.as_bytes())).then_some(text)
}

/// How far the keeper of this attempt came.
pub fn read_mark(folder: &Path) -> Result<Mark> {
    if !dir::is_there(folder)? {
        return Ok(Mark::Lost);
    }
    // The room for the end is there before the dispatch, and nothing else before the mark: where it is otherwise, someone
    // was here, and that the mark is missing or empty proves nothing.
    let there = |name: &str| folder.join(name).symlink_metadata().is_ok();
    let untouched = there(STAGED) && !["worker.lock", "stdout", "stderr"].into_iter().any(there);
    let mut mark = if untouched { Mark::Missing } else { Mark::Lost };
    let Some(text) = read(&folder.join("mark"))? else { return Ok(mark) };
    // The keeper goes on only after the write of a whole line: the beginning of one means that it did not come so far.
    for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        // A whole line that does not read is no line of a keeper's: it proves nothing, and concerns this attempt only.
        let line = unseal(line).and_then(|text| serde_json::from_str::<Line>(&text).ok());
        let Some(line) = line else { return Ok(Mark::Lost) };
        mark = match line.state {
            State::AboutToStart => Mark::AboutToStart,
            State::Started { pid } => Mark::Started { pid },
            State::NotExecuted { errno, .. } => Mark::NotExecuted { errno },
        };
    }
    Ok(mark)
}

/// A small file; `None` when there is none. Something else in its place reads as a line that is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match dir::read_bounded(path, FILE_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.code == Code::NotFound => Ok(None),
        Err(error) if error.code == Code::InputTooLarge || dir::is_no_file(path) => Ok(Some(b"\n".to_vec())),
        Err(error) => Err(error),
    }
}

#[derive(Serialize, Deserialize)]
struct Exit<'a> {
    attempt: &'a str,
    boot: &'a str,
    seen: Seen,
}

fn end_line(attempt: &str, boot: &str, seen: &Seen) -> Result<Vec<u8>> {
    seal(&Exit { attempt, boot, seen: seen.clone() }).or_code(Code::Internal, || "cannot write down the end".to_owned())
}

/// Writes `exit`, which is there whole or not at all.
pub(super) fn write_exit(folder: &Path, attempt: &str, seen: &Seen) -> Result<()> {
    let boot = process::boot_id().or_code(Code::Internal, || NO_BOOT.to_owned())?.unwrap_or_default();
    let mut bytes = end_line(attempt, boot, seen)?;
    if bytes.len() as u64 > ROOM {
        // Numbers of processes are all that can be so many; some of them tell enough.
        let few = |pids: &[i32]| pids.iter().copied().take(PIDS_MAX).collect();
        let seen = Seen { leaked: few(&seen.leaked), survivors: few(&seen.survivors), ..seen.clone() };
        bytes = end_line(attempt, boot, &seen)?;
    }
    let what = || format!("cannot write '{}/exit'", folder.display());
    let staged = folder.join(STAGED);
    // What was reserved is overwritten where it lies, and only then cut: no step of this needs room.
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(dir::NO_LINK)
        .open(&staged);
    let mut file = file.or_code(Code::StoreUnusable, what)?;
    file.write_all(&bytes).or_code(Code::StoreUnusable, what)?;
    file.set_len(bytes.len() as u64).or_code(Code::StoreUnusable, what)?;
    std::fs::rename(&staged, folder.join("exit")).or_code(Code::StoreUnusable, what)
}

/// Which of these files are there and do not read, or are no files.
pub fn damaged(folder: &Path) -> Result<Vec<&'static str>> {
    let reads = |name: &str| -> Result<bool> {
        let Some(text) = read(&folder.join(name))? else { return Ok(true) };
        let whole = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        let lines: Vec<bool> = whole.map(|line| unseal(line).is_some()).collect();
        // A mark is empty for a moment; an end is there whole or not at all.
        Ok((name == "mark" || !lines.is_empty()) && lines.iter().all(|reads| *reads))
    };
    let mut damaged = Vec::new();
    for name in ["mark", "exit"] {
        if !reads(name)? {
            damaged.push(name);
        }
    }
    damaged.extend(["stdout", "stderr", "stop"].into_iter().filter(|name| dir::is_no_file(&folder.join(name))));
    Ok(damaged)
}

/// Takes the room of the record of the end, before anything is dispatched: a disk that is full by then, be it by the
/// worker's own output, must not cost the truth of how the worker ended.
pub fn reserve_end(folder: &Path) -> Result<()> {
    let what = || format!("cannot reserve '{}/{STAGED}'", folder.display());
    let mut file = dir::create_new(&folder.join(STAGED)).or_code(Code::StoreUnusable, what)?;
    match fallocate(&file, FallocateFlags::empty(), 0, ROOM) {
        Ok(()) => Ok(()),
        // Not every file system can; there the blanks that are written take the room once they are on the disk.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let blanks = vec![b' '; usize::try_from(ROOM).unwrap_or(0)];
            file.write_all(&blanks).and_then(|()| file.sync_all()).or_code(Code::StoreUnusable, what)
        }
        Err(error) => Err(std::io::Error::from(error)).or_code(Code::StoreUnusable, what),
    }
}

/// What the keeper saw of the end of this attempt; `None` when it has not said so completely, or in an earlier boot,
/// from which neither this file nor the output is sure to be complete.
pub fn read_exit(folder: &Path) -> Result<Option<Seen>> {
    if !dir::is_there(folder)? {
        return Ok(None);
    }
    let Some(bytes) = read(&folder.join("exit"))? else { return Ok(None) };
    let Some(text) = unseal(&bytes) else { return Ok(None) };
    let Ok(exit) = serde_json::from_str::<Exit<'_>>(&text) else { return Ok(None) };
    // That the boot cannot be told just now does not make the record one of an earlier boot.
    let boot = process::boot_id().or_code(Code::Internal, || NO_BOOT.to_owned())?.unwrap_or_default();
    Ok((exit.boot == boot).then_some(exit.seen))
}

/// The end of this attempt, also where the keeper did not come to write it down: a program that its mark says could not
/// be executed has ended.
pub fn read_end(folder: &Path) -> Result<Option<Seen>> {
    if let Some(seen) = read_exit(folder)? {
        return Ok(Some(seen));
    }
    Ok(match read_mark(folder)? {
        Mark::NotExecuted { errno } => {
            Some(Seen { cause: Cause::NotExecuted, exit: None, errno: Some(errno), ..Seen::exited(0) })
        }
        Mark::Missing | Mark::Lost | Mark::AboutToStart | Mark::Started { .. } => None,
    })
}

/// Asks the keeper of this attempt to end its worker, whether or not an owner is there to pass it on. A hard stop gives
/// it no time, and is not taken back by a later soft one.
pub fn ask_stop(folder: &Path, hard: bool) -> Result<()> {
    if !hard && stop_asked(folder) == Some(true) {
        return Ok(());
    }
    let staged = folder.join(format!("stop.{}.tmp", std::process::id()));
    dir::write_private(&staged, if hard { b"hard\n" } else { b"soft\n" })?;
    std::fs::rename(&staged, folder.join("stop"))
        .or_code(Code::StoreUnusable, || format!("cannot write '{}/stop'", folder.display()))
}

/// Whether a stop is asked for, and if so whether a hard one. What is unreadable asks for a soft one: nothing else puts
/// a file of this name there.
pub(super) fn stop_asked(folder: &Path) -> Option<bool> {
    match read(&folder.join("stop")) {
        Ok(text) => text.map(|text| text.starts_with(b"hard")),
        Err(Error { .. }) => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_tells_how_far_it_came() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path();
        assert_eq!(read_mark(folder).unwrap(), Mark::Lost, "what was laid out is gone");
        reserve_end(folder).unwrap();
        assert_eq!(read_mark(folder).unwrap(), Mark::Missing);
        for later in ["worker.lock", "stdout", "stderr"] {
            std::fs::write(folder.join(later), "").unwrap();
            assert_eq!(read_mark(folder).unwrap(), Mark::Lost, "{later} is made after it");
            std::fs::remove_file(folder.join(later)).unwrap();
        }
        for empty in [&b""[..], &[0; 40]] {
            std::fs::write(folder.join("mark"), empty).unwrap();
            assert_eq!(read_mark(folder).unwrap(), Mark::Missing, "no whole line was written");
            std::fs::write(folder.join("stdout"), "").unwrap();
            assert_eq!(read_mark(folder).unwrap(), Mark::Lost, "the line before it was lost");
            std::fs::remove_file(folder.join("stdout")).unwrap();
        }
        std::fs::remove_file(folder.join("mark")).unwrap();
        let mut marks = Marks::begin(folder).unwrap();
        assert_eq!(read_mark(folder).unwrap(), Mark::AboutToStart);
        marks.started(77).unwrap();
        assert_eq!(read_mark(folder).unwrap(), Mark::Started { pid: 77 });
        marks.not_executed(2, "program").unwrap();
        assert_eq!(read_mark(folder).unwrap(), Mark::NotExecuted { errno: 2 });
        marks.0.write_all(b"{\"state\":\"sta").unwrap();
        assert_eq!(read_mark(folder).unwrap(), Mark::NotExecuted { errno: 2 }, "half a line does not count");
        marks.0.write_all(b"rted\"}\n").unwrap();
        assert_eq!(read_mark(folder).unwrap(), Mark::Lost, "a line that is none proves nothing");
        assert!(Marks::begin(folder).is_err(), "an attempt is started once");
    }

    #[test]
    fn an_exit_counts_when_complete_and_of_this_boot() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path();
        assert_eq!(read_exit(folder).unwrap(), None);
        write_exit(folder, "42.1", &Seen::exited(3)).unwrap();
        assert_eq!(read_exit(folder).unwrap(), Some(Seen::exited(3)));
        let text = std::fs::read_to_string(folder.join("exit")).unwrap();
        std::fs::write(folder.join("exit"), &text[..text.len() / 2]).unwrap();
        assert_eq!(read_exit(folder).unwrap(), None);
        std::fs::write(folder.join("exit"), end_line("42.1", "another", &Seen::exited(3)).unwrap()).unwrap();
        assert_eq!(read_exit(folder).unwrap(), None, "another boot");
        for at in 0..text.len() {
            let mut turned = text.clone().into_bytes();
            turned[at] ^= 1;
            std::fs::write(folder.join("exit"), turned).unwrap();
            assert_eq!(read_exit(folder).unwrap(), None, "a bit was turned at {at}");
        }
    }

    #[test]
    fn what_is_no_file_proves_nothing_and_stops_nothing() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        for name in ["mark", "exit"] {
            let make: [&dyn Fn(&Path); 3] = [
                &|path| std::fs::create_dir(path).unwrap(),
                &|path| mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0).unwrap(),
                &|path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap(),
            ];
            for make in make {
                let base = tempfile::tempdir().unwrap();
                reserve_end(base.path()).unwrap();
                make(&base.path().join(name));
                let end = (read_exit(base.path()).unwrap(), read_mark(base.path()).unwrap());
                let mark = if name == "mark" { Mark::Lost } else { Mark::Missing };
                assert_eq!(end, (None, mark), "{name}");
                assert_eq!(damaged(base.path()).unwrap(), [name]);
            }
        }
    }

    #[test]
    fn the_reserved_room_is_what_the_end_is_written_into() {
        use std::os::unix::fs::MetadataExt as _;
        let base = tempfile::tempdir().unwrap();
        let folder = base.path();
        reserve_end(folder).unwrap();
        let room = std::fs::metadata(folder.join(STAGED)).unwrap();
        assert!(room.len() == ROOM && room.blocks() > 0, "{room:?}");
        let seen = Seen { leaked: (1_000_000..1_002_000).collect(), ..Seen::exited(3) };
        write_exit(folder, "42.1", &seen).unwrap();
        let written = std::fs::metadata(folder.join("exit")).unwrap();
        assert!(written.ino() == room.ino() && written.len() <= ROOM, "{written:?}");
        assert_eq!(read_exit(folder).unwrap().map(|seen| (seen.exit, seen.leaked.len())), Some((Some(3), PIDS_MAX)));
    }

    #[test]
    fn a_soft_stop_does_not_take_back_a_hard_one() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path();
        assert_eq!(stop_asked(folder), None);
        ask_stop(folder, false).unwrap();
        assert_eq!(stop_asked(folder), Some(false));
        ask_stop(folder, true).unwrap();
        ask_stop(folder, false).unwrap();
        assert_eq!(stop_asked(folder), Some(true));
        assert_eq!(dir::owner_and_mode(&folder.join("stop")).unwrap().1, 0o600);
    }
}
