//! Stored text of others: what it holds cannot act on a terminal or break a record, and nothing of it is lost.

use crate::harness::{Lab, has};

/// ESC, BEL, DEL, C1, a turn of the direction of reading, TAB, LF, a backslash.
const BAD: &str = "a\u{1b}[31m\u{7}\u{7f}\u{9b}2J\u{202e}x\ty\nz\\w";

/// The same as it stands in lines and tables.
const SAFE: &str = r"a\x1b[31m\x07\x7f\u{9b}2J\u{202e}x\ty\nz\\w";

#[test]
fn stored_text_is_escaped_for_people_and_exact_for_programs() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path().join(BAD)).expect("it can be made");
    assert_eq!(lab.run("ares-init", &[".ares"]).status, 0);
    let submitted = lab.run("ares-submit", &["--dir", BAD, "--", "echo", BAD]);
    assert_eq!(submitted.out, "1\n", "{}", submitted.err);
    let list = lab.run("ares-list", &[]);
    assert_eq!(list.out.lines().count(), 1);
    assert!(list.out.ends_with(&format!("echo {SAFE}\t\n")), "{:?}", list.out);
    let format = lab.run("ares-list", &["--format", "%(command)"]);
    assert!(format.out.ends_with(&format!("echo {SAFE}\n")), "{:?}", format.out);
    assert!(lab.run("ares-list", &["-z"]).out.ends_with(&format!("echo {BAD}\t\0")));
    assert!(lab.run("ares-list", &["-z", "--format", "%(dir)"]).out.ends_with(&format!("/{BAD}\0")));
    let json = lab.run("ares-list", &["--json"]).out;
    assert!(json.lines().count() == 1 && !json.contains(['\u{1b}', '\u{7f}', '\u{9b}', '\u{202e}']), "{json:?}");
    let object: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(object["command"].as_str().is_some_and(|command| command.ends_with(BAD)), "{json}");
    let shown: serde_json::Value = serde_json::from_str(&lab.run("ares-show", &["1", "--json"]).out).expect("JSON");
    assert_eq!(shown["argv"][0], BAD);
}

#[test]
fn hostile_output_of_a_worker_is_escaped_on_a_terminal_only() {
    if !has("script") {
        return;
    }
    let lab = Lab::new();
    std::fs::write(lab.path().join("words"), BAD).expect("it can be written");
    let script = "ares-init .ares >/dev/null; ares-submit -- cat words >/dev/null; ares-run -q >/dev/null
        ares-show 1 --output stdout >plain; cmp plain words && echo same
        script -qec 'stty -opost; ares-show 1 --output stdout' /dev/null </dev/null";
    let ran = lab.sh(script);
    let lines = r"a\x1b[31m\x07\x7f\u{9b}2J\u{202e}x".to_owned() + "\ty\nz\\w";
    assert_eq!(ran.out, format!("same\n{lines}"), "{}", ran.err);
}

#[test]
fn reasons_and_prompts_cannot_act_on_a_terminal() {
    let lab = Lab::new();
    let script = format!(
        "ares-init .ares >/dev/null; ares-submit -- true; ares-stop 1 --because '{BAD}'
         printf '%s' '{BAD}' | ares-submit -w synthetic; ares-run; ares-show 1; ares-show 2; ares-show 2.1; ares-log"
    );
    let ran = lab.sh(&script);
    let all = ran.out + &ran.err;
    let found: Vec<char> = "\u{1b}\u{7}\u{7f}\u{9b}\u{202e}".chars().filter(|c| all.contains(*c)).collect();
    assert_eq!(found, [] as [char; 0]);
}

#[test]
fn names_are_refused_alike_by_options_and_batches() {
    let lab = Lab::new();
    assert_eq!(lab.run("ares-init", &[".ares"]).status, 0);
    for bad in ["a b", "-x", "", "a\u{202e}", "a\u{7}"] {
        let option = lab.run("ares-submit", &[&format!("--label={bad}"), "--", "true"]);
        assert_eq!(option.status, 2, "{bad:?}: {}", option.err);
        let line = serde_json::json!({ "argv": ["true"], "label": bad }).to_string();
        let batch =
            lab.command(crate::harness::bin_dir().join("ares-submit")).arg("--stdin").write_stdin(line).output();
        let batch = batch.expect("it starts");
        assert_eq!(batch.status.code(), Some(2), "{bad:?}: {batch:?}");
        assert!(!String::from_utf8_lossy(&batch.stderr).contains(['\u{202e}', '\u{7}']), "{batch:?}");
    }
    assert_eq!(lab.run("ares-list", &["--count"]).out, "0\n");
}

/// Bytes without a pattern, the same in every run.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn any_bytes_of_a_worker_come_back_as_they_were() {
    let lab = Lab::new();
    assert_eq!(lab.run("ares-init", &[".ares"]).status, 0);
    let mut wanted: Vec<Vec<u8>> = [0, 1, 2, 255, 4095, 4096, 65_537, 1 << 20].map(|n| noise(n as u64 + 7, n)).to_vec();
    wanted.extend([b"\0".to_vec(), b"\n".to_vec(), b"no end".to_vec(), vec![0xff; 300], b"\r\n\r\n".to_vec()]);
    for (at, bytes) in wanted.iter().enumerate() {
        std::fs::write(lab.path().join(format!("in{at}")), bytes).expect("it can be written");
        // Once as a file that the worker reads, once as what it is handed over.
        let script = format!("cat in{at}; cat >&2");
        let args = ["--file", &format!("in{at}"), "--", "sh", "-c", &script];
        assert_eq!(lab.run("ares-submit", &args).status, 0);
    }
    assert_eq!(lab.run("ares-run", &["--drain"]).status, 0);
    for (at, bytes) in wanted.iter().enumerate() {
        for part in ["stdout", "stderr", "prompt"] {
            let mut show = lab.command(crate::harness::bin_dir().join("ares-show"));
            let output = show.args([&(at + 1).to_string(), "--output", part]).output().expect("it starts");
            assert!(
                output.status.success() && output.stdout == *bytes,
                "{part} of {at}: {} bytes",
                output.stdout.len()
            );
        }
    }
}
