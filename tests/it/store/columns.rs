//! `ares-fsck` by column: in a store in which everything has happened, one value of one row is changed behind the
//! commands' back, and fsck must name it. Tables and columns are read from the schema, so that a new one is named until it
//! is covered or stands in the list of those that cannot be.
//!
//! `ARES_FAULTS=full` takes every row of every column instead of a few.

use crate::harness::no_complaints;
use crate::stock::{Stock, column};
use ares::store::Store;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Columns of which some value can change without a trace, with the reason.
const UNCOVERED: &[(&str, &str)] = &[
    ("sessions.name", "of a session without a settled attempt: nothing else tells its name"),
    ("sessions.credential_home", "of a session without a settled attempt, from the configuration of that moment"),
    ("session_ids.seen_at", "when an id was seen decides nothing and is told nowhere else"),
    ("jobs.due", "0 once it was woken: whether that was right is told by no clock but that of then"),
    ("jobs.release_count", "lower: a decision sets it to 0, and claims that were given back are not counted"),
    (
        "jobs.submitted_by",
        "of a job without a settled attempt: the digest of a job covers what was asked for, not by whom",
    ),
    (
        "jobs.submitted_at",
        "of a job without a settled attempt: the log has one line for a batch, and loses it to ares-gc",
    ),
    ("keys.key", "keys outlive their jobs, which do not know them"),
    ("keys.request", "the digest of a request is not kept anywhere else, and the request not at all"),
    ("keys.job", "keys outlive their jobs, which do not know them; only a job that never was is told"),
    ("attempts.owner", "of an attempt that is open: only its receipt covers it, which comes with its end"),
    ("attempts.owner_lock", "of an attempt that is open, as its owner"),
    ("attempts.keeper", "of an attempt that is open, as its owner"),
    ("attempts.claimed_at", "of an attempt that is open, as its owner"),
    ("attempts.nonce_digest", "of an attempt that was claimed and not dispatched: nothing is bound to it yet"),
    ("permits.actor", "of an attempt that is open, as its owner"),
    ("segments.file_digest", "is held against the file, which only --exported names"),
    ("segments.exported_at", "when it left decides nothing and is told nowhere else"),
    ("events.id", "of a job that was cancelled before it was claimed: nothing else tells the number of its event"),
    (
        "findings.id",
        "what was noticed decides nothing, and has no receipt: findings are found while nothing may be written",
    ),
    ("findings.kind", "what was noticed decides nothing; an adopted answer is covered by its decision's receipt"),
    ("findings.subject", "as its kind"),
    ("findings.body", "as its kind"),
    ("findings.at", "as its kind"),
    ("operations.id", "the log tells, and decides nothing; a receipt of each line would cost every command"),
    ("operations.op_id", "names a request that is not kept"),
    ("operations.verb", "as its id"),
    ("operations.subject", "as its id"),
    ("operations.request", "the digest of a request that is not kept"),
    ("operations.answer", "only whom it is about is told elsewhere, not which state was answered"),
    ("operations.by", "as its id"),
    ("operations.note", "as its id"),
    ("operations.at", "as its id"),
];

/// A store with rows of every kind that the commands write.
fn filled() -> Stock {
    let stock = Stock::new();
    // Ends of every kind, with content in the database and beside it, retries, dependencies of every word, keys.
    stock.bash(
        "ares-submit -- true; ares-submit --after 1 -- true; ares-run --drain -q; ares-gc --keep 1 --export segment
         ares-submit --key k1 --label a --op-id op1 -- echo hello
         ares-submit --key k2 --label b --group g --after 3 --priority 3 -- false
         ares-submit --timeout 50ms --grace 50ms -- sleep 60
         ares-submit --label a -- head -c 40000 /dev/zero
         ares-submit --max-tries 2 --retry-delay 1ms -- sh -c 'exit 75'
         ares-submit --timeout 50ms --grace 50ms --if-uncertain fail -- sleep 60
         printf 'a prompt\\n' | ares-submit -w synthetic
         ares-submit -w synthetic --continue 9 -- more
         ares-submit --after 4 --on-failed cancel -- true
         ares-submit --env NOT_SET -- true
         ares-submit -- sh -c 'ares-submit -- echo child'
         ares-submit --timeout 50ms --grace 50ms -- sleep 61
         head -c 20000 /dev/zero | tr '\\0' x | ares-submit -- cat
         ares-run --drain -q
         ares-reconcile 5 --decide abandon --because 'it slept' --op-id op2
         ares-submit --op-id op3 -- sleep 62; ares-stop --label nothing --because x",
        0,
    );
    // Scripts: settled with usage, given up until held, told late, reserved, running.
    stock.submit(&["--label", "s"], &["true"]);
    stock.bash(
        "me=$$; s() { ares-claim --owner $me --label \"$1\"; }
         h=$(ares-claim --owner $me --label s --op-id op4)
         printf answer | ares-settle $h ok --usage input=10,cached=1,output=5,reasoning=2,calls=3,cost_nano=70 --result - --op-id op5 || exit 90
         printf late | ares-settle $h error --because late; [ $? != 0 ] || exit 91
         ares-submit --label h -- true
         for n in 1 2 3 4 5; do ares-settle $(s h) void --because 'no licence' -q; done
         ares-submit --label p -- true; for n in 1 2; do ares-settle $(s p) void --because 'no room' -q; done
         ares-submit --label u -- true; ares-settle $(s u) ambiguous --because 'who knows'
         ares-submit --label u2 -- true; ares-settle $(s u2) ambiguous --because 'nobody'; j=$(ares-list --label u2 --format '%(job)')
         ares-reconcile $j --decide retry --because 'again'; ares-settle $(s u2) ok
         ares-submit --label w --max-tries 3 --retry-delay 1h -- true; ares-settle $(s w) error --because later --retry
         ares-submit --label later --not-before +1h -- true
         ares-submit --label q -- true; ares-submit --label q --if-active q latest -- true
         ares-submit --label r1 -- true; ares-submit --label r2 -- true; ares-submit --label stopped -- true; ares-stop --label stopped --because 'not wanted' --op-id op6",
        0,
    );
    stock
}

/// One column of one table.
struct Column {
    table: String,
    name: String,
    kind: String,
    key: Vec<String>,
}

impl Column {
    fn full_name(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }

    /// What picks the row with this key, from the parameter after the first on.
    fn picks(&self) -> String {
        let parts = self.key.iter().enumerate().map(|(at, name)| format!("\"{name}\" IS ?{}", at + 2));
        parts.collect::<Vec<_>>().join(" AND ")
    }
}

/// Every column of every table of this store, from its schema.
fn columns(db: &Connection) -> Vec<Column> {
    let mut all = Vec::new();
    for table in column(db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'") {
        let info = |what: &str, and: &str| {
            column(db, &format!("SELECT {what} FROM pragma_table_info('{table}') WHERE {and} ORDER BY pk, cid"))
        };
        let key = info("name", "pk > 0");
        for (name, kind) in info("name", "true").into_iter().zip(info("type", "true")) {
            all.push(Column { table: table.clone(), name, kind, key: key.clone() });
        }
    }
    all
}

/// A row by its key, the value in the column, and words that may name it.
struct Line {
    key: Vec<Value>,
    value: Value,
    names: BTreeSet<String>,
}

fn text(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Value::Null | Value::Real(_) => String::new(),
    }
}

fn lines(db: &Connection, column: &Column) -> Vec<Line> {
    let keys = column.key.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let sql = format!("SELECT \"{}\", {keys}, * FROM {} ORDER BY {keys}", column.name, column.table);
    let mut statement = db.prepare(&sql).unwrap();
    let at: Vec<usize> = ["job", "subject", "session", "child", "id", "digest"]
        .iter()
        .flat_map(|name| {
            (column.key.len() + 1..statement.column_count())
                .filter(|at| statement.column_name(*at) == Ok(name))
                .collect::<Vec<_>>()
        })
        .collect();
    let read = |row: &rusqlite::Row<'_>| {
        let key: Vec<Value> = (1..=column.key.len()).map(|at| row.get(at)).collect::<Result<_, _>>()?;
        let mut names: BTreeSet<String> =
            at.iter().map(|at| row.get(*at).map(|value| text(&value))).collect::<Result<_, _>>()?;
        names.extend(key.iter().map(text));
        names.insert(key.iter().map(text).collect::<Vec<_>>().join("."));
        names.extend([column.table.clone(), column.table.trim_end_matches('s').to_owned()]);
        if let (Ok(job), Ok(n)) = (row.get::<_, i64>("job"), row.get::<_, i64>("attempt_n")) {
            names.insert(format!("{job}.{n}"));
        }
        names.remove("");
        Ok(Line { key, value: row.get(0)?, names })
    };
    statement.query_map([], read).unwrap().map(Result::unwrap).collect()
}

/// Other values that the column might as well have: that of another row, and one that is a little different.
fn others(column: &Column, value: &Value, lines: &[Line]) -> Vec<Value> {
    let other = lines.iter().map(|line| &line.value).find(|other| *other != value && **other != Value::Null);
    let near = match (value, column.kind.as_str()) {
        (Value::Integer(number), _) => Value::Integer(number + 1),
        (Value::Text(text), _) if text.starts_with(['{', '[']) && text.contains(|c: char| c.is_ascii_digit()) => {
            let at = text.rfind(|c: char| c.is_ascii_digit()).unwrap();
            let digit = if &text[at..=at] == "1" { "2" } else { "1" };
            Value::Text(format!("{}{digit}{}", &text[..at], &text[at + 1..]))
        }
        (Value::Text(text), _) => Value::Text(format!("{text}x")),
        (Value::Blob(bytes), _) if !bytes.is_empty() => {
            let mut bytes = bytes.clone();
            bytes[0] ^= 1;
            Value::Blob(bytes)
        }
        (_, "INTEGER") => Value::Integer(1),
        (_, "TEXT") => Value::Text("x".to_owned()),
        (_, _) => Value::Blob(vec![7; 32]),
    };
    other.cloned().into_iter().chain([near]).collect()
}

fn update(db: &Connection, column: &Column, key: &[Value], value: &Value) -> rusqlite::Result<usize> {
    let sql = format!("UPDATE {} SET \"{}\" = ?1 WHERE {}", column.table, column.name, column.picks());
    let values = std::iter::once(value).chain(key);
    db.prepare_cached(&sql)?.execute(rusqlite::params_from_iter(values))
}

/// What fsck says of the store once this row has this value; none where the schema itself does not let it.
fn told(store: &Store, db: &Connection, column: &Column, line: &Line, value: &Value) -> Option<Vec<String>> {
    if update(db, column, &line.key, value).is_err() {
        return None;
    }
    let faults = match store.check(false) {
        Ok(faults) => faults.iter().map(|f| format!("{} {} {}", f.rule, f.subject, f.detail)).collect(),
        Err(error) => panic!("{}: fsck fails: {error}", column.full_name()),
    };
    let mut key = line.key.clone();
    if let Some(at) = column.key.iter().position(|name| *name == column.name) {
        key[at] = value.clone();
    }
    assert_eq!(update(db, column, &key, &line.value), Ok(1), "{}", column.full_name());
    Some(faults)
}

fn is_named(said: &[String], line: &Line, value: &Value) -> bool {
    let other = text(value);
    let word = |word: &str| line.names.contains(word) || (!other.is_empty() && word == other);
    said.iter().any(|said| said.split(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c)).any(word))
}

#[expect(clippy::disallowed_methods, reason = "the tests' own switch")]
fn full() -> bool {
    std::env::var_os("ARES_FAULTS").is_some_and(|asked| asked == "full")
}

/// How many rows of a column are tried unless all are.
const SOME: usize = 4;

/// The rows to try: all, or some of different values.
fn chosen(lines: &[Line], all: bool) -> Vec<&Line> {
    let mut distinct: BTreeMap<String, Vec<&Line>> = BTreeMap::new();
    lines.iter().for_each(|line| distinct.entry(text(&line.value)).or_default().push(line));
    let width = if all { usize::MAX } else { SOME };
    let rounds = distinct.values().map(Vec::len).max().unwrap_or(0);
    let all = (0..rounds).flat_map(|at| distinct.values().filter_map(move |group| group.get(at).copied()));
    all.take(width).collect()
}

#[test]
fn every_column_is_covered_or_listed_with_a_reason() {
    let stock = filled();
    let _mine = [stock.claim(&["--label", "r1"]), stock.claim(&["--label", "r2", "--reserve"])];
    // A runner that was killed once its dispatch was committed.
    let dead = stock.submit(&["--label", "dead"], &["true"]);
    stock.bash(&format!("ARES_FAULT=run.dispatched ares-run --job {dead}"), 137);
    let store = Store::open(&stock.root(), None).unwrap();
    let clean = store.check(true).unwrap();
    assert!(clean.is_empty(), "{clean:?}");
    let db = stock.db();
    db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false).unwrap();
    db.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF")
        .unwrap();
    let mut complaints = Vec::new();
    let mut listed: BTreeMap<&str, &str> = UNCOVERED.iter().copied().collect();
    for column in columns(&db) {
        let (name, lines) = (column.full_name(), lines(&db, &column));
        if lines.is_empty() {
            complaints.push(format!("{name}: the store has no row to change"));
            continue;
        }
        let on_list = listed.remove(name.as_str()).is_some();
        let mut silent = None;
        for line in chosen(&lines, full() || on_list) {
            for value in others(&column, &line.value, &lines) {
                match told(&store, &db, &column, line, &value) {
                    Some(said) if said.is_empty() => silent = Some((line, value)),
                    Some(said) if !is_named(&said, line, &value) => {
                        complaints.push(format!("{name} of {:?}: nothing names it: {said:?}", line.key));
                    }
                    Some(_) | None => {}
                }
            }
            if silent.is_some() {
                break;
            }
        }
        match silent {
            Some((line, value)) if !on_list => {
                complaints
                    .push(format!("{name} of {:?}: {:?} became {value:?} and nobody said so", line.key, line.value));
            }
            None if on_list => complaints.push(format!("{name} is covered and stands in the list of what is not")),
            Some(_) | None => {}
        }
    }
    complaints.extend(listed.keys().map(|name| format!("{name} stands in the list and is no column")));
    let left = store.check(false).unwrap();
    assert!(left.is_empty(), "everything was put back: {left:?}");
    no_complaints(&complaints);
}
