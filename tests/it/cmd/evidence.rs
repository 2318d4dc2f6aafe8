//! `ares-reconcile JOB`: evidence is gathered and never judged, decisions stand on what was seen, and a worker's own
//! store is believed where it holds the finished turn.

use crate::harness::{Lab, Ran};
use serde_json::Value;

/// A store with one turn of the synthetic worker, played as the scenario says.
fn turn(scenario: &str) -> Lab {
    let lab = Lab::new();
    let script = format!(
        "ares init -q >/dev/null && printf 'scenario: {scenario}\\nremember the plum\\n' | ares submit -w synthetic \
         && ares run -q >/dev/null 2>&1"
    );
    lab.sh(&script);
    lab
}

fn packet(lab: &Lab) -> Value {
    let ran = lab.run("ares-reconcile", &["1", "--json"]);
    serde_json::from_str(ran.out.lines().next().unwrap_or_default()).unwrap_or_else(|e| panic!("{e}: {ran:?}"))
}

fn decide(lab: &Lab, more: &[&str]) -> Ran {
    let args = ["1", "--decide", "abandon", "--because", "a test"];
    lab.run("ares-reconcile", &[&args[..], more].concat())
}

#[test]
fn a_turn_that_the_worker_saved_before_it_was_killed_is_adopted() {
    let lab = turn("killed-saved");
    let packet = packet(&lab);
    assert_eq!((packet["state"].as_str(), packet["proposal"].as_str()), (Some("uncertain"), Some("ok")), "{packet}");
    assert_eq!((packet["found"].as_str(), packet["done"].as_str()), (Some("uncertain"), Some("nothing")), "{packet}");
    assert_eq!(packet["evidence"]["worker_store"]["turn"], "completed");
    assert_eq!(packet["evidence"]["seen"]["signal"], 9);
    let ran = lab.run("ares-reconcile", &["1", "--adopt"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    let answer = lab.run("ares-show", &["1", "--output", "result"]).out;
    assert!(answer.starts_with("turn 1 of this conversation"), "{answer}");
    let shown = lab.run("ares-show", &["1", "--json"]).out;
    assert!(shown.contains(packet["digest"].as_str().unwrap()), "the decision keeps its evidence: {shown}");
    assert_eq!(lab.run("ares-show", &[packet["digest"].as_str().unwrap()]).status, 0, "and the evidence is kept");
    assert_eq!(lab.run("ares-fsck", &[]).status, 0);
}

#[test]
fn a_turn_without_an_end_speaks_for_nothing() {
    let lab = turn("killed");
    let packet = packet(&lab);
    assert_eq!((packet["state"].as_str(), packet["proposal"].as_str()), (Some("uncertain"), None), "{packet}");
    let ran = lab.run("ares-reconcile", &["1", "--adopt"]);
    assert_eq!(ran.status, 10, "{ran:?}");
    assert!(ran.err.contains("speaks for nothing"), "{ran:?}");
}

#[test]
fn a_decision_on_other_evidence_is_refused() {
    let lab = turn("killed");
    let digest = packet(&lab)["digest"].as_str().unwrap().to_owned();
    let other = "0".repeat(64);
    let refused = decide(&lab, &["--seen", &other]);
    assert_eq!(refused.status, 3, "{refused:?}");
    assert!(refused.err.contains(&digest), "it says what the evidence is by now: {refused:?}");
    assert_eq!(decide(&lab, &["--seen", &digest]).status, 0);
    let second = decide(&lab, &[]);
    assert_eq!(second.status, 3);
    assert!(second.err.contains("ARES_ALREADY_DECIDED") && second.err.contains("a test"), "{second:?}");
}

#[test]
fn looking_decides_nothing_and_may_be_repeated() {
    let lab = turn("killed");
    assert_eq!(packet(&lab), packet(&lab));
    assert_eq!(lab.run("ares-reconcile", &["1"]).status, 10);
    assert_eq!(lab.run("ares-list", &["--format", "%(state)"]).out, "uncertain\n");
}
