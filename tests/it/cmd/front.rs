//! `ares`: its own commands in its own process, those of others, help, suggestions.

use crate::harness::{Lab, ROOT, bin_dir, has};
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

#[test]
fn a_command_of_someone_else_is_run_with_its_arguments_and_its_status() {
    let lab = Lab::new();
    let script = r#"mkdir -m 700 own && cat >own/ares-extra <<'END' && chmod 700 own/ares-extra
#!/bin/sh
printf '<%s>' "$@"; cat; exit 42
END
PATH=$PWD/own:$PATH; echo in | ares extra 'a b' --json -- -x; echo " $?"; ares help extra </dev/null; echo " $?"
ares submit --help >one; ares help submit >two; cmp one two; ares list --store nowhere -q; echo "$?""#;
    let ran = lab.sh(script);
    assert_eq!(ran.out, "<a b><--json><--><-x>in\n 42\n<--help> 42\n5\n", "{}", ran.err);
    assert!(ran.err.starts_with("ares-list: ARES_NO_STORE: "), "{}", ran.err);
}

#[test]
fn what_the_demonstration_shows_fits_a_small_terminal_and_is_complete_in_a_pipe() {
    let lab = Lab::new();
    let ran = lab.run("ares", &["demo"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert_eq!(ran.out.lines().count(), 5);
    assert!(ran.out.lines().all(|line| line.split('\t').count() == 4), "{}", ran.out);
    assert!(ran.out.contains("ares submit -w synthetic --continue 4 -- what did I say\tturn 2"), "{}", ran.out);
    assert_eq!(ran.err.lines().count(), 2, "{}", ran.err);
    assert_eq!(std::fs::read_dir(lab.path()).expect("it can be read").count(), 0, "nothing is left");
    if !has("script") {
        return;
    }
    let ran = lab.sh("SHELL=/bin/sh script -qec 'stty cols 80 -opost; ares demo -q' /dev/null </dev/null");
    assert_eq!(ran.out.lines().count(), 6, "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
}

#[test]
fn the_demonstration_needs_no_program_but_the_front() {
    // `cargo run` builds one program and no other.
    let lab = Lab::new();
    let alone = lab.path().join("alone");
    std::fs::create_dir(&alone).expect("a directory");
    std::fs::copy(bin_dir().join("ares"), alone.join("ares")).expect("a copy");
    let ran = lab.sh("PATH=/usr/bin:/bin alone/ares demo");
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.out.contains("what did I say\tturn 2"), "{}", ran.out);
}

#[test]
fn pages_that_belong_to_no_command_are_opened() {
    if !has("man") {
        return;
    }
    let lab = Lab::new();
    let ran =
        lab.sh(&format!("mkdir s && ln -s {} s/man7 && MANPATH=$PWD/s ares help errors", format_args!("{ROOT}/man")));
    assert!(ran.status == 0 && ran.out.contains("ARES_UNCERTAIN"), "{} {}", ran.out, ran.err);
}

#[test]
fn attempts_stand_under_each_other_on_a_terminal_as_they_end() {
    if !has("script") {
        return;
    }
    let lab = Lab::new();
    let ran = lab.sh(
        "ares init >/dev/null; ares submit -- true; ares submit -- false; ares submit --timeout 50ms --grace 50ms -- sleep 9
        SHELL=/bin/sh script -qec 'stty cols 80 -opost; ares run --drain -q' /dev/null </dev/null | grep '^[A1-3]'",
    );
    let rows: Vec<&str> = ran.out.lines().filter(|line| line.contains('.') || line.contains("OUTCOME")).collect();
    assert_eq!(rows.len(), 4, "{}", ran.out);
    for word in ["OUTCOME", "STATE", "CODE"] {
        let at = rows[0].find(word).expect("a column");
        for row in &rows[1..] {
            let (before, cell) = (row.as_bytes()[at - 1], row.as_bytes()[at]);
            assert!(before == b' ' && cell != b' ', "{word}: {row}");
        }
    }
}
