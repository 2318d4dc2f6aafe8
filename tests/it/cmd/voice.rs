//! How every command speaks: errors, statuses, help, and output that cannot be written.

use crate::harness::Lab;
use ares::cli::COMMANDS;

#[test]
fn a_word_in_the_wrong_place_is_told_where_it_belongs() {
    let lab = Lab::new();
    let err = |script: &str| lab.sh(script).err;
    assert!(err("ares-submit --key k true").contains("hint: its words come after --, as in ares-submit -- true"));
    assert!(err("ares claim --owner 1 true").contains("as in ares-claim -- true"));
    assert!(err("ares --store x list").contains("hint: options come after the command's name"));
    assert!(err("ares list --stat").contains("--state"), "what clap knows better stays");
}

#[test]
fn what_was_given_is_named_and_a_long_one_is_not_repeated_whole() {
    use std::os::unix::ffi::OsStrExt as _;
    let lab = Lab::new();
    let long = "x ".repeat(50_000);
    for command in COMMANDS {
        let usage = (command.usage)();
        for option in usage.get_arguments().filter(|arg| arg.get_action().takes_values()) {
            let Some(name) = option.get_long().filter(|name| !["store", "file", "dir"].contains(name)) else {
                continue;
            };
            let ran = lab.run(command.name, &[&format!("--{name}={long}")]);
            assert!(ran.err.len() < 5000, "{} --{name}: {} bytes", command.name, ran.err.len());
        }
        if command.name == "ares" {
            continue;
        }
        let bad = std::ffi::OsStr::from_bytes(b"--wait-lock=\xff");
        let mut call = lab.command(crate::harness::bin_dir().join(command.name));
        let ran = crate::harness::ran(call.arg("--quiet").arg(bad).output().expect("it starts"));
        assert!(ran.status == 2 && ran.err.contains("not UTF-8: argument 2 ('--wait-lock="), "{}", ran.err);
    }
}

#[test]
fn hints_say_what_helps() {
    let lab = Lab::new();
    let err = |script: &str| lab.sh(script).err;
    assert!(err("ares submit --timeout -5 -- true").contains("follows its option with =, as in --name=-5"));
    assert!(err("ares submit --timeout=-5 -- true").contains("invalid value '-5'"));
    assert!(err("ares list --store /etc/passwd").contains("'/etc/passwd' is a file, not a directory"));
    assert!(err("ares help submit run").contains("'run' is one too many"));
    assert!(ares::error::Code::StoreReadOnly.hint().contains("for writing"));
}

#[test]
fn every_command_refuses_what_it_does_not_know() {
    let lab = Lab::new();
    for command in COMMANDS {
        let ran = lab.run(command.name, &["--no-such-option"]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", command.name);
        let line = format!("{}: ARES_USAGE: unexpected argument '--no-such-option' found\n", command.name);
        assert!(ran.err.starts_with(&line), "{}", ran.err);
    }
}

#[test]
fn with_json_a_failure_is_also_an_object() {
    let ran = Lab::new().run("ares-list", &["--json", "--sort", "colour"]);
    let last = ran.err.lines().last().expect("a line");
    let object: serde_json::Value = serde_json::from_str(last).expect("an object");
    assert_eq!(object["error"]["code"], "ARES_USAGE");
    assert_eq!(object["error"]["exit"], 2);
    assert_eq!(ran.status, 2);
}

#[test]
fn a_format_is_refused_before_anything_is_done() {
    let lab = Lab::new();
    let ran = lab.run("ares-init", &["--format", "%(jbo)"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("unknown field 'jbo'") && ran.err.contains("hint: known fields: store"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(lab.path()).expect("it can be read").count(), 0);
}

#[test]
fn around_a_command_every_failure_of_ours_is_125() {
    let lab = Lab::new();
    assert_eq!(lab.run("ares-claim", &["--no-such-option", "--", "true"]).status, 125);
    assert_eq!(lab.run("ares-claim", &["--no-such-option"]).status, 2);
    assert_eq!(lab.run("ares-claim", &["--store", "none", "--report", "r", "--", "true"]).status, 125);
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(lab.path().join("r")).expect("a report")).expect("an object");
    assert!(report["error"]["code"].as_str().is_some_and(|code| code.starts_with("ARES_")), "{report}");
    let script = "ares init >/dev/null; ares submit -- true; ares claim --report r -- sh -c 'exit 7'; echo $?; cat r
        ares claim -q --report r -- true; echo $?; grep -o 'ARES[A-Z_]*' r";
    assert_eq!(lab.sh(script).out, "1\n7\n{\"status\":7}\n125\nARES_NOTHING_TO_CLAIM\n");
}

#[test]
fn text_of_others_cannot_act_on_a_terminal() {
    let ran = Lab::new().run("ares-list", &["--format", "%(\u{1b}[31m\u{202e}\u{7})"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("'\\x1b[31m\\u{202e}\\x07'") && !ran.err.contains('\u{1b}'), "{:?}", ran.err);
    let ran = Lab::new().run("ares-wait", &["red\u{9b}31m\u{7}"]);
    assert!(ran.err.contains("'red\\u{9b}31m"), "{:?}", ran.err);
}

#[test]
fn output_that_cannot_be_written_is_no_success() {
    let lab = Lab::new();
    let ran = lab.sh("ares-list --help >/dev/full");
    assert_eq!(ran.status, 8);
    assert!(ran.err.contains("ARES_OUTPUT_FAILED"), "{}", ran.err);
    let ran = lab.sh("{ sleep 0.2; ares-list --help; echo $? >status; } | exec <&-; cat status");
    assert_eq!(ran.out, "0\n", "a reader that went away is no failure: {}", ran.err);
}

#[test]
fn a_level_of_the_log_that_is_none_is_refused() {
    let ran = Lab::new().sh("ARES_LOG=loud ares-list");
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("'loud' is not a level for ARES_LOG"), "{}", ran.err);
}
