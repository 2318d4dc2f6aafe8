//! Documents that run. A session is a text with lines `$ COMMAND` (continued by `> MORE`), what the command prints on
//! both streams, and `? STATUS` where that is not 0. In what it prints, `[..]` stands for anything within a line and a
//! line `...` for any number of lines. Lines that begin with `#` are prose. A whole session runs in one shell, in an
//! empty directory, with our commands first on PATH.

use crate::harness::{Lab, ROOT, blessing, files, no_complaints, short, text};
use ares::cli::COMMANDS;
use std::path::Path;

/// The fence of a block of the README that is a session.
const FENCE: &str = "```console session\n";

/// What ends the output of each command.
const MARK: &str = "\u{1}end-of-command ";

#[derive(Debug, Default, PartialEq)]
struct Step {
    prose: String,
    command: String,
    output: Vec<String>,
    status: i32,
}

fn parse(text: &str) -> Vec<Step> {
    let mut steps = vec![Step::default()];
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            let prose = std::mem::take(&mut steps.last_mut().expect("never empty").output);
            let (prose, output): (Vec<_>, Vec<_>) = prose.into_iter().partition(|line| line.starts_with('#'));
            steps.last_mut().expect("never empty").output = output;
            let prose = prose.iter().map(|line| format!("{line}\n")).collect();
            steps.push(Step { prose, command: command.to_owned(), ..Step::default() });
            continue;
        }
        let step = steps.last_mut().expect("never empty");
        match (line.strip_prefix("> "), line.strip_prefix("? ")) {
            (Some(more), _) if step.output.is_empty() => step.command = format!("{}\n{more}", step.command),
            (_, Some(status)) => step.status = status.parse().expect("a status"),
            _ => step.output.push(line.to_owned()),
        }
    }
    steps.remove(0);
    steps
}

fn print(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        text += &format!("{}$ {}\n", step.prose, step.command.replace('\n', "\n> "));
        step.output.iter().for_each(|line| text += &format!("{line}\n"));
        if step.status != 0 {
            text += &format!("? {}\n", step.status);
        }
    }
    text
}

/// Whether the lines are as written, wildcards considered.
fn fits(wanted: &[String], found: &[String]) -> bool {
    match wanted.split_first() {
        None => found.is_empty(),
        Some((any, rest)) if any == "..." => (0..=found.len()).any(|skip| fits(rest, &found[skip..])),
        Some((line, rest)) => found.split_first().is_some_and(|(is, more)| line_fits(line, is) && fits(rest, more)),
    }
}

fn line_fits(wanted: &str, found: &str) -> bool {
    match wanted.split_once("[..]") {
        None => wanted == found,
        Some((begin, end)) => found.strip_prefix(begin).is_some_and(|rest| {
            let mut starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            starts.any(|at| line_fits(end, &rest[at..]))
        }),
    }
}

/// Runs the commands in one shell and gives what each printed and its status.
fn run(lab: &Lab, steps: &[Step]) -> Vec<(Vec<String>, i32)> {
    let mut script = String::from("exec 2>&1\n");
    for step in steps {
        script += &format!("{}\nprintf '{MARK}%s\\n' $?\n", step.command);
    }
    let ran = lab.sh(&script);
    let mut results = Vec::new();
    let mut lines = Vec::new();
    for line in ran.out.lines() {
        match line.split_once(MARK) {
            Some((before, status)) => {
                lines.extend((!before.is_empty()).then(|| before.to_owned()));
                results.push((std::mem::take(&mut lines), status.trim().parse().expect("a status")));
            }
            None => lines.push(line.to_owned()),
        }
    }
    results.resize_with(steps.len(), || (vec!["(the shell ended before this)".to_owned()], -1));
    results
}

/// Runs a session. Gives what is wrong, and the session as it should be written.
fn check(name: &str, session: &str) -> (Vec<String>, String) {
    let lab = Lab::new();
    let mut steps = parse(session);
    let mut complaints = Vec::new();
    let results = run(&lab, &steps);
    for (step, (output, status)) in steps.iter_mut().zip(results) {
        if step.status == status && fits(&step.output, &output) {
            continue;
        }
        let found: Vec<String> = lab.normal(&output.join("\n")).lines().map(str::to_owned).collect();
        complaints.push(format!(
            "{name}: $ {}\n  should: {:?} status {}\n  is:     {found:?} status {status}",
            step.command, step.output, step.status
        ));
        (step.output, step.status) = (found, status);
    }
    (complaints, print(&steps))
}

#[test]
fn written_sessions_are_true() {
    let mut complaints = Vec::new();
    for path in files(&["fixtures/sessions"], &[".txt"]) {
        let (found, better) = check(&short(&path), &text(&path));
        if !found.is_empty() && blessing() {
            std::fs::write(&path, better).expect("it can be written");
        } else {
            complaints.extend(found);
        }
    }
    no_complaints(&complaints);
}

#[test]
fn the_session_of_the_readme_is_true() {
    let readme = text("README.md");
    // Its blocks are one session, with prose between.
    let blocks: Vec<&str> =
        readme.split(FENCE).skip(1).map(|rest| rest.split_once("```\n").expect("an end of the block").0).collect();
    assert!(blocks.len() > 3 && blocks.iter().all(|block| !parse(block).is_empty()));
    let (complaints, better) = check("README.md", &blocks.concat());
    if !complaints.is_empty() && blessing() {
        let mut steps = parse(&better);
        let mut page = readme.clone();
        for block in blocks {
            let rest = steps.split_off(parse(block).len());
            page = page.replacen(&format!("{FENCE}{block}```"), &format!("{FENCE}{}```", print(&steps)), 1);
            steps = rest;
        }
        return std::fs::write(Path::new(ROOT).join("README.md"), page).expect("it can be written");
    }
    no_complaints(&complaints);
}

#[test]
fn the_examples_of_the_manual_are_true() {
    let mut complaints = Vec::new();
    for command in COMMANDS {
        let steps = parse(command.examples);
        assert!(steps.iter().any(|step| step.command.contains(command.name)), "{}: no example", command.name);
        complaints.extend(check(command.name, command.examples).0);
    }
    no_complaints(&complaints);
}

#[test]
fn a_session_that_is_not_true_is_found() {
    let (complaints, better) = check("x", "# prose\n$ echo one; exit_status() { return 3; }\ntwo\n$ exit_status\n");
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    assert_eq!(better, "# prose\n$ echo one; exit_status() { return 3; }\none\n$ exit_status\n? 3\n");
    let (complaints, _) = check("x", "$ x=5\n$ printf 'a\\nb\\nc'; exit 4\n...\n");
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    let (complaints, _) = check("x", "$ x=5\n$ printf \"a\\nb $x 7\\nc\"\n...\nb [..]7\n> c\nc\n");
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    let (complaints, _) = check("x", "$ x=5\n$ echo \"a\n> b $x 7\"; false\n...\nb [..]7\n? 1\n");
    no_complaints(&complaints);
}
