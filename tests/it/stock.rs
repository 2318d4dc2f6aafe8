//! A store to test in: made, filled and read back, also past the commands, through a connection of the test's own.

use crate::harness::{Lab, Ran, bin_dir};
use rusqlite::Connection;
use std::ops::Deref;
use std::path::PathBuf;

/// A lab with a store in `.ares`.
pub(crate) struct Stock(Lab);

impl Deref for Stock {
    type Target = Lab;
    fn deref(&self) -> &Lab {
        &self.0
    }
}

impl Stock {
    /// A fresh store.
    pub(crate) fn new() -> Self {
        let stock = Self(Lab::new());
        stock.ok("ares-init", &[]);
        stock
    }

    /// The store's directory.
    pub(crate) fn root(&self) -> PathBuf {
        self.path().canonicalize().expect("a directory").join(".ares")
    }

    /// Runs a command that must succeed; gives what it printed, without the last line's end.
    pub(crate) fn ok(&self, name: &str, args: &[&str]) -> String {
        let ran = self.run(name, args);
        assert_eq!(ran.status, 0, "{name} {args:?}: {}{}", ran.out, ran.err);
        ran.out.trim_end().to_owned()
    }

    /// Runs a command that must fail with this status and this code.
    pub(crate) fn fails(&self, name: &str, args: &[&str], status: i32, code: &str) -> Ran {
        let ran = self.run(name, args);
        assert_eq!(ran.status, status, "{name} {args:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(code), "{name} {args:?}: {code} is not in: {}", ran.err);
        ran
    }

    /// Runs a bash script that must end with this status; gives what it printed.
    pub(crate) fn bash(&self, script: &str, status: i32) -> String {
        let ran = bash(self, script);
        assert_eq!(ran.status, status, "{script}\n{}{}", ran.out, ran.err);
        ran.out.trim_end().to_owned()
    }

    /// Queues a command.
    pub(crate) fn submit(&self, options: &[&str], command: &[&str]) -> String {
        self.ok("ares-submit", &[options, &["--"], command].concat())
    }

    /// Claims the next job for this test process, which outlives everything it starts.
    pub(crate) fn claim(&self, options: &[&str]) -> String {
        let me = std::process::id().to_string();
        self.ok("ares-claim", &[&["--owner", &me], options].concat())
    }

    /// A connection of the test's own.
    pub(crate) fn db(&self) -> Connection {
        db(&self.root())
    }

    /// One value of one row, as text.
    pub(crate) fn value(&self, sql: &str) -> String {
        value(&self.db(), sql)
    }

    /// The state of a job.
    pub(crate) fn state(&self, job: &str) -> String {
        self.value(&format!("SELECT state FROM jobs WHERE id = {job}"))
    }

    /// How many rows every table has, and every state of everything: what a change cannot hide from.
    pub(crate) fn picture(&self) -> String {
        picture(&self.db())
    }
}

/// A connection of the test's own to the store in this directory.
#[expect(clippy::disallowed_methods, reason = "a test looks and tampers past the commands")]
pub(crate) fn db(root: &std::path::Path) -> Connection {
    let db = Connection::open(root.join("ares.db")).expect("a database");
    db.busy_timeout(std::time::Duration::from_secs(10)).expect("a time-out");
    db
}

/// How many rows every table has, and every state of everything.
pub(crate) fn picture(db: &Connection) -> String {
    let tables = column(db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'");
    let mut picture = String::new();
    for table in &tables {
        picture += &format!("{table} {}\n", value(db, &format!("SELECT count(*) FROM {table}")));
    }
    let stateful = [("jobs", "id"), ("attempts", "job, n"), ("permits", "id"), ("sessions", "id")];
    for (table, order) in stateful.into_iter().filter(|_| !tables.is_empty()) {
        let states = column(db, &format!("SELECT state FROM {table} ORDER BY {order}"));
        picture += &format!("{table}: {}\n", states.join(" "));
    }
    picture
}

/// Runs a bash script in a lab.
pub(crate) fn bash(lab: &Lab, script: &str) -> Ran {
    lab.command("/bin/bash").args(["-c", script]).output().map(crate::harness::ran).expect("it starts")
}

/// One value of one row, as text.
pub(crate) fn value(db: &Connection, sql: &str) -> String {
    column(db, sql).into_iter().next().unwrap_or_else(|| panic!("no row: {sql}"))
}

/// The first column of all rows, as text.
pub(crate) fn column(db: &Connection, sql: &str) -> Vec<String> {
    let mut statement = db.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let text = |row: &rusqlite::Row<'_>| {
        Ok(match row.get_ref(0)? {
            rusqlite::types::ValueRef::Null => String::new(),
            rusqlite::types::ValueRef::Integer(n) => n.to_string(),
            rusqlite::types::ValueRef::Real(x) => x.to_string(),
            rusqlite::types::ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            rusqlite::types::ValueRef::Blob(blob) => blob.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    };
    let rows = statement.query_map([], text).and_then(Iterator::collect);
    rows.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The path of one of our programs.
pub(crate) fn program(name: &str) -> String {
    bin_dir().join(name).display().to_string()
}

/// Whether the tests run as root.
pub(crate) fn root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The library that moves a command's clock; where there is none, that is counted.
pub(crate) fn faketime() -> Option<&'static str> {
    let known =
        ["/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1"];
    let found = known.into_iter().find(|path| std::path::Path::new(path).exists());
    if found.is_none() {
        crate::harness::skipped("there is no libfaketime to move the clock with");
    }
    found
}

/// A store on a small file system of its own, which goes with the script that mounted it.
pub(crate) fn on_tmpfs(stock: &Stock, size: &str, script: &str) -> Option<String> {
    if !root() {
        crate::harness::skipped("only root can mount a small file system");
        return None;
    }
    let script = format!("mkdir -p m && mount -t tmpfs -o size={size},mode=700 none m || exit 77\n{script}");
    // A mount namespace of its own, so that nothing stays mounted whatever happens.
    let mut command = stock.command("unshare");
    let ran = command.args(["-m", "/bin/bash", "-c", &script]).output().map(crate::harness::ran).expect("it starts");
    if ran.status == 77 || ran.err.contains("unshare failed") {
        crate::harness::skipped("this machine lets nobody mount");
        return None;
    }
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    Some(ran.out)
}
