//! Any program as a worker: its arguments are the job's, its standard output is its answer, its exit status its end.

use super::{Plan, refused};
use crate::domain::outcome::{Report, Seen};
use crate::domain::spec::Spec;
use crate::error::{Code, Result};

/// The longest single argument that Linux accepts, without its end mark.
const ARGUMENT_MAX: usize = 128 * 1024 - 1;

/// Refuses what no program can be given.
pub(super) fn check(spec: &Spec) -> Result<()> {
    if spec.program.is_empty() {
        return Err(refused("a command needs a program").hint("write it after --, as in ares submit -- sort names.txt"));
    }
    if let Some(name) = spec.options.keys().next() {
        return Err(refused(format!("a command takes no option '{name}'")).hint("write its options after --"));
    }
    if let Some(model) = &spec.model {
        return Err(refused(format!("a command has no model '{model}'")));
    }
    for argument in spec.argv.iter().chain([&spec.program]) {
        if argument.contains('\0') {
            return Err(refused("an argument of a command contains a NUL"));
        }
        if argument.len() > ARGUMENT_MAX {
            return Err(refused(format!("an argument of a command is longer than {ARGUMENT_MAX} bytes"))
                .hint("hand it over on standard input"));
        }
    }
    Ok(())
}

/// The job's own arguments.
pub(super) fn plan(spec: &Spec, resume: Option<&str>) -> Result<Plan> {
    check(spec)?;
    if resume.is_some() {
        return Err(refused("a command keeps no session to continue"));
    }
    Ok(Plan { args: spec.argv.clone(), env: no_terminal(spec), pass: Vec::new() })
}

/// The outputs of a worker are files, and programs that draw on terminals are told so, unless the job names the
/// caller's own terminal.
pub(super) fn no_terminal(spec: &Spec) -> Vec<(String, String)> {
    if spec.env.iter().any(|name| name == "TERM") { Vec::new() } else { vec![("TERM".to_owned(), "dumb".to_owned())] }
}

/// The report on a program that was never executed.
pub(super) fn not_executed(seen: &Seen) -> Report {
    if seen.no_room() {
        let words = "there was no room for the files of the attempt";
        return Report { blameless: true, ..Report::void(Code::NeverStarted, words, false) };
    }
    let words = errno_words(seen.errno);
    let words = seen.what.as_ref().map_or_else(|| words.clone(), |what| format!("{words}; {what}"));
    // A program that is being written is whole in a moment.
    let passing = seen.short() || seen.errno == Some(26);
    let code = if passing { Code::NeverStarted } else { Code::CannotExecute };
    Report { blameless: seen.short(), ..Report::void(code, words, !passing) }
}

/// What happened, by the exit status alone.
pub(super) fn finish(seen: &Seen) -> Report {
    if let Some(code) = seen.unknown_end() {
        return Report::ambiguous(code, "");
    }
    match seen.exit {
        // Its output is its answer, and is not there.
        Some(0) if seen.lost.iter().any(|stream| stream == "stdout") => {
            Report::ambiguous(Code::Uncertain, "exit status 0")
        }
        Some(0) => Report::ok(),
        Some(status) => {
            Report { retry: Some(None), ..Report::error(Code::ExitStatus, format!("exit status {status}")) }
        }
        None => Report::ambiguous(Code::Uncertain, "neither an exit status nor a signal was seen"),
    }
}

/// The name and the words of an error number of `exec`.
fn errno_words(errno: Option<i32>) -> String {
    let Some(errno) = errno else { return String::new() };
    // The numbers of these are the same on every system that ares runs on; E2BIG to EACCES are as old as Unix.
    let (name, words) = match errno {
        1 => ("EPERM", "not permitted"),
        2 => ("ENOENT", "no such file or directory"),
        5 => ("EIO", "input/output error"),
        7 => ("E2BIG", "the arguments are too long"),
        8 => ("ENOEXEC", "not an executable format"),
        11 => ("EAGAIN", "no more processes may be started"),
        12 => ("ENOMEM", "out of memory"),
        13 => ("EACCES", "permission denied"),
        20 => ("ENOTDIR", "not a directory"),
        21 => ("EISDIR", "is a directory"),
        23 => ("ENFILE", "the machine has too many open files"),
        24 => ("EMFILE", "too many open files"),
        26 => ("ETXTBSY", "the program is being written"),
        _ => return format!("errno {errno}"),
    };
    format!("{name}: {words}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::outcome::{Cause, Outcome};
    use crate::worker::sample;

    #[test]
    fn a_command_runs_as_given() {
        let spec = sample::spec("command", &["-u", "--", "a b", ""]);
        let made = plan(&spec, None).unwrap();
        assert_eq!(made.args, ["-u", "--", "a b", ""]);
        assert_eq!(made.env, [("TERM".to_owned(), "dumb".to_owned())]);
        assert_eq!(plan(&spec, Some("x")).unwrap_err().code, Code::WorkerRefused);
    }

    #[test]
    fn a_shortage_of_the_machine_is_no_fault_of_the_program() {
        for (errno, code, lasting) in [
            (2, Code::CannotExecute, true),
            (8, Code::CannotExecute, true),
            (7, Code::CannotExecute, true),
            (11, Code::NeverStarted, false),
            (24, Code::NeverStarted, false),
            (26, Code::NeverStarted, false),
        ] {
            let seen = Seen { cause: Cause::NotExecuted, exit: None, errno: Some(errno), ..Seen::exited(0) };
            let report = not_executed(&seen);
            assert_eq!((report.outcome, report.code, report.lasting), (Outcome::Void, Some(code), lasting), "{errno}");
        }
    }

    #[test]
    fn what_no_program_can_be_given_is_refused_at_submission() {
        let mut spec = sample::spec("command", &["x"]);
        check(&spec).unwrap();
        spec.argv = vec!["x".repeat(ARGUMENT_MAX)];
        check(&spec).unwrap();
        spec.argv = vec!["x".repeat(ARGUMENT_MAX + 1)];
        assert_eq!(check(&spec).unwrap_err().code, Code::WorkerRefused);
        spec.argv = vec!["\0".to_owned()];
        assert!(check(&spec).is_err());
        spec.argv.clear();
        spec.options.insert("sandbox".to_owned(), "read-only".to_owned());
        assert!(check(&spec).unwrap_err().message.contains("'sandbox'"));
        spec.options.clear();
        spec.program.clear();
        assert!(check(&spec).is_err());
    }

    #[test]
    fn a_disk_without_room_is_no_fault_of_the_job() {
        let seen = |errno| Seen { cause: Cause::NotExecuted, exit: None, errno: Some(errno), ..Seen::exited(0) };
        let (full, missing) = (not_executed(&seen(28)), not_executed(&seen(2)));
        assert_eq!((full.code, full.lasting), (Some(Code::NeverStarted), false));
        assert_eq!((missing.code, missing.lasting), (Some(Code::CannotExecute), true));
    }

    #[test]
    fn the_exit_status_is_the_end() {
        assert_eq!(finish(&Seen::exited(0)), Report::ok());
        assert_eq!(finish(&Seen { lost: vec!["stderr".into()], ..Seen::exited(0) }), Report::ok());
        let lost = finish(&Seen { lost: vec!["stdout".into()], ..Seen::exited(0) });
        assert_eq!((lost.outcome, lost.code), (Outcome::Ambiguous, Some(Code::Uncertain)));
        let failed = finish(&Seen::exited(3));
        assert_eq!((failed.outcome, failed.code), (Outcome::Error, Some(Code::ExitStatus)));
        assert_eq!((failed.detail.as_str(), failed.retry), ("exit status 3", Some(None)));
    }

    #[test]
    fn an_end_that_it_did_not_choose_is_unknown_even_with_status_zero() {
        let cases = [
            (Cause::TimeoutWhole, Code::TimedOut),
            (Cause::TimeoutIdle, Code::Silent),
            (Cause::OutputLimit, Code::OutputLimit),
            (Cause::Stopped, Code::StoppedRunning),
        ];
        for (cause, code) in cases {
            let report = finish(&Seen { cause, ..Seen::exited(0) });
            assert_eq!((report.outcome, report.code), (Outcome::Ambiguous, Some(code)));
        }
        let killed = finish(&Seen { exit: None, signal: Some(9), ..Seen::exited(0) });
        assert_eq!((killed.outcome, killed.code), (Outcome::Ambiguous, Some(Code::Signalled)));
        assert_eq!(finish(&Seen { exit: None, ..Seen::exited(0) }).outcome, Outcome::Ambiguous);
    }
}
