//! Turns of claude, played by the synthetic worker: its conversation goes on under the id that it was given, another one is
//! stopped, and no end that is not a result is a success.

use super::{Shop, eventually, text};
use serde_json::Value;

fn shop() -> Shop {
    Shop::with_config("[worker.talker]\nadapter = \"claude\"\nprogram = \"ares-synthetic\"\n")
}

fn turn(shop: &Shop, options: &[&str], prompt: &str) -> String {
    shop.submit(&[&["-w", "talker"], options, &["--", prompt]].concat())
}

/// Plays one scene; gives the status of the run and the attempt.
fn play(shop: &Shop, options: &[&str], scenario: &str) -> (String, i32, Value) {
    let job = turn(shop, options, &format!("scenario: {scenario}\nwords"));
    let status = shop.run("ares-run", &["--job", &job]).status;
    (job.clone(), status, shop.latest(&job))
}

#[test]
fn a_conversation_goes_on_under_the_id_that_it_was_given() {
    let shop = shop();
    let first = turn(&shop, &[], "one");
    let other = turn(&shop, &[], "another");
    let second = turn(&shop, &["--continue", &first], "two");
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 0);
    assert_eq!(shop.output(&second, "result"), "turn 2 of this conversation; you said before: \"one\"");
    let session = |job: &str| text(&shop.job(job)["session"]);
    assert_eq!(session(&first), session(&second));
    assert_ne!(session(&first), session(&other));
    let cost = |job: &str| shop.job(job)["usage"]["cost_nano"].as_i64();
    assert_eq!((cost(&first), cost(&second)), (Some(1_000_000), Some(1_000_000)), "of each turn, and no total");
    assert_eq!(shop.latest(&first)["model_served"], "model-a");
}

#[test]
fn another_conversation_that_answers_is_stopped_and_never_a_success() {
    let shop = shop();
    let first = turn(&shop, &[], "one");
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    let (job, status, attempt) = play(&shop, &["--continue", &first, "--max-tries", "3"], "elsewhere");
    assert_eq!((status, text(&attempt["code"])), (10, "ARES_RESUME_MISMATCH".into()));
    assert_eq!(shop.state(&job), "uncertain");
    assert_ne!(attempt["seen"]["cause"], "exited", "it was stopped: {attempt}");
    let third = shop.run("ares-submit", &["-w", "talker", "--continue", &first, "--", "three"]);
    assert!(third.status == 3 && third.err.contains("ARES_SESSION_BROKEN"), "{}", third.err);
}

#[test]
fn every_end_is_what_it_was() {
    let shop = shop();
    for (scenario, status, outcome, code) in [
        ("ok", 0, "ok", None),
        ("fail:401", 1, "error", Some("ARES_AUTHENTICATION")),
        ("fail:login", 1, "error", Some("ARES_AUTHENTICATION")),
        ("fail:404", 1, "error", Some("ARES_MODEL_NOT_FOUND")),
        ("fail:context", 1, "error", Some("ARES_CONTEXT_TOO_LONG")),
        ("fail:credit", 1, "error", Some("ARES_QUOTA")),
        ("fail:rate", 1, "error", Some("ARES_RATE_LIMITED")),
        ("fail:500", 1, "error", Some("ARES_OVERLOADED")),
        ("fail:529", 1, "error", Some("ARES_OVERLOADED")),
        ("fail:other", 1, "error", Some("ARES_TURN_FAILED")),
        ("cut", 10, "ambiguous", Some("ARES_NO_TERMINAL")),
        ("both", 10, "ambiguous", Some("ARES_UNCERTAIN")),
        ("interrupted", 10, "ambiguous", Some("ARES_NO_TERMINAL")),
        ("late-exit:3", 10, "ambiguous", Some("ARES_UNCERTAIN")),
        ("killed", 10, "ambiguous", Some("ARES_SIGNALLED")),
        ("torn", 10, "ambiguous", Some("ARES_SIGNALLED")),
        ("nothing", 10, "ambiguous", Some("ARES_NO_TERMINAL")),
    ] {
        let (_, ran, attempt) = play(&shop, &[], scenario);
        let told = (ran, attempt["outcome"].as_str(), attempt["code"].as_str());
        assert_eq!(told, (status, Some(outcome), code), "{scenario}: {attempt}");
    }
    let (_, ran, attempt) = play(&shop, &["--timeout-idle", "300ms", "--grace", "100ms"], "silent");
    assert_eq!((ran, text(&attempt["code"])), (10, "ARES_SILENT".into()));
}

#[test]
fn a_used_up_quota_waits_for_its_stated_reset() {
    let shop = shop();
    let job = turn(&shop, &["--max-tries", "2"], "scenario: fail:usage=30\nwords");
    shop.run("ares-run", &["--job", &job]);
    let (state, due) = (shop.state(&job), text(&shop.job(&job)["due"]));
    assert_eq!(state, "queued");
    assert!(due.len() == 24 && due > text(&shop.job(&job)["submitted"]), "not before {due}");
    assert_eq!(shop.latest(&job)["code"], "ARES_QUOTA");
}

#[test]
fn a_turn_that_was_saved_before_it_was_killed_is_adopted_without_a_word_of_output() {
    let shop = shop();
    let (job, status, _) = play(&shop, &[], "killed-saved");
    assert_eq!(status, 10);
    let home = shop.path().join(".ares-synthetic").display().to_string();
    let with = [("ARES_SYNTHETIC_HOME", home.as_str())];
    let packet: Value =
        serde_json::from_str(&shop.run_with(&with, "ares-reconcile", &[&job, "--json"]).out).expect("an object");
    assert_eq!(packet["proposal"], "ok", "{packet}");
    assert_eq!(shop.run_with(&with, "ares-reconcile", &[&job, "--adopt"]).status, 0);
    assert_eq!(shop.output(&job, "result"), "turn 1 of this conversation");
}

#[test]
fn it_may_linger_after_its_result_and_an_unknown_session_is_refused_without_a_call() {
    let shop = shop();
    let (first, status, attempt) = play(&shop, &["--grace", "100ms"], "linger");
    assert_eq!((status, text(&attempt["outcome"])), (0, "ok".into()), "{attempt}");
    let projects = shop.path().join(".ares-synthetic/projects");
    std::fs::remove_dir_all(projects).unwrap();
    let second = turn(&shop, &["--continue", &first], "two");
    shop.run("ares-run", &["--job", &second]);
    let attempt = shop.latest(&second);
    assert_eq!((text(&attempt["outcome"]), text(&attempt["code"])), ("void".into(), "ARES_WORKER_SAID_NO".into()));
}

#[test]
fn its_owner_may_be_killed_in_the_middle_of_the_turn() {
    let shop = shop();
    let job = turn(&shop, &["--grace", "100ms"], "scenario: linger:2\nwords");
    let run = shop.start(&[], "ares-run", &["--drain"]);
    eventually("its session is known", || shop.job(&job)["session"].as_str().map(str::to_owned));
    run.kill();
    eventually("the true end is recorded", || {
        shop.run("ares-reconcile", &[]);
        (shop.state(&job) == "succeeded").then_some(())
    });
    assert_eq!(shop.output(&job, "result"), "turn 1 of this conversation");
}
