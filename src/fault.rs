//! Named places where a test may end or delay this process. Empty in release builds.
//!
//! `ARES_FAULT=NAME` ends the process at that point as `kill -9` would; `ARES_FAULT=NAME:N` at its N-th passing,
//! `ARES_FAULT=NAME:sleep=MS` waits there, `ARES_FAULT=NAME:err` makes [`fails`] true there, and `ARES_FAULT=NAME:err=N`
//! only at the N-th passing.

/// Marks a place where a test may kill this process.
#[inline]
pub fn point(name: &str) {
    #[cfg(debug_assertions)]
    debug::point(name);
    #[cfg(not(debug_assertions))]
    let _: &str = name;
}

/// Whether a test asked for a failure at this place. Always false in release builds.
#[inline]
pub fn fails(name: &str) -> bool {
    #[cfg(debug_assertions)]
    return debug::fails(name);
    #[cfg(not(debug_assertions))]
    {
        let _: &str = name;
        false
    }
}

#[cfg(debug_assertions)]
mod debug {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    struct Fault {
        name: String,
        action: Action,
    }

    enum Action {
        Kill { at: u32 },
        Sleep(Duration),
        Err { at: Option<u32> },
    }

    static FAULT: OnceLock<Option<Fault>> = OnceLock::new();
    static PASSED: AtomicU32 = AtomicU32::new(0);

    #[expect(clippy::disallowed_methods, reason = "a switch of tests, which no release build has")]
    fn asked() -> Option<&'static Fault> {
        FAULT
            .get_or_init(|| {
                let text = std::env::var_os("ARES_FAULT")?.into_string().ok()?;
                let (name, action) = text.split_once(':').unwrap_or((&text, "1"));
                let action = match action.strip_prefix("sleep=") {
                    Some(ms) => Action::Sleep(Duration::from_millis(ms.parse().ok()?)),
                    None if action == "err" => Action::Err { at: None },
                    None if action.starts_with("err=") => Action::Err { at: Some(action[4..].parse().ok()?) },
                    None => Action::Kill { at: action.parse().ok()? },
                };
                Some(Fault { name: name.to_owned(), action })
            })
            .as_ref()
    }

    pub(super) fn point(name: &str) {
        let Some(fault) = asked().filter(|fault| fault.name == name) else { return };
        match fault.action {
            Action::Kill { at } if PASSED.fetch_add(1, Ordering::Relaxed) + 1 == at => {
                let _killed = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            }
            Action::Sleep(time) => std::thread::sleep(time),
            Action::Kill { .. } | Action::Err { .. } => {}
        }
    }

    pub(super) fn fails(name: &str) -> bool {
        let Some(fault) = asked().filter(|fault| fault.name == name) else { return false };
        match fault.action {
            Action::Err { at: None } => true,
            Action::Err { at: Some(at) } => PASSED.fetch_add(1, Ordering::Relaxed) + 1 == at,
            Action::Kill { .. } | Action::Sleep(_) => false,
        }
    }
}
