//! What every command promises of its output, in every form and on every kind of standard output. The cases are held
//! against the table of commands, so that a new command without one is named.

use crate::harness::{Lab, Ran, has, no_complaints};
use ares::cli::{COMMANDS, Command};
use std::collections::BTreeSet;

/// One call of a command: what goes before it, and the call itself, in which `"$@"` are further options.
struct Case {
    name: &'static str,
    before: &'static str,
    call: &'static str,
    /// The status where all goes well.
    status: i32,
}

const fn case(name: &'static str, before: &'static str, call: &'static str, status: i32) -> Case {
    Case { name, before, call, status }
}

const UNCERTAIN: &str = "ares-submit --timeout 100ms --grace 50ms -- sleep 60; ares-run";

/// Every command, each in every shape of its records.
const CASES: &[Case] = &[
    case("ares-init", "", "ares-init \"$@\"", 0),
    case("ares-demo", "", "ares-demo -q \"$@\"", 0),
    case("ares-submit", "", "ares-submit \"$@\" -- true", 0),
    case("ares-run", "ares-submit -- echo hello", "ares-run \"$@\"", 0),
    case("ares-wait", "ares-submit -- true; ares-run", "ares-wait \"$@\" 1", 0),
    case("ares-stop", "ares-submit -- true", "ares-stop \"$@\" 1", 0),
    case("ares-backup", "", "ares-backup \"$@\" copy", 0),
    case(
        "ares-gc",
        "ares-submit -- true; ares-submit -- true; ares-run --drain",
        "ares-gc --keep 0 --export . \"$@\"",
        0,
    ),
    case("ares-claim", "", "ares-claim \"$@\" --owner-file", 0),
    case("ares-claim", "ares-submit -- true", "ares-claim \"$@\" --owner $$", 0),
    case("ares-settle", "ares-submit -- true; h=$(ares-claim --owner $$)", "ares-settle \"$@\" \"$h\" ok", 0),
    case("ares-list", "ares-submit --label a -- true", "ares-list \"$@\"", 0),
    case("ares-list", "ares-submit -- true", "ares-list --count \"$@\"", 0),
    case("ares-show", "ares-submit -- true", "ares-show 1 \"$@\"", 0),
    case("ares-show", "ares-submit -- true; ares-run", "ares-show 1.1 \"$@\"", 0),
    case(
        "ares-show",
        "ares-submit -w synthetic -- hello; ares-run; s=$(ares-show 1 --format '%(session)')",
        "ares-show \"$s\" \"$@\"",
        0,
    ),
    case("ares-log", "ares-submit -- true", "ares-log \"$@\"", 0),
    case("ares-fsck", "chmod 0755 .ares/locks/init.lock", "ares-fsck \"$@\"", 1),
    case("ares-reconcile", UNCERTAIN, "ares-reconcile \"$@\"", 10),
    case("ares-reconcile", UNCERTAIN, "ares-reconcile 1 \"$@\"", 10),
    case("ares-reconcile", UNCERTAIN, "ares-reconcile 1 --decide abandon --because x \"$@\"", 0),
];

fn commands() -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().filter(|command| command.name != "ares")
}

fn row(case: &Case) -> &'static Command {
    COMMANDS.iter().find(|command| command.name == case.name).expect("a command of the table")
}

/// Runs a case in a store of its own; what surrounds the call is a piece of shell in which `CALL` stands for it.
fn run(case: &Case, around: &str, options: &[&str]) -> Ran {
    let lab = Lab::new();
    let script = format!(
        "{{ ares-init .ares; {}; }} >/dev/null 2>&1\n{}",
        or_true(case.before),
        around.replace("CALL", case.call)
    );
    let args = ["-c", &script, "sh"].into_iter().chain(options.iter().copied());
    let output = lab.command("/bin/sh").args(args).output().expect("it starts");
    Ran {
        status: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn or_true(script: &str) -> &str {
    if script.is_empty() { ":" } else { script }
}

#[test]
fn every_command_has_a_case() {
    let known: BTreeSet<&str> = CASES.iter().map(|case| case.name).collect();
    let all: BTreeSet<&str> = commands().map(|command| command.name).collect();
    assert_eq!(known, all);
}

#[test]
fn json_has_the_fields_that_the_manual_lists_and_no_others() {
    let mut complaints = Vec::new();
    for command in commands() {
        let listed: BTreeSet<String> = command.fields.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut seen = BTreeSet::new();
        for case in CASES.iter().filter(|case| case.name == command.name) {
            let ran = run(case, "CALL", &["--json"]);
            assert_eq!(ran.status, case.status, "{}: {}", case.call, ran.err);
            assert!(!ran.out.is_empty(), "{}: no record", case.call);
            for line in ran.out.lines() {
                let object: serde_json::Value = serde_json::from_str(line).expect("JSON");
                seen.extend(object.as_object().expect("an object").keys().cloned());
            }
        }
        complaints.extend(listed.difference(&seen).map(|name| format!("{}: {name} is never printed", command.name)));
        complaints.extend(seen.difference(&listed).map(|name| format!("{}: {name} is not listed", command.name)));
    }
    no_complaints(&complaints);
}

#[test]
fn the_forms_agree() {
    for case in CASES {
        let lines = run(case, "CALL", &[]);
        assert_eq!(lines.status, case.status, "{}: {}", case.call, lines.err);
        let nul = run(case, "CALL | tr '\\n\\0' ' \\n'", &["-z"]);
        let count = lines.out.lines().count();
        assert_eq!(nul.out.lines().count(), count, "{}: {:?} {:?}", case.call, nul.out, lines.out);
        assert!(nul.out.is_empty() || nul.out.ends_with('\n'), "{}", case.call);
        let columns = row(case).columns.len();
        let fields = lines.out.lines().map(|line| line.split('\t').count()).max().unwrap_or(0);
        assert!(fields <= columns.max(2), "{}: {}", case.call, lines.out);
    }
}

#[test]
fn a_format_knows_every_field_and_refuses_others_by_name() {
    for case in CASES {
        let fields = row(case).fields;
        let all: String = fields.iter().map(|(name, _)| format!("%({name})|")).collect();
        let ran = run(case, "CALL", &["--format", &all]);
        assert_eq!(ran.status, case.status, "{}: {}", case.call, ran.err);
        for line in ran.out.lines() {
            assert!(line.matches('|').count() >= fields.len(), "{}: {line}", case.call);
        }
        let ran = run(case, "CALL", &["--format", "%(no-such-field)"]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", case.call);
        for (name, _) in fields {
            assert!(ran.err.contains(name), "{}: {name} is not named: {}", case.call, ran.err);
        }
    }
}

#[test]
fn an_output_that_cannot_be_written_is_told() {
    for case in CASES {
        let mutates = row(case).mutates;
        let full = run(case, "CALL >/dev/full", &["--json"]);
        let code = if mutates { "ARES_OUTPUT_LOST" } else { "ARES_OUTPUT_FAILED" };
        // A failure of the command itself comes before lost output, lost output before a plain no; both are told.
        let status = if case.status <= 1 { 8 } else { case.status };
        assert_eq!(full.status, status, "{}: {}", case.call, full.err);
        assert!(full.err.contains(code), "{}: {}", case.call, full.err);
        let gone = run(case, "{ sleep 0.1; CALL; echo $? >status; } | exec <&-; cat status", &["--json"]);
        let status = if mutates { status } else { case.status };
        assert_eq!(gone.out, format!("{status}\n"), "{}: {}", case.call, gone.err);
        // A reader that took what it wanted is no failure while there was room in the pipe.
        let head = run(case, "{ CALL; echo $? >status; } | head -n 1 >/dev/null; cat status", &["--json"]);
        assert_eq!(head.out, format!("{}\n", case.status), "{}: {}", case.call, head.err);
        let closed = run(case, "CALL >&-", &[]);
        assert_eq!(closed.status, case.status, "{}: {}", case.call, closed.err);
    }
}

/// Wraps a call so that its standard output is a terminal of 80 columns.
const TERMINAL: &str = "export SHELL=/bin/sh; cat >call <<'END'\nstty cols 80 -opost\nCALL\nEND\n\
    script -qec \"h='$h' s='$s' sh call\" /dev/null </dev/null";

#[test]
fn on_a_terminal_records_are_a_table() {
    if !has("script") {
        return;
    }
    for case in CASES {
        // The owner of a claim would be another shell there, which is fine: it lives while the call does.
        let colored = run(case, &format!("export TERM=xterm; {TERMINAL}"), &[]);
        assert_eq!(colored.status, case.status, "{}: {}{}", case.call, colored.out, colored.err);
        for plain in ["TERM=dumb", "TERM=xterm NO_COLOR=1"] {
            let ran = run(case, &format!("export {plain}; {TERMINAL}"), &[]);
            assert_eq!(ran.status, case.status, "{}: {}", case.call, ran.out);
            assert!(!ran.out.contains('\u{1b}'), "{} {plain}: {:?}", case.call, ran.out);
        }
        let shows_state = row(case).columns.iter().any(|name| matches!(*name, "state" | "outcome"));
        let first = colored.out.lines().next().unwrap_or_default();
        if shows_state && first.starts_with(|c: char| c.is_ascii_uppercase()) {
            let names: Vec<String> = first.split_whitespace().map(str::to_lowercase).collect();
            assert_eq!(names, row(case).columns, "{}", case.call);
        }
    }
}

#[test]
fn a_terminal_that_may_be_coloured_is() {
    if !has("script") {
        return;
    }
    let case = CASES.iter().find(|case| case.name == "ares-run").expect("a case");
    let ran = run(case, &format!("export TERM=xterm; {TERMINAL}"), &[]);
    assert!(ran.out.contains("\u{1b}[32mok\u{1b}[0m"), "{:?}", ran.out);
}

#[test]
fn help_goes_to_standard_output_and_is_no_failure() {
    let lab = Lab::new();
    for command in COMMANDS {
        for flag in ["--help", "-h"] {
            let ran = lab.run(command.name, &[flag]);
            assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{} {flag}", command.name);
            assert!(ran.out.contains("Usage:"), "{}: {}", command.name, ran.out);
            assert!(!ran.out.contains('\u{1b}'), "{}", command.name);
        }
    }
}
