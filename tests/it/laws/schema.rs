//! The schema and the domain are one list: every pair of states of every kind is tried as an UPDATE on a fresh store
//! and compared with the domain's moves. And what the schema keeps by itself: beginnings, evidence, the fence.

use crate::stock::{Stock, column};
use ares::domain::attempt::State as Attempt;
use ares::domain::job::{Facts, Now, State as Job};
use ares::domain::moves::{Delivery, Permit, Reservation, Review, Step, Word, Workflow};
use ares::domain::outcome::{Cause, Fact, Outcome, Report, Seen};
use ares::domain::session::Status as Session;
use ares::domain::time::{Span, Time};
use ares::error::{Class, Code};
use ares::store::{Section, Store};
use rusqlite::Connection;
use std::collections::BTreeSet;

/// What has a state: its table, its kind, its words, its moves, and where a row begins.
struct Kind {
    table: &'static str,
    name: &'static str,
    words: Vec<&'static str>,
    moves: BTreeSet<(&'static str, &'static str)>,
}

fn kind<W: Word>(table: &'static str) -> Kind {
    let moves = W::MOVES.iter().map(|(old, new)| (old.word(), new.word())).collect();
    Kind { table, name: W::KIND, words: W::WORDS.iter().map(|(word, _)| *word).collect(), moves }
}

fn kinds() -> Vec<Kind> {
    vec![
        kind::<Job>("jobs"),
        kind::<Attempt>("attempts"),
        kind::<Permit>("permits"),
        kind::<Delivery>("deliveries"),
        kind::<Reservation>("reservations"),
        kind::<Session>("sessions"),
        kind::<Review>("reviews"),
        kind::<Workflow>("workflows"),
        kind::<Step>("steps"),
    ]
}

/// A store with every section of the schema.
pub(super) fn whole() -> Stock {
    let stock = Stock::new();
    let mut store = Store::open(&stock.root(), None).expect("it opens");
    store.write(Time(1), |ledger| Section::ALL.into_iter().try_for_each(|section| ledger.lay(section))).expect("laid");
    stock
}

/// A connection on which only triggers refuse: no checks, no foreign keys.
fn triggers_only(stock: &Stock) -> Connection {
    let db = stock.db();
    db.execute_batch("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF").expect("settings");
    db
}

/// Puts a row in this state, with something in every column that needs it.
fn row(db: &Connection, table: &str, state: Option<&str>) -> rusqlite::Result<usize> {
    let info = format!(
        "SELECT name || ' ' || type || ' ' || (\"notnull\" AND dflt_value IS NULL) FROM pragma_table_info('{table}')"
    );
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for line in column(db, &info) {
        let parts: Vec<&str> = line.split(' ').collect();
        let value = match (parts[0], parts[1], state) {
            ("state", _, Some(state)) => format!("'{state}'"),
            (_, _, _) if parts[2] == "0" => continue,
            (_, "INTEGER", _) => "1".to_owned(),
            (_, "TEXT", _) => "'{}'".to_owned(),
            _ => "zeroblob(32)".to_owned(),
        };
        names.push(format!("\"{}\"", parts[0]));
        values.push(value);
    }
    db.execute(&format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), values.join(", ")), [])
}

fn refused(result: rusqlite::Result<usize>) -> bool {
    match result {
        Ok(_) => false,
        Err(error) if error.to_string().contains("ARES_ILLEGAL_MOVE") => true,
        Err(error) => panic!("refused for another reason: {error}"),
    }
}

#[test]
fn every_pair_of_states_is_allowed_or_refused_as_the_domain_says() {
    let stock = whole();
    let db = triggers_only(&stock);
    for kind in kinds() {
        // A row can be put in any state only where beginnings are not watched.
        db.execute_batch(&format!("DROP TRIGGER {}_begin", kind.table)).expect("its beginnings are watched");
        for old in &kind.words {
            for new in &kind.words {
                row(&db, kind.table, Some(old)).expect("a row");
                let moved = db.execute(&format!("UPDATE {} SET state = '{new}'", kind.table), []);
                assert_eq!(!refused(moved), kind.moves.contains(&(old, new)), "{}: {old} to {new}", kind.name);
                db.execute(&format!("DELETE FROM {}", kind.table), []).expect("the row goes");
            }
        }
    }
}

#[test]
fn the_table_of_moves_is_the_domains() {
    let stock = whole();
    let listed: BTreeSet<String> =
        column(&stock.db(), "SELECT kind || ' ' || old || ' ' || new FROM moves").into_iter().collect();
    let known: BTreeSet<String> = kinds()
        .iter()
        .flat_map(|kind| kind.moves.iter().map(|(old, new)| format!("{} {old} {new}", kind.name)).collect::<Vec<_>>())
        .collect();
    assert_eq!(listed, known);
    let with_state = column(
        &stock.db(),
        "SELECT m.name FROM sqlite_schema m, pragma_table_info(m.name) c
         WHERE m.type = 'table' AND c.name = 'state' AND m.name <> 'catalog' ORDER BY m.name",
    );
    let mut tables: Vec<&str> = kinds().iter().map(|kind| kind.table).collect();
    tables.sort_unstable();
    assert_eq!(with_state, tables, "a table with a state has no moves");
}

#[test]
fn rows_begin_at_the_beginning() {
    let stock = whole();
    let db = triggers_only(&stock);
    for kind in kinds() {
        let mut begun = 0;
        for word in &kind.words {
            let refused = refused(row(&db, kind.table, Some(word)));
            assert_eq!(refused, *word != kind.words[0], "{} may begin as {word}", kind.name);
            begun += usize::from(!refused);
        }
        assert_eq!(begun, 1);
    }
}

#[test]
fn evidence_is_only_added() {
    let stock = whole();
    let db = triggers_only(&stock);
    let kept =
        ["receipts", "resolutions", "events", "findings", "operations", "checkpoint_passes", "handoffs", "objects"];
    for table in kept {
        row(&db, table, None).unwrap_or_else(|error| panic!("{table}: {error}"));
        for column in column(&db, &format!("SELECT name FROM pragma_table_info('{table}')")) {
            let sql = format!("UPDATE {table} SET \"{column}\" = \"{column}\"");
            assert!(refused(db.execute(&sql, [])), "{table}.{column} may be changed");
        }
    }
    for table in ["receipts", "resolutions"] {
        assert!(refused(db.execute(&format!("DELETE FROM {table}"), [])), "{table} may be removed");
    }
}

#[test]
fn what_a_job_was_frozen_as_does_not_change_and_its_fence_never_falls() {
    let stock = whole();
    let db = triggers_only(&stock);
    row(&db, "jobs", None).expect("a job");
    db.execute("UPDATE jobs SET attempt = 3", []).expect("the fence rises");
    assert!(refused(db.execute("UPDATE jobs SET attempt = 2", [])), "the fence falls");
    let moving = ["state", "hold", "due", "attempt", "tries", "release_count", "ended_at"];
    for column in column(&db, "SELECT name FROM pragma_table_info('jobs')") {
        if !moving.contains(&column.as_str()) {
            let sql = format!("UPDATE jobs SET \"{column}\" = \"{column}\"");
            assert!(refused(db.execute(&sql, [])), "jobs.{column} may be changed");
        }
    }
}

fn settled(fact: Fact, tries: i64) -> Job {
    let facts =
        Facts { id: ares::domain::id::JobId(1), attempt: 1, tries, max_tries: 3, releases: 0, retry_delay: Span(1) };
    let Now::Running(job) = Now::new(facts, Job::Running) else { panic!("it is not running") };
    job.settle(fact, Time(0)).to()
}

#[test]
fn no_timeout_signal_or_silence_leads_to_failed() {
    let causes = [
        Cause::Exited,
        Cause::NotExecuted,
        Cause::TimeoutFirst,
        Cause::TimeoutIdle,
        Cause::TimeoutWhole,
        Cause::OutputLimit,
        Cause::Stopped,
        Cause::Finished,
    ];
    for cause in causes {
        // A cause that is new here must be thought about here.
        let chosen = match cause {
            Cause::Exited | Cause::NotExecuted | Cause::Finished => true,
            Cause::TimeoutFirst | Cause::TimeoutIdle | Cause::TimeoutWhole | Cause::OutputLimit | Cause::Stopped => {
                false
            }
        };
        for signal in [None, Some(9), Some(15)] {
            let code = Seen { cause, signal, ..Seen::exited(1) }.unknown_end();
            assert!(code.is_none_or(|code| code.class() == Class::Uncertain), "{cause:?}");
            assert_eq!(
                code.is_none(),
                chosen && (signal.is_none() || cause == Cause::NotExecuted),
                "{cause:?} {signal:?}"
            );
        }
    }
    for code in Code::ALL.iter().filter(|code| code.class() == Class::Uncertain) {
        for (_, outcome) in Outcome::WORDS.iter().filter(|(_, o)| matches!(o, Outcome::Error | Outcome::Ambiguous)) {
            for (retry, tries) in [(None, 1), (Some(None), 1), (Some(Some(Time(7))), 3)] {
                let report = Report { outcome: *outcome, retry, ..Report::error(*code, "") };
                assert_eq!(settled(report.fact(), tries), Job::Uncertain, "{code} as {outcome:?}");
            }
        }
    }
    assert_eq!(settled(Report::error(Code::ExitStatus, "").fact(), 1), Job::Failed);
}

#[test]
fn the_schema_says_the_version_that_the_store_wants() {
    let stock = Stock::new();
    let version: i64 = stock.db().pragma_query_value(None, "user_version", |row| row.get(0)).expect("it runs");
    assert_eq!(version, ares::store::VERSION);
}

#[test]
fn a_section_is_laid_where_it_is_used_and_once() {
    let stock = Stock::new();
    let mut store = Store::open(&stock.root(), None).expect("it opens");
    for section in Section::ALL {
        assert!(!store.read(|view| view.has(section)).expect("it reads"), "{section:?} is there from the beginning");
        for _ in 0..2 {
            store.write(Time(1), |ledger| ledger.lay(section)).expect("it is laid");
            assert!(store.read(|view| view.has(section)).expect("it reads"), "{section:?}");
        }
    }
    assert_eq!(stock.ok("ares-fsck", &[]), "");
    assert_eq!(stock.ok("ares-submit", &["--", "true"]), "1");
}
