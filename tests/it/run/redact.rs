//! What a worker prints of the values that it was given by name: a mark is stored, shown and read in their place, from
//! the first byte on and whoever dies.

use super::limits::peaks;
use super::secrets::{CANARY, leaks};
use super::{Shop, eventually, gone, send, text};
use rustix::process::Signal;

/// What the worker is given, and by which option.
const GIVEN: &[(&str, &str)] = &[("GITHUB_TOKEN", CANARY)];
const PASS: &[&str] = &["--env", "GITHUB_TOKEN"];

/// Prints the value on both streams, alone, across what is read at once, and in two writes.
const PRINT: &str = "echo out $GITHUB_TOKEN; echo err $GITHUB_TOKEN >&2; head -c 65526 /dev/zero | tr '\\0' x; \
    echo $GITHUB_TOKEN; printf %s ${GITHUB_TOKEN%d9be2}; sleep 0.1; echo ${GITHUB_TOKEN#CANARY-4f1}; ";
const WAIT: &str = "echo $$ > pid; while ! [ -e go ]; do sleep 0.02; done; echo done";

/// What is stored of it.
fn printed() -> String {
    format!("out [GITHUB_TOKEN]\n{}[GITHUB_TOKEN]\n[GITHUB_TOKEN]\n", "x".repeat(65526))
}

fn clean(shop: &Shop, when: &str) {
    assert_eq!(leaks(shop.root()), Vec::<String>::new(), "{when}");
}

fn go_on(shop: &Shop) {
    std::fs::write(shop.path().join("go"), "").unwrap();
}

#[test]
fn case_o5_a_value_that_a_worker_prints_is_stored_and_shown_as_its_mark() {
    let shop = Shop::new();
    let job = shop.script(PASS, &format!("{PRINT}{WAIT}"));
    let run = shop.start(GIVEN, "ares-run", &[]);
    let follow = shop.start(&[], "ares-show", &[&job, "--follow", "--output", "stderr"]);
    shop.pid("pid");
    eventually("it is stored", || (shop.output(&job, "stdout") == printed()).then_some(()));
    clean(&shop, "while it runs");
    go_on(&shop);
    assert_eq!(run.end().status, 0);
    assert_eq!(shop.output(&job, "stdout"), printed() + "done\n");
    assert_eq!(shop.output(&job, "result"), printed() + "done\n");
    assert_eq!(shop.output(&job, "stderr"), "err [GITHUB_TOKEN]\n");
    assert_eq!(follow.end().out, "err [GITHUB_TOKEN]\n");
    clean(&shop, "afterwards");
    shop.clean();
    assert_eq!(shop.run("ares-fsck", &[]).status, 0);
}

#[test]
fn case_o5_a_keeper_without_an_owner_replaces_and_whoever_collects_needs_no_value() {
    let shop = Shop::new();
    let job = shop.script(PASS, &format!("{WAIT}; {PRINT}"));
    let run = shop.start(GIVEN, "ares-run", &[]);
    let worker = shop.pid("pid");
    run.kill();
    go_on(&shop);
    gone(worker);
    eventually("its end is written", || shop.root().join(format!("attempts/{job}.1/exit")).exists().then_some(()));
    clean(&shop, "before anyone collects it");
    assert_eq!(shop.reconciled(), 0);
    assert_eq!(shop.output(&job, "stdout"), format!("done\n{}", printed()));
    assert_eq!(shop.output(&job, "stderr"), "err [GITHUB_TOKEN]\n");
    clean(&shop, "afterwards");
}

#[test]
fn case_o5_a_crash_of_owner_and_keeper_leaves_marks_only() {
    let shop = Shop::new();
    let job = shop.script(PASS, &format!("{PRINT}{WAIT}"));
    let run = shop.start(GIVEN, "ares-run", &[]);
    let (worker, keeper) = (shop.pid("pid"), shop.keeper());
    eventually("it is stored", || (shop.output(&job, "stdout") == printed()).then_some(()));
    run.kill();
    send(keeper, Signal::KILL);
    gone(worker);
    clean(&shop, "as the crash left it");
    eventually("nothing of it is left", || shop.alive().is_empty().then_some(()));
    assert_eq!(shop.run("ares-reconcile", &[]).status, 10);
    let evidence = shop.run("ares-reconcile", &[&job, "--json"]).out;
    assert!(evidence.contains("[GITHUB_TOKEN]") && !evidence.contains(CANARY), "{evidence}");
    assert_eq!(shop.run("ares-reconcile", &[&job, "--decide", "abandon", "--because", "a test"]).status, 0);
    assert_eq!(shop.output(&job, "stdout"), printed());
    clean(&shop, "after the decision");
}

/// A recording that the synthetic worker plays: what it says is none of the prompt's words.
fn replay(shop: &Shop, value: &str, events: &[serde_json::Value], status: i32) -> String {
    let lines: Vec<String> = events.iter().map(ToString::to_string).collect();
    let file = shop.path().join("recording");
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    let job = shop.turn(PASS, &format!("scenario: replay:{}={status}\nhello", file.display()));
    let ran = shop.run_with(&[("GITHUB_TOKEN", value)], "ares-run", &["--job", &job]);
    assert!(!ran.out.contains(value) && !ran.err.contains(value), "{ran:?}");
    job
}

#[test]
fn case_o5_the_answer_the_events_and_the_last_words_of_an_agent_have_marks() {
    use serde_json::json;
    let shop = Shop::new();
    let begun = [
        json!({ "type": "thread.started", "thread_id": "0190d3a1-0000-7000-8000-000000000001" }),
        json!({ "type": "turn.started" }),
    ];
    // In a JSON text it has other bytes than in the environment.
    let value = format!("-----BEGIN \"KEY\"\n{CANARY}\n-----END");
    let said = format!("the key is {value}, no more");
    let answer = json!({ "type": "item.completed", "item": { "type": "agent_message", "text": said } });
    let done = json!({ "type": "turn.completed", "usage": { "input_tokens": 5, "output_tokens": 1 } });
    let job = replay(&shop, &value, &[&begun[..], &[answer, done]].concat(), 0);
    assert_eq!(shop.state(&job), "succeeded");
    assert_eq!(shop.output(&job, "result"), "the key is [GITHUB_TOKEN], no more");
    assert!(shop.output(&job, "events").contains("[GITHUB_TOKEN]"));
    assert_eq!(shop.job(&job)["usage"]["input"], 5);

    let failed = json!({ "type": "turn.failed", "error": { "message": format!("bad key {CANARY}") } });
    let job = replay(&shop, CANARY, &[&begun[..], &[failed]].concat(), 1);
    assert_eq!(text(&shop.latest(&job)["detail"]), "bad key [GITHUB_TOKEN]");
    clean(&shop, "afterwards");
}

#[test]
fn case_o5_an_answer_from_the_workers_own_store_is_replaced_where_the_value_is_known() {
    let shop = Shop::new();
    // The prompt is kept as it was given, so the value of this test is a word that the worker says by itself.
    let given = [("GITHUB_TOKEN", "turn 1 of this conversation")];
    let job = shop.turn(PASS, "scenario: killed-saved\nhello");
    assert_eq!(shop.run_with(&given, "ares-run", &[]).status, 10);
    let ran = shop.run_with(&given, "ares-reconcile", &[&job, "--json"]);
    assert!(ran.out.contains("[GITHUB_TOKEN]") && !ran.out.contains(given[0].1), "{}", ran.out);
    assert_eq!(shop.run_with(&given, "ares-reconcile", &[&job, "--adopt"]).status, 0);
    assert!(shop.output(&job, "result").starts_with("[GITHUB_TOKEN]"));
}

#[test]
fn what_is_short_or_given_to_every_worker_is_left_as_it_is() {
    let shop = Shop::new();
    let given = [("HOME", "/home/of/mine"), ("SHORT", "7letter"), ("MODE", "production"), ("TERM", "xterm-private")];
    let pass: Vec<&str> = given.iter().flat_map(|(name, _)| ["--env", name]).collect();
    let job = shop.script(&pass, "echo $HOME $SHORT $MODE $TERM; test -f /dev/stdout");
    assert_eq!(shop.run_with(&given, "ares-run", &[]).status, 0, "and is copied by nobody");
    assert_eq!(shop.output(&job, "stdout"), "/home/of/mine 7letter production xterm-private\n");
    let job = shop.script(PASS, "test -p /dev/stdout && test -p /dev/stderr");
    assert_eq!(shop.run_with(GIVEN, "ares-run", &[]).status, 0);
    assert_eq!(shop.state(&job), "succeeded");
}

#[test]
fn a_captured_command_has_marks_for_what_its_job_names() {
    let shop = Shop::new();
    let job = shop.submit(&["--env", "GITHUB_TOKEN", "--", "true"]);
    let ran = shop.run_with(GIVEN, "ares-claim", &["--capture", "--", "/bin/sh", "-c", "echo $GITHUB_TOKEN"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert_eq!(shop.output(&job, "stdout"), "[GITHUB_TOKEN]\n");
    clean(&shop, "afterwards");
}

#[test]
fn a_flood_through_the_keeper_is_cut_and_costs_no_memory() {
    let shop = Shop::new();
    let options = ["--env", "GITHUB_TOKEN", "--output-max", "8M", "--grace", "100ms"];
    for script in ["sleep 0.2; exec yes $GITHUB_TOKEN", "sleep 0.2; yes ${GITHUB_TOKEN%2} >&2; sleep 60"] {
        let job = shop.script(&options, script);
        let run = shop.start(GIVEN, "ares-run", &["--job", &job]);
        let (owner, keeper) = peaks(&shop, &run);
        assert_eq!(run.end().status, 10);
        assert!(owner > 0 && owner < 20 << 10 && keeper < 20 << 10, "owner {owner} KiB, keeper {keeper} KiB");
        let attempt = shop.latest(&job);
        assert_eq!(text(&attempt["code"]), "ARES_OUTPUT_LIMIT");
        let stream = text(&attempt["seen"]["cut"][0]);
        assert_eq!(shop.output(&job, &stream).len(), 8 << 20);
    }
    clean(&shop, "afterwards");
    assert!(shop.alive().is_empty());
}

#[test]
fn output_within_the_bound_goes_through_the_keeper_whole() {
    let shop = Shop::new();
    // A value may be longer than what is read at once.
    let large = "large-".repeat(20_000);
    let print = "sleep 0.2; head -c 30000000 /dev/zero; echo $GITHUB_TOKEN; echo $LARGE";
    let job = shop.script(&[PASS, &["--env", "LARGE"]].concat(), print);
    let run = shop.start(&[GIVEN, &[("LARGE", large.as_str())]].concat(), "ares-run", &[]);
    let (owner, keeper) = peaks(&shop, &run);
    assert_eq!(run.end().status, 0);
    assert!(owner > 0 && owner < 20 << 10 && keeper < 20 << 10, "owner {owner} KiB, keeper {keeper} KiB");
    let output = shop.output(&job, "stdout");
    assert!(output.len() == 30_000_023 && output.ends_with("\0[GITHUB_TOKEN]\n[LARGE]\n"), "{}", output.len());
    shop.clean();
}

#[test]
fn what_keeps_the_pipe_open_holds_up_nobody_and_may_finish_what_it_prints() {
    let shop = Shop::new();
    let job = shop.script(PASS, "setsid sleep 300 & setsid -f sleep 300; echo $GITHUB_TOKEN");
    assert_eq!(shop.run_with(GIVEN, "ares-run", &[]).status, 0);
    assert_eq!(shop.output(&job, "stdout"), "[GITHUB_TOKEN]\n");
    assert_eq!(shop.latest(&job)["seen"]["leaked"].as_array().map(Vec::len), Some(2));
    // What is asked to end prints more than a pipe holds in its time of grace.
    let late = "(trap '' TERM; sleep 0.1; head -c 300000 /dev/zero; echo $GITHUB_TOKEN) & exit 0";
    let job = shop.script(PASS, late);
    assert_eq!(shop.run_with(GIVEN, "ares-run", &[]).status, 0);
    let output = shop.output(&job, "stdout");
    assert!(output.len() == 300_015 && output.ends_with("\0[GITHUB_TOKEN]\n"), "{}", output.len());
    shop.clean();
}

#[test]
fn silence_and_time_are_limited_through_the_keeper_too() {
    let shop = Shop::new();
    let cases = [
        ("--timeout-first", "sleep 60", "timeout-first"),
        ("--timeout-idle", "printf ${GITHUB_TOKEN%2}; sleep 60", "timeout-idle"),
        ("--timeout", "while :; do printf C; sleep 0.05; done", "timeout-whole"),
    ];
    for (option, script, cause) in cases {
        let job = shop.script(&[PASS, &[option, "300ms", "--grace", "100ms"]].concat(), script);
        assert_eq!(shop.run_with(GIVEN, "ares-run", &[]).status, 10);
        assert_eq!(shop.latest(&job)["seen"]["cause"], cause);
    }
    // What is held back as the possible beginning of a value was heard all the same.
    let job = shop.script(
        &[PASS, &["--timeout-idle", "1500ms"]].concat(),
        "printf CAN; sleep 1; printf ARY; sleep 1; printf -; sleep 1; echo over",
    );
    assert_eq!(shop.run_with(GIVEN, "ares-run", &[]).status, 0);
    assert_eq!(shop.output(&job, "stdout"), "CANARY-over\n");
    // At the very end a beginning of a value that is long enough is one.
    assert_eq!(shop.output("2", "stdout"), "[GITHUB_TOKEN]");
}
