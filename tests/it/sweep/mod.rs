//! Faults, swept: every system call of every command that changes something is a place where it may be killed, or where
//! the system may say no; every write and sync of the database is a place where the disk may fail or the power may go.
//! Afterwards the account is true, the call can be repeated, and the jobs complete.
//!
//! The tests try a share of the points; `ARES_FAULTS=full` asks for all of them, which is a stage of `.ci/run` of its
//! own. What fails names its points, and `ARES_POINT` repeats one: `ARES_POINT=pwrite64:3 cargo test sweep::kill::submit`.
//! Each harness also looks at a command with a planted fault, and has to see it.

/// One test for every command, by this function.
macro_rules! every_case {
    ($holds:ident) => {
        every_case! {
            $holds:
            init INIT;
            submit SUBMIT;
            batch BATCH;
            claim CLAIM;
            settle SETTLE;
            stop STOP;
            reconcile RECONCILE;
            decide DECIDE;
            gc GC;
            repair REPAIR;
            backup BACKUP;
            restore RESTORE;
            run RUNNER;
        }
    };
    ($holds:ident: $($name:ident $case:ident;)*) => {
        $(#[test] fn $name() { $holds(&cases::$case); })*
    };
}

mod bench;
mod cases;
mod disk;
mod errno;
mod keeper;
mod kill;
mod readonly;

/// Whether all points are asked for.
fn full() -> bool {
    asked("ARES_FAULTS").is_some_and(|value| value == "full")
}

/// The one point that is asked for.
fn only() -> Option<String> {
    asked("ARES_POINT")
}

#[expect(clippy::disallowed_methods, reason = "the tests' own switch")]
fn asked(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// At most so many of these, evenly.
fn share<T: Clone>(all: &[T], most: usize) -> Vec<T> {
    if all.len() <= most {
        return all.to_vec();
    }
    (0..most).map(|at| all[at * (all.len() - 1) / (most - 1).max(1)].clone()).collect()
}
