//! Finding a program by name, only where nobody else could have put it.

use crate::error::{Code, Error, Result};
use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What a search came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The absolute path of the program.
    pub found: Option<PathBuf>,
    /// A program of this name that was passed over, because others may write its directory.
    pub passed_over: Option<PathBuf>,
}

/// Looks for an executable file of this name in the directory, then along a PATH. Relative and empty entries are
/// skipped, and so are directories that others may write.
pub fn find(name: &str, beside: Option<&Path>, path: &OsStr) -> Search {
    let mut search = Search::default();
    for dir in beside.map(Path::to_owned).into_iter().chain(std::env::split_paths(path)) {
        let program = dir.join(name);
        if !dir.is_absolute() || !is_program(&program) {
            continue;
        }
        if is_ours(&dir) {
            search.found = Some(program);
            break;
        }
        search.passed_over.get_or_insert(program);
    }
    search
}

/// The absolute path of the program that a job names: as named when the name has a slash, else beside our own
/// executable for the programs that we ship, else along the caller's PATH as a shell would find it.
pub fn named(name: &str, dir: &str, path: &str) -> Result<String> {
    let missing = || {
        Error::new(Code::CannotExecute, format!("cannot find the program '{name}'"))
            .hint("name it by its absolute path, or add its directory to PATH")
    };
    if name.contains('/') {
        // One that is there and cannot be executed fails at its attempt, where the reason is recorded.
        let there = Path::new(dir).join(name);
        return if there.is_file() { utf8(&there) } else { Err(missing()) };
    }
    let beside = |name: &str| std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(name)));
    let ours = beside(name).filter(|_| name.starts_with("ares-"));
    let mut along = path.split(':').filter(|dir| dir.starts_with('/')).map(|dir| Path::new(dir).join(name));
    let found = ours.filter(|path| is_program(path)).or_else(|| along.find(|path| is_program(path)));
    // The front alone is enough: cargo builds no other program for `cargo run`.
    let found = found.or_else(|| beside("ares").filter(|path| name == "ares-synthetic" && is_program(path)));
    utf8(&found.ok_or_else(missing)?)
}

fn utf8(path: &Path) -> Result<String> {
    let not = || Error::new(Code::BadInput, format!("the path '{}' is not UTF-8", path.display()));
    path.to_str().map(str::to_owned).ok_or_else(not)
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Whether only root and the caller can put files into the directory. The sticky bit does not help: it keeps others
/// from removing names, not from adding them.
fn is_ours(dir: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    dir.metadata().is_ok_and(|meta| (meta.uid() == 0 || meta.uid() == me) && meta.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};

    #[test]
    fn only_safe_places_are_searched() {
        let root = tempfile::tempdir().unwrap();
        let make = |dir: &str, mode: u32| {
            let dir = root.path().join(dir);
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join("ares-x"), "").unwrap();
            fs::set_permissions(dir.join("ares-x"), Permissions::from_mode(0o755)).unwrap();
            fs::set_permissions(&dir, Permissions::from_mode(mode)).unwrap();
            dir
        };
        let (open, safe, beside) = (make("open", 0o777), make("safe", 0o755), make("beside", 0o700));
        let path = std::env::join_paths([Path::new(""), Path::new("relative"), &open, &safe]).unwrap();
        let search = find("ares-x", None, &path);
        assert_eq!(search.found, Some(safe.join("ares-x")));
        assert_eq!(search.passed_over, Some(open.join("ares-x")));
        assert_eq!(find("ares-x", Some(&beside), &path).found, Some(beside.join("ares-x")));
        fs::set_permissions(safe.join("ares-x"), Permissions::from_mode(0o644)).unwrap();
        assert_eq!(find("ares-x", None, &path).found, None);
    }

    #[test]
    fn a_job_names_its_program_as_in_a_shell() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().to_str().unwrap();
        fs::write(dir.path().join("plain"), "").unwrap();
        assert!(named("sh", "/", "/usr/bin:/bin").unwrap().ends_with("/sh"));
        assert_eq!(named("plain", "/", at).unwrap_err().code, Code::CannotExecute);
        assert_eq!(named("./plain", at, "").unwrap(), format!("{at}/./plain"));
        assert!(named("sh", "/", "bin:.").is_err(), "relative entries of PATH do not count");
    }
}
