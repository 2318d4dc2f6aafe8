//! The states and moves of the domain, and those that the schema lets pass, are the same lists.

use crate::harness::text;
use ares::domain::attempt::State as Attempt;
use ares::domain::job::State as Job;
use ares::domain::moves::{Delivery, Permit, Reservation, Review, Step as WorkflowStep, Word, Workflow};
use ares::domain::session::Status as Session;
use rusqlite::Connection;
use std::collections::BTreeSet;

fn database() -> Connection {
    let database = Connection::open_in_memory().expect("memory");
    database.execute_batch(&text("src/store/schema.sql")).expect("the schema");
    database
}

/// The words of a CHECK on the state of a table.
fn checked(database: &Connection, table: &str) -> BTreeSet<String> {
    let sql: String = database
        .query_row("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?1", [table], |row| row.get(0))
        .expect("a table");
    let list = sql.split("state IN (").nth(1).and_then(|rest| rest.split(')').next()).expect("a CHECK");
    list.split('\'').skip(1).step_by(2).map(str::to_owned).collect()
}

fn compare<S: Word>(database: &Connection, table: &str) {
    let words: BTreeSet<String> = S::WORDS.iter().map(|(word, _)| (*word).to_owned()).collect();
    assert_eq!(checked(database, table), words, "{table}");
    let mut statement = database.prepare("SELECT old, new FROM moves WHERE kind = ?1").expect("it prepares");
    let rows = statement.query_map([S::KIND], |row| Ok((row.get(0)?, row.get(1)?))).expect("it runs");
    let moves: BTreeSet<(String, String)> = rows.map(|row| row.expect("a row")).collect();
    for (old, from) in S::WORDS {
        for (new, to) in S::WORDS {
            let known = moves.contains(&((*old).to_owned(), (*new).to_owned()));
            assert_eq!(known, from.may(*to), "{}: {old} to {new}", S::KIND);
        }
    }
    let trigger = format!("{table}_move");
    let found: i64 = database
        .query_row("SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND name = ?1", [&trigger], |r| r.get(0))
        .expect("it runs");
    assert_eq!(found, 1, "{trigger}");
}

#[test]
fn every_pair_of_states_is_judged_alike() {
    let database = database();
    compare::<Job>(&database, "jobs");
    compare::<Attempt>(&database, "attempts");
    compare::<Permit>(&database, "permits");
    compare::<Delivery>(&database, "deliveries");
    compare::<Reservation>(&database, "reservations");
    compare::<Review>(&database, "reviews");
    compare::<Workflow>(&database, "workflows");
    compare::<WorkflowStep>(&database, "steps");
    compare::<Session>(&database, "sessions");
}

#[test]
fn the_schema_says_the_version_that_the_store_wants() {
    let database = database();
    let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0)).expect("it runs");
    assert_eq!(version, ares::store::VERSION);
}
