//! Which store is meant: named, by the environment, or upward; never one that was copied, never a URI.

use crate::harness::Lab;
use crate::stock::{Stock, bash};

#[test]
fn the_option_comes_before_the_environment_and_that_before_the_directory() {
    let stock = Stock::new();
    let script = "mkdir -p deep/er && ares-init one >/dev/null && ares-init two >/dev/null
        cd deep/er
        ares-submit --label here -- true >/dev/null
        ARES_DIR=../../one ares-submit -- true; ARES_DIR=../../one ares-submit -- true
        ARES_DIR=../../one ares-list --store ../../two
        ARES_DIR= ares-list --format '%(job) %(labels)'";
    assert_eq!(stock.bash(script, 0), "1\n2\n1 [\"here\"]");
    stock.fails("ares-list", &["--store", "none"], 5, "ARES_NO_STORE");
    assert_eq!(bash(&Lab::new(), "ares-list").status, 5);
}

#[test]
fn a_store_found_upward_must_be_trustworthy() {
    let stock = Stock::new();
    stock.bash("chmod 0755 .ares; mkdir below", 0);
    let ran = bash(&stock, "cd below; ares-list");
    assert!(ran.status == 5 && ran.err.contains("ARES_STORE_FOREIGN"), "{}", ran.err);
    // A file or an empty directory of that name is no store, and does not hide one above it.
    assert_eq!(
        stock.bash("chmod 0700 .ares; mkdir -p below/deep/.ares; : >below/.ares; cd below/deep; ares-list", 0),
        ""
    );
}

#[test]
fn a_name_is_never_read_as_a_uri() {
    let lab = Lab::new();
    for name in ["file:x?mode=memory", "file:y?nolock=1", ":memory:", "?immutable=1", "a b%20c"] {
        let script = format!("ares-init './{name}' && ares-submit --store './{name}' -- true && ares-init '{name}'");
        let ran = bash(&lab, &script);
        assert_eq!(ran.status, 0, "{name}: {}", ran.err);
        assert!(lab.path().join(name).join("ares.db").metadata().expect("a file").len() > 0, "{name}");
        assert_eq!(lab.run("ares-list", &["--store", name, "--format", "%(job)"]).out, "1\n", "{name}");
    }
}

#[test]
fn a_copied_store_is_refused_until_it_is_adopted() {
    let stock = Stock::new();
    stock.submit(&[], &["true"]);
    stock.claim(&[]);
    stock.submit(&["--if-uncertain", "hold"], &["true"]);
    stock.claim(&["--reserve"]);
    stock.bash("cp -a .ares copy; mkdir moved; tar cf - .ares | tar xf - -C moved", 0);
    for copy in ["copy", "moved/.ares"] {
        for (name, args) in [("ares-list", &[][..]), ("ares-submit", &["--", "true"]), ("ares-run", &["--drain"])] {
            stock.fails(name, &[&["--store", copy], args].concat(), 5, "ARES_STORE_COPIED");
        }
        stock.fails("ares-init", &[copy], 5, "ARES_STORE_COPIED");
        stock.fails("ares-init", &["--upgrade", copy], 5, "ARES_STORE_COPIED");
        stock.ok("ares-init", &["--adopt", copy]);
        // What ran elsewhere is not proved anything by what is missing here.
        let states = stock.ok("ares-list", &["--store", copy, "--format", "%(job) %(state) %(code)"]);
        assert_eq!(states, "1 uncertain ARES_OWNER_LOST\n2 queued");
        assert_eq!(stock.ok("ares-log", &["--store", copy, "--verb", "init", "--format", "%(detail)"]), "adopted");
    }
    assert_eq!((stock.state("1"), stock.state("2")), ("running".to_owned(), "claimed".to_owned()));
    // At home there is nothing to adopt, and what runs goes on.
    stock.ok("ares-init", &["--adopt"]);
    assert_eq!(stock.state("1"), "running");
}
