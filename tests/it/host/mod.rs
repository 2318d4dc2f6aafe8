//! The keeper as a process: what it does to workers, and what it leaves in the attempt's directory.

mod ends;
mod orphans;

use ares::domain::outcome::Seen;
use ares::host::keeper::{Keeper, Start, Word, read_exit};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Long enough for a loaded machine; nothing that works comes near it.
const PATIENCE: Duration = Duration::from_secs(90);

/// An attempt's directory and what its keeper is to be told.
struct Attempt {
    base: TempDir,
    start: Start,
}

impl Attempt {
    fn new(program: &str, args: &[&str]) -> Self {
        let base = tempfile::tempdir().expect("a temporary directory");
        let dir = base.path().join("42.1");
        ares::host::dir::private_dir(&dir).expect("the attempt's directory");
        let start = Start {
            attempt: "42.1".to_owned(),
            store: base.path().display().to_string(),
            dir,
            program: program.to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            cwd: base.path().display().to_string(),
            stdin: None,
            timeout_ms: None,
            timeout_first_ms: None,
            timeout_idle_ms: None,
            grace_ms: 300,
            output_max: 1 << 20,
            redact: Vec::new(),
            discard: false,
        };
        Self { base, start }
    }

    fn shell(script: &str) -> Self {
        Self::new("/bin/sh", &["-c", script])
    }

    fn dir(&self) -> &Path {
        &self.start.dir
    }

    /// Gives it to a keeper of its own.
    fn go(&self) -> Keeper {
        let mut keeper = keeper();
        keeper.go(&self.start).expect("the keeper takes it");
        keeper
    }

    /// Carries it out with a keeper of its own, and checks that the record says what the owner heard.
    fn run(&self) -> Seen {
        let seen = ended(&mut self.go());
        assert_eq!(read_exit(self.dir()).expect("readable"), Some(seen.clone()));
        seen
    }

    fn output(&self) -> String {
        std::fs::read_to_string(self.dir().join("stdout")).expect("standard output")
    }

    /// The number that the script wrote to this file.
    fn pid(&self, name: &str) -> i32 {
        let path = self.base.path().join(name);
        eventually("the script writes its number", || std::fs::read_to_string(&path).ok()?.trim().parse().ok())
    }
}

fn keeper() -> Keeper {
    Keeper::start_from(Path::new(env!("CARGO_BIN_EXE_ares"))).expect("a keeper")
}

fn ended(keeper: &mut Keeper) -> Seen {
    // A signal that is meant for another test interrupts a wait.
    let word = eventually("the attempt ends", || keeper.wait(PATIENCE).expect("the keeper is heard"));
    match word {
        Word::Ended(seen) => seen,
        Word::Gone => panic!("the keeper is gone before the end"),
    }
}

/// Polls until there is something.
fn eventually<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let began = ares::host::clock::mark();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process runs; a zombie does not.
fn runs(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

fn gone(pid: i32) {
    eventually("the process ends", || (!runs(pid)).then_some(()));
}

fn kill(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
    rustix::process::kill_process(pid, signal).expect("the signal is sent");
}

fn exit_file(dir: &Path) -> Seen {
    eventually("the record of the end", || read_exit(dir).expect("readable"))
}

fn file(base: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = base.path().join(name);
    std::fs::write(&path, text).expect("written");
    path
}
