//! What the README says beside its session: the commands of its timers work as they stand, under the environment that
//! cron and systemd give them, and its table of exit statuses is the one of the source.

use crate::harness::{Lab, ROOT, Ran, bin_dir, has, text};
use ares::cli::statuses;
use std::os::unix::fs::PermissionsExt as _;

/// The text of a block with this language.
fn block(language: &str) -> String {
    let readme = text("README.md");
    let fence = format!("```{language}\n");
    let rest = readme.split_once(&fence).unwrap_or_else(|| panic!("no block of {language}")).1;
    rest.split_once("```").expect("its end").0.to_owned()
}

/// Runs one line as cron and systemd do: without a terminal, in a session of its own, under nearly no environment.
fn bare(lab: &Lab, assignments: &[String], line: &str) -> Ran {
    let home = lab.path().display();
    let line = line.replace('\'', r"'\''");
    let script = format!(
        "umask 000; cd /; env -i HOME='{home}' LOGNAME=me SHELL=/bin/sh PATH=/usr/bin:/bin {} setsid -w /bin/sh -c '{line}' </dev/null",
        assignments.join(" ")
    );
    lab.sh(&script)
}

#[test]
fn the_table_of_exit_statuses_is_the_one_of_the_source() {
    let readme = text("README.md");
    let table = readme.split_once("|---|---|---|\n").expect("the table").1.split_once("\n\n").expect("its end").0;
    let rows: Vec<&str> = table.lines().collect();
    let wanted: Vec<String> = statuses().iter().map(|(status, meaning)| format!("| {status} | {meaning} | ")).collect();
    assert_eq!(rows.len(), wanted.len());
    for (row, wanted) in rows.iter().zip(&wanted) {
        assert!(row.starts_with(wanted.as_str()), "{row}\nshould begin with\n{wanted}");
    }
}

#[test]
fn the_lines_of_the_crontab_work_as_cron_runs_them() {
    let lab = Lab::new();
    let here = lab.path().display().to_string();
    let adapt =
        |text: &str| text.replace("/home/me/.cargo/bin", &bin_dir().display().to_string()).replace("/home/me", &here);
    let (mut assignments, mut commands) = (Vec::new(), Vec::new());
    for line in block("crontab").lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if line.split('=').next().is_some_and(|name| name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')) {
            assignments.push(adapt(line));
            continue;
        }
        let mut words = line.split_whitespace();
        let fields = words.by_ref().take(5).count();
        assert_eq!(fields, 5, "{line}");
        assert!(!line.replace("\\%", "").contains('%'), "cron ends the line at a bare %: {line}");
        let at = line.match_indices("  ").last().expect("two blanks before the command").0;
        commands.push(adapt(line[at..].trim()).replace("\\%", "%"));
    }
    assert_eq!(commands.len(), 4, "{commands:?}");
    assert_eq!(bare(&lab, &assignments, "ares init >/dev/null").status, 0);
    // In the order of a day: queued at six, twice by mistake, run, looked after.
    for line in [&commands[1], &commands[1], &commands[0], &commands[2], &commands[0], &commands[3]] {
        let ran = bare(&lab, &assignments, line);
        assert_eq!((ran.status, ran.out.as_str(), ran.err.as_str()), (0, "", ""), "{line}");
    }
    let list = bare(&lab, &assignments, "ares list --format \"%(job) %(state) %(labels)\"");
    assert_eq!(list.out, "1 succeeded [\"report\"]\n", "{}", list.err);
    // Two at once do no harm, and a failed job is no mail.
    bare(&lab, &assignments, "for i in 1 2 3 4 5 6; do ares submit -- sh -c \"sleep 0.1; exit 1\"; done");
    let both = bare(&lab, &assignments, "ares run --drain -q >/dev/null & ares run --drain -q >/dev/null; wait");
    assert_eq!(both.err, "");
    let list = bare(&lab, &assignments, "ares list --state failed --format \"%(tries)\" --since 1d | sort | uniq -c");
    assert_eq!(bare(&lab, &assignments, "ares fsck").status, 0, "the lines leave nothing odd in the store");
    assert_eq!(list.out.trim(), "6 1", "each was run once: {}", list.err);
    // What became uncertain is told.
    bare(&lab, &assignments, "ares submit --timeout 100ms --grace 50ms -- sleep 60");
    for line in [&commands[0], &commands[2]] {
        let ran = bare(&lab, &assignments, line);
        assert_eq!((ran.status, ran.out.as_str()), (10, ""), "{line}");
        assert!(ran.err.contains("ARES_UNCERTAIN"), "{line}: {}", ran.err);
    }
}

#[test]
fn the_unit_runs_what_is_queued_and_files_are_private_under_any_umask() {
    let lab = Lab::new();
    let here = lab.path().display().to_string();
    let unit = block("ini").replace("%h/.cargo/bin", &bin_dir().display().to_string()).replace("%h", &here);
    let value = |key: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_else(|| panic!("no {key}")).to_owned()
    };
    let assignments = [value("Environment=")];
    let ares = bin_dir().join("ares").display().to_string();
    assert_eq!(bare(&lab, &assignments, &format!("{ares} init && {ares} submit -- sh -c \"umask >m\" ")).status, 0);
    let statuses = value("SuccessExitStatus=");
    let ran = bare(&lab, &assignments, &value("ExecStart="));
    assert!(ran.status == 0 || statuses.split(' ').any(|status| status == ran.status.to_string()), "{}", ran.err);
    let mut open = vec![lab.path().join(".ares")];
    while let Some(path) = open.pop() {
        let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).expect("it can be read").map(|entry| entry.expect("an entry").path()));
        }
    }
}

#[test]
fn the_manual_and_the_completions_are_found_where_the_lines_put_them() {
    let lab = Lab::new();
    let home = lab.path().display();
    let lines = block("sh");
    let script = format!(
        "set -e; export HOME='{home}'; mkdir -p $HOME/.cargo/bin; cd '{}'; {lines}
         cat ~/.local/share/bash-completion/completions/ares-submit ~/.config/fish/completions/ares-submit.fish ~/.zfunc/_ares >/dev/null",
        ROOT
    );
    let ran = lab.sh(&script);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{}", ran.out);
    if has("man") {
        let where_ = format!(
            "env -u MANPATH HOME='{home}' PATH='{home}/.cargo/bin:/usr/bin:/bin' man -w ares-submit ares-errors"
        );
        assert_eq!(lab.sh(&where_).out.lines().count(), 2, "man looks beside a directory of PATH");
    }
}
