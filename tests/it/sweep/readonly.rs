//! A store on a file system that can only be read: every command that changes something says so and changes nothing, and
//! works when it can be written again.

use super::cases::{self, Case, prelude};
use crate::harness::Lab;
use crate::stock::{Stock, on_tmpfs};

/// Every command, apart from those whose case needs the faults of a debug build.
static ALL: [&Case; 9] = [
    &cases::INIT,
    &cases::SUBMIT,
    &cases::BATCH,
    &cases::CLAIM,
    &cases::SETTLE,
    &cases::STOP,
    &cases::GC,
    &cases::REPAIR,
    &cases::BACKUP,
];

#[test]
fn a_store_that_can_only_be_read_says_so_and_works_again() {
    let own = std::process::id();
    for case in ALL {
        let stock = Stock::new();
        let script = format!(
            "{}cd m; ME={own}; TRACE=; set -e; ares-init -q >/dev/null; {}
            mount -o remount,ro $PWD || exit 77
            set +e; {{ {}; }} >../out 2>../err; s=$?
            mount -o remount,rw $PWD
            echo $s $(grep -o 'ARES_[A-Z_]*' ../err | head -1)
            {{ {}; }} >answer && {{ {}; }} && [ $(ares-list --count --state queued --state running) = 0 ]",
            prelude(),
            case.before,
            case.call,
            case.again,
            case.heal,
        );
        let Some(out) = on_tmpfs(&stock, "8m", &script) else { return };
        let told = out.lines().next().unwrap_or_default();
        let fits = ["5 ARES_STORE_READ_ONLY", "5 ARES_STORE_UNUSABLE"].contains(&told);
        assert!(fits, "{}: {told}: {}", case.name, text(&stock, "err"));
    }
}

fn text(lab: &Lab, name: &str) -> String {
    std::fs::read_to_string(lab.path().join(name)).unwrap_or_default()
}
