//! The arguments of `codex exec`, as codex takes and refuses them: which flags stand before `resume` only, which at
//! both places, and with which words the others are refused.

/// One call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Call {
    /// The session to continue, as given.
    pub(super) resume: Option<String>,
    /// The sandbox, where a flag names one.
    pub(super) sandbox: Option<String>,
    /// The model, where a flag names one.
    pub(super) model: Option<String>,
    /// What `-c` sets.
    pub(super) settings: Vec<String>,
    /// Whether events are asked for.
    pub(super) json: bool,
    /// Whether it may run outside a repository.
    pub(super) anywhere: bool,
    /// Whether the session is not to be kept.
    pub(super) ephemeral: bool,
    /// The prompt, where it is an argument; else it is standard input.
    pub(super) prompt: Option<String>,
}

/// A refusal: the exit status and what stands on standard error.
pub(super) type Refusal = (u8, String);

/// Flags with a value that stand at both places.
const VALUES: &[&str] =
    &["-c", "--config", "--enable", "--disable", "-i", "--image", "-m", "--model", "-o", "--output-last-message"];
/// Flags with a value that stand before `resume` only.
const EXEC_VALUES: &[&str] = &["-s", "--sandbox", "-C", "--cd", "-p", "--profile", "--add-dir", "--color"];
/// Flags without a value that stand at both places.
const SWITCHES: &[&str] =
    &["--json", "--skip-git-repo-check", "--ephemeral", "--ignore-user-config", "--strict-config"];
/// Features that `--enable` and `--disable` know; any other is an error.
const FEATURES: &[&str] = &[
    "apps",
    "goals",
    "hooks",
    "multi_agent",
    "plugins",
    "remote_plugin",
    "shell_tool",
    "unbounded_connection_retries",
    "unified_exec",
    "view_image",
];

/// Reads the arguments behind the program's name.
pub(super) fn parse(args: &[String]) -> Result<Call, Refusal> {
    let mut words = args.iter();
    match words.next().map(String::as_str) {
        Some("exec") => {}
        Some(other) => return Err(usage(&format!("unrecognized subcommand '{other}'"), "codex [OPTIONS] [PROMPT]")),
        None => return Err((1, "Error: stdin is not a terminal".to_owned())),
    }
    let mut call = Call::default();
    let (mut resuming, mut last, mut positionals, mut only_words) = (false, false, Vec::new(), false);
    while let Some(word) = words.next() {
        if only_words || word == "-" || !word.starts_with('-') {
            if word == "resume" && !resuming && !only_words && positionals.is_empty() {
                resuming = true;
            } else {
                positionals.push(word.clone());
            }
            continue;
        }
        let (flag, attached) = match word.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        match flag {
            "--" => only_words = true,
            "--last" if resuming => last = true,
            _ if SWITCHES.contains(&flag) => switch(&mut call, flag),
            _ if VALUES.contains(&flag) || (!resuming && EXEC_VALUES.contains(&flag)) => {
                let value = attached.or_else(|| words.next().cloned());
                let value = value.ok_or_else(|| no_value(flag, resuming))?;
                valued(&mut call, flag, value)?;
            }
            _ => return Err(unexpected(word, resuming)),
        }
    }
    place(&mut call, positionals, resuming, last)?;
    Ok(call)
}

fn switch(call: &mut Call, flag: &str) {
    match flag {
        "--json" => call.json = true,
        "--skip-git-repo-check" => call.anywhere = true,
        "--ephemeral" => call.ephemeral = true,
        _ => {}
    }
}

fn valued(call: &mut Call, flag: &str, value: String) -> Result<(), Refusal> {
    match flag {
        "-s" | "--sandbox" => {
            if !["read-only", "workspace-write", "danger-full-access"].contains(&value.as_str()) {
                let words = format!(
                    "invalid value '{value}' for '--sandbox <SANDBOX_MODE>'\n  \
                     [possible values: read-only, workspace-write, danger-full-access]"
                );
                return Err((2, format!("error: {words}\n\nFor more information, try '--help'.")));
            }
            call.sandbox = Some(value);
        }
        "-m" | "--model" => call.model = Some(value),
        "-c" | "--config" if !value.contains('=') => {
            return Err((1, format!("Error parsing -c overrides: Invalid override (missing '='): {value}")));
        }
        "-c" | "--config" => call.settings.push(value),
        "--enable" | "--disable" if !FEATURES.contains(&value.as_str()) => {
            return Err((1, format!("Error: Unknown feature flag: {value}")));
        }
        "--enable" | "--disable" => call.settings.push(format!("features.{value}={}", flag == "--enable")),
        _ => {}
    }
    Ok(())
}

/// Gives the words without a flag their places.
fn place(call: &mut Call, positionals: Vec<String>, resuming: bool, last: bool) -> Result<(), Refusal> {
    let mut positionals = positionals.into_iter();
    if resuming && !last {
        call.resume = Some(positionals.next().unwrap_or_default());
    }
    call.prompt = positionals.next().filter(|word| word != "-");
    positionals.next().map_or(Ok(()), |word| Err(unexpected(&word, resuming)))
}

fn unexpected(word: &str, resuming: bool) -> Refusal {
    usage(&format!("unexpected argument '{word}' found"), line(resuming))
}

fn no_value(flag: &str, resuming: bool) -> Refusal {
    usage(&format!("a value is required for '{flag}' but none was supplied"), line(resuming))
}

fn line(resuming: bool) -> &'static str {
    if resuming { "codex exec resume [OPTIONS] [SESSION_ID] [PROMPT]" } else { "codex exec [OPTIONS] [PROMPT]" }
}

fn usage(what: &str, line: &str) -> Refusal {
    (2, format!("error: {what}\n\nUsage: {line}\n\nFor more information, try '--help'."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Call, Refusal> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn both_forms_of_a_turn_are_read() {
        let call = read("exec -s read-only --json --skip-git-repo-check -c a=1 -m m -").unwrap();
        assert_eq!((call.sandbox.as_deref(), call.model.as_deref()), (Some("read-only"), Some("m")));
        assert!(call.json && call.anywhere && call.resume.is_none() && call.prompt.is_none());
        let call = read("exec -s read-only resume --json -c a=1 ID -").unwrap();
        assert_eq!((call.resume.as_deref(), call.prompt), (Some("ID"), None));
        assert_eq!(read("exec -- resume").unwrap().prompt.as_deref(), Some("resume"));
        assert_eq!(read("exec resume ID text").unwrap().prompt.as_deref(), Some("text"));
        assert_eq!(read("exec resume --last text").unwrap().resume, None);
    }

    #[test]
    fn what_codex_refuses_is_refused_with_its_words() {
        for (line, status, words) in [
            ("exec resume --json -s read-only ID -", 2, "error: unexpected argument '-s' found"),
            ("exec resume --sandbox=read-only ID -", 2, "error: unexpected argument '--sandbox=read-only' found"),
            ("exec --last -", 2, "error: unexpected argument '--last' found"),
            ("exec -a never -", 2, "error: unexpected argument '-a' found"),
            ("exec -s everything -", 2, "error: invalid value 'everything'"),
            ("exec -m", 2, "error: a value is required for '-m'"),
            ("exec a b", 2, "error: unexpected argument 'b' found"),
            ("exec --disable nosuch -", 1, "Error: Unknown feature flag: nosuch"),
            ("exec -c nosuch -", 1, "Error parsing -c overrides"),
            ("login", 2, "error: unrecognized subcommand 'login'"),
        ] {
            let (was, text) = read(line).unwrap_err();
            assert_eq!(was, status, "{line}");
            assert!(text.starts_with(words), "{line}: {text}");
        }
    }

    #[test]
    fn the_adapter_never_writes_what_is_refused() {
        let mut spec = crate::worker::sample::spec("codex", &["--add-dir", "/srv/more", "--disable", "goals"]);
        spec.options = [("profile".to_owned(), "p".to_owned()), ("user_config".to_owned(), "ignore".to_owned())].into();
        for resume in [None, Some("0190d3a1-0000-7000-8000-000000000001")] {
            let plan = crate::worker::Adapter::Codex.plan(&spec, resume, "1.1").unwrap();
            let call = parse(&plan.args).unwrap();
            assert_eq!(call.resume.as_deref(), resume);
            assert!(call.json && call.anywhere && call.prompt.is_none());
            assert!(call.settings.contains(&"approval_policy=\"never\"".to_owned()));
        }
    }
}
