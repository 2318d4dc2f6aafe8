//! What the evidence of an attempt holds: each part of it is there, is read from where it lies, and changes the digest
//! when it changes. What cannot be read is told, and hides nothing else.

use crate::run::{Running, Shop, eventually, gone, send};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const ID: &str = "4b1d3c52-0000-4000-8000-000000000001";

/// A program that leaves what Claude Code leaves: it says which conversation it is, keeps a turn, and plays its end.
const CLAUDE: &str = r#"#!/bin/sh
id=4b1d3c52-0000-4000-8000-000000000001; kept="${CLAUDE_CONFIG_DIR:-$HOME/.claude}/projects/-work"; mkdir -p "$kept"
line() { printf '%s\n' "$1" >> "$kept/$id.jsonl"; }
[ -e silent ] || echo '{"type":"system","subtype":"init","session_id":"'$id'"}'
line '{"type":"user","timestamp":"'$(date -u +%Y-%m-%dT%H:%M:%SZ)'","message":{"role":"user","content":"do it"}}'
line '{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use"}],"stop_reason":"tool_use"}}'
line '{"type":"user","message":{"content":[{"type":"tool_result","content":"x"}]}}'
text='[{"type":"text","text":"the whole answer"}]'
case "$PLAY" in
  open) ;;
  failed) line '{"type":"assistant","message":{"id":"m2","model":"<synthetic>","content":[{"type":"text","text":"no credit"}],"stop_reason":"stop_sequence"}}' ;;
  *) line '{"type":"assistant","message":{"id":"m2","content":'"$text"',"stop_reason":"end_turn"}}' ;;
esac
echo $$ > pid
[ -e hang ] && exec sleep 300
kill -9 $$
"#;

/// A shop with that program.
fn with_claude() -> (Shop, String) {
    let shop = Shop::new();
    let path = shop.path().join("claude");
    std::fs::write(&path, CLAUDE).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    (shop, path.to_string_lossy().into_owned())
}

fn packet(shop: &Shop, job: &str) -> Value {
    let ran = shop.run("ares-reconcile", &[job, "--json"]);
    serde_json::from_str(ran.out.lines().next().unwrap_or_default()).unwrap_or_else(|e| panic!("{e}: {ran:?}"))
}

fn digest(shop: &Shop, job: &str) -> String {
    packet(shop, job)["digest"].as_str().unwrap().to_owned()
}

/// A job of this program that nobody saw the end of.
fn killed(shop: &Shop, env: &[(&str, &str)], command: &[&str]) -> String {
    let names: Vec<&str> = env.iter().flat_map(|(name, _)| ["--env", name]).collect();
    let job = shop.submit(&[&names, &["--"][..], command].concat());
    assert_eq!(shop.run_with(env, "ares-run", &["--job", &job]).status, 10);
    job
}

fn transcript(shop: &Shop) -> PathBuf {
    shop.path().join(format!(".claude/projects/-work/{ID}.jsonl"))
}

#[test]
fn a_turn_that_claude_finished_is_adopted_from_its_transcript() {
    let (shop, claude) = with_claude();
    let job = killed(&shop, &[], &[&claude, "-p", "--output-format", "stream-json"]);
    let before = std::fs::read(transcript(&shop)).unwrap();
    let packet = packet(&shop, &job);
    let kept = &packet["evidence"]["worker_store"];
    assert_eq!((&kept["turn"], &kept["text"]), (&json!("completed"), &json!("the whole answer")), "{packet}");
    assert_eq!(packet["proposal"], "ok");
    let reason = packet["reason"].as_str().unwrap();
    assert!(reason.contains(&format!("{ID}.jsonl' holds the finished turn")), "{reason}");
    // While anything of it is alive nothing is proposed, and who adopts waits for its end.
    let survivor = shop.survivor(&format!("{job}.1"));
    assert_eq!(self::packet(&shop, &job)["proposal"], Value::Null);
    let adopt = shop.start(&[], "ares-reconcile", &[&job, "--adopt"]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(shop.state(&job), "uncertain");
    survivor.kill();
    assert_eq!(adopt.end().status, 0);
    assert_eq!((shop.state(&job).as_str(), shop.output(&job, "result").as_str()), ("succeeded", "the whole answer"));
    assert_eq!(std::fs::read(transcript(&shop)).unwrap(), before, "it is read only");
}

#[test]
fn a_turn_of_claude_that_failed_or_did_not_end_is_told_as_that() {
    for (play, turn, proposal) in [("failed", "failed", json!("error")), ("open", "open", Value::Null)] {
        let (shop, claude) = with_claude();
        let job = killed(&shop, &[("PLAY", play)], &[&claude, "-p"]);
        let packet = packet(&shop, &job);
        assert_eq!((&packet["evidence"]["worker_store"]["turn"], &packet["proposal"]), (&json!(turn), &proposal));
    }
}

#[test]
fn what_a_wrapper_did_after_the_turn_is_not_in_the_transcript() {
    let (shop, claude) = with_claude();
    let job = killed(&shop, &[], &["/bin/sh", "-c", "\"$0\" -p; kill -9 $$", &claude]);
    let packet = packet(&shop, &job);
    assert_eq!(packet["evidence"]["worker_store"]["turn"], "completed");
    assert_eq!(packet["proposal"], Value::Null, "{packet}");
    assert_eq!(shop.run("ares-reconcile", &[&job, "--adopt"]).status, 10);
    assert_eq!(shop.run("ares-reconcile", &[&job, "--decide", "ok", "--because", "it is pushed"]).status, 0);
    assert_eq!(shop.output(&job, "result"), "the whole answer", "who decides has its answer");
}

#[test]
fn only_the_turn_of_this_attempt_counts() {
    let (shop, claude) = with_claude();
    let job = killed(&shop, &[], &[&claude, "-p"]);
    let kept = |shop: &Shop| packet(shop, &job)["evidence"]["worker_store"].clone();
    assert_eq!(kept(&shop)["turn"], "completed");
    let text = std::fs::read_to_string(transcript(&shop)).unwrap();
    for (other, why) in [("2001-05-01T06:00:00Z", "before it"), ("2901-05-01T06:00:00Z", "after its end")] {
        let began = text.find("\"timestamp\":\"").unwrap() + 13;
        std::fs::write(transcript(&shop), [&text[..began], other, &text[began + 20..]].concat()).unwrap();
        assert_eq!(kept(&shop), Value::Null, "{why}");
    }
}

#[test]
fn a_transcript_is_found_where_the_worker_was_told_to_keep_it() {
    let (shop, claude) = with_claude();
    let home = shop.path().join("other").to_string_lossy().into_owned();
    let job = killed(&shop, &[("CLAUDE_CONFIG_DIR", &home)], &[&claude, "-p"]);
    let looked = |env: &[(&str, &str)]| {
        let ran = shop.run_with(env, "ares-reconcile", &[&job, "--format", "%(proposal)"]);
        ran.out.trim().to_owned()
    };
    assert_eq!((looked(&[("CLAUDE_CONFIG_DIR", &home)]).as_str(), looked(&[]).as_str()), ("ok", ""));
    // A worker that was not given the variable did not look there.
    let job = killed(&shop, &[], &[&claude, "-p"]);
    let ran = shop.run_with(&[("CLAUDE_CONFIG_DIR", &home)], "ares-reconcile", &[&job, "--json"]);
    assert!(ran.out.contains("/.claude/projects/-work/"), "{}", ran.out);
}

#[test]
fn a_link_in_the_place_of_a_transcript_is_told_and_not_read() {
    let (shop, claude) = with_claude();
    let job = killed(&shop, &[], &[&claude, "-p"]);
    let away = shop.path().join("away");
    std::fs::rename(transcript(&shop), &away).unwrap();
    std::os::unix::fs::symlink(&away, transcript(&shop)).unwrap();
    let packet = packet(&shop, &job);
    assert!(packet["evidence"]["worker_store"]["unread"].as_str().unwrap().contains(ID), "{packet}");
    assert_eq!(packet["proposal"], Value::Null);
    assert_eq!(packet["evidence"]["seen"]["signal"], 9, "the rest is there");
    assert_eq!(shop.run("ares-reconcile", &[&job, "--decide", "ok", "--because", "x"]).status, 0);
}

/// The directory of an attempt is lost with its owner and its keeper.
fn lose(shop: &Shop, job: &str, run: Running) {
    shop.crash(run);
    std::fs::remove_dir_all(shop.root().join(format!("attempts/{job}.1"))).unwrap();
    assert_eq!(shop.run("ares-reconcile", &["--quiet"]).status, 10);
}

#[test]
fn the_workers_own_store_speaks_also_when_our_files_are_gone() {
    let (shop, claude) = with_claude();
    std::fs::write(shop.path().join("hang"), "").unwrap();
    let job = shop.submit(&["--", &claude, "-p", "--session-id", ID]);
    lose(&shop, &job, shop.start(&[], "ares-run", &[]));
    let told = packet(&shop, &job);
    assert_eq!(told["evidence"]["stdout"]["size"], 0);
    assert_eq!((&told["evidence"]["worker_store"]["turn"], &told["proposal"]), (&json!("completed"), &json!("ok")));

    let shop = Shop::new();
    let job = shop.turn(&[], "scenario: linger\nhello");
    let run = shop.start(&[], "ares-run", &[]);
    let rollouts = shop.path().join(".ares-synthetic/sessions");
    eventually("its session is known", || shop.job(&job)["session"].as_str().map(drop));
    eventually("the turn is kept", || holds(&rollouts, "task_complete").then_some(()));
    let keeper = shop.keeper();
    run.kill();
    send(keeper, Signal::KILL);
    gone(keeper);
    eventually("nothing of it lives", || shop.alive().is_empty().then_some(()));
    std::fs::remove_dir_all(shop.root().join(format!("attempts/{job}.1"))).unwrap();
    let told = packet(&shop, &job);
    assert_eq!(told["evidence"]["mark"]["state"], "missing");
    assert_eq!((&told["evidence"]["worker_store"]["turn"], &told["proposal"]), (&json!("completed"), &json!("ok")));
    assert_eq!(shop.run("ares-reconcile", &[&job, "--adopt"]).status, 0);
    assert!(shop.output(&job, "result").starts_with("turn 1 of this conversation"));
}

/// Whether a file below this folder has this text.
fn holds(folder: &Path, text: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| match std::fs::read_to_string(entry.path()) {
        Ok(content) => content.contains(text),
        Err(_) => holds(&entry.path(), text),
    })
}

#[test]
fn what_is_kept_and_cannot_be_read_hides_nothing_else() {
    let shop = Shop::new();
    let job = shop.script(&[], "head -c 100000 /dev/zero; echo last words >&2; kill -9 $$");
    assert_eq!(shop.run("ares-run", &[]).status, 10);
    assert_eq!(packet(&shop, &job)["evidence"]["stdout"]["size"], 100_000);
    std::fs::remove_dir_all(shop.root().join("objects")).unwrap();
    std::fs::create_dir(shop.root().join("objects")).unwrap();
    let told = packet(&shop, &job);
    assert!(told["evidence"]["stdout"]["unread"].as_str().unwrap().contains("ARES_STORE_DAMAGED"), "{told}");
    assert_eq!(told["evidence"]["stderr"]["tail"], "last words\n");
}

#[test]
fn each_part_is_there_and_changes_the_digest() {
    let (shop, claude) = with_claude();
    let repository = shop.path().join(".git");
    std::fs::create_dir_all(repository.join("refs/heads")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(repository.join(name), text).unwrap();
    let (one, two) = ("1".repeat(40), "2".repeat(40));
    write("HEAD", "ref: refs/heads/main\n");
    write("refs/heads/main", &format!("{one}\n"));
    let script = "ares-submit -q -- ares-submit -- true >/dev/null; \"$0\" -p; kill -9 $$";
    let job = killed(&shop, &[], &["/bin/sh", "-c", script, &claude]);
    let child = (job.parse::<i64>().unwrap() + 1).to_string();
    let first = packet(&shop, &job);
    let evidence = &first["evidence"];
    assert_eq!((&evidence["git"]["commit"], &evidence["git"]["index_lock"]), (&json!(one), &json!(false)));
    let wanted =
        json!([{ "permit": 1, "effect": "dispatch", "target": "command", "state": "settled", "outcome": "ambiguous" }]);
    assert_eq!(evidence["permits"], wanted);
    assert_eq!((evidence["mark"]["state"].as_str(), evidence["seen"]["signal"].as_i64()), (Some("started"), Some(9)));
    assert!(evidence["stdout"]["tail"].as_str().unwrap().contains("\"init\""), "{evidence}");

    let mut seen = vec![digest(&shop, &job)];
    let mut changed = |what: &str| {
        let now = digest(&shop, &job);
        assert!(!seen.contains(&now), "{what} changed nothing");
        seen.push(now);
    };
    write("index.lock", "");
    assert_eq!(packet(&shop, &job)["evidence"]["git"]["index_lock"], true);
    changed("a lock that was left");
    write("refs/heads/main", &format!("{two}\n"));
    changed("a commit");
    write("MERGE_HEAD", &two);
    changed("a merge that is not ended");
    std::fs::create_dir(repository.join("logs")).unwrap();
    write("logs/HEAD", &format!("{one} {two} A B <a@example.org> 1935381600 +0000\tcommit: all of it\n"));
    let wanted = json!({ "commit": two, "at": "2031-05-01T06:00:00.000Z", "what": "commit: all of it" });
    assert_eq!(packet(&shop, &job)["evidence"]["git"]["last"], wanted);
    changed("what was done last");
    assert_eq!(shop.run("ares-run", &["--job", &child]).status, 0);
    let grandchild = child.parse::<i64>().unwrap() + 1;
    let (parent, child) = (job.parse::<i64>().unwrap(), grandchild - 1);
    let wanted = json!([
        { "job": child, "state": "succeeded", "parent": parent },
        { "job": grandchild, "state": "queued", "parent": child },
    ]);
    assert_eq!(packet(&shop, &job)["evidence"]["children"], wanted);
    changed("a child's end and a child of its own");
    let mut kept = std::fs::OpenOptions::new().append(true).open(transcript(&shop)).unwrap();
    std::io::Write::write_all(&mut kept, CLAUDE_WENT_ON.as_bytes()).unwrap();
    changed("the worker's own store");
    let survivor = shop.survivor(&format!("{job}.1"));
    let told = packet(&shop, &job);
    assert_eq!(
        (&told["survivors"], &told["evidence"]["survivors"]),
        (&json!([survivor.pid()]), &json!([survivor.pid()]))
    );
    changed("a process that is alive");
    survivor.kill();
    assert_eq!(
        shop.run(
            "ares-reconcile",
            &[&job, "--decide", "ok", "--because", "x", "--seen", first["digest"].as_str().unwrap()]
        )
        .status,
        3
    );
    assert_eq!(
        shop.run("ares-reconcile", &[&job, "--decide", "ok", "--because", "x", "--seen", &digest(&shop, &job)]).status,
        0
    );
}

const CLAUDE_WENT_ON: &str =
    "{\"type\":\"assistant\",\"message\":{\"id\":\"m3\",\"content\":\"and more\",\"stop_reason\":\"end_turn\"}}\n";

#[test]
fn a_process_that_dropped_its_mark_is_known_by_the_lock() {
    // It keeps the descriptor of the lock that it inherited, and nothing else says whose it is.
    let script = "env -i setsid sleep 300 & echo $! > child; echo $$ > pid; wait";
    for owner_too in [true, false] {
        let shop = Shop::new();
        let job = shop.script(&["--max-tries", "3"], script);
        let run = shop.start(&[], "ares-run", &[]);
        let child = shop.pid("child");
        let found = if owner_too {
            shop.crash(run);
            "orphaned"
        } else {
            shop.pid("pid");
            send(shop.keeper(), Signal::KILL);
            assert_eq!(run.end().status, 10);
            "uncertain"
        };
        assert!(crate::run::runs(child), "nobody knew it");
        let told = packet(&shop, &job);
        let held = |told: &Value| told["evidence"]["lock_held"].clone();
        assert_eq!((&told["found"], &told["survivors"], held(&told)), (&json!(found), &json!([]), json!(true)));
        let retry = [job.as_str(), "--decide", "retry", "--because", "x"];
        if !owner_too {
            let refused = shop.run("ares-reconcile", &retry);
            assert!(refused.status == 3 && refused.err.contains("its lock is held by a process"), "{}", refused.err);
            assert_eq!(shop.run("ares-reconcile", &[&job, "--stop-survivors"]).status, 3, "no stranger gets a signal");
            assert!(crate::run::runs(child));
        }
        send(child, Signal::KILL);
        gone(child);
        let told = packet(&shop, &job);
        assert_eq!((&told["state"], held(&told)), (&json!("uncertain"), json!(false)), "{told}");
        assert_eq!(shop.run("ares-reconcile", &retry).status, 0);
    }
}

#[test]
fn survivors_stand_in_the_way_of_a_retry_until_they_end_or_are_ended() {
    let shop = Shop::new();
    let job = shop.script(&["--max-tries", "3"], "kill -9 $$");
    assert_eq!(shop.run("ares-run", &[]).status, 10);
    let retry = |more: &[&str]| {
        shop.run("ares-reconcile", &[&[job.as_str(), "--decide", "retry", "--because", "x"][..], more].concat())
    };
    let (one, stranger) = (shop.survivor(&format!("{job}.1")), shop.survivor(&format!("{job}.11")));
    let refused = retry(&[]);
    assert!(refused.status == 3 && refused.err.contains(&format!("are alive: {}", one.pid())), "{}", refused.err);
    assert_eq!(retry(&["--stop-survivors"]).status, 0);
    assert_eq!(one.end().status, 128 + 15, "it is asked before it is killed");
    assert!(crate::run::runs(stranger.pid()), "another attempt's process is a stranger");
    assert_eq!(shop.state(&job), "queued");
}

#[test]
fn what_never_started_speaks_for_another_try() {
    let shop = Shop::new();
    // Given back five times in a row: it is held, and nothing of it ran.
    let job = shop.script(&[], "true");
    for _ in 0..5 {
        let me = std::process::id().to_string();
        let claimed = shop.run("ares-claim", &["--reserve", "--owner", &me]);
        assert_eq!(shop.run("ares-settle", &[claimed.out.trim(), "void"]).status, 0, "{}", claimed.err);
    }
    let told = packet(&shop, &job);
    assert_eq!((&told["found"], &told["proposal"]), (&json!("held"), &json!("retry")));
    assert!(told["reason"].as_str().unwrap().contains("never started"), "{told}");
    assert_eq!(shop.run("ares-reconcile", &[&job, "--adopt"]).status, 0);
    assert_eq!(shop.run("ares-run", &[]).status, 0);
    assert_eq!(shop.state(&job), "succeeded");
}

#[test]
fn a_program_that_could_not_be_executed_speaks_for_no_effect_also_after_another_boot() {
    let shop = Shop::new();
    let program = shop.path().join("program");
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let job = shop.submit(&["--", &program.to_string_lossy()]);
    std::fs::remove_file(&program).unwrap();
    assert_ne!(shop.run_with(&[("ARES_FAULT", "run.ended")], "ares-run", &[]).status, 0);
    std::fs::remove_file(shop.root().join(format!("attempts/{job}.1/exit"))).unwrap();
    let sql = "UPDATE attempts SET keeper = json_set(keeper, '$.boot', 'another')";
    assert_eq!(crate::stock::db(shop.root()).execute(sql, []).unwrap(), 1);
    let told = packet(&shop, &job);
    assert_eq!((&told["state"], &told["evidence"]["mark"]["errno"]), (&json!("uncertain"), &json!(2)), "{told}");
    assert_eq!(told["proposal"], "no-effect");
    assert_eq!(shop.run("ares-reconcile", &[&job, "--adopt"]).status, 0);
    assert_eq!((shop.state(&job).as_str(), &shop.job(&job)["tries"]), ("queued", &json!(0)));
}
