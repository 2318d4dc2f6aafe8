//! What is handed over to a worker: by standard input, whole, within bounds that are told at submission.

use super::Shop;

const MIB: usize = 1 << 20;

#[test]
fn case_45_large_prompts_arrive_whole() {
    let shop = Shop::with_config("[worker.read]\nadapter = \"codex\"\nprogram = \"./read\"\n");
    program(&shop, "read", "cat > got; tr '\\0' ' ' < /proc/$$/cmdline > argv");
    for size in [200_000, MIB] {
        let prompt = format!("{}\n", "pröm ".repeat(size / 6)).into_bytes();
        let prompt = [vec![b'x'; size - prompt.len()], prompt].concat();
        let ran = shop.feed(&prompt, "ares-submit", &["-w", "read"]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        let job = ran.out.trim();
        // It says nothing of a turn, so the attempt is uncertain; what it was given is the question here.
        shop.run("ares-run", &["--job", job]);
        assert!(std::fs::read(shop.path().join("got")).unwrap() == prompt, "{size} bytes");
        assert!(!std::fs::read_to_string(shop.path().join("argv")).unwrap().contains("xxx"));
        assert!(shop.run("ares-show", &[job, "--output", "prompt"]).out.as_bytes() == prompt);
        shop.run("ares-reconcile", &[job, "--decide", "abandon", "--because", "a test"]);
    }
    shop.clean();
}

/// Makes a shell script in the directory of the test.
pub(super) fn program(shop: &Shop, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = shop.path().join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
}

#[test]
fn case_45_prompts_that_cannot_be_handed_over_are_refused_at_submission() {
    let shop = Shop::new();
    let cases: [(&[u8], &str, &str); 4] = [
        (&vec![b'x'; MIB + 1], "ARES_INPUT_TOO_LARGE", "1048576"),
        (b"a\0b", "ARES_WORKER_REFUSED", "NUL at byte 1"),
        (b"ab\xff", "ARES_WORKER_REFUSED", "not UTF-8 from byte 2"),
        (b" \n", "ARES_WORKER_REFUSED", "needs a prompt"),
    ];
    for (prompt, code, words) in cases {
        for way in ["stdin", "file"] {
            std::fs::write(shop.path().join("prompt"), prompt).unwrap();
            let args: &[&str] =
                if way == "file" { &["-w", "synthetic", "--file", "prompt"] } else { &["-w", "synthetic"] };
            let ran = shop.feed(if way == "file" { b"" } else { prompt }, "ares-submit", args);
            assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{words}");
            assert!(ran.err.starts_with(&format!("ares-submit: {code}: ")), "{}", ran.err);
            assert!(ran.err.contains(words), "{}", ran.err);
        }
    }
    assert_eq!(shop.run("ares-list", &["--count"]).out.trim(), "0", "nothing was queued");
}

#[test]
fn case_44_standard_input_is_never_left_open() {
    let shop = Shop::new();
    // With the caller's pipe left open, a worker that reads to the end would never end.
    let job = shop.script(&["--timeout", "20s"], "cat; readlink /proc/self/fd/0; echo end");
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    assert_eq!(shop.output(&job, "stdout"), "/dev/null\nend\n");
    let turn = shop.turn(&[], "the words");
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    assert!(shop.output(&turn, "result").contains("2 words"));
    std::fs::write(shop.path().join("input"), "b\na\n").unwrap();
    let job = shop.submit(&["--file", "input", "--", "sort"]);
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    assert_eq!(shop.output(&job, "stdout"), "a\nb\n");
    assert_eq!(shop.run("ares-submit", &["-w", "synthetic", "--file", "input", "--", "word"]).status, 2);
    shop.clean();
}
