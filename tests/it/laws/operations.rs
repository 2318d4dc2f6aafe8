//! Every command that is one operation may be repeated: under the same id it gives its first answer and applies
//! nothing, wherever the first time was killed; under the id of another request it is a conflict. The commands are
//! taken from the table, so a new one fails here until it has its row.

use crate::harness::{Lab, Ran, no_complaints, ran};
use crate::stock::{Stock, program};
use ares::cli::COMMANDS;

/// Commands that change something and take no id, because they drive many operations, each with its own commit.
const DRIVERS: &[&str] = &["ares-run"];

/// How a command is called in a store that `setup` prepared; in both, HANDLE is what the setup's last claim printed.
struct Case {
    command: &'static str,
    setup: &'static str,
    args: &'static [&'static str],
    /// Another request for the same command.
    other: &'static [&'static str],
    input: &'static str,
}

const UNCERTAIN: &str =
    "ares-submit -- sleep 9; ares-submit -- true; H=$(ares-claim --owner $ME); ares-settle $H ambiguous";

const CASES: &[Case] = &[
    Case { command: "ares-init", setup: "", args: &[".ares"], other: &["--adopt", ".ares"], input: "" },
    Case {
        command: "ares-init",
        setup: "ares-submit -- true; ares-claim --owner $ME; cp -a .ares copy; rm -r .ares; mv copy .ares",
        args: &["--adopt", ".ares"],
        other: &[".ares"],
        input: "",
    },
    Case { command: "ares-submit", setup: "", args: &["--", "true"], other: &["--", "false"], input: "" },
    Case {
        command: "ares-submit",
        setup: "",
        args: &["--stdin", "--label", "many"],
        other: &["--stdin"],
        input: "{\"argv\":[\"true\"]}\n{\"argv\":[\"false\"],\"key\":\"k\"}\n",
    },
    Case {
        command: "ares-submit",
        setup: "ares-submit --label l -- true",
        args: &["--if-active", "l", "skip", "--", "true"],
        other: &["--if-active", "l", "queue", "--", "true"],
        input: "",
    },
    Case {
        command: "ares-stop",
        setup: "ares-submit --label l -- true; ares-submit --label l -- true; ares-claim --owner $ME",
        args: &["--label", "l"],
        other: &["1"],
        input: "",
    },
    Case {
        command: "ares-claim",
        setup: "ares-submit -- true; ares-submit -- true",
        args: &["--owner", "ME"],
        other: &["--owner", "ME", "--reserve"],
        input: "",
    },
    Case {
        command: "ares-settle",
        setup: "ares-submit -- true; H=$(ares-claim --owner $ME)",
        args: &["HANDLE", "error", "--retry", "--usage", "input=1,output=2", "--result", "-"],
        other: &["HANDLE", "ok"],
        input: "an answer",
    },
    Case {
        command: "ares-settle",
        setup: "ares-submit -- true; H=$(ares-claim --owner $ME --reserve)",
        args: &["HANDLE", "void"],
        other: &["HANDLE", "void", "--lasting"],
        input: "",
    },
    Case {
        command: "ares-reconcile",
        setup: UNCERTAIN,
        args: &["1", "--decide", "retry", "--because", "so"],
        other: &["1", "--decide", "retry", "--because", "thus"],
        input: "",
    },
    Case {
        command: "ares-reconcile",
        setup: "printf 'scenario: killed-saved\\nremember\\n' | ares-submit -w synthetic; ares-run -q",
        args: &["1", "--adopt"],
        other: &["1", "--decide", "ok", "--because", "so"],
        input: "",
    },
    Case {
        command: "ares-gc",
        setup: "for n in 1 2 3; do ares-submit -- echo $n; done; ares-run --drain",
        args: &["--keep", "1", "--export", "."],
        other: &["--keep", "2", "--export", "."],
        input: "",
    },
    Case {
        command: "ares-reconcile",
        setup: UNCERTAIN,
        args: &["1", "--decide", "ok", "--because", "so"],
        other: &["1", "--decide", "error", "--because", "so"],
        input: "",
    },
];

/// A store that was prepared for a case, and its handle.
struct Ready {
    stock: Stock,
    handle: String,
}

impl Case {
    fn ready(&self) -> Ready {
        let stock = Stock::new();
        let me = std::process::id();
        let script =
            format!("ME={me}; {{ {}; }} >/dev/null; echo $H", if self.setup.is_empty() { ":" } else { self.setup });
        let handle = stock.bash(&script, 0);
        Ready { stock, handle }
    }

    /// Runs it, with a fault where one is asked for.
    fn run(&self, ready: &Ready, args: &[&str], fault: Option<&str>) -> Ran {
        let me = std::process::id().to_string();
        let args = args.iter().map(|arg| arg.replace("HANDLE", &ready.handle).replace("ME", &me));
        let mut command = ready.stock.command(program(self.command));
        command.args(["--json", "--op-id", "law-1"]).args(args).write_stdin(self.input);
        if let Some(fault) = fault {
            command.env("ARES_FAULT", fault);
        }
        ran(command.output().expect("it starts"))
    }
}

/// A command's status and answer, without what differs from store to store.
fn told(lab: &Lab, ran: &Ran) -> (i32, String) {
    let store = format!("{}/", lab.path().display());
    (ran.status, lab.normal(&ran.out).replace("[..]/", "").replace(&store, "").split("-").map(nonce).collect())
}

/// A handle's secret is its own each time; what follows it stays.
fn nonce(part: &str) -> String {
    let secret = part.len() > 10 && part.bytes().take(10).all(|b| b.is_ascii_alphanumeric());
    if secret { part[10..].to_owned() } else { part.to_owned() }
}

#[test]
fn every_operation_has_its_case() {
    let mut complaints = Vec::new();
    for command in COMMANDS.iter().filter(|command| command.mutates) {
        let covered = CASES.iter().any(|case| case.command == command.name);
        if command.repeats != covered || command.repeats == DRIVERS.contains(&command.name) {
            complaints.push(format!("{}: add its case, or say why it is a driver", command.name));
        }
    }
    no_complaints(&complaints);
}

#[test]
fn repeated_it_gives_the_first_answer_and_applies_nothing() {
    for case in CASES {
        let ready = case.ready();
        let name = format!("{} {:?}", case.command, case.args);
        let before = ready.stock.picture();
        let first = case.run(&ready, case.args, None);
        assert_eq!(first.status, 0, "{name}: {}", first.err);
        let picture = ready.stock.picture();
        assert_ne!(picture, before, "{name}: nothing was changed");
        let again = case.run(&ready, case.args, None);
        assert_eq!((again.status, &again.out), (0, &first.out), "{name}: {}", again.err);
        assert_eq!(ready.stock.picture(), picture, "{name}: it was applied twice");
        let other = case.run(&ready, case.other, None);
        assert_eq!(other.status, 3, "{name}: {}{}", other.out, other.err);
        assert!(other.err.contains("ARES_OPERATION_CONFLICT"), "{name}: {}", other.err);
        assert_eq!(ready.stock.picture(), picture, "{name}: a conflict changed something");
    }
}

#[test]
fn killed_anywhere_and_repeated_it_is_applied_once() {
    if !cfg!(debug_assertions) {
        return crate::harness::skipped("a release build has no fault points");
    }
    let mut deaths = 0;
    for case in CASES {
        let reference = case.ready();
        let wanted = told(&reference.stock, &case.run(&reference, case.args, None));
        let picture = reference.stock.picture();
        for point in ["store.began", "store.before_commit", "store.after_commit"] {
            for nth in 1.. {
                let ready = case.ready();
                let name = format!("{} {:?} at {point}:{nth}", case.command, case.args);
                let killed = case.run(&ready, case.args, Some(&format!("{point}:{nth}")));
                let survived = killed.status != 137;
                deaths += u32::from(!survived);
                let again = case.run(&ready, case.args, None);
                assert_eq!(told(&ready.stock, &again), wanted, "{name}: {}", again.err);
                assert_eq!(ready.stock.picture(), picture, "{name}");
                if survived {
                    break;
                }
            }
        }
    }
    // At least once at each point, so a point that was lost is noticed.
    assert!(deaths >= 3 * u32::try_from(CASES.len()).expect("few"), "only {deaths} deaths");
}

#[test]
fn a_commit_that_failed_is_unknown_and_may_be_repeated() {
    if !cfg!(debug_assertions) {
        return crate::harness::skipped("a release build has no fault points");
    }
    for case in CASES {
        let ready = case.ready();
        let failed = case.run(&ready, case.args, Some("store.commit:err"));
        assert_eq!(failed.status, 7, "{}: {}", case.command, failed.err);
        assert!(failed.err.contains("ARES_COMMIT_UNKNOWN"), "{}", failed.err);
        let again = case.run(&ready, case.args, None);
        assert_eq!(again.status, 0, "{}: {}", case.command, again.err);
    }
}

#[test]
fn what_cannot_be_repeated_takes_no_id() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    let refuse = |name: &str, args: &[&str], status| {
        let ran = stock.run(name, args);
        assert_eq!(ran.status, status, "{name}: {}", ran.err);
        assert!(ran.err.contains("ARES_USAGE") && ran.err.contains("--op-id"), "{name}: {}", ran.err);
    };
    refuse("ares-run", &["--op-id", "x"], 2);
    refuse("ares-claim", &["--op-id", "x", "--", "true"], 125);
    refuse("ares-claim", &["--op-id", "x", "--owner-file"], 2);
    refuse("ares-reconcile", &["--op-id", "x"], 2);
    assert_eq!(stock.state("1"), "queued");
}
