//! What every test needs: a directory of its own, a way to run the commands in it under a clean environment, and a
//! way to compare what they print although times and paths differ.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

/// The root of the source.
pub(crate) const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// No command of a test may take longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A directory with room for a store, removed at the end of the test.
pub(crate) struct Lab {
    dir: tempfile::TempDir,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Its exit status; 128 and the signal where one ended it.
    pub(crate) status: i32,
    /// Its standard output.
    pub(crate) out: String,
    /// Its standard error.
    pub(crate) err: String,
}

impl Lab {
    /// A fresh one.
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a temporary directory") }
    }

    /// Its directory.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A command to be run here, under an environment that holds nothing of the caller's.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> assert_cmd::Command {
        let mut command = assert_cmd::Command::new(program);
        command
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin_dir().display()))
            .env("HOME", self.path())
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .env("TERM", "dumb")
            .current_dir(self.path())
            .timeout(PATIENCE);
        command
    }

    /// Runs one of our commands with these arguments.
    pub(crate) fn run(&self, name: &str, args: &[&str]) -> Ran {
        ran(self.command(bin_dir().join(name)).args(args).output().expect("it starts"))
    }

    /// Runs a shell script.
    pub(crate) fn sh(&self, script: &str) -> Ran {
        ran(self.command("/bin/sh").args(["-c", script]).output().expect("it starts"))
    }

    /// A text of a command with what differs from run to run replaced: this directory, moments, handles, digests.
    pub(crate) fn normal(&self, text: &str) -> String {
        let real = self.path().canonicalize().unwrap_or_else(|_| self.path().to_owned());
        let text = text.replace(&*real.to_string_lossy(), "[..]").replace(&*self.path().to_string_lossy(), "[..]");
        text.split_inclusive(['\t', ' ', '\n', '"']).map(normal_word).collect()
    }
}

/// The word with a wildcard in the place of what cannot be the same twice.
fn normal_word(word: &str) -> String {
    let end = word.trim_end_matches(['\t', ' ', '\n', '"', ',']).len();
    let (text, rest) = word.split_at(end);
    let moment = text.len() == 24 && text.ends_with('Z') && text.as_bytes()[10] == b'T';
    let digest = text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    if moment || digest {
        return format!("[..]{rest}");
    }
    match text.split_once('-') {
        Some((name, nonce)) if nonce.len() == 10 && name.parse::<f64>().is_ok() && name.contains('.') => {
            format!("{name}-[..]{rest}")
        }
        _ => word.to_owned(),
    }
}

pub(crate) fn ran(output: Output) -> Ran {
    use std::os::unix::process::ExitStatusExt as _;
    let status = output.status.code().or(output.status.signal().map(|signal| 128 + signal));
    Ran {
        status: status.expect("it ended"),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The directory that cargo put our commands into.
pub(crate) fn bin_dir() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_ares")).parent().expect("a directory").to_owned()
}

/// Compares a checked-in file with what it should be, or rewrites it.
pub(crate) fn same_file(path: &str, wanted: &str) -> Result<(), String> {
    let file = Path::new(ROOT).join(path);
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    if found == wanted {
        return Ok(());
    }
    if blessing() {
        std::fs::create_dir_all(file.parent().expect("a parent")).expect("it can be made");
        std::fs::write(&file, wanted).expect("it can be written");
        return Ok(());
    }
    let differ = found.lines().zip(wanted.lines()).position(|(a, b)| a != b);
    let at = differ.unwrap_or_else(|| found.lines().count().min(wanted.lines().count()));
    Err(format!(
        "{path}:{}: stale\n  is:     {}\n  should: {}\nrun ARES_BLESS=1 cargo test, then read git diff",
        at + 1,
        found.lines().nth(at).unwrap_or("(end)"),
        wanted.lines().nth(at).unwrap_or("(end)")
    ))
}

/// Whether checked-in files are to be rewritten.
#[expect(clippy::disallowed_methods, reason = "the tests' own switch")]
pub(crate) fn blessing() -> bool {
    std::env::var_os("ARES_BLESS").is_some()
}

/// Says that a test, or a part of it, could not be run here, and why. `.ci/run` counts these and wants none.
#[expect(clippy::disallowed_methods, clippy::print_stderr, reason = "the tests' own switch, and their own words")]
pub(crate) fn skipped(why: &str) {
    use std::io::Write as _;
    eprintln!("SKIP: {why}");
    if let Some(list) = std::env::var_os("ARES_SKIPS") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(list);
        writeln!(file.expect("it opens"), "{why}").expect("it can be written");
    }
}

/// Whether there is a program of this name; where not, that is counted.
pub(crate) fn has(program: &str) -> bool {
    let found =
        ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin"].iter().any(|dir| Path::new(dir).join(program).exists());
    if !found {
        skipped(&format!("there is no {program} here"));
    }
    found
}

/// Every file below these folders of the source with one of these endings, sorted.
pub(crate) fn files(folders: &[&str], endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| Path::new(ROOT).join(folder)).collect();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).expect("it can be read").map(|entry| entry.expect("an entry").path()));
        } else if endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A path as people write it: below the root of the source.
pub(crate) fn short(path: &Path) -> String {
    path.strip_prefix(ROOT).unwrap_or(path).display().to_string()
}

/// Reads a file of the source.
pub(crate) fn text(path: impl AsRef<Path>) -> String {
    let path = Path::new(ROOT).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fails with all complaints at once.
pub(crate) fn no_complaints(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}
