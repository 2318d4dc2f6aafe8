//! How an agent's turn is called, by a worker that writes down its arguments: the restrictions stand in every call, the
//! prompt in none; and what each of its failures comes to.

use super::prompts::program;
use super::{Shop, text};

/// Plays a turn through the synthetic worker after it wrote down how it was called.
const RECORD: &str = "printf '%s\\n' \"$@\" > argv; cat > input; exec ares-synthetic \"$@\" < input";

const CONFIG: &str = "[worker.agent]\nadapter = \"codex\"\nprogram = \"./agent\"\n";

fn shop() -> Shop {
    let shop = Shop::with_config(CONFIG);
    program(&shop, "agent", RECORD);
    shop
}

fn turn(shop: &Shop, options: &[&str], prompt: &str) -> String {
    shop.submit(&[&["-w", "agent"], options, &["--", prompt]].concat())
}

fn argv(shop: &Shop) -> Vec<String> {
    std::fs::read_to_string(shop.path().join("argv")).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn case_20_every_restriction_stands_in_the_first_call_and_in_every_resume() {
    let shop = shop();
    let mut job = turn(&shop, &[], "SECRETPROMPT one");
    let mut session = None;
    for round in 0..3 {
        assert_eq!(shop.run("ares-run", &[]).status, 0);
        let argv = argv(&shop);
        let set = |value: &str| argv.windows(2).any(|pair| pair[0] == "-c" && pair[1] == value);
        let at = |word: &str| argv.iter().position(|arg| arg == word);
        assert_eq!(argv[..3], ["exec", "-s", "read-only"], "round {round}: a sandbox before resume");
        for value in [
            "sandbox_mode=\"read-only\"",
            "approval_policy=\"never\"",
            "features.shell_tool=false",
            "features.unified_exec=false",
            "features.plugins=false",
            "features.apps=false",
            "web_search=\"disabled\"",
        ] {
            assert!(set(value), "round {round}: {value} is missing in {argv:?}");
        }
        assert!(!argv.iter().any(|arg| arg.contains("SECRETPROMPT")), "the prompt is in the arguments: {argv:?}");
        assert_eq!(argv.last().map(String::as_str), Some("-"));
        let asked = at("resume").map(|_| argv[argv.len() - 2].clone());
        assert_eq!(asked, session, "round {round}: the exact id is asked for");
        session = shop.job(&job)["session"].as_str().map(str::to_owned);
        job = turn(&shop, &["--continue", &job], "SECRETPROMPT more");
    }
}

#[test]
fn only_the_new_message_crosses() {
    let shop = shop();
    let mut job = turn(&shop, &[], "message 0");
    for round in 0..4 {
        assert_eq!(shop.run("ares-run", &[]).status, 0);
        let input = std::fs::read_to_string(shop.path().join("input")).unwrap();
        assert_eq!(input, format!("message {round}"));
        assert!(shop.output(&job, "result").starts_with(&format!("turn {} of", round + 1)));
        job = turn(&shop, &["--continue", &job], &format!("message {}", round + 1));
    }
}

/// Each way to fail: what it is called, its code, and whether it is worth another try.
const FAILURES: &[(&str, &str, bool)] = &[
    ("401", "ARES_AUTHENTICATION", false),
    ("403", "ARES_AUTHENTICATION", false),
    ("key", "ARES_AUTHENTICATION", false),
    ("404", "ARES_MODEL_NOT_FOUND", false),
    ("400", "ARES_TURN_FAILED", false),
    ("context", "ARES_CONTEXT_TOO_LONG", false),
    ("usage=30", "ARES_QUOTA", true),
    ("usagepro", "ARES_QUOTA", true),
    ("usageteam", "ARES_QUOTA", true),
    ("usagelater", "ARES_QUOTA", true),
    ("notincluded", "ARES_QUOTA", false),
    ("insufficient", "ARES_QUOTA", false),
    ("rate", "ARES_RATE_LIMITED", true),
    ("500", "ARES_OVERLOADED", true),
    ("503", "ARES_OVERLOADED", true),
    ("502", "ARES_OVERLOADED", true),
    ("cut", "ARES_TURN_FAILED", false),
    ("idle", "ARES_TURN_FAILED", false),
    ("incomplete", "ARES_TURN_FAILED", false),
    ("refused", "ARES_TURN_FAILED", false),
];

#[test]
fn every_failure_has_its_code_and_only_some_are_tried_again() {
    let shop = Shop::new();
    for (cause, code, again) in FAILURES {
        let job = shop.turn(&["--max-tries", "2", "--retry-delay", "1h"], &format!("scenario: fail:{cause}\nhello"));
        assert_eq!(shop.run("ares-run", &[]).status, 1, "{cause}");
        let (shown, attempt) = (shop.job(&job), shop.latest(&job));
        assert_eq!((text(&attempt["code"]).as_str(), text(&attempt["outcome"]).as_str()), (*code, "error"), "{cause}");
        let state = if *again { "queued" } else { "failed" };
        assert_eq!((text(&shown["state"]).as_str(), &shown["tries"]), (state, &1.into()), "{cause}");
        assert_eq!(shown["due"].is_string(), *again, "{cause}");
        if *again {
            // What waits for another try must not keep the next case from being the one that runs.
            assert_eq!(shop.run("ares-stop", &[&job]).status, 0);
        }
    }
    shop.clean();
}

#[test]
fn case_23_a_quota_is_not_asked_again_before_its_reset_nor_without_bound() {
    let shop = Shop::new();
    let job = shop.turn(&["--max-tries", "2"], "scenario: fail:usage=30\nhello");
    assert_eq!(shop.run("ares-run", &[]).status, 1);
    let due = text(&shop.job(&job)["due"]);
    let now = ares::host::clock::now();
    let minutes = (ares::domain::time::moment(&due, now).unwrap().0 - now.0) / 60_000;
    assert!((28..=31).contains(&minutes), "{minutes} minutes to {due}");
    assert_eq!(shop.run("ares-run", &[]).status, 1, "nothing to run before the reset");
    assert_eq!(shop.job(&job)["attempt"], 1);
    // Of failures that come at once, as many are tried as the job may have.
    let job = shop.turn(&["--max-tries", "3", "--retry-delay", "10ms"], "scenario: fail:500\nhello");
    let drained = shop.run("ares-run", &["--drain", "--label", "none"]);
    assert_eq!(drained.status, 0, "{}", drained.err);
    for _ in 0..3 {
        super::eventually("it is due", || {
            (shop.run("ares-run", &["--job", &job]).err.contains("1 of 1")).then_some(())
        });
    }
    let shown = shop.job(&job);
    assert_eq!((&shown["state"], &shown["tries"], &shown["attempt"]), (&"failed".into(), &3.into(), &3.into()));
}

#[test]
fn refusals_are_void_and_only_a_busy_session_passes() {
    let shop = Shop::new();
    let lasting = ["unknown", "empty-session", "untrusted", "bad-config", "no-prompt", "bad-argument", "too-large"];
    for scenario in lasting.into_iter().chain(["busy"]) {
        let job = shop.turn(&["--max-tries", "3"], &format!("scenario: {scenario}\nhello"));
        assert_eq!(shop.run("ares-run", &[]).status, 1, "{scenario}");
        let (shown, attempt) = (shop.job(&job), shop.latest(&job));
        assert_eq!((text(&attempt["outcome"]), text(&attempt["code"])), ("void".into(), "ARES_WORKER_SAID_NO".into()));
        let state = if scenario == "busy" { "queued" } else { "failed" };
        assert_eq!((&shown["state"], &shown["tries"]), (&state.into(), &0.into()), "{scenario}");
    }
}

#[test]
fn what_says_no_end_is_uncertain_whatever_it_exits_with() {
    let shop = Shop::new();
    let cases = [
        ("exit:0", "ARES_NO_TERMINAL"),
        ("exit:1", "ARES_NO_TERMINAL"),
        ("killed", "ARES_SIGNALLED"),
        ("killed-saved", "ARES_SIGNALLED"),
        ("torn", "ARES_SIGNALLED"),
        ("panic", "ARES_NO_TERMINAL"),
        ("late-exit:1", "ARES_UNCERTAIN"),
        ("nameless", "ARES_UNCERTAIN"),
    ];
    for (scenario, code) in cases {
        let job = shop.turn(&["--max-tries", "3"], &format!("scenario: {scenario}\nhello"));
        assert_eq!(shop.run("ares-run", &[]).status, 10, "{scenario}");
        assert_eq!((shop.state(&job).as_str(), text(&shop.latest(&job)["code"]).as_str()), ("uncertain", code));
    }
    let job = shop.turn(&["--timeout", "500ms", "--grace", "100ms"], "scenario: endless\nhello");
    assert_eq!(shop.run("ares-run", &[]).status, 10, "a worker that connects for ever");
    assert_eq!(text(&shop.latest(&job)["code"]), "ARES_TIMED_OUT");
    for scenario in ["reconnect", "cut-after-message", "noise", "warning", "websearch", "empty"] {
        let job = shop.turn(&[], &format!("scenario: {scenario}\nhello"));
        assert_eq!(shop.run("ares-run", &[]).status, 0, "{scenario} is noise around a turn that completed");
        assert_eq!(shop.state(&job), "succeeded");
    }
}
