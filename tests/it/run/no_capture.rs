//! Jobs of whose output nothing is kept: no stream, no answer, no event and no word of the worker, whoever dies.

use super::secrets::{CANARY, leaks};
use super::{Shop, eventually, gone, send, text};
use rustix::process::Signal;

const NONE: &[&str] = &["--no-capture"];

/// Prints what was named by nobody: it is in a file of its own.
const PRINT: &str = "cat secret; cat secret >&2; ";

fn shop() -> Shop {
    let shop = Shop::new();
    std::fs::write(shop.path().join("secret"), CANARY.repeat(3000)).unwrap();
    shop
}

/// Nothing of it is anywhere in the store, and nothing can be asked for.
fn nothing(shop: &Shop, job: &str) {
    assert_eq!(leaks(shop.root()), Vec::<String>::new());
    for part in ["stdout", "stderr", "result", "events"] {
        let shown = shop.run("ares-show", &[job, "--output", part]);
        let said = format!("ares-show: what job {job} prints is not kept: it was submitted with --no-capture\n");
        assert_eq!((shown.status, shown.out.as_str(), shown.err), (0, "", said));
    }
    let attempt = shop.latest(job);
    assert!(attempt["stdout"].is_null() && attempt["stderr"].is_null() && attempt["result"].is_null(), "{attempt}");
}

/// A recording of an agent that says the canary, and how it ends.
fn replay(shop: &Shop, options: &[&str], end: &str, status: i32) -> String {
    let file = shop.path().join(format!("recording-{status}"));
    let lines = format!(
        "{{\"type\":\"thread.started\",\"thread_id\":\"0190d3a1-0000-7000-8000-000000000001\"}}\n\
         {{\"type\":\"turn.started\"}}\n\
         {{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\"text\":\"{CANARY}\"}}}}\n{end}\n"
    );
    std::fs::write(&file, lines).unwrap();
    shop.turn(&[NONE, options].concat(), &format!("scenario: replay:{}={status}\nhello", file.display()))
}

#[test]
fn case_o5_a_commands_output_goes_nowhere() {
    let shop = shop();
    let job = shop.script(NONE, &format!("{PRINT} test /dev/null -ef /dev/stdout && test /dev/null -ef /dev/stderr"));
    let failed = shop.script(NONE, "cat secret; exit 3");
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 1);
    assert_eq!((shop.state(&job).as_str(), shop.job(&job)["capture"].as_bool()), ("succeeded", Some(false)));
    assert_eq!(text(&shop.latest(&failed)["detail"]), "exit status 3");
    nothing(&shop, &job);
    nothing(&shop, &failed);
    assert_eq!(shop.job(&shop.script(&[], "true"))["capture"].as_bool(), Some(true));
    shop.run("ares-run", &[]);
    shop.clean();
    assert_eq!(shop.run("ares-fsck", &[]).status, 0);
}

#[test]
fn silence_is_limited_although_nothing_is_kept() {
    let shop = shop();
    let options = |limit| [NONE, &[limit, "700ms", "--grace", "100ms"]].concat();
    let chatty = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.2; done";
    for limit in ["--timeout-idle", "--timeout-first"] {
        let job = shop.script(&options(limit), &format!("{PRINT}{chatty}"));
        assert_eq!(shop.run("ares-run", &[]).status, 0, "{limit}");
        nothing(&shop, &job);
        shop.script(&options(limit), "sleep 60");
        assert_eq!(shop.run("ares-run", &[]).status, 10, "{limit}");
    }
}

#[test]
fn case_o5_of_an_agent_its_end_its_session_and_its_usage_are_kept_and_no_word() {
    let shop = shop();
    let done = "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}";
    let job = replay(&shop, &[], done, 0);
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    nothing(&shop, &job);
    let shown = shop.job(&job);
    assert_eq!((&shown["usage"]["input"], &shown["capture"]), (&7.into(), &false.into()));
    assert_eq!(text(&shown["session"]), "0190d3a1-0000-7000-8000-000000000001");
    assert_eq!(text(&shown["detail"]), "");

    let failed = format!("{{\"type\":\"turn.failed\",\"error\":{{\"message\":\"status 401 {CANARY}\"}}}}");
    let job = replay(&shop, &[], &failed, 1);
    assert_eq!(shop.run("ares-run", &[]).status, 1);
    nothing(&shop, &job);
    let attempt = shop.latest(&job);
    assert_eq!(
        (text(&attempt["code"]).as_str(), text(&attempt["detail"]).as_str()),
        ("ARES_AUTHENTICATION", "ended with exit status 1")
    );
    shop.clean();
}

#[test]
fn case_o5_an_uncertain_turn_leaves_no_output_to_decide_on() {
    let shop = shop();
    for point in [None, Some("run.settled")] {
        let job = replay(&shop, &[], "", 1);
        let fault: Vec<(&str, &str)> = point.map(|point| ("ARES_FAULT", point)).into_iter().collect();
        let run = shop.start(&fault, "ares-run", &["--job", &job]);
        assert_eq!(run.end().status == 10, point.is_none());
        assert_eq!(shop.state(&job), "uncertain");
        // Where the runner died before it could remove them, whoever looks next does.
        shop.run("ares-reconcile", &[]);
        nothing(&shop, &job);
        let shown = shop.run("ares-reconcile", &[&job, "--json"]);
        assert!(!shown.out.contains(CANARY), "{}", shown.out);
        assert_eq!(shop.run("ares-reconcile", &[&job, "--decide", "abandon", "--because", "a test"]).status, 0);
        nothing(&shop, &job);
    }
}

#[test]
fn case_o5_an_adopted_turn_brings_no_answer_in() {
    let shop = shop();
    let job = shop.turn(NONE, "scenario: killed-saved\nhello");
    assert_eq!(shop.run("ares-run", &[]).status, 10);
    let shown = shop.run("ares-reconcile", &[&job, "--json"]).out;
    assert!(shown.contains("\"turn\":\"completed\"") && !shown.contains("turn 1 of this"), "{shown}");
    assert_eq!(shop.run("ares-reconcile", &[&job, "--adopt"]).status, 0);
    assert_eq!(shop.state(&job), "succeeded");
    assert!(!shop.latest(&job)["findings"].to_string().contains("adopted-answer"), "not even an empty one");
    nothing(&shop, &job);
}

#[test]
fn case_o5_a_killed_owner_leaves_nothing_to_collect_but_the_end() {
    let shop = shop();
    let wait = "echo $$ > pid; while ! [ -e go ]; do sleep 0.02; done; ";
    let job = shop.script(NONE, &format!("{PRINT}{wait}{PRINT}"));
    let run = shop.start(&[], "ares-run", &[]);
    let (worker, keeper) = (shop.pid("pid"), shop.keeper());
    run.kill();
    std::fs::write(shop.path().join("go"), "").unwrap();
    gone(worker);
    gone(keeper);
    assert_eq!(leaks(shop.root()), Vec::<String>::new());
    assert_eq!(shop.reconciled(), 0);
    assert_eq!(shop.state(&job), "succeeded");
    nothing(&shop, &job);

    // Of an agent whose runner and keeper were killed, what it printed goes when that is recorded.
    let job = shop.turn(NONE, "scenario: hang\nhello");
    let run = shop.start(&[], "ares-run", &[]);
    eventually("its session is known", || shop.job(&job)["session"].as_str().map(drop));
    let keeper = shop.keeper();
    run.kill();
    send(keeper, Signal::KILL);
    eventually("nothing of it is left", || shop.alive().is_empty().then_some(()));
    assert_eq!(shop.run("ares-run", &["--drain"]).status, 10, "a runner records it, and tidies nothing else");
    let left = shop.names(&format!("attempts/{job}.1"));
    assert!(!left.iter().any(|name| name == "stdout" || name == "stderr"), "{left:?}");
}

#[test]
fn a_captured_command_of_such_a_job_is_not_kept_either() {
    let shop = shop();
    let job = shop.submit(&["--no-capture", "--", "true"]);
    assert_eq!(shop.run("ares-claim", &["--capture", "--", "/bin/sh", "-c", "cat secret"]).status, 0);
    nothing(&shop, &job);
}

#[test]
fn the_choice_is_part_of_what_is_frozen_and_of_a_batch() {
    let shop = Shop::new();
    let batch = "{\"argv\":[\"true\"],\"no-capture\":true}\n{\"argv\":[\"true\"]}\n{\"argv\":[\"true\"],\"no-capture\":false}\n";
    assert_eq!(shop.feed(batch.as_bytes(), "ares-submit", &["--stdin"]).out, "1\n2\n3\n");
    assert_eq!(shop.feed(batch.as_bytes(), "ares-submit", &["--stdin", "--no-capture"]).out, "4\n5\n6\n");
    let capture = |job: &str| shop.job(job)["capture"].as_bool().unwrap();
    assert_eq!(["1", "2", "3", "4", "5", "6"].map(capture), [false, true, true, false, false, true]);
    let digest = |job: &str| text(&shop.job(job)["spec_digest"]);
    assert!(digest("1") != digest("2") && digest("1") == digest("5") && digest("2") == digest("3"));
    assert_eq!(shop.run("ares-submit", &["--key", "k", "--", "true"]).status, 0);
    let other = shop.run("ares-submit", &["--key", "k", "--no-capture", "--", "true"]);
    assert!(other.status == 3 && other.err.contains("ARES_KEY_CONFLICT"), "{}", other.err);
    assert_eq!(shop.run("ares-fsck", &[]).status, 0);
}
