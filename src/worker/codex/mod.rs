//! `codex exec --json`: how it is called. Reading what it prints is in `read`, the texts of its failures are in
//! `failure`.
//!
//! codex takes sandbox, approval and tools from the flags of *this* process, never from the session's first turn, so
//! every call repeats every restriction. Two facts shape the arguments:
//!
//! * `-s`, `-p` and `--add-dir` belong to `exec` and stand before `resume`; after it they are errors. `-c`, `-m`,
//!   `--json` and `--skip-git-repo-check` are taken at both places, but two places are not known to add up, so all of
//!   them stand at one: after `resume` where there is one.
//! * A feature is switched off by `-c features.X=false`, which a version that lacks X ignores; `--disable X` would end
//!   such a version with status 1.
//!
//! No version has a switch for all MCP servers of the user's `config.toml`: `-c mcp_servers={}` is merged into the table
//! and changes nothing, `--ignore-user-config` drops the model provider with them, and reading that file is not ours.
//! So without `mcp=on` a turn gets `features.apps=false` and `approval_policy="never"`, under which newer versions
//! refuse every MCP tool that is not approved beforehand, and no more. Who needs certainty names the servers with
//! `mcp_off=NAME,NAME` (a name that the file lacks may end codex at its start), gives the worker a `CODEX_HOME` without
//! any, or takes `user_config=ignore` with the provider by `-c` in the worker's `args`.
//! A profile is the user's own choice and may switch on again what is off here, except the sandbox, which `-s` sets;
//! newer versions ignore an unknown profile without a word.

mod failure;
pub(super) mod kept;
mod read;
#[cfg(test)]
mod read_tests;

pub(super) use read::Reader;

use super::command::no_terminal;
use super::given::{Choices, Free, check_options, check_prompt, check_word, on, option};
use super::{Plan, env, refused};
use crate::domain::spec::Spec;
use crate::error::Result;

/// Options with a closed set of values.
const CHOICES: Choices = &[
    ("sandbox", &["read-only", "workspace-write", "danger-full-access"]),
    ("shell", &["on", "off"]),
    ("web_search", &["on", "off"]),
    ("plugins", &["on", "off"]),
    ("mcp", &["on", "off"]),
    ("user_config", &["use", "ignore"]),
    ("effort", &["none", "minimal", "low", "medium", "high", "xhigh"]),
];

/// Options whose values are names.
const FREE: Free = &[("mcp_off", check_servers), ("profile", |name| check_word("profile", name))];

/// Refuses what codex can never do.
pub(super) fn check(spec: &Spec, prompt: Option<&[u8]>) -> Result<()> {
    check_prompt("codex", prompt)?;
    check_options("codex", spec, CHOICES, FREE)?;
    split_entry(&spec.argv).map(|_| ())
}

/// Names of MCP servers become part of a setting's key, which takes bare words only.
fn check_servers(names: &str) -> Result<()> {
    let bare = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    match names.split(',').find(|name| !bare(name)) {
        Some(bad) => Err(refused(format!("'{}' is no name of an MCP server", bad.escape_debug()))
            .hint("write mcp_off=NAME or mcp_off=NAME,NAME")),
        None => Ok(()),
    }
}

/// The arguments that the worker's entry fixes: those that stand before `resume`, and those that stand after it.
fn split_entry(argv: &[String]) -> Result<(Vec<String>, Vec<String>)> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut words = argv.iter();
    while let Some(word) = words.next() {
        let place = match word.as_str() {
            "--add-dir" => &mut before,
            "-c" | "--config" | "--enable" | "--disable" => &mut after,
            "--strict-config" => {
                after.push(word.clone());
                continue;
            }
            _ => {
                return Err(refused(format!("'{word}' cannot be an argument of a codex worker"))
                    .hint("write -c KEY=VALUE, --enable X, --disable X, --strict-config or --add-dir DIR"));
            }
        };
        let value = words.next().ok_or_else(|| refused(format!("'{word}' needs a value")))?;
        if value.is_empty() || value.starts_with('-') || value.contains('\0') {
            return Err(refused(format!("'{}' is no value of '{word}'", value.escape_debug())));
        }
        place.extend([word.clone(), value.clone()]);
    }
    Ok((before, after))
}

/// The call of one turn; the prompt comes on standard input.
pub(super) fn plan(spec: &Spec, resume: Option<&str>) -> Result<Plan> {
    check_options("codex", spec, CHOICES, FREE)?;
    let (before, after) = split_entry(&spec.argv)?;
    let sandbox = option(spec, "sandbox").unwrap_or("read-only");
    let mut args: Vec<String> = super::synthetic::before(&spec.program).map(str::to_owned).into_iter().collect();
    args.extend(["exec".to_owned(), "-s".to_owned(), sandbox.to_owned()]);
    if let Some(profile) = option(spec, "profile") {
        args.extend(["-p".to_owned(), profile.to_owned()]);
    }
    args.extend(before);
    if let Some(id) = resume {
        if !super::is_uuid(id) {
            // codex takes anything else for the name of a new session, and succeeds.
            return Err(refused(format!("'{}' is no id of a codex session", id.escape_debug())));
        }
        args.push("resume".to_owned());
    }
    args.extend(["--json".to_owned(), "--skip-git-repo-check".to_owned()]);
    // What the entry fixes comes first: of two values for one key the later one holds.
    args.extend(after);
    for setting in restrictions(spec, sandbox) {
        args.extend(["-c".to_owned(), setting]);
    }
    if option(spec, "user_config") == Some("ignore") {
        args.push("--ignore-user-config".to_owned());
    }
    if let Some(model) = &spec.model {
        args.extend(["-m".to_owned(), model.clone()]);
    }
    args.extend(resume.map(str::to_owned));
    args.push("-".to_owned());
    Ok(Plan { args, env: variables(spec), pass: passed(spec) })
}

/// The settings of every turn, as `KEY=VALUE` in TOML.
fn restrictions(spec: &Spec, sandbox: &str) -> Vec<String> {
    let on = |name: &str| on(spec, name);
    let mut settings = vec![format!("sandbox_mode=\"{sandbox}\""), "approval_policy=\"never\"".to_owned()];
    let mut off = |names: &[&str]| settings.extend(names.iter().map(|name| format!("features.{name}=false")));
    // Without this a codex from 0.160 on tries to connect for ever.
    off(&["unbounded_connection_retries"]);
    if !on("shell") {
        off(&["shell_tool", "unified_exec"]);
    }
    if !on("plugins") {
        off(&["plugins", "remote_plugin"]);
    }
    if !on("mcp") {
        off(&["apps"]);
    }
    let servers = option(spec, "mcp_off").into_iter().flat_map(|names| names.split(','));
    settings.extend(servers.map(|name| format!("mcp_servers.{name}.enabled=false")));
    if !on("web_search") {
        settings.push("web_search=\"disabled\"".to_owned());
    }
    settings.extend(option(spec, "effort").map(|effort| format!("model_reasoning_effort=\"{effort}\"")));
    settings
}

/// codex prints the reset of a quota as the time on a wall clock, in the zone of its own environment.
fn variables(spec: &Spec) -> Vec<(String, String)> {
    let mut variables = no_terminal(spec);
    variables.push(("TZ".to_owned(), "UTC".to_owned()));
    variables
}

/// Where codex finds its home and the certificates to trust; keys are passed only when a job or an entry names them.
fn passed(spec: &Spec) -> Vec<&'static str> {
    let mut names = vec!["CODEX_HOME", "CODEX_CA_CERTIFICATE", "SSL_CERT_FILE", "SSL_CERT_DIR"];
    if super::synthetic::is(&spec.program) {
        names.extend(env::SYNTHETIC);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::spec::PROMPT_MAX;
    use crate::error::Code;
    use crate::worker::sample;

    const ID: &str = "0190d3a1-0000-7000-8000-000000000001";

    #[test]
    fn a_first_turn_is_restricted() {
        let mut spec = sample::spec("codex", &["-c", "model_provider=\"own\"", "--add-dir", "/srv/more"]);
        spec.model = Some("m-1".to_owned());
        let plan = plan(&spec, None).unwrap();
        let expected = "exec -s read-only --add-dir /srv/more --json --skip-git-repo-check -c model_provider=\"own\" \
             -c sandbox_mode=\"read-only\" -c approval_policy=\"never\" -c features.unbounded_connection_retries=false \
             -c features.shell_tool=false -c features.unified_exec=false -c features.plugins=false \
             -c features.remote_plugin=false -c features.apps=false -c web_search=\"disabled\" \
             -m m-1 -";
        assert_eq!(plan.args.join(" "), expected);
        assert!(plan.env.contains(&("TZ".to_owned(), "UTC".to_owned())));
        assert!(plan.pass.contains(&"CODEX_HOME") && !plan.pass.iter().any(|name| name.contains("KEY")));
    }

    #[test]
    fn a_resume_repeats_every_restriction() {
        let first = plan(&sample::spec("codex", &[]), None).unwrap().args;
        let resumed = plan(&sample::spec("codex", &[]), Some(ID)).unwrap().args;
        for (at, word) in first.iter().enumerate().filter(|(_, word)| word.contains('=')) {
            assert!(resumed.contains(word), "{at} {word}");
        }
        let at = resumed.iter().position(|word| word == "resume").unwrap();
        assert_eq!(resumed[..at], ["exec", "-s", "read-only"]);
        assert_eq!(resumed[resumed.len() - 2..], [ID, "-"]);
        assert!(!resumed.iter().any(|word| word == "--last" || word == "--disable"));
    }

    #[test]
    fn options_lift_restrictions_one_by_one() {
        let mut spec = sample::spec("codex", &[]);
        for (name, value) in [
            ("sandbox", "workspace-write"),
            ("shell", "on"),
            ("web_search", "on"),
            ("plugins", "on"),
            ("mcp", "on"),
            ("mcp_off", "one,two-2"),
            ("effort", "high"),
            ("profile", "night"),
            ("user_config", "ignore"),
        ] {
            spec.options.insert(name.to_owned(), value.to_owned());
        }
        check(&spec, Some(b"p")).unwrap();
        let expected = format!(
            "exec -s workspace-write -p night resume --json --skip-git-repo-check \
             -c sandbox_mode=\"workspace-write\" -c approval_policy=\"never\" \
             -c features.unbounded_connection_retries=false -c mcp_servers.one.enabled=false \
             -c mcp_servers.two-2.enabled=false -c model_reasoning_effort=\"high\" \
             --ignore-user-config {ID} -"
        );
        assert_eq!(plan(&spec, Some(ID)).unwrap().args.join(" "), expected);
    }

    #[test]
    fn only_a_lower_case_uuid_is_resumed() {
        let spec = sample::spec("codex", &[]);
        let upper = ID.to_uppercase();
        for bad in ["", "not-a-uuid", "--last", &ID[..35], upper.as_str(), "0190d3a1000070008000000000000001"] {
            let refused = plan(&spec, Some(bad)).unwrap_err();
            assert_eq!(refused.code, Code::WorkerRefused, "{bad}");
        }
        plan(&spec, Some(ID)).unwrap();
    }

    #[test]
    fn prompts_that_codex_cannot_take_are_refused_at_submission() {
        let spec = sample::spec("codex", &[]);
        check(&spec, Some("für dich".as_bytes())).unwrap();
        check(&spec, Some(&vec![b'x'; PROMPT_MAX])).unwrap();
        for bad in [None, Some(&b""[..]), Some(b" \n"), Some(b"a\0b"), Some(b"\xff\xfe")] {
            assert_eq!(check(&spec, bad).unwrap_err().code, Code::WorkerRefused, "{bad:?}");
        }
        let long = vec![b'x'; PROMPT_MAX + 1];
        assert_eq!(check(&spec, Some(&long)).unwrap_err().code, Code::InputTooLarge);
    }

    #[test]
    fn unknown_options_and_arguments_name_what_is_allowed() {
        let mut spec = sample::spec("codex", &[]);
        spec.options.insert("sandbx".to_owned(), "read-only".to_owned());
        let error = check(&spec, Some(b"p")).unwrap_err();
        assert_eq!(error.code, Code::WorkerRefused);
        assert!(error.advice().contains("sandbox") && error.advice().contains("profile"), "{}", error.advice());
        spec.options = [("shell".to_owned(), "yes".to_owned())].into();
        assert!(check(&spec, Some(b"p")).unwrap_err().advice().contains("on, off"));
        spec.options = [("profile".to_owned(), "--full-auto".to_owned())].into();
        assert!(check(&spec, Some(b"p")).is_err());
        for names in ["", "a,", "a b", "a.b=1"] {
            spec.options = [("mcp_off".to_owned(), names.to_owned())].into();
            assert!(check(&spec, Some(b"p")).is_err(), "{names}");
        }
        for argv in [&["--dangerously-bypass-approvals-and-sandbox"][..], &["--last"], &["-c"], &["-c", "-s"], &["x"]] {
            let refused = check(&sample::spec("codex", argv), Some(b"p")).unwrap_err();
            assert_eq!(refused.code, Code::WorkerRefused, "{argv:?}");
        }
    }
}
