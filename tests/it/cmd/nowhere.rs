//! Called from a directory that was removed: what does not need one does without, and what needs one says so.

use crate::stock::Stock;

#[test]
fn only_what_needs_a_current_directory_refuses_without_one() {
    let stock = Stock::new();
    for _ in 0..4 {
        stock.submit(&[], &["true"]);
    }
    let gone = "export ARES_DIR=$PWD/.ares; mkdir gone; cd gone; rmdir ../gone";
    for (command, status) in [
        ("ares list --count", 0),
        ("ares show 1", 0),
        ("ares log", 0),
        ("ares wait 1 --timeout 0", 1),
        ("ares reconcile", 0),
        ("ares fsck", 0),
        ("ares submit --dir / -- true", 0),
        ("echo '{\"argv\":[\"true\"],\"dir\":\"/\"}' | ares submit --stdin", 0),
        ("h=$(ares claim --owner $$) && ares settle $h ok", 0),
        ("ares claim -- true", 0),
        ("ares run", 0),
        ("ares run --drain -j 2", 0),
        ("ares reconcile 1", 0),
        ("ares stop 1", 0),
        ("ares init $ARES_DIR/../new", 0),
        ("ares backup $ARES_DIR/../copy", 0),
        ("ares submit -- true", 2),
        ("ares submit --dir sub -- true", 2),
        ("ares init", 0),
        ("ares init new", 2),
        ("ares list --store .ares", 5),
        ("ARES_DIR= ares list", 2),
    ] {
        let ran = crate::stock::bash(&stock, &format!("{gone}; {command}"));
        assert_eq!(ran.status, status, "{command}: {}{}", ran.out, ran.err);
        if status == 2 {
            assert!(ran.err.contains("current directory") && ran.err.contains("hint: "), "{command}: {}", ran.err);
        }
    }
    // One that is to run where the caller is, and nowhere else.
    let script = format!("ares-submit -- true >/dev/null; {gone}; ares claim --capture -- true");
    let ran = crate::stock::bash(&stock, &script);
    assert_eq!(ran.status, 125, "{}", ran.err);
    assert!(ran.err.contains("current directory"), "{}", ran.err);
}
