//! Sessions: which conversation a turn continues, that only one turn of it goes on at a time, and what happens when
//! another one answers.

use super::{Shop, eventually, text};

#[test]
fn a_conversation_goes_on_under_its_own_id() {
    let shop = Shop::new();
    let first = shop.turn(&[], "one");
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    let session = text(&shop.job(&first)["session"]);
    // Another conversation of the same directory comes in between; only the exact id counts.
    let other = shop.turn(&[], "another");
    let second = shop.turn(&["--continue", &first], "two");
    let third = shop.turn(&["--continue", &second], "three");
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 0);
    assert_ne!(text(&shop.job(&other)["session"]), session);
    assert_eq!(text(&shop.job(&third)["session"]), session);
    assert!(
        shop.output(&third, "result").starts_with("turn 3 of this conversation; you said before: \"one\" | \"two\"")
    );
    let shown: serde_json::Value =
        serde_json::from_str(&shop.run("ares-show", &["--json", &session]).out).expect("an object");
    assert_eq!(shown["jobs"], serde_json::json!([1, 3, 4]));
}

#[test]
fn usage_is_per_turn_although_the_worker_counts_on() {
    let shop = Shop::new();
    let first = shop.turn(&[], "one");
    let second = shop.turn(&["--continue", &first], "two");
    let third = shop.turn(&["--continue", &second], "three");
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 0);
    let input = |job: &str| shop.job(job)["usage"]["input"].as_i64().unwrap();
    assert_eq!((input(&first), input(&second), input(&third)), (1001, 1002, 1003));
    let session = text(&shop.job(&first)["session"]);
    let shown: serde_json::Value =
        serde_json::from_str(&shop.run("ares-show", &["--json", &session]).out).expect("an object");
    assert_eq!(shown["usage"]["input"], 3006);
}

#[test]
fn case_21_another_session_that_answers_is_stopped_and_never_a_success() {
    let shop = Shop::new();
    let first = shop.turn(&[], "one");
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    let second =
        shop.turn(&["--continue", &first, "--max-tries", "3", "--if-uncertain", "retry"], "scenario: elsewhere\ntwo");
    let third = shop.turn(&["--continue", &first], "three");
    assert_eq!(shop.run("ares-run", &["--job", &second]).status, 10);
    let attempt = shop.latest(&second);
    assert_eq!(
        (text(&attempt["outcome"]), text(&attempt["code"])),
        ("ambiguous".into(), "ARES_RESUME_MISMATCH".into())
    );
    assert_eq!((shop.state(&second).as_str(), &attempt["attempt"]), ("uncertain", &"2.1".into()), "it is not retried");
    let session = text(&shop.job(&first)["session"]);
    let shown = shop.run("ares-show", &["--json", &session]);
    assert!(shown.out.contains("\"state\":\"broken\"") && shown.out.contains("was asked for"), "{}", shown.out);
    let refused = shop.run("ares-submit", &["-w", "synthetic", "--continue", &first, "--", "four"]);
    assert_eq!(refused.status, 3);
    assert!(
        refused.err.contains("ARES_SESSION_BROKEN") && refused.err.contains("hint: start a new session"),
        "{}",
        refused.err
    );
    // What was queued before is refused when its turn comes.
    assert_eq!(shop.run("ares-reconcile", &[&second, "--decide", "abandon", "--because", "a test"]).status, 0);
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 1);
    assert_eq!(
        (shop.state(&third).as_str(), text(&shop.latest(&third)["code"])),
        ("failed", "ARES_SESSION_BROKEN".into())
    );
    assert_eq!(shop.job(&third)["tries"], 0);
    shop.clean();
}

#[test]
fn case_21_a_session_without_an_id_is_refused_and_never_guessed() {
    let shop = Shop::new();
    let first = shop.turn(&[], "scenario: untrusted\none");
    let second = shop.turn(&["--continue", &first], "two");
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 1);
    assert_eq!(
        (shop.state(&second).as_str(), text(&shop.latest(&second)["code"])),
        ("failed", "ARES_SESSION_UNKNOWN".into())
    );
}

#[test]
fn case_22_two_turns_of_one_session_never_go_on_at_once() {
    let shop = Shop::with_config("[group.wide]\nwidth = 8\n");
    let first = shop.turn(&["--group", "wide"], "one");
    let mut jobs = vec![first.clone()];
    for _ in 0..3 {
        jobs.push(shop.turn(&["--group", "wide", "--continue", &first], "scenario: sleep:0\nmore"));
    }
    assert_eq!(shop.run("ares-run", &["-j", "4", "--drain"]).status, 0);
    let mut spans: Vec<(String, String)> =
        jobs.iter().map(|job| (text(&shop.latest(job)["claimed"]), text(&shop.latest(job)["ended"]))).collect();
    spans.sort();
    assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{spans:?}");
    assert!(shop.output(&jobs[3], "result").starts_with("turn 4 of this conversation"));
}

#[test]
fn turns_of_one_credential_directory_go_one_by_one_and_others_beside_them() {
    let homes = tempfile::tempdir().unwrap();
    let entry = |name: &str, home: &str| {
        let home = homes.path().join(home);
        std::fs::create_dir_all(&home).unwrap();
        format!("[worker.{name}]\nadapter = \"codex\"\nprogram = \"ares-synthetic\"\nhome = {home:?}\n")
    };
    let config = [entry("a", "one"), entry("b", "one"), entry("c", "two")].concat();
    let shop = Shop::with_config(&config);
    let submit = |worker: &str| shop.submit(&["-w", worker, "--", "scenario: sleep:300\nx"]);
    let (a, b, c) = (submit("a"), submit("b"), submit("c"));
    let runs = [shop.start(&[], "ares-run", &[]), shop.start(&[], "ares-run", &[])];
    shop.until(&a, "running");
    shop.until(&c, "running");
    assert_eq!(shop.state(&b), "queued", "it shares a's credentials");
    assert_eq!(shop.run("ares-run", &[]).status, 1);
    assert_eq!(shop.run("ares-stop", &[&a, &c, "--hard"]).status, 0);
    for run in runs {
        assert_eq!(run.end().status, 1);
    }
}

#[test]
fn a_first_turn_that_was_tried_again_is_continued_where_it_succeeded() {
    let shop = Shop::with_config("[worker.agent]\nadapter = \"codex\"\nprogram = \"./agent\"\n");
    let script = "if [ -e tried ]; then exec ares-synthetic \"$@\"; fi; : > tried; \
                  ARES_SYNTHETIC=late-exit exec ares-synthetic \"$@\"";
    super::prompts::program(&shop, "agent", script);
    let options = ["-w", "agent", "--max-tries", "2", "--if-uncertain", "retry"];
    let first = shop.submit(&[&options[..], &["--", "one"]].concat());
    shop.run("ares-run", &["--drain"]);
    assert_eq!((shop.state(&first).as_str(), &shop.job(&first)["tries"]), ("succeeded", &2.into()));
    let second = shop.submit(&["-w", "agent", "--continue", &first, "--", "two"]);
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    let session = text(&shop.job(&second)["session"]);
    let events = shop.output(&first, "events");
    assert!(events.contains(&session), "the second try began {events}, and {session} was continued");
    // Each try had a conversation of its own, so each is charged in full.
    assert_eq!(shop.job(&first)["usage"]["input"], 2002);
    assert_eq!(shop.job(&second)["usage"]["input"], 1002);
}

#[test]
fn two_writers_of_one_session_outside_our_sight_are_void_and_tried_again() {
    let shop = Shop::new();
    let first = shop.turn(&[], "one");
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    let second = shop.turn(&["--continue", &first], "scenario: busy\ntwo");
    assert_eq!(shop.run("ares-run", &[]).status, 1);
    let shown = shop.job(&second);
    assert_eq!((&shown["state"], &shown["tries"]), (&"queued".into(), &0.into()));
    // One that stays busy is held after a few releases in a row, and does not spin.
    eventually("it is held", || {
        shop.run("ares-run", &["--drain"]);
        (shop.job(&second)["hold"] == "releases").then_some(())
    });
    assert!(shop.job(&second)["attempt"].as_i64() <= Some(5));
}
