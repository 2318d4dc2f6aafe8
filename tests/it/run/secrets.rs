//! Secrets of the caller reach no worker that was not given them by name, and no file or message ever.

use super::Shop;
use std::path::Path;

pub(super) const CANARY: &str = "CANARY-4f1d9be2";

const PLANTED: &[&str] = &[
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "DATABASE_URL",
    "LD_LIBRARY_PATH",
    "LD_ORIGIN_PATH",
    "BASH_ENV_X",
    "PYTHONSTARTUP",
    "NODE_OPTIONS",
    "SSH_AUTH_SOCK",
    "ARES_HANDLE",
    "ARES_JOB",
    "ARES_OTHER",
    "TERM_PROGRAM",
];

/// Whether any file below a directory holds the canary; every byte is looked at.
pub(super) fn leaks(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(leaks(&path));
        } else if std::fs::read(&path).unwrap_or_default().windows(CANARY.len()).any(|part| part == CANARY.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

fn planted<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    PLANTED.iter().map(|name| (*name, CANARY)).chain(more.iter().copied()).collect()
}

#[test]
fn case_o5_a_worker_sees_the_documented_variables_and_nothing_else() {
    let shop = Shop::new();
    let env = planted(&[("LANG", "C.UTF-8"), ("XDG_CACHE_HOME", "/tmp/c"), ("USER", "me"), ("TERM", "xterm")]);
    assert_eq!(shop.run_with(&env, "ares-submit", &["--", "env"]).status, 0);
    assert_eq!(shop.run_with(&env, "ares-run", &[]).status, 0);
    let output = shop.output("1", "stdout");
    let mut names: Vec<&str> = output.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    names.sort_unstable();
    let allowed =
        ["ARES_ATTEMPT", "ARES_DIR", "HOME", "LANG", "LC_ALL", "PATH", "TERM", "TZ", "USER", "XDG_CACHE_HOME"];
    assert_eq!(names, allowed);
    assert!(output.contains("TERM=dumb\n") && output.contains("ARES_ATTEMPT=1.1\n"));
}

#[test]
fn case_o5_no_secret_is_in_a_file_or_a_message() {
    let shop = Shop::new();
    let traced = planted(&[("ARES_LOG", "trace")]);
    let mut said = String::new();
    let mut run = |name: &str, args: &[&str]| {
        let ran = shop.run_with(&traced, name, args);
        said.push_str(&format!("{}{}", ran.out, ran.err));
        ran.status
    };
    // While it runs the worker's environment is looked at by itself, and the files of its attempt by us.
    run("ares-submit", &["--", "/bin/sh", "-c", "env; cat /proc/$$/environ; cat /proc/$PPID/environ"]);
    run("ares-submit", &["-w", "synthetic", "--", "scenario: fail:key\nhello"]);
    run("ares-submit", &["--", "/no/such/program"]);
    run("ares-submit", &["--timeout", "100ms", "--grace", "1ms", "--", "sleep", "60"]);
    run("ares-submit", &["--no-such-option"]);
    assert_eq!(run("ares-run", &["--drain"]), 10);
    for args in [&["--json", "1"][..], &["1", "--output", "stdout"], &["1", "--output", "stderr"]] {
        run("ares-show", args);
    }
    run("ares-list", &["--json"]);
    run("ares-log", &["--json"]);
    run("ares-reconcile", &[]);
    run("ares-claim", &["--owner", "0"]);
    assert!(said.contains("HOME="), "the worker's own environment was printed");
    assert!(!said.contains(CANARY), "{}", said.lines().find(|line| line.contains(CANARY)).unwrap_or_default());
    assert_eq!(leaks(shop.root()), Vec::<String>::new());
}

#[test]
fn case_o5_what_is_named_is_given_and_still_stored_nowhere() {
    let shop = Shop::new();
    let env = planted(&[("ARES_LOG", "trace")]);
    let script = "test \"$GITHUB_TOKEN\" = \"$(cat token)\" && test -z \"$OPENAI_API_KEY\" && echo same; echo $$ > pid; \
                  while ! [ -e go ]; do sleep 0.02; done";
    std::fs::write(shop.path().join("token"), CANARY).unwrap();
    let options = ["--env", "GITHUB_TOKEN", "--env", "ARES_OTHER", "--", "/bin/sh", "-c", script];
    let submitted = shop.run_with(&env, "ares-submit", &options);
    assert_eq!(submitted.status, 0);
    let run = shop.start(&env, "ares-run", &[]);
    shop.pid("pid");
    assert_eq!(leaks(shop.root()), Vec::<String>::new(), "while it runs");
    std::fs::write(shop.path().join("go"), "").unwrap();
    let ran = run.end();
    assert_eq!((ran.status, shop.output("1", "stdout").as_str()), (0, "same\n"));
    assert!(!format!("{}{}{}", submitted.err, ran.out, ran.err).contains(CANARY));
    assert!(shop.run("ares-show", &["--json", "1"]).out.contains("GITHUB_TOKEN"), "its name is told");
    assert_eq!(leaks(shop.root()), Vec::<String>::new(), "afterwards");
}

#[test]
fn a_value_in_the_place_of_a_name_is_refused_and_not_repeated() {
    let shop = Shop::new();
    let value = format!("TOKEN={CANARY}");
    let record = format!("{{\"argv\":[\"true\"],\"env\":[\"HOME\",\"{value}\"]}}\n");
    let one = record.replace("[\"HOME\",", "").replace("\"]}", "\"}");
    std::fs::write(shop.path().join("batch"), record).unwrap();
    std::fs::write(shop.path().join("one"), one).unwrap();
    for (script, why) in [
        (format!("ares-submit --json --env {value} -- true"), "--env takes the name of a variable, not its value"),
        (format!("echo '{{\"argv\":[\"true\"]}}' | ares-submit --stdin --env={value}"), "--env takes the name"),
        ("ares-submit --stdin <batch".to_owned(), "line 1: column 56: env takes the name"),
        ("ares-submit --stdin --label x <one".to_owned(), "line 1: column 47: env takes the name"),
        ("ares-submit --env '' -- true".to_owned(), "--env takes the name"),
    ] {
        let ran = shop.lab.sh(&script);
        assert!(ran.status == 2 && ran.err.contains(why), "{script}: {} {}", ran.status, ran.err);
        assert!(!ran.err.contains(CANARY), "{}", ran.err);
    }
    assert_eq!(leaks(shop.root()), Vec::<String>::new());
}

#[test]
fn a_named_variable_without_a_value_is_noted() {
    let shop = Shop::new();
    assert_eq!(shop.run("ares-submit", &["--env", "HOME", "--env", "NOWHERE_SET", "--", "true"]).status, 0);
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    let shown = shop.run("ares-show", &["1.1", "--format", "%(findings)"]).out;
    assert!(shown.contains("variables-not-set") && shown.contains("NOWHERE_SET") && !shown.contains("HOME"), "{shown}");
}

#[test]
fn case_o5_what_is_stored_is_readable_by_its_owner_only() {
    use std::os::unix::fs::MetadataExt;
    fn check(path: &Path) {
        let meta = std::fs::symlink_metadata(path).unwrap();
        assert_eq!(meta.mode() & 0o077, 0, "{} may be read by others", path.display());
        if meta.is_dir() {
            std::fs::read_dir(path).unwrap().flatten().for_each(|entry| check(&entry.path()));
        }
    }
    let shop = Shop::new();
    shop.script(&["--output-max", "8M"], "head -c 3000000 /dev/zero; echo $$ > pid; exec sleep 300");
    let run = shop.start(&[], "ares-run", &[]);
    shop.pid("pid");
    check(shop.root());
    assert_eq!(shop.run("ares-stop", &["1", "--hard"]).status, 0);
    run.end();
    check(shop.root());
}
