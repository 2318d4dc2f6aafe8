//! Which of the caller's environment variables a worker may see. It knows names only, never values.
//!
//! INVARIANT `secrets-by-name`: a variable that could hold a secret reaches a worker only if a job or the worker's entry
//! names it, and we write its value nowhere. Where a worker prints it, a mark is stored in its place.

/// Variables that every worker may see. None of them holds a secret, and none makes a program load or run something
/// else.
const BASE: &[&str] = &[
    "HOME",
    "PATH",
    "SHELL",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "TZ",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_ADDRESS",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// What drives the synthetic worker; of all names that begin with `ARES_` only these may be passed on.
pub(super) const SYNTHETIC: &[&str] = &["ARES_SYNTHETIC", "ARES_SYNTHETIC_HOME"];

/// Names of the caller's variables that are passed on without anyone asking.
pub fn base_env_names() -> &'static [&'static str] {
    BASE
}

/// Whether the caller's variable of this name may be passed on. By default only the base names are, so `LD_PRELOAD`,
/// `BASH_ENV` and every secret stay behind; what a job or its worker's entry names is passed, except `ARES_…`, by which
/// ares speaks to its own children.
pub fn may_pass(name: &str, named_by_job: bool) -> bool {
    if name.is_empty() || name.contains(['=', '\0']) {
        return false;
    }
    if name.starts_with("ARES_") && !SYNTHETIC.contains(&name) {
        return false;
    }
    named_by_job || BASE.contains(&name)
}

/// Whether the value of a variable that a job names may be a secret. What every worker is given anyway, and the kind of
/// a terminal, is none; replacing it would only make the output unreadable.
pub fn may_be_secret(name: &str) -> bool {
    name != "TERM" && !BASE.contains(&name) && !SYNTHETIC.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_worker_is_given_is_no_secret() {
        for name in BASE.iter().chain(SYNTHETIC).chain(&["TERM"]) {
            assert!(!may_be_secret(name), "{name}");
        }
        assert!(may_be_secret("OPENAI_API_KEY"));
    }

    #[test]
    fn only_harmless_names_pass_unasked() {
        for name in ["HOME", "PATH", "LC_ALL", "TZ"] {
            assert!(may_pass(name, false), "{name}");
        }
        let kept = ["LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV", "OPENAI_API_KEY", "ARES_DIR", "TERM"];
        for name in kept.into_iter().chain(SYNTHETIC.iter().copied()) {
            assert!(!may_pass(name, false), "{name}");
        }
    }

    #[test]
    fn what_a_job_names_passes_except_ours() {
        for name in ["OPENAI_API_KEY", "LD_PRELOAD", "ARES_SYNTHETIC"] {
            assert!(may_pass(name, true), "{name}");
        }
        for name in ["ARES_DIR", "ARES_FAULT", "", "A=B", "A\0"] {
            assert!(!may_pass(name, true), "{name:?}");
        }
    }
}
