//! The one table of error codes. Exit statuses, `ares-errors(7)`, the ERRORS sections of the man pages and the
//! JSON error objects all come from it. It knows nothing of the rest of the crate.

use rustix::io::Errno;
use std::fmt;
use std::io;

/// What a failure means to a script: each class is one exit status of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A plain no: the question was fine, the answer is no.
    No,
    /// Called wrongly.
    Usage,
    /// It moved, or is not yours any more.
    Conflict,
    /// Not obtained within `--wait-lock`; nothing applied.
    Busy,
    /// The store cannot be used (full, read-only, permissions, copied); nothing applied.
    Store,
    /// The store is damaged or of another version.
    Damaged,
    /// Whether it was committed is unknown: repeat with the same `--op-id`.
    Unknown,
    /// Applied, but the output could not be written.
    Output,
    /// An effect ran and its receipt was not recorded.
    Receipt,
    /// An effect may have happened: reconcile.
    Uncertain,
    /// Refused by a budget.
    Budget,
    /// A permit was denied.
    Denied,
    /// A stop is in force.
    Stopped,
    /// No such thing.
    Missing,
    /// A bug of ours.
    Bug,
}

impl Class {
    /// The process exit status of this class.
    pub const fn exit(self) -> u8 {
        match self {
            Self::No => 1,
            Self::Usage => 2,
            Self::Conflict => 3,
            Self::Busy => 4,
            Self::Store => 5,
            Self::Damaged => 6,
            Self::Unknown => 7,
            Self::Output => 8,
            Self::Receipt => 9,
            Self::Uncertain => 10,
            Self::Budget => 11,
            Self::Denied => 12,
            Self::Stopped => 13,
            Self::Missing => 14,
            Self::Bug => 70,
        }
    }

    /// Every class, by exit status.
    pub const ALL: &[Self] = &[
        Self::No,
        Self::Usage,
        Self::Conflict,
        Self::Busy,
        Self::Store,
        Self::Damaged,
        Self::Unknown,
        Self::Output,
        Self::Receipt,
        Self::Uncertain,
        Self::Budget,
        Self::Denied,
        Self::Stopped,
        Self::Missing,
        Self::Bug,
    ];

    /// One sentence on what it means to a script.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::No => "A plain no: nothing to claim, or a job that was waited for did not succeed.",
            Self::Usage => "Called wrongly; nothing was applied.",
            Self::Conflict => "It moved, or is not the caller's any more; nothing was applied.",
            Self::Busy => "The store was not free within --wait-lock; nothing was applied.",
            Self::Store => "The store cannot be used (full, read-only, permissions, copied); nothing was applied.",
            Self::Damaged => "The store is damaged, or of another version.",
            Self::Unknown => "Whether it was committed is not known: repeat with the same --op-id.",
            Self::Output => "The output could not be written; what was to be changed is changed.",
            Self::Receipt => "An effect ran and its receipt was not recorded.",
            Self::Uncertain => "An effect may have happened and nobody can tell: reconcile.",
            Self::Budget => "Refused by a budget.",
            Self::Denied => "A permit was denied.",
            Self::Stopped => "A stop is in force.",
            Self::Missing => "There is no such thing in the store.",
            Self::Bug => "A bug of ares.",
        }
    }
}

/// Makes the code enum and everything that is known of each code from one list.
macro_rules! codes {
    ($($name:ident $text:literal $class:ident $meaning:literal $hint:literal;)*) => {
        /// A stable error code; scripts may branch on its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $name,)*
        }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The stable name, as printed.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The class, and so the exit status.
            pub const fn class(self) -> Class {
                match self { $(Self::$name => Class::$class,)* }
            }

            /// One sentence on what it means.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }

            /// What to do next; empty where the message itself must say it.
            pub const fn hint(self) -> &'static str {
                match self { $(Self::$name => $hint,)* }
            }

            /// The code with this name.
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}

codes! {
    // Plain answers.
    NothingToClaim "ARES_NOTHING_TO_CLAIM" No "No queued job may run now." "";
    WaitedFailed "ARES_WAITED_FAILED" No "A job that was waited for did not succeed." "see ares-show JOB";
    Held "ARES_HELD" No "The job was given back five times in a row without a try, and waits for a decision; nothing ran." "mend what keeps it from starting, then ares reconcile JOB --decide retry";
    Findings "ARES_FINDINGS" No "Something in the store does not hold." "ares-fsck --repair mends what cannot lose anything";
    Timeout "ARES_TIMEOUT" No "The time to wait passed before the jobs ended; they go on." "";

    // Called wrongly.
    Usage "ARES_USAGE" Usage "The command was called wrongly." "";
    BadInput "ARES_BAD_INPUT" Usage "The input is not of the form that the command reads; nothing was applied." "";
    InputTooLarge "ARES_INPUT_TOO_LARGE" Usage "The input is larger than the limit; nothing was applied." "";
    BadConfig "ARES_BAD_CONFIG" Usage "config.toml of the store is not valid." "mend the named line of config.toml";
    UnknownWorker "ARES_UNKNOWN_WORKER" Usage "No worker of this name is built in or configured." "add [worker.NAME] to config.toml";
    UnknownProgram "ARES_UNKNOWN_PROGRAM" Usage "There is no such program; nothing was queued." "name it by its absolute path, or add its directory to PATH";
    WorkerRefused "ARES_WORKER_REFUSED" Usage "The adapter cannot give this worker what the job asks for." "";

    // Conflicts.
    Conflict "ARES_CONFLICT" Conflict "It changed in the meantime; nothing was applied." "look again with ares-show, then decide";
    KeyConflict "ARES_KEY_CONFLICT" Conflict "The key was used before, for another request." "use another --key, or the same request";
    OperationConflict "ARES_OPERATION_CONFLICT" Conflict "The operation id was used before, for another request." "use a fresh --op-id for a new request";
    Active "ARES_ACTIVE" Conflict "A job with this label has not ended." "wait for it, or use --if-active LABEL queue";
    NotYours "ARES_NOT_YOURS" Conflict "The handle is not the one that this attempt was claimed with." "use the handle that ares-claim printed";
    Fenced "ARES_FENCED" Conflict "The attempt is over or was given away; what came late is kept as evidence." "see ares-show JOB";
    Survivors "ARES_SURVIVORS" Conflict "Processes of the attempt are still alive." "wait for them, or stop them first";
    AlreadyDecided "ARES_ALREADY_DECIDED" Conflict "Someone else decided it first." "see ares-show JOB for the decision";
    IllegalMove "ARES_ILLEGAL_MOVE" Conflict "The state does not allow this." "see ares-show JOB for its state";

    // Busy.
    StoreBusy "ARES_STORE_BUSY" Busy "The store's lock was not free in time; nothing was applied." "try again, or raise --wait-lock";

    // The store.
    NoStore "ARES_NO_STORE" Store "There is no store here." "make one with ares init, or name one with --store or ARES_DIR";
    StoreUnusable "ARES_STORE_UNUSABLE" Store "The store cannot be used as it is; nothing was applied." "";
    StoreFull "ARES_STORE_FULL" Store "There is no room to write; nothing was applied." "free some space, then repeat";
    SystemLimit "ARES_SYSTEM_LIMIT" Store "The system gave no more files, memory or processes, or no larger file; nothing was applied." "raise the limit, as ulimit -a shows it, or free some of it; then repeat";
    StoreReadOnly "ARES_STORE_READ_ONLY" Store "The store cannot be written; nothing was applied." "let the caller write the directory and all in it, or mount its file system for writing";
    StoreForeign "ARES_STORE_FOREIGN" Store "The store belongs to someone else or may be changed by others." "give it to the caller with mode 0700, or use another store";
    StoreCopied "ARES_STORE_COPIED" Store "The store was copied or unpacked here and would run its jobs twice." "read config.toml, then run ares init --adopt";
    StoreNetwork "ARES_STORE_NETWORK" Store "The store lies on a file system whose locks cannot be trusted." "put the store on a local disk";
    StoreDamaged "ARES_STORE_DAMAGED" Damaged "The store is damaged." "keep a copy of the whole directory before anything else";
    StoreReplaced "ARES_STORE_REPLACED" Damaged "The database is not the one that was opened." "find out who replaced it";
    SchemaOld "ARES_SCHEMA_OLD" Damaged "The store is of an older version." "stop what uses it, then run ares init --upgrade";
    SchemaNew "ARES_SCHEMA_NEW" Damaged "The store is of a newer version than this ares." "use the newer ares";
    CommitUnknown "ARES_COMMIT_UNKNOWN" Unknown "The commit failed and may still have been applied." "look whether it was applied, or repeat it with the same --op-id where it had one";

    // Output, receipts.
    OutputLost "ARES_OUTPUT_LOST" Output "It was applied, but the output could not be written." "read it back with ares-show or ares-list";
    OutputFailed "ARES_OUTPUT_FAILED" Output "The output could not be written; nothing was changed." "make room or mend where standard output goes, then repeat";
    ReceiptFailed "ARES_EFFECT_RECEIPT_FAILED" Receipt "The effect ran and its receipt was not recorded." "run ares reconcile when the store works again";

    // What nobody knows.
    Uncertain "ARES_UNCERTAIN" Uncertain "An effect may have happened and nobody can tell." "look at the evidence with ares reconcile JOB, then decide";
    TimedOut "ARES_TIMED_OUT" Uncertain "The worker was stopped by its time-out; what it did is not known." "look at the evidence, then ares reconcile JOB --decide";
    Silent "ARES_SILENT" Uncertain "The worker was stopped because it printed nothing for too long." "look at the evidence, then ares reconcile JOB --decide";
    OutputLimit "ARES_OUTPUT_LIMIT" Uncertain "The worker printed more than its bound and was stopped; the output is cut." "raise --output-max, or decide with ares reconcile JOB --decide";
    Signalled "ARES_SIGNALLED" Uncertain "The worker was ended by a signal; what it did is not known." "look at the evidence, then ares reconcile JOB --decide";
    NoTerminal "ARES_NO_TERMINAL" Uncertain "The worker ended without saying how its turn ended." "look at the evidence, then ares reconcile JOB --decide";
    OwnerLost "ARES_OWNER_LOST" Uncertain "Owner and keeper are gone and left no record of the end." "look at the evidence, then ares reconcile JOB --decide";
    ResumeMismatch "ARES_RESUME_MISMATCH" Uncertain "The worker resumed another session than the one asked for and was stopped." "start a new session with a fresh ares submit";
    StoppedRunning "ARES_STOPPED_RUNNING" Uncertain "The worker was stopped while it ran; what it did is not known." "look at the evidence, then ares reconcile JOB --decide";

    // Known ends.
    ExitStatus "ARES_EXIT_STATUS" No "The command ended with a non-zero exit status." "see ares-show JOB for its output";
    TurnFailed "ARES_TURN_FAILED" No "The worker says that its turn failed." "see ares-show JOB for its message";
    Quota "ARES_QUOTA" No "The worker's quota is used up until the stated time." "";
    RateLimited "ARES_RATE_LIMITED" No "The service limits the rate of requests." "";
    Overloaded "ARES_OVERLOADED" No "The service is overloaded." "";
    Authentication "ARES_AUTHENTICATION" No "The service refused the worker's credentials." "log the worker in again";
    ContextTooLong "ARES_CONTEXT_TOO_LONG" No "The conversation is too long for the model." "start a new session";
    ModelNotFound "ARES_MODEL_NOT_FOUND" No "The service does not have the model." "name another model";
    CannotExecute "ARES_CANNOT_EXECUTE" No "The program could not be executed; nothing ran." "mend the program, then submit again";
    NeverStarted "ARES_NEVER_STARTED" No "The worker was never started; nothing ran." "";
    WorkerSaidNo "ARES_WORKER_SAID_NO" No "The worker refused before its first call; nothing ran." "see ares-show JOB for its message";

    // Refusals.
    OverBudget "ARES_OVER_BUDGET" Budget "A budget does not allow it." "see ares spend";
    PermitDenied "ARES_PERMIT_DENIED" Denied "The permit does not allow this call." "";
    Stopped "ARES_STOPPED" Stopped "A stop is in force." "see ares-log";
    SessionBroken "ARES_SESSION_BROKEN" Conflict "The session cannot be continued." "start a new session with a fresh ares submit";
    SessionUnknown "ARES_SESSION_UNKNOWN" Conflict "The worker never reported an id for this session, so it cannot be resumed." "start a new session with a fresh ares submit";

    // Not there, and our own.
    NotFound "ARES_NOT_FOUND" Missing "There is no such thing in this store." "see ares-list";
    Internal "ARES_INTERNAL" Bug "A bug of ares." "please report it with the command line";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failure: the code to branch on, the words to read, and what to do next.
#[derive(Debug)]
pub struct Error {
    /// The code.
    pub code: Code,
    /// What happened, to which thing; lower case, no full stop, subject in quotes.
    pub message: String,
    /// What to do next, where the code's own hint does not fit.
    pub hint: Option<String>,
}

/// The result of everything that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A failure with the hint of its code.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// The same with another hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What to do next; empty when there is nothing to say.
    pub fn advice(&self) -> &str {
        self.hint.as_deref().unwrap_or_else(|| self.code.hint())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Error {}

/// Gives a foreign error a code and words; there is no `From`, so that `?` alone cannot lose what was being done.
pub trait OrCode<T> {
    /// Turns the failure into one with this code and these words; the cause follows them.
    fn or_code(self, code: Code, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: std::error::Error + 'static> OrCode<T> for std::result::Result<T, E> {
    fn or_code(self, code: Code, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|cause| Error::new(code.fitting(&cause), format!("{}: {cause}", what())))
    }
}

impl Code {
    /// This code; where no room or a limit of the system is what made a store unusable, or a call fail that never does
    /// otherwise, the one that says so.
    #[must_use]
    pub fn fitting(self, cause: &(dyn std::error::Error + 'static)) -> Self {
        let errno = cause.downcast_ref::<Errno>().map(|errno| errno.raw_os_error());
        let errno = errno.or_else(|| cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error));
        match (self, errno.map(Errno::from_raw_os_error)) {
            (Self::StoreUnusable, Some(Errno::NOSPC | Errno::DQUOT)) => Self::StoreFull,
            (Self::StoreUnusable | Self::BadInput | Self::Internal | Self::NeverStarted, Some(errno))
                if LIMITS.contains(&errno) =>
            {
                Self::SystemLimit
            }
            // What the system denies is no bug of ours.
            (Self::Internal, Some(Errno::ACCESS | Errno::PERM)) => Self::StoreUnusable,
            _ => self,
        }
    }
}

/// What a call answers that found a limit reached, as when there may be no more processes: it says nothing of what was
/// asked for.
const LIMITS: [Errno; 6] = [Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::FBIG];

/// Whether a call failed by a limit of the system, so that what it was to find out stays unknown.
pub fn is_limit(errno: Errno) -> bool {
    LIMITS.contains(&errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_without_room_is_full_and_a_failing_one_is_not() {
        let code = |errno: i32| {
            let failed: io::Result<()> = Err(io::Error::from_raw_os_error(errno));
            failed.or_code(Code::StoreUnusable, || "cannot write".to_owned()).unwrap_err().code
        };
        // ENOSPC and EDQUOT, then EIO.
        assert_eq!([28, 122, 5].map(code), [Code::StoreFull, Code::StoreFull, Code::StoreUnusable]);
        // EMFILE, ENFILE, ENOMEM and EFBIG, also as the other crate's error and for what else would be a bug.
        assert_eq!([24, 23, 12, 27].map(code), [Code::SystemLimit; 4]);
        assert_eq!([Code::Internal, Code::BadInput].map(|code| code.fitting(&Errno::MFILE)), [Code::SystemLimit; 2]);
        assert_eq!(Code::Internal.fitting(&Errno::ACCESS), Code::StoreUnusable);
        assert_eq!(Code::BadInput.fitting(&Errno::ACCESS), Code::BadInput);
        assert_eq!(Code::Internal.fitting(&Errno::IO), Code::Internal);
    }

    #[test]
    fn names_are_unique_and_parse_back() {
        for code in Code::ALL {
            assert!(code.name().starts_with("ARES_"));
            assert!(code.name().bytes().all(|b| b.is_ascii_uppercase() || b == b'_'));
            assert_eq!(Code::parse(code.name()), Some(*code), "{code} is listed twice");
        }
    }
}
