//! What refers to what in the schema. `ares-gc` removes rows without SQLite's check of references, so it must have thought
//! of each: a reference that is new here fails until it is listed, with what is done about it.

use crate::harness::{files, no_complaints, short, text};
use crate::laws::schema::whole;
use crate::stock::column;

/// References whose rows go first, or show that the row they refer to stays.
const THOUGHT_OF: &[&str] = &[
    "jobs.session sessions",
    "jobs.prompt objects",
    "jobs.continues jobs",
    "dependencies.job jobs",
    "dependencies.on jobs",
    "labels.job jobs",
    "session_ids.session sessions",
    "attempts.job jobs",
    "attempts.session sessions",
    // The last permit of all may stay without its attempt, never an attempt without its permit.
    "attempts.permit permits",
    "attempts.result objects",
    "attempts.stdout objects",
    "attempts.stderr objects",
    "findings.object objects",
    "edges.child sessions",
    "edges.parent sessions",
    "runs.session sessions",
];

/// Tables that nothing writes to yet. Who does so first must say what of it keeps a job, and what goes with one.
const NOT_YET: &[&str] = &[
    "approvals",
    "deliveries",
    "budget_periods",
    "reservations",
    "workflows",
    "steps",
    "checkpoint_passes",
    "handoffs",
    "reviews",
];

#[test]
fn a_removal_has_thought_of_every_reference() {
    let stock = whole();
    let sql = "SELECT m.name || '.' || f.\"from\" || ' ' || f.\"table\" FROM sqlite_schema m, pragma_foreign_key_list(m.name) f
               WHERE m.type = 'table' ORDER BY 1";
    let mut complaints = Vec::new();
    for reference in column(&stock.db(), sql) {
        let table = reference.split('.').next().expect("a table");
        // A permit's parent is not used yet.
        let known = THOUGHT_OF.contains(&reference.as_str()) || reference == "permits.parent permits";
        if !known && !NOT_YET.contains(&table) {
            complaints.push(format!("{reference}: say in src/store/retire.rs or sweep.rs what becomes of it"));
        }
    }
    for path in files(&["src/store"], &[".rs"]) {
        let code = text(&path);
        let used = NOT_YET.iter().filter(|table| code.contains(&format!("INTO {table}")));
        complaints
            .extend(used.map(|table| format!("{}: {table} is written to: a removal must know of it", short(&path))));
    }
    no_complaints(&complaints);
}
