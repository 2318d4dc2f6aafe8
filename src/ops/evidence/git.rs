//! What a look at a directory's repository tells without running anything: a repository may come with programs of its
//! own for git to run. It knows files that git documents, and decides nothing.

use crate::domain::outcome::clean;
use crate::domain::time::Time;
use crate::host::dir;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// How much is read of a file of one or a few lines.
const SMALL: u64 = 1 << 16;

/// How much is read of the list of packed references.
const PACKED: u64 = 16 << 20;

/// What stands in the way of, or tells of, something that was begun and not ended.
const UNDERWAY: &[(&str, &str)] = &[
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
];

/// The commit, what was done last and when, what is half done, and a lock that was left. `words` says whether what a
/// commit says may be kept.
pub(super) fn state(work: &Path, words: bool) -> Value {
    let Some(root) = work.ancestors().find_map(|dir| repository(&dir.join(".git"))) else { return Value::Null };
    let there = |name: &str| root.join(name).symlink_metadata().is_ok();
    let head = text(&root.join("HEAD"), SMALL).unwrap_or_default().trim().to_owned();
    let commit = match head.strip_prefix("ref: ") {
        Some(name) => reference(&root, name),
        None => Some(head.clone()),
    };
    json!({
        "dir": root,
        "head": head,
        "commit": commit,
        "last": last(&root, words),
        "underway": UNDERWAY.iter().find(|(name, _)| there(name)).map(|(_, what)| what),
        "index_lock": there("index.lock"),
    })
}

/// The repository's own directory; that of a worktree lies elsewhere, and is named in a file.
fn repository(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let named = text(git, SMALL)?;
    Some(git.parent()?.join(named.trim().strip_prefix("gitdir: ")?)).filter(|dir| dir.is_dir())
}

fn text(path: &Path, max: u64) -> Option<String> {
    dir::read_bounded(path, max).ok().and_then(|bytes| String::from_utf8(bytes).ok())
}

/// The commit that a name stands for, in a file of its own or packed with others; worktrees share their names.
fn reference(root: &Path, name: &str) -> Option<String> {
    let common = text(&root.join("commondir"), SMALL).map_or_else(|| root.to_owned(), |dir| root.join(dir.trim()));
    let own = [root, &common].into_iter().find_map(|dir| text(&dir.join(name), SMALL));
    own.map(|commit| commit.trim().to_owned()).or_else(|| {
        let packed = text(&common.join("packed-refs"), PACKED)?;
        packed
            .lines()
            .find_map(|line| line.split_once(' ').filter(|(_, other)| *other == name))
            .map(|(id, _)| id.into())
    })
}

/// The last step of its HEAD: which commit, when, and in what words.
fn last(root: &Path, words: bool) -> Option<Value> {
    let (bytes, _) = dir::tail(&root.join("logs/HEAD"), SMALL).ok()?;
    let log = String::from_utf8_lossy(&bytes);
    let (who, what) = log.lines().last()?.split_once('\t')?;
    let commit = who.split(' ').nth(1)?;
    let seconds: i64 = who.rsplit(' ').nth(1)?.parse().ok()?;
    let at = Time(seconds.checked_mul(1000)?).to_string();
    Some(json!({ "commit": commit, "at": at, "what": words.then(|| clean(what)) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    #[test]
    fn a_commit_is_found_where_git_keeps_it() {
        let base = tempfile::tempdir().unwrap();
        let (work, root) = (base.path().join("work/deep"), base.path().join("work/.git"));
        fs::create_dir_all(&work).unwrap();
        assert_eq!(state(&work, true), Value::Null);
        fs::create_dir_all(root.join("worktrees/side")).unwrap();
        fs::write(root.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(root.join("packed-refs"), format!("# pack-refs\n{TWO} refs/heads/mainly\n{ONE} refs/heads/main\n"))
            .unwrap();
        let now = state(&work, true);
        assert_eq!((&now["head"], &now["commit"]), (&json!("ref: refs/heads/main"), &json!(ONE)));
        // A worktree has a HEAD and a lock of its own, and shares the names.
        let side = base.path().join("side");
        fs::create_dir(&side).unwrap();
        fs::write(side.join(".git"), format!("gitdir: {}\n", root.join("worktrees/side").display())).unwrap();
        fs::write(root.join("worktrees/side/HEAD"), "ref: refs/heads/mainly\n").unwrap();
        fs::write(root.join("worktrees/side/commondir"), "../..\n").unwrap();
        fs::write(root.join("worktrees/side/index.lock"), "").unwrap();
        let now = state(&side, true);
        assert_eq!((&now["commit"], &now["index_lock"]), (&json!(TWO), &json!(true)));
        assert_eq!(state(&work, true)["index_lock"], false);
        fs::write(root.join("worktrees/side/HEAD"), format!("{ONE}\n")).unwrap();
        assert_eq!(state(&side, true)["commit"], ONE);
    }

    #[test]
    fn what_was_done_last_is_told_and_its_words_only_where_they_may_be() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join(".git");
        fs::create_dir_all(root.join("logs")).unwrap();
        let line = |to: &str, what: &str| format!("{ONE} {to} A B <a@example.org> 1935381600 -0800\t{what}\n");
        fs::write(root.join("logs/HEAD"), line(ONE, "clone") + &line(TWO, "commit: a\u{1b}[m")).unwrap();
        let last = |words: bool| state(base.path(), words)["last"].clone();
        assert_eq!((&last(true)["commit"], &last(true)["at"]), (&json!(TWO), &json!("2031-05-01T06:00:00.000Z")));
        assert!(last(true)["what"].as_str().unwrap().starts_with("commit: a"), "{}", last(true));
        assert!(!last(true)["what"].as_str().unwrap().contains('\u{1b}'), "{}", last(true));
        assert_eq!((&last(false)["commit"], &last(false)["what"]), (&json!(TWO), &Value::Null));
        fs::create_dir(root.join("rebase-merge")).unwrap();
        assert_eq!(state(base.path(), true)["underway"], "rebase");
        fs::write(root.join("logs/HEAD"), "torn").unwrap();
        assert_eq!(last(true), Value::Null);
    }
}
