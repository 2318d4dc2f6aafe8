//! The commands that are swept: what was before, the call, and how the jobs complete afterwards.

/// How much of a call is one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One transaction: all of it or nothing.
    Once,
    /// Several transactions; repeated, it comes to the same.
    Steps,
    /// It runs jobs: how often one was claimed depends on where it was cut.
    Runs,
}

/// One call. All of its parts are bash, in which `job` queues a job that leaves a line in `runs`, and `$ME` outlives all.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// What is done before it.
    pub(super) before: &'static str,
    /// The call; the words after `$TRACE` are the command that the faults happen to.
    pub(super) call: &'static str,
    /// How it is repeated, where that is not the same call. What it prints is in `answer` afterwards.
    pub(super) again: &'static str,
    /// What completes the jobs.
    pub(super) heal: &'static str,
    /// How many jobs have run then.
    pub(super) runs: usize,
}

/// Waits until nothing goes on; what is uncertain then stays so.
const REST: &str =
    "until ares-reconcile -q 2>/dev/null; [ \"$(ares-list --state claimed --state running --count)\" = 0 ]
    do sleep 0.01; done";

/// What every script begins with.
pub(super) const PRELUDE: &str = "job() { ares-submit \"$@\" -- sh -c 'echo $ARES_ATTEMPT >>runs'; }
    fault() { local s=0; ARES_FAULT=$1 ares-run >/dev/null 2>&1 || s=$?; [ $s = $2 ]; }
    rest() { REST; }
    ";

/// The prelude with its parts.
pub(super) fn prelude() -> String {
    PRELUDE.replace("REST", REST)
}

const RUN: &str = "ares-run --drain -q >/dev/null";

const fn case(name: &'static str, kind: Kind, before: &'static str, call: &'static str, runs: usize) -> Case {
    Case { name, kind, before, call, again: call, heal: RUN, runs }
}

pub(super) const INIT: Case = Case {
    heal: "job >/dev/null; ares-run --drain -q >/dev/null",
    ..case("init", Kind::Once, "rm -r .ares", "$TRACE ares-init", 1)
};

pub(super) const SUBMIT: Case = case(
    "submit",
    Kind::Once,
    "job >/dev/null; head -c 40000 /dev/zero >words",
    "$TRACE ares-submit --op-id o --key k --file words -- sh -c 'echo $ARES_ATTEMPT >>runs'",
    2,
);

pub(super) const BATCH: Case = case(
    "batch",
    Kind::Once,
    "for n in 1 2 3; do echo '{\"argv\":[\"sh\",\"-c\",\"echo $ARES_ATTEMPT >>runs\"],\"label\":\"l\"}'; done >batch",
    "$TRACE ares-submit --op-id o --stdin <batch",
    3,
);

pub(super) const CLAIM: Case = Case {
    heal: "ares-settle \"$(cat answer)\" ok",
    ..case("claim", Kind::Once, "job >/dev/null", "$TRACE ares-claim --op-id o --owner $ME", 0)
};

pub(super) const SETTLE: Case = case(
    "settle",
    Kind::Once,
    "job >/dev/null; job --after 1 >/dev/null; ares-claim --owner $ME >h; head -c 40000 /dev/zero >result",
    "$TRACE ares-settle --op-id o \"$(cat h)\" ok --result result",
    1,
);

pub(super) const STOP: Case =
    case("stop", Kind::Once, "job --label l >/dev/null; job >/dev/null", "$TRACE ares-stop --op-id o --label l", 1);

/// Two runners were killed: one before its worker began, one after it had ended.
pub(super) const RECONCILE: Case = case(
    "reconcile",
    Kind::Steps,
    "job >/dev/null; job >/dev/null; fault run.ended 137; fault run.dispatched 137",
    "$TRACE ares-reconcile -q",
    2,
);

pub(super) const DECIDE: Case = case(
    "decide",
    Kind::Once,
    "job >/dev/null; fault keeper.after_mark 10",
    "$TRACE ares-reconcile 1 --decide retry --because x --op-id o",
    1,
);

pub(super) const GC: Case = case(
    "gc",
    Kind::Steps,
    "mkdir seg; for n in 1 2 3; do ares-submit -- sh -c \"head -c 40000 /dev/zero; echo $n\" >/dev/null; done
     ares-run --drain -q >/dev/null; job >/dev/null",
    "$TRACE ares-gc -q --keep 1 --export seg --op-id o",
    1,
);

pub(super) const REPAIR: Case = case(
    "repair",
    Kind::Steps,
    "job >/dev/null; chmod 755 .ares/locks/init.lock; mkdir -m 700 .ares/attempts/7.1 .ares/objects/00
     umask 077; echo x >.ares/tmp/x; echo x >.ares/objects/00/.1.1.tmp",
    "$TRACE ares-fsck --repair",
    1,
);

const KEPT: &str = "job >/dev/null; ares-submit -- head -c 40000 /dev/zero >/dev/null; ares-run --drain -q >/dev/null";

pub(super) const BACKUP: Case = Case {
    again: "ares-fsck --store .ares -q && if [ -e copy ]; then realpath copy; else ares-backup copy; fi",
    heal: "ares-backup -q --restore copy again >/dev/null && ares-fsck --full --store again",
    ..case("backup", Kind::Steps, KEPT, "$TRACE ares-backup copy", 1)
};

pub(super) const RESTORE: Case = Case {
    before: "job >/dev/null; ares-submit -- head -c 40000 /dev/zero >/dev/null; ares-run --drain -q >/dev/null
        ares-backup copy >/dev/null",
    again: "if [ -e again ]; then ares-init --adopt again; else ares-backup --restore copy again; fi",
    heal: "ares-fsck --full --store again && [ \"$(ares-list --store again --state succeeded --count)\" = 2 ]",
    ..case("restore", Kind::Steps, "", "$TRACE ares-backup --restore copy again", 1)
};

/// The owner's part of the cycle of a job; its keeper and its worker go on when it is cut.
pub(super) const RUNNER: Case = Case {
    again: "rest; ares-run --drain -q",
    ..case("run", Kind::Runs, "job >/dev/null; job >/dev/null", "$TRACE ares-run --drain --format '%(outcome)'", 2)
};
