//! Starts programs and takes their time, each as a whole process, one after the other in every round.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Where everything is.
pub(crate) struct Lab {
    pub(crate) linked: PathBuf,
    pub(crate) plain: PathBuf,
    pub(crate) limit: PathBuf,
    pub(crate) tmp: PathBuf,
    pub(crate) quick: bool,
}

impl Lab {
    pub(crate) fn new(linked: PathBuf, plain: PathBuf, limit: PathBuf, tmp: PathBuf, quick: bool) -> Self {
        Self { linked, plain, limit, tmp, quick }
    }

    /// One of our commands, linked statically.
    pub(crate) fn ares(&self, name: &str) -> PathBuf {
        self.linked.join(name)
    }

    /// So many rounds, or with `--quick` so many.
    pub(crate) fn rounds(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// A fresh store.
    pub(crate) fn store(&self, name: &str) -> PathBuf {
        let dir = self.tmp.join(name);
        if dir.exists() {
            std::fs::remove_dir_all(&dir).unwrap();
        }
        call(Command::new(self.ares("ares-init")).arg(&dir));
        dir
    }

    /// A batch for a store, or for another program, as a file.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.tmp.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

/// Times by name.
#[derive(Default)]
pub(crate) struct Times(BTreeMap<String, Vec<Duration>>);

impl Times {
    pub(crate) fn add(&mut self, name: &str, time: Duration) {
        self.0.entry(name.to_owned()).or_default().push(time);
    }

    /// The median, in seconds.
    pub(crate) fn median(&self, name: &str) -> Option<f64> {
        let mut all = self.0.get(name)?.clone();
        all.sort_unstable();
        all.get(all.len() / 2).map(Duration::as_secs_f64)
    }
}

/// Runs a program to its end; gives what it printed and how long it took. It must succeed.
pub(crate) fn call(command: &mut Command) -> (String, Duration) {
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().unwrap();
    let took = began.elapsed();
    assert!(output.status.success(), "{command:?}: {}", output.status);
    (String::from_utf8(output.stdout).unwrap().trim().to_owned(), took)
}

/// Runs a program that reads this file and whose output nobody wants.
pub(crate) fn feed(command: &mut Command, input: &Path) -> Duration {
    let began = Instant::now();
    let status = command.stdin(File::open(input).unwrap()).stdout(Stdio::null()).status().unwrap();
    let took = began.elapsed();
    assert!(status.success(), "{command:?}: {status}");
    took
}

/// Whether a program is installed here.
pub(crate) fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// How often a command waits for the disk, where strace is there to tell.
pub(crate) fn syncs(lab: &Lab, command: &[&str]) -> Option<usize> {
    let log = lab.tmp.join("strace");
    let traced = ["-f", "-qq", "-e", "trace=fsync,fdatasync,sync_file_range", "-e", "signal=none", "-o"];
    if !installed("strace") {
        return None;
    }
    call(Command::new("strace").args(traced).arg(&log).args(command));
    let text = std::fs::read_to_string(&log).unwrap();
    Some(text.lines().filter(|line| line.contains("sync") && !line.contains("resumed")).count())
}

/// The most memory that a command had resident, in MiB, where GNU time is there to tell.
pub(crate) fn memory(lab: &Lab, command: &[&str]) -> Option<f64> {
    let log = lab.tmp.join("memory");
    if !installed("time") {
        return None;
    }
    call(Command::new("time").args(["-f", "%M", "-o"]).arg(&log).args(command));
    let kib: f64 = std::fs::read_to_string(&log).unwrap().trim().parse().unwrap();
    Some(kib / 1024.0)
}
