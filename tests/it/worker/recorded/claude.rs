//! claude 2.1.112 and 2.1.332.

use super::{
    Asked::{New, Other, Same},
    Row, failed, failed_after, ok, open, void,
};
use ares::domain::outcome::Outcome;
use ares::error::Code;

pub(crate) const TABLE: &[Row] = &[
    failed("112-budget-tiny", Code::TurnFailed),
    ok("112-conc-resume-0", Same, "slow done", 232),
    ok("112-conc-resume-1", Same, "slow done", 232),
    ok("112-cut", New, "you asked: do it", 0),
    // It says success of an answer that was cut off.
    ("112-cutaftermsg", 0, New, Outcome::Ambiguous, Some(Code::NoTerminal), Some("you asked: do it"), 0),
    failed("112-err401", Code::Authentication),
    failed("112-err404", Code::ModelNotFound),
    failed("112-err429rate", Code::RateLimited),
    failed("112-err429unified", Code::RateLimited),
    failed("112-err500", Code::Overloaded),
    failed("112-err529", Code::Overloaded),
    ok("112-first", New, "you asked: hello one", 232),
    ok("112-fork", New, "you asked: forked", 232),
    open("112-hang", 137, Code::NoTerminal),
    failed_after("112-maxturns", Code::TurnFailed, 466),
    void("112-resume-garbage", 1, Other),
    void("112-resume-unknown", 1, Other),
    ok("112-resume", Same, "you asked: hello two", 232),
    ok("112-tool-default", New, "you asked: nothing", 466),
    ok("112-tool-none", New, "you asked: nothing", 466),
    failed("332-budget-tiny", Code::TurnFailed),
    ok("332-conc-resume-0", Same, "slow done", 232),
    ok("332-conc-resume-1", Same, "slow done", 232),
    ok("332-cut", New, "you asked: do it", 702),
    failed_after("332-cutaftermsg", Code::TurnFailed, 940),
    failed("332-err401", Code::Authentication),
    failed("332-err404", Code::ModelNotFound),
    failed("332-err429rate", Code::RateLimited),
    failed("332-err429unified", Code::RateLimited),
    failed("332-err500", Code::Overloaded),
    failed("332-err529", Code::Overloaded),
    ok("332-first", New, "you asked: hello one", 232),
    ok("332-fork", New, "you asked: forked", 232),
    open("332-hang", 137, Code::NoTerminal),
    failed_after("332-maxturns", Code::TurnFailed, 466),
    void("332-resume-garbage", 1, Other),
    void("332-resume-unknown", 1, Other),
    ok("332-resume", Same, "you asked: hello two", 232),
    ok("332-tool-default", New, "you asked: nothing", 466),
    ok("332-tool-none", New, "you asked: nothing", 466),
];
