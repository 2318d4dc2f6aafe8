//! The generated files in the programs that read them: completions in their shells, pages in man.

use crate::harness::{Lab, ROOT, files, has, no_complaints, short};
use ares::cli::COMMANDS;

fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split('\t').next().unwrap_or_default().trim().to_owned()).collect()
}

/// Every subcommand, and `help` and the options of one.
fn offered(shell: &str, names: &[String], states: &[String]) {
    for command in COMMANDS.iter().filter_map(|command| command.name.strip_prefix("ares-")) {
        assert!(names.iter().any(|name| name == command), "{shell} does not offer {command}: {names:?}");
    }
    for state in ["queued", "uncertain"] {
        assert!(states.iter().any(|word| word == state), "{shell} does not offer {state}: {states:?}");
    }
}

#[test]
fn bash_completes() {
    if !has("bash") {
        return;
    }
    let script = format!(
        "source '{ROOT}/completions/ares.bash'
        ask() {{ COMP_WORDS=(\"$@\" ''); COMP_CWORD=$#; COMPREPLY=(); _ares ares '' \"${{!#}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"; }}
        ask ares; echo ==; ask ares list --state; echo ==
        each() {{ COMP_WORDS=(\"$@\" ''); COMP_CWORD=$#; COMPREPLY=(); _ares__each \"$1\" '' \"${{!#}}\"; printf '%s\n' \"${{COMPREPLY[@]}}\"; }}
        each ares-list --state; complete -p ares-submit; each /usr/bin/ares-submit"
    );
    let lab = Lab::new();
    let output = lab.command("bash").args(["--norc", "-c", &script]).output().expect("it starts");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let parts: Vec<&str> = text.split("==\n").collect();
    offered("bash", &lines(parts[0]), &lines(parts[1]));
    let (own, options) = parts[2].split_once("complete -o").expect("it is registered");
    offered("bash", &lines(parts[0]), &lines(own));
    assert!(lines(options).iter().any(|word| word == "--priority"), "{options}");
}

#[test]
fn fish_completes() {
    if !has("fish") {
        return;
    }
    let script = format!(
        "source {ROOT}/completions/ares.fish; complete -C 'ares '; echo ==; complete -C 'ares list --state ';
        echo ==; complete -C 'ares-list --state '; complete -C 'ares-submit --prio'"
    );
    let lab = Lab::new();
    let output = lab.command("fish").args(["--no-config", "-c", &script]).output().expect("it starts");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let parts: Vec<&str> = text.split("==\n").collect();
    offered("fish", &lines(parts[0]), &lines(parts[1]));
    offered("fish", &lines(parts[0]), &lines(parts[2]));
    assert!(lines(parts[2]).iter().any(|word| word == "--priority"), "{}", parts[2]);
}

#[test]
fn zsh_loads_its_completions() {
    if !has("zsh") {
        return;
    }
    // Completing needs a terminal's line editor; that the function loads, is registered and knows every command is
    // told without one.
    let script = format!(
        "fpath=('{ROOT}/completions' $fpath); autoload -Uz compinit; compinit -u -d dump; print -r -- $_comps[ares] $_comps[ares-submit]
        autoload +X -Uz _ares && functions _ares"
    );
    let lab = Lab::new();
    let output = lab.command("zsh").args(["-f", "-c", &script]).output().expect("it starts");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.lines().next(), Some("_ares _ares"));
    for command in COMMANDS.iter().filter_map(|command| command.name.strip_prefix("ares-")) {
        assert!(text.contains(&format!("({command})")), "zsh does not know {command}");
    }
}

#[test]
fn the_manual_renders_without_a_warning() {
    if !has("man") {
        return;
    }
    let lab = Lab::new();
    let mut complaints = Vec::new();
    for path in files(&["man"], &[".1", ".7"]) {
        for width in ["60", "80", "120"] {
            let mut man = lab.command("man");
            let man = man.env("MANWIDTH", width).args(["--warnings", "-E", "UTF-8", "-P", "cat", "-l"]).arg(&path);
            let output = man.output().expect("it starts");
            let (page, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            // A line that cannot be filled at this width is a matter of taste; everything else is a mistake.
            let bad: Vec<&str> = said
                .lines()
                .filter(|line| !line.contains("can't break line") && !line.contains("cannot adjust line"))
                .collect();
            if !output.status.success() || !bad.is_empty() {
                complaints.push(format!("{} at {width}: {bad:?}", short(&path)));
            }
            if width == "80" && !["NAME", "DESCRIPTION", "SEE ALSO"].iter().all(|part| page.contains(part)) {
                complaints.push(format!("{}: a section is missing", short(&path)));
            }
        }
    }
    no_complaints(&complaints);
}

#[test]
fn the_manual_has_no_mistake_that_a_linter_knows() {
    if !has("mandoc") {
        return;
    }
    let lab = Lab::new();
    let mut complaints = Vec::new();
    for path in files(&["man"], &[".1", ".7"]) {
        let output =
            lab.command("mandoc").args(["-T", "lint", "-W", "warning"]).arg(&path).output().expect("it starts");
        complaints.extend(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned));
    }
    no_complaints(&complaints);
}
