//! Reading one thing back: its record, its parts, and its output while it grows.

use crate::run::Shop;
use rustix::process::Signal;

#[test]
fn every_part_of_a_turn_is_read_back() {
    let shop = Shop::new();
    let job = shop.turn(&[], "scenario: tool\nthe prompt");
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    let part = |part: &str| shop.output(&job, part);
    assert_eq!(part("prompt"), "scenario: tool\nthe prompt");
    assert!(part("result").starts_with("turn 1 of this conversation"));
    assert!(part("stdout").starts_with("{\"type\":\"thread.started\""));
    assert_eq!(part("stderr"), "");
    let events = part("events");
    assert!(events.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{events}");
    assert_eq!(events.lines().count(), part("stdout").lines().count());
    for thing in [&job, &format!("{job}.1")] {
        assert_eq!(shop.run("ares-show", &[thing, "--output", "result"]).out, part("result"));
    }
}

#[test]
fn a_job_an_attempt_a_session_and_an_object_are_found_by_their_names() {
    let shop = Shop::new();
    let job = shop.turn(&[], "words");
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    let shown = shop.job(&job);
    let json = |thing: &str| -> serde_json::Value {
        let ran = shop.run("ares-show", &["--json", thing]);
        serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{thing}: {} {}", ran.out, ran.err))
    };
    assert_eq!(json("1.1")["outcome"], "ok");
    assert_eq!(json("1.1"), shown["attempts"][0]);
    let session = shown["session"].as_str().unwrap();
    assert_eq!(json(session)["jobs"], serde_json::json!([1]));
    let named = json(session)["name"].as_str().unwrap().to_owned();
    assert_eq!(json(&named)["session"], session);
    let prompt = shown["prompt"].as_str().unwrap();
    assert_eq!(shop.run("ares-show", &[prompt]).out, "words");
    for missing in ["7", "1.7", "nothing", &"0".repeat(64)] {
        assert_eq!(shop.run("ares-show", &[missing]).status, 14, "{missing}");
    }
}

#[test]
fn a_job_that_never_ran_has_a_prompt_and_no_output() {
    let shop = Shop::new();
    let job = shop.turn(&[], "the prompt");
    assert_eq!(shop.output(&job, "prompt"), "the prompt");
    let ran = shop.run("ares-show", &[&job, "--output", "stdout"]);
    assert_eq!((ran.status, ran.out.as_str()), (14, ""));
    assert!(ran.err.contains("has no attempt yet"), "{}", ran.err);
    assert_eq!(shop.job(&job)["attempts"], serde_json::json!([]));
    // Following waits for it to begin, and gives up when it never will.
    let follow = shop.start(&[], "ares-show", &[&job, "--follow"]);
    assert_eq!(shop.run("ares-stop", &[&job]).status, 0);
    assert_eq!(follow.end().status, 14);
}

#[test]
fn output_is_followed_from_before_it_begins_to_its_end() {
    let shop = Shop::new();
    let script =
        "echo first; echo error 1>&2; echo $$ > pid; while ! [ -e go ]; do sleep 0.02; done; echo last; printf tail";
    let job = shop.script(&[], script);
    let (out, err) = (
        shop.start(&[], "ares-show", &[&job, "--follow"]),
        shop.start(&[], "ares-show", &[&job, "--follow", "--output", "stderr"]),
    );
    let run = shop.start(&[], "ares-run", &[]);
    shop.pid("pid");
    assert_eq!(shop.output(&job, "stdout"), "first\n", "it is read while it runs");
    std::fs::write(shop.path().join("go"), "").unwrap();
    assert_eq!(run.end().status, 0);
    assert_eq!((out.end().out.as_str(), err.end().out.as_str()), ("first\nlast\ntail", "error\n"));
    assert_eq!(shop.run("ares-show", &[&job, "--follow"]).out, "first\nlast\ntail", "and afterwards");
}

#[test]
fn events_are_followed_as_they_come() {
    let shop = Shop::new();
    let job = shop.turn(&[], "scenario: slow:100\nhello");
    let follow = shop.start(&[], "ares-show", &[&job, "--follow", "--output", "events"]);
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    let followed = follow.end();
    assert_eq!((followed.status, followed.out.as_str()), (0, shop.output(&job, "events").as_str()));
    assert!(followed.out.ends_with('\n') && followed.out.contains("turn.completed"));
}

#[test]
fn a_reader_that_goes_away_ends_the_following() {
    let shop = Shop::new();
    shop.script(&[], "echo $$ > pid; while :; do echo line; sleep 0.01; done");
    let run = shop.start(&[], "ares-run", &["--grace", "0s"]);
    shop.pid("pid");
    let sh = format!("ares-show --store '{}' 1 --follow | head -n 2", shop.root().display());
    assert_eq!(shop.sh(&sh).out, "line\nline\n");
    run.send(Signal::TERM);
    assert_eq!(run.end().status, 10);
}
