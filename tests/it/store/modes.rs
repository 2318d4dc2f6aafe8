//! Everything that ares makes is private whatever the caller's umask, and nothing is made through a planted link.

use crate::harness::Lab;
use crate::stock::{Stock, bash, program};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

fn below(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if path.symlink_metadata().expect("it is there").is_dir() {
        let entries = fs::read_dir(path).expect("it can be read");
        found.extend(entries.flat_map(|entry| below(&entry.expect("an entry").path())));
    }
    found
}

/// Uses every part of a store: small and large content, an owner file, an attempt that stays.
const USE: &str = "ares-init >/dev/null; ares-init --unsafe-fs >/dev/null
    head -c 40000 /dev/zero >large
    ares-submit --file large -- sh -c 'cat; umask >mask'
    ares-submit -- sh -c 'kill -9 $$'
    ares-run --drain --quiet >/dev/null
    exec 9>>\"$(ares-claim --owner-file)\"
    ares-submit -- true
    ares-claim --owner-fd 9";

#[test]
fn everything_is_private_under_any_umask() {
    for umask in ["000", "022", "077", "0177"] {
        let lab = Lab::new();
        let ran = bash(&lab, &format!("umask {umask}\n{USE}"));
        assert_eq!(ran.status, 0, "{}", ran.err);
        let files = below(&lab.path().join(".ares"));
        for name in ["ares.db", "ares.db-wal", "ares.db-shm", "write.lock", "init.lock", "mark", "exit", "unsafe-fs"] {
            assert!(files.iter().any(|file| file.ends_with(name)), "{name} was not made: {files:?}");
        }
        assert!(files.iter().any(|file| file.starts_with(lab.path().join(".ares/objects")) && file.is_file()));
        for file in files {
            let meta = file.symlink_metadata().expect("it is there");
            let wanted = if meta.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(meta.mode() & 0o7777, wanted, "umask {umask}: {}", file.display());
        }
        let mask = fs::read_to_string(lab.path().join("mask")).expect("the worker ran");
        assert_ne!(mask.trim(), "", "a worker has a umask");
    }
}

/// A file and a directory that must not be touched.
fn precious(lab: &Lab) -> (PathBuf, PathBuf) {
    let (file, folder) = (lab.path().join("precious"), lab.path().join("folder"));
    fs::write(&file, "precious").expect("written");
    fs::create_dir(&folder).expect("made");
    (file, folder)
}

#[test]
fn a_planted_link_is_not_followed() {
    let file_links = ["ares.db", "ares.db-wal", "ares.db-shm", "locks/init.lock", "locks/write.lock", "unsafe-fs"];
    let folder_links = ["locks", "attempts", "objects", "tmp", "attempts/1.1", "objects/a2"];
    for link in file_links.iter().chain(&folder_links) {
        let lab = Lab::new();
        let (file, folder) = precious(&lab);
        let root = lab.path().join(".ares");
        let place = root.join(link);
        bash(&lab, &format!("umask 077; mkdir -p '{}'", place.parent().expect("a parent").display()));
        symlink(if folder_links.contains(link) { &folder } else { &file }, &place).expect("planted");
        let ran = bash(&lab, &format!("exec 9>&- 2>&1\n{USE}"));
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "precious", "{link}: {}", ran.out);
        assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 0, "{link}: {}", ran.out);
        assert!(place.symlink_metadata().is_ok(), "{link} was removed");
    }
}

#[test]
fn a_link_in_the_place_of_an_object_is_replaced() {
    let stock = Stock::new();
    let (file, _) = precious(&stock);
    let script = "head -c 40000 /dev/zero >large; d=$(sha256sum large | cut -c1-64)
        ares-submit --file large -- cat >/dev/null; find .ares/objects -type f";
    let object = stock.path().join(stock.bash(script, 0));
    fs::remove_file(&object).expect("removed");
    symlink(&file, &object).expect("planted");
    stock.ok("ares-submit", &["--file", "large", "--", "cat"]);
    assert!(object.symlink_metadata().expect("it is there").is_file(), "the link was taken for the content");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "precious");
    assert_eq!(stock.bash("ares-run --job 2 --quiet >/dev/null; ares-show 2 --output stdout | wc -c", 0), "40000");
}

#[test]
fn an_object_that_was_cut_short_is_written_anew() {
    let stock = Stock::new();
    let object = stock.bash(
        "head -c 40000 /dev/zero >large; ares-submit --file large -- cat >/dev/null
        f=$(find .ares/objects -type f); : >$f; echo $f",
        0,
    );
    stock.ok("ares-submit", &["--file", "large", "--", "cat"]);
    assert_eq!(fs::metadata(stock.path().join(object)).expect("it is there").len(), 40000);
}

#[test]
fn a_store_that_others_may_change_or_own_is_refused() {
    let stock = Stock::new();
    for mode in ["0755", "0770", "0701"] {
        stock.bash(&format!("chmod {mode} .ares"), 0);
        for (name, args) in [
            ("ares-list", &[][..]),
            ("ares-submit", &["--", "true"]),
            ("ares-init", &[]),
            ("ares-init", &["--adopt"]),
            ("ares-init", &["--upgrade"]),
        ] {
            stock.fails(name, args, 5, "ARES_STORE_FOREIGN");
        }
    }
    stock.bash("chmod 0700 .ares", 0);
    stock.ok("ares-list", &[]);
    if !crate::stock::root() {
        return crate::stock::skip("only root can give a store to another user");
    }
    stock.bash("chown 65534 .ares", 0);
    stock.fails("ares-list", &[], 5, "ARES_STORE_FOREIGN");
    stock.fails("ares-init", &["--adopt"], 5, "ARES_STORE_FOREIGN");
    stock.bash("chown 0 .ares; chmod 0711 .", 0);
    let as_nobody = format!("setpriv --reuid=65534 --regid=65534 --clear-groups {} 2>&1", program("ares-list"));
    let ran = bash(&stock, &as_nobody);
    assert!(ran.status != 0 && !ran.out.contains("ARES_INTERNAL"), "{}", ran.out);
}
