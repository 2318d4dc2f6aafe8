//! Jobs from submission to settlement through the binaries: a store with commands around it, and what its files and the
//! kernel say of what is left. Each file below is one subject.

mod adapter;
mod beside;
mod claude;
mod conversation;
mod ends;
mod fenced;
mod limits;
mod no_capture;
mod orphans;
mod prompts;
mod redact;
mod reported;
mod secrets;
mod signals;

use crate::harness::{Lab, Ran, bin_dir};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Long enough for a loaded machine; nothing that works comes near it.
const PATIENCE: Duration = Duration::from_secs(90);

/// A store with the commands around it. What still runs of it is ended with the test.
pub(crate) struct Shop {
    lab: Lab,
    root: PathBuf,
}

impl Shop {
    pub(crate) fn new() -> Self {
        let lab = Lab::new();
        let root = lab.path().canonicalize().unwrap().join(".ares");
        let shop = Self { lab, root };
        assert_eq!(shop.run("ares-init", &["--quiet"]).status, 0);
        shop
    }

    /// A fresh store with this `config.toml`.
    pub(crate) fn with_config(text: &str) -> Self {
        let shop = Self::new();
        std::fs::write(shop.root.join("config.toml"), text).unwrap();
        shop
    }

    /// The directory that the commands are called in.
    pub(crate) fn path(&self) -> &Path {
        self.lab.path()
    }

    /// The store.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn run(&self, name: &str, args: &[&str]) -> Ran {
        self.lab.run(name, args)
    }

    /// A command to be run here.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> assert_cmd::Command {
        self.lab.command(program)
    }

    /// Runs a command with these variables besides.
    pub(crate) fn run_with(&self, env: &[(&str, &str)], name: &str, args: &[&str]) -> Ran {
        let mut command = self.lab.command(bin_dir().join(name));
        command.args(args).envs(env.iter().copied());
        crate::harness::ran(command.output().expect("it starts"))
    }

    /// Runs a command with this on its standard input.
    pub(crate) fn feed(&self, input: &[u8], name: &str, args: &[&str]) -> Ran {
        let mut command = self.lab.command(bin_dir().join(name));
        crate::harness::ran(command.args(args).write_stdin(input).output().expect("it starts"))
    }

    /// Runs a shell script.
    pub(crate) fn sh(&self, script: &str) -> Ran {
        self.lab.sh(script)
    }

    /// Starts a command and lets it run.
    pub(crate) fn start(&self, env: &[(&str, &str)], name: &str, args: &[&str]) -> Running {
        self.start_program(&bin_dir().join(name), env, args)
    }

    /// Starts the shell script in this file and lets it run.
    pub(crate) fn shell(&self, file: &str) -> Running {
        self.start_program(Path::new("/bin/sh"), &[], &[file])
    }

    #[expect(clippy::disallowed_methods, reason = "a test kills the command that it started, which assert_cmd hides")]
    fn start_program(&self, program: &Path, env: &[(&str, &str)], args: &[&str]) -> Running {
        let mut command = Command::new(program);
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin_dir().display());
        command.args(args).env_clear().env("PATH", path).env("HOME", self.path()).env("TZ", "UTC");
        command.envs(env.iter().copied()).current_dir(self.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Some(command.spawn().expect("it starts")))
    }

    /// A process that has the marks of an attempt, as one that escaped from its keeper would.
    #[expect(clippy::disallowed_methods, reason = "it plays a process that no ares started")]
    pub(crate) fn survivor(&self, attempt: &str) -> Running {
        let mut command = Command::new("/bin/sleep");
        command.arg("300").env("ARES_DIR", &self.root).env("ARES_ATTEMPT", attempt);
        Running(Some(command.spawn().unwrap()))
    }

    /// The owner and the keeper of a running job are killed, and its worker with them.
    pub(crate) fn crash(&self, run: Running) {
        let (keeper, worker) = (self.keeper(), self.pid("pid"));
        run.kill();
        send(keeper, Signal::KILL);
        gone(keeper);
        gone(worker);
    }

    /// Queues a job and gives its number.
    pub(crate) fn submit(&self, args: &[&str]) -> String {
        let ran = self.run("ares-submit", args);
        assert_eq!(ran.status, 0, "{}", ran.err);
        ran.out.trim().to_owned()
    }

    /// Queues a shell script.
    pub(crate) fn script(&self, options: &[&str], script: &str) -> String {
        self.submit(&[options, &["--", "/bin/sh", "-c", script]].concat())
    }

    /// Queues a turn of the synthetic worker.
    pub(crate) fn turn(&self, options: &[&str], prompt: &str) -> String {
        self.submit(&[&["-w", "synthetic"], options, &["--", prompt]].concat())
    }

    /// Everything that is known of a job.
    pub(crate) fn job(&self, job: &str) -> Value {
        let ran = self.run("ares-show", &["--json", job]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        serde_json::from_str(&ran.out).expect("an object")
    }

    /// The latest attempt of a job.
    pub(crate) fn latest(&self, job: &str) -> Value {
        self.job(job)["attempts"].as_array().unwrap().last().cloned().unwrap_or_default()
    }

    pub(crate) fn state(&self, job: &str) -> String {
        text(&self.job(job)["state"])
    }

    /// Waits until a job is in this state.
    pub(crate) fn until(&self, job: &str, state: &str) {
        eventually(&format!("job {job} is {state}"), || (self.state(job) == state).then_some(()));
    }

    /// What a job's latest attempt printed.
    pub(crate) fn output(&self, job: &str, part: &str) -> String {
        self.run("ares-show", &[job, "--output", part]).out
    }

    /// The content of a file that a worker writes, once it is there.
    pub(crate) fn file(&self, name: &str) -> String {
        let path = self.path().join(name);
        eventually(&format!("{name} is written"), || {
            std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'))
        })
    }

    /// The number that a worker wrote to this file.
    pub(crate) fn pid(&self, name: &str) -> i32 {
        self.file(name).trim().parse().unwrap()
    }

    /// The keeper of a running attempt.
    pub(crate) fn keeper(&self) -> i32 {
        eventually("the keeper is there", || {
            let worker = self.alive().first().copied()?;
            parents(worker).into_iter().find(|pid| name_of(*pid) == "ares-keeper")
        })
    }

    /// The keeper of this owner, once it is there.
    pub(crate) fn keeper_of(&self, owner: i32) -> Option<i32> {
        let numbers = std::fs::read_dir("/proc").unwrap().flatten();
        let mut pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.find(|pid| name_of(*pid) == "ares-keeper" && parents(*pid).first() == Some(&owner))
    }

    /// Processes that run for an attempt of this store, by what is in their environment.
    pub(crate) fn alive(&self) -> Vec<i32> {
        let ours = format!("ARES_DIR={}", self.root.display());
        let has = |pid: &i32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let mut entries = environment.split(|byte| *byte == 0);
            entries.any(|entry| entry == ours.as_bytes()) && environment.windows(13).any(|w| w == b"ARES_ATTEMPT=")
        };
        let numbers = std::fs::read_dir("/proc").unwrap().flatten();
        numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(has).collect()
    }

    /// Nothing runs any more and no file of an attempt or an owner is left.
    pub(crate) fn clean(&self) {
        eventually("nothing of an attempt lives", || self.alive().is_empty().then_some(()));
        assert_eq!(self.names("attempts"), Vec::<String>::new());
        let owners: Vec<_> = self.names("locks").into_iter().filter(|name| name.starts_with("owner-")).collect();
        assert_eq!(owners, Vec::<String>::new());
    }

    /// Reconciles, says with what status, and checks that nothing is left.
    pub(crate) fn reconciled(&self) -> i32 {
        let status = self.run("ares-reconcile", &[]).status;
        if status == 0 {
            self.clean();
        }
        status
    }

    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        for pid in self.alive() {
            send(pid, Signal::KILL);
        }
    }
}

/// A command that runs; it is killed with the test.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.0.as_ref().unwrap().id()).unwrap()
    }

    pub(crate) fn send(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Kills it as a crash would, and waits until it is gone.
    pub(crate) fn kill(self) {
        self.send(Signal::KILL);
        self.end();
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ran {
        let pid = self.pid();
        eventually("the command ends", || (!runs(pid)).then_some(()));
        crate::harness::ran(self.0.take().unwrap().wait_with_output().expect("it ends"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ended = child.kill();
            let _reaped = child.wait();
        }
    }
}

/// Sends a signal; one that is gone needs none.
pub(crate) fn send(pid: i32, signal: Signal) {
    let _gone = kill_process(Pid::from_raw(pid).expect("a process id"), signal);
}

/// Polls until there is something.
pub(crate) fn eventually<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let began = ares::host::clock::mark();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn gone(pid: i32) {
    eventually("the process ends", || (!runs(pid)).then_some(()));
}

/// Whether a process runs; a zombie does not.
pub(crate) fn runs(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Whether a process is stopped.
pub(crate) fn stopped(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}

fn parents(pid: i32) -> Vec<i32> {
    let parent = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().filter(|parent| *parent > 1)
    };
    std::iter::successors(parent(pid), |pid| parent(*pid)).collect()
}

fn name_of(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// A value as text; what is missing is empty.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
