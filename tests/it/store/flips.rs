//! One bit of one byte of one file of a store is turned. Whoever reads afterwards answers as before or says what it found;
//! nobody panics or blames a mistake of its own, and where an answer is another one, `ares-fsck` does not call the store
//! clean.
//!
//! `ARES_FAULTS=full` turns many more; `ARES_SEED=N` repeats one choice.

use crate::harness::{Lab, no_complaints};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// What reads: each must answer as it did, or fail with one of the statuses that say why.
const READERS: &[&[&str]] = &[
    &["ares-list", "--all", "--json"],
    &["ares-show", "1", "--json"],
    &["ares-show", "3", "--json"],
    &["ares-show", "2", "--output", "stdout"],
    &["ares-log", "--all", "--json"],
    &["ares-fsck"],
];

/// Statuses of a reader whose store is not as it was: a plain no, busy, no store or unusable, damage, a limit.
const TRUTHFUL: &[i32] = &[0, 1, 4, 5, 6];

/// Content whose row does not read any more is not found, as if it had been removed; fsck then tells who names it.
const NOT_FOUND: i32 = 14;

/// Files of which every byte is turned in a full run, and the others' share of offsets.
const SMALL: u64 = 512;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides.max(1)
    }
}

/// A store at rest with an uncertain attempt, whose directory is still there, content beside the database, a configuration,
/// and a log that was not copied into the database yet.
fn filled(end: &str) -> Lab {
    let lab = Lab::new();
    let script = "umask 077; ares-init -q .ares >/dev/null
        printf '[worker.w]\nadapter = \"command\"\n' >.ares/config.toml
        ares-submit -- echo hello; ares-submit -- head -c 40000 /dev/zero
        ares-submit --timeout 50ms --grace 50ms -- sh -c 'echo began; exec sleep 60'; ares-submit -w synthetic -- hello
        ares-submit --after 1 --label x -- false; ares-run --drain -q; ares-submit -- true; ares-gc -q >/dev/null
        ares-submit --label y -- echo again; ares-run --drain -q";
    let ran = lab.sh(&format!("{script}; {end}; ares-list --count"));
    assert_eq!(ran.out.lines().last(), Some("7"), "{ran:?}");
    lab
}

fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { below(&path, found) } else { found.push(path) }
    }
}

/// The status and the output of every reader.
fn answers(lab: &Lab) -> Vec<(i32, String, String)> {
    let ran = READERS.iter().map(|words| lab.run(words[0], &words[1..]));
    ran.map(|ran| (ran.status, ran.out, ran.err)).collect()
}

/// Every file with what it holds.
fn picture(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = Vec::new();
    below(root, &mut files);
    files.into_iter().map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

fn restore(root: &Path, wanted: &BTreeMap<PathBuf, Vec<u8>>) {
    let mut files = Vec::new();
    below(root, &mut files);
    files.iter().filter(|path| !wanted.contains_key(*path)).for_each(|path| fs::remove_file(path).unwrap());
    for (path, bytes) in wanted {
        if fs::read(path).ok().as_ref() != Some(bytes) {
            fs::write(path, bytes).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the tests' own switches")]
fn asked(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What is wrong with the answers after this byte was turned.
fn complaints(what: &str, before: &[(i32, String, String)], after: &[(i32, String, String)]) -> Vec<String> {
    let clean = after.last().is_some_and(|(status, _, _)| *status == 0);
    // SQLite ends its log before the first frame that does not read, as after a power failure: what is left is the store
    // as it was some commits ago, whose log of operations is the beginning of this one.
    let log = READERS.iter().position(|words| words[0] == "ares-log").unwrap();
    let earlier = what.contains("-wal") && before[log].1.starts_with(&after[log].1);
    // The lines of the log have no digest: their columns stand in the list of those that fsck does not cover.
    let mut all = Vec::new();
    for ((words, (was, out_was, _)), (status, out, err)) in READERS.iter().zip(before).zip(after) {
        let wrong = |why: &str| format!("{what}: {}: {why}: status {status}: {}", words.join(" "), err.trim());
        if !TRUTHFUL.contains(status) && (clean || *status != NOT_FOUND) {
            all.push(wrong("no truthful status"));
        } else if err.contains("panicked") || err.contains("ARES_INTERNAL") {
            all.push(wrong("a mistake of its own"));
        } else if status == was && out != out_was && clean && !earlier && words[0] != "ares-log" {
            all.push(wrong("another answer, and fsck finds nothing"));
        } else if *status != 0 && err.is_empty() {
            all.push(wrong("says nothing"));
        }
    }
    all
}

#[test]
fn a_turned_byte_is_told_or_changes_no_answer() {
    let seed = asked("ARES_SEED").and_then(|seed| seed.parse().ok()).unwrap_or(u64::from(std::process::id()) * 7919);
    let (mut dice, mut turns) = (Dice(seed | 1), Turns::default());
    // Once with all in the database, and once with the latest in its log, which then stands before the database.
    let (whole, logged) = (filled("ares-gc -q >/dev/null"), filled(":"));
    turns.all(&whole, &mut dice, |path| !path.ends_with("ares.db-wal"));
    turns.all(&logged, &mut dice, |path| path.ends_with("ares.db-wal"));
    let complaints: Vec<String> = turns.wrong.iter().map(|wrong| format!("seed {seed}: {wrong}")).collect();
    no_complaints(&complaints);
    // A test that turned nothing, or of which nobody noticed anything, would prove nothing.
    assert!(turns.turned > 40 && turns.told > turns.turned / 10, "{} of {} were told", turns.told, turns.turned);
}

/// What came of turning bytes.
#[derive(Default)]
struct Turns {
    wrong: Vec<String>,
    turned: u64,
    told: u64,
}

impl Turns {
    /// Turns bytes of these files of a store, one at a time.
    fn all(&mut self, lab: &Lab, dice: &mut Dice, which: impl Fn(&Path) -> bool) {
        let root = lab.path().canonicalize().unwrap().join(".ares");
        let full = asked("ARES_FAULTS").is_some_and(|asked| asked == "full");
        let files = picture(&root);
        let before = answers(lab);
        restore(&root, &files);
        assert!(before.iter().all(|(status, _, _)| *status == 0), "{before:?}");
        for (path, bytes) in files.iter().filter(|(path, bytes)| !bytes.is_empty() && which(path)) {
            let length = bytes.len() as u64;
            let offsets: Vec<u64> = match (full, length <= SMALL) {
                (true, true) => (0..length).collect(),
                (true, false) => (0..200).map(|_| dice.roll(length)).collect(),
                (false, true) => (0..4).map(|_| dice.roll(length)).collect(),
                (false, false) => (0..16).map(|_| dice.roll(length)).collect(),
            };
            for offset in offsets {
                let mut other = bytes.clone();
                other[offset as usize] ^= 1 << dice.roll(8);
                fs::write(path, &other).unwrap();
                let after = answers(lab);
                let what = format!("{} at {offset}", path.strip_prefix(&root).unwrap().display());
                self.wrong.extend(complaints(&what, &before, &after));
                self.turned += 1;
                self.told += u64::from(after.iter().any(|(status, _, _)| *status != 0));
                restore(&root, &files);
            }
        }
    }
}
