//! The manual and the completions are checked in, and are what the commands say of themselves now.

use super::{manual, pages};
use crate::harness::{no_complaints, same_file};
use ares::cli::{COMMANDS, front};
use clap_complete::{Shell, generate};

#[test]
fn the_manual_is_current() {
    let commands = COMMANDS.iter().map(|command| (format!("man/{}.1", command.name), manual::command(command)));
    let pages = commands.chain(pages::all().into_iter().map(|(name, page)| (format!("man/{name}.7"), page)));
    let stale: Vec<String> = pages.filter_map(|(path, page)| same_file(&path, &page).err()).collect();
    no_complaints(&stale);
}

#[test]
fn the_completions_are_current() {
    let files = [("ares.bash", Shell::Bash), ("_ares", Shell::Zsh), ("ares.fish", Shell::Fish)];
    let stale: Vec<String> = files
        .into_iter()
        .filter_map(|(name, shell)| {
            let mut script = Vec::new();
            generate(shell, &mut front::whole(), "ares", &mut script);
            let script = each(shell, &String::from_utf8(script).expect("text"));
            same_file(&format!("completions/{name}"), &script).err()
        })
        .collect();
    no_complaints(&stale);
}

/// Every command under its own name.
fn names() -> Vec<&'static str> {
    COMMANDS.iter().map(|command| command.name).filter(|name| *name != "ares").collect()
}

/// What completes `ares` completes `ares-NAME` as `ares NAME`.
fn each(shell: Shell, script: &str) -> String {
    let names = names();
    match shell {
        Shell::Bash => script.to_owned() + &BASH.replace("@NAMES@", &names.join(" ")),
        Shell::Zsh => {
            let script = script.replacen("#compdef ares\n", &format!("#compdef ares {}\n", names.join(" ")), 1);
            let script = script.replacen("\n_ares() {\n", "\n_ares__whole() {\n", 1);
            let (head, end) = script.rsplit_once("\nif [ \"$funcstack[1]\"").expect("what calls it");
            let end = end.replacen("compdef _ares ares\n", &format!("compdef _ares ares {}\n", names.join(" ")), 1);
            format!("{head}{ZSH}\nif [ \"$funcstack[1]\"{end}")
        }
        _ => {
            let line = |name: &&str| format!("complete -c {name} -w '{}'\n", name.replacen('-', " ", 1));
            script.to_owned()
                + "\n# ares-NAME is completed as ares NAME.\n"
                + &names.iter().map(line).collect::<String>()
        }
    }
}

const BASH: &str = r#"
# ares-NAME is completed as ares NAME.
_ares__each() {
    local name="${COMP_WORDS[0]##*/ares-}" previous="$3"
    name="${name#ares-}"
    [[ $COMP_CWORD -gt 1 ]] || previous="$name"
    COMP_WORDS=(ares "$name" "${COMP_WORDS[@]:1}")
    COMP_CWORD=$((COMP_CWORD + 1))
    _ares ares "$2" "$previous"
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _ares__each -o nosort -o bashdefault -o default @NAMES@
else
    complete -F _ares__each -o bashdefault -o default @NAMES@
fi
"#;

const ZSH: &str = r#"
# ares-NAME is completed as ares NAME.
_ares() {
    if [[ $service == ares-* ]]; then
        words=(ares ${service#ares-} "${(@)words[2,-1]}")
        (( CURRENT += 1 ))
    fi
    _ares__whole "$@"
}
"#;
