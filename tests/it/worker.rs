//! Recordings of agents, rewritten so that nothing of a real machine or account is left in them, through the reader; then
//! the same recordings cut, damaged and out of order.

mod recorded;
mod synthetic;

use self::recorded::{AGENTS, Agent, OTHER, Row};
use ares::domain::outcome::{Outcome, Report, Seen};
use ares::domain::time::{Time, moment};
use ares::error::Code;
use ares::worker::Said;
use std::collections::BTreeSet;

fn seen(exit: i32) -> Seen {
    Seen { ended: moment("2026-11-30T17:14:40Z", Time(0)).unwrap().0, ..Seen::exited(exit) }
}

fn read(agent: &Agent, resume: Option<&str>, bytes: &[u8], exit: i32, stderr: &[u8]) -> (Vec<Said>, Report) {
    let mut reader = agent.adapter.reader(resume);
    let said = reader.feed(bytes);
    (said, reader.finish(&seen(exit), stderr))
}

/// Every recording with whose it is.
fn rows() -> impl Iterator<Item = (&'static Agent, &'static Row)> {
    AGENTS.iter().flat_map(|agent| agent.table.iter().map(move |row| (agent, row)))
}

#[test]
fn every_recording_is_read_as_what_it_was() {
    for (agent, row) in rows() {
        let (name, exit, _, outcome, code, answer, input) = *row;
        let bytes = agent.stdout(name);
        let (said, report) = read(agent, agent.asked(row, &bytes).as_deref(), &bytes, exit, &agent.stderr(name));
        assert_eq!((report.outcome, report.code), (outcome, code), "{name}: {}", report.detail);
        assert_eq!(report.answer.as_deref(), answer.map(str::as_bytes), "{name}");
        assert_eq!(report.session, agent.session(&bytes), "{name}");
        assert_eq!(
            report.usage.as_ref().map(|usage| usage.input).filter(|input| *input > 0),
            (input > 0).then_some(input),
            "{name}"
        );
        let totals = agent.cumulative && !report.broken;
        assert!(report.usage.is_none_or(|usage| usage.cumulative == totals), "{name}");
        assert_eq!(report.broken, code == Some(Code::ResumeMismatch), "{name}");
        let wrong = said.iter().any(|said| matches!(said, Said::WrongSession { .. }));
        assert_eq!(wrong, report.broken, "{name}");
        assert_eq!(said.contains(&Said::Terminal), agent.is_terminal(&bytes), "{name}");
    }
}

#[test]
fn only_some_failures_are_worth_another_try_and_only_a_busy_session_is_a_passing_refusal() {
    let at = |text: &str| Some(Some(moment(text, Time(0)).unwrap()));
    for (agent, row) in rows() {
        let name = row.0;
        let bytes = agent.stdout(name);
        let (_, report) = read(agent, agent.asked(row, &bytes).as_deref(), &bytes, row.1, &agent.stderr(name));
        let retry = match name {
            "097-err429usage" => at("2026-11-30T19:21:00Z"),
            "171-err429usage" => at("2026-11-30T19:15:00Z"),
            "171-err429team" => at("2026-11-30T18:27:00Z"),
            "097-err429usagepro" => at("2026-12-02T18:22:00Z"),
            "171-err429usagepro" => at("2026-12-02T18:16:00Z"),
            "171-err429later" => Some(None),
            _ if matches!(row.4, Some(Code::RateLimited | Code::Overloaded)) => Some(None),
            _ => None,
        };
        assert_eq!(report.retry, retry, "{name}");
        let lasting = row.3 == Outcome::Void && name != "171-conc-resume-0";
        assert_eq!(report.lasting, lasting, "{name}");
    }
}

#[test]
fn no_recording_is_forgotten_or_names_a_machine() {
    for agent in AGENTS {
        let names: BTreeSet<String> = agent.table.iter().map(|row| row.0.to_owned()).collect();
        let mut files = BTreeSet::new();
        for entry in std::fs::read_dir(agent.folder()).unwrap() {
            let path = entry.unwrap().path();
            files.insert(path.file_stem().unwrap().to_string_lossy().into_owned());
            let text = std::fs::read_to_string(&path).unwrap();
            for word in ["/home/", "/root", "/Users/", "127.0.0.1", "localhost", "@"] {
                assert!(!text.contains(word), "{} contains {word}", path.display());
            }
        }
        assert_eq!(names, files);
        assert_eq!(names.len(), agent.table.len());
    }
}

#[test]
fn byte_by_byte_is_the_same_as_at_once() {
    for (agent, row) in rows() {
        let bytes = agent.stdout(row.0);
        let resume = agent.asked(row, &bytes);
        let whole = read(agent, resume.as_deref(), &bytes, row.1, &agent.stderr(row.0));
        let mut reader = agent.adapter.reader(resume.as_deref());
        let said: Vec<Said> = bytes.iter().flat_map(|byte| reader.feed(&[*byte])).collect();
        assert_eq!((said, reader.finish(&seen(row.1), &agent.stderr(row.0))), whole, "{}", row.0);
    }
}

#[test]
fn no_beginning_of_a_recording_is_a_success() {
    for (agent, row) in rows().filter(|(_, row)| row.3 == Outcome::Ok) {
        let bytes = agent.stdout(row.0);
        // The last byte is the end of the line, without which the last event is whole all the same.
        for end in 0..bytes.len() - 1 {
            let (_, report) = read(agent, agent.asked(row, &bytes).as_deref(), &bytes[..end], 0, b"");
            assert_eq!(report.outcome, Outcome::Ambiguous, "{} cut at {end}", row.0);
        }
    }
}

/// A small generator that gives the same numbers at every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

#[test]
fn garbage_is_never_a_success() {
    let mut numbers = Numbers(1);
    let pieces: &[&[u8]] = &[
        b"{\"type\":\"",
        b"turn.completed",
        b"\"}",
        b"\n",
        b"{",
        b"}",
        b"[",
        b"\"",
        b"\xff",
        b"\0",
        b"thread.started",
        b":",
        b"\"usage\":{",
        b"1e999",
        b"-1",
        b"null",
        b"\\ud800",
        b"{\"item\":",
        b"agent_message",
        b"\r\n",
        b"\"type\":\"result\",\"is_error\":false,",
        b"\"num_turns\":1",
    ];
    for round in 0..4000 {
        let mut bytes = Vec::new();
        for _ in 0..numbers.below(40) {
            match numbers.below(3) {
                0 => bytes.push(u8::try_from(numbers.below(256)).unwrap()),
                _ => bytes.extend(pieces[numbers.below(pieces.len())]),
            }
        }
        for (agent, resume) in AGENTS.iter().flat_map(|agent| [(agent, None), (agent, Some(OTHER))]) {
            for exit in [0, 1, 2] {
                let (_, report) = read(agent, resume, &bytes, exit, &bytes);
                assert_ne!(report.outcome, Outcome::Ok, "round {round}: {:?}", String::from_utf8_lossy(&bytes));
            }
        }
    }
}

#[test]
fn a_flipped_byte_never_makes_a_success_of_something_else() {
    let mut numbers = Numbers(2);
    for (agent, row) in rows().filter(|(agent, row)| row.3 != Outcome::Ok && !agent.stdout(row.0).is_empty()) {
        let bytes = agent.stdout(row.0);
        for _ in 0..200 {
            let mut bytes = bytes.clone();
            let at = numbers.below(bytes.len());
            bytes[at] ^= 1 << numbers.below(8);
            let (_, report) =
                read(agent, agent.asked(row, &agent.stdout(row.0)).as_deref(), &bytes, row.1, &agent.stderr(row.0));
            assert_ne!(report.outcome, Outcome::Ok, "{} flipped at {at}", row.0);
        }
    }
}

#[test]
fn lines_out_of_order_succeed_only_when_the_end_comes_last_of_what_matters() {
    let mut numbers = Numbers(3);
    for (agent, row) in rows() {
        let text = String::from_utf8(agent.stdout(row.0)).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        for _ in 0..50 {
            for at in (1..lines.len()).rev() {
                lines.swap(at, numbers.below(at + 1));
            }
            let (_, report) =
                read(agent, agent.asked(row, text.as_bytes()).as_deref(), lines.join("\n").as_bytes(), row.1, b"");
            if report.outcome != Outcome::Ok {
                continue;
            }
            assert_eq!(row.3, Outcome::Ok, "{}", row.0);
            let place = |mark: &str| lines.iter().position(|line| line.contains(mark)).unwrap();
            assert!(place(agent.order.0) < place(agent.order.1), "{}", row.0);
        }
    }
}
