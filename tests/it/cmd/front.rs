//! `ares`: its own commands in its own process, those of others, help, suggestions.

use crate::harness::Lab;
use ares::cli::COMMANDS;

#[test]
fn alone_it_lists_every_command() {
    let ran = Lab::new().run("ares", &[]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    for command in COMMANDS.iter().filter(|command| command.name != "ares") {
        let line = format!("  {} ", command.name.trim_start_matches("ares-"));
        assert!(ran.out.contains(&line), "{line}");
    }
}

#[test]
fn help_is_the_same_by_every_way() {
    let lab = Lab::new();
    let help = lab.run("ares-list", &["--help"]);
    assert_eq!(help.status, 0);
    assert!(help.out.contains("--after") && help.out.contains("--wait-lock"), "{}", help.out);
    assert_eq!(lab.run("ares", &["help", "list"]).out, help.out);
    assert_eq!(lab.run("ares", &["list", "--help"]).out, help.out);
    assert_eq!(lab.run("ares", &["--version"]).out, format!("ares {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(lab.run("ares", &["list", "--version"]).out, format!("ares-list {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn an_unknown_name_is_a_usage_error_with_a_suggestion() {
    let lab = Lab::new();
    let check = |name: &str, hint: &str| {
        let ran = lab.run("ares", &[name]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{name}");
        assert_eq!(ran.err.lines().nth(1), Some(hint), "{name}");
    };
    check("sumbit", "hint: did you mean ares submit?");
    check("frobnicate", "hint: ares alone lists the commands");
    check("../../bin/true", "hint: the name of a command has lower-case letters, digits and -");
    check("Submit", "hint: the name of a command has lower-case letters, digits and -");
}

#[test]
fn a_command_that_others_could_have_planted_is_passed_over() {
    let lab = Lab::new();
    let script = "mkdir open && printf '#!/bin/sh\\necho planted\\n' >open/ares-extra && chmod 755 open/ares-extra && chmod 777 open
        PATH=$PWD/open:$PATH ares extra";
    let ran = lab.sh(script);
    assert_eq!((ran.status, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("was passed over: others may write its directory"), "{}", ran.err);
}
