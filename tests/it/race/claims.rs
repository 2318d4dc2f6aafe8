//! Claims of many processes. The claimers are this test program started again, each a process with its own connection
//! and its own lock, as any script's would be.

use crate::stock::Stock;
use ares::host::config::Config;
use ares::ops::claim::{Owner, claim};
use ares::store::{Store, Wanted};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread;
use std::time::Duration;

const CLAIMERS: usize = 64;
const JOBS: usize = 2000;

/// Waits until so many have said that they are here.
fn meet(folder: &Path, name: &str, count: usize) {
    std::fs::write(folder.join(format!("{name}-{}", std::process::id())), "").expect("written");
    let here = || {
        let entries = std::fs::read_dir(folder).expect("a folder");
        entries.filter(|e| e.as_ref().expect("an entry").file_name().to_string_lossy().starts_with(name)).count()
    };
    while here() < count {
        thread::sleep(Duration::from_millis(5));
    }
}

/// One claimer, where this program was started as such; otherwise nothing.
#[test]
#[expect(clippy::disallowed_methods, clippy::print_stdout, reason = "how the claimer is told, and tells")]
fn claimer() {
    let Some(root) = std::env::var_os("ARES_TEST_CLAIMER") else { return };
    let root = Path::new(&root);
    let meeting = root.parent().expect("a lab").join("meeting");
    let mut store = Store::open(root, None).expect("a store");
    let owner = Owner::this_process(&store).expect("an owner");
    meet(&meeting, "ready", CLAIMERS);
    let (config, wanted) = (Config::default(), Wanted::default());
    while let Some(claimed) = claim(&mut store, &config, None, &wanted, &owner, false).expect("an answer") {
        println!("claimed {}", claimed.handle);
    }
    // An owner that goes gives others cause to look after what it had.
    meet(&meeting, "done", CLAIMERS);
}

#[test]
fn no_job_is_claimed_twice_and_every_process_is_served() {
    let stock = Stock::new();
    stock.bash(
        &format!("mkdir meeting; yes '{{\"argv\":[\"true\"]}}' | head -{JOBS} | ares-submit --stdin >/dev/null"),
        0,
    );
    let myself = std::env::current_exe().expect("a program");
    let runs: Vec<String> = thread::scope(|scope| {
        let run = || {
            let mut command = stock.command(&myself);
            command.args(["--exact", "race::claims::claimer", "--nocapture"]).env("ARES_TEST_CLAIMER", stock.root());
            crate::harness::ran(command.output().expect("it starts"))
        };
        let all: Vec<_> = (0..CLAIMERS).map(|_| scope.spawn(run)).collect();
        all.into_iter()
            .map(|one| {
                let ran = one.join().expect("a claimer");
                assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
                ran.out
            })
            .collect()
    });
    let handles = |out: &str| -> Vec<String> {
        out.split_whitespace()
            .zip(out.split_whitespace().skip(1))
            .filter(|(word, _)| word.ends_with("claimed"))
            .map(|(_, handle)| handle.to_owned())
            .collect()
    };
    let claims: Vec<Vec<String>> = runs.iter().map(|out| handles(out)).collect();
    let all: Vec<&String> = claims.iter().flatten().collect();
    let jobs: BTreeSet<&str> = all.iter().map(|handle| handle.split('.').next().expect("a job")).collect();
    assert_eq!((all.len(), jobs.len()), (JOBS, JOBS), "a job was claimed twice, or not at all");
    assert!(all.iter().all(|handle| handle.contains(".1-")), "a job was claimed again");
    assert_eq!(stock.value("SELECT count(*) FROM attempts"), JOBS.to_string());
    let fewest = claims.iter().map(Vec::len).min().expect("claimers");
    assert!(fewest > 0, "a process got nothing: {:?}", claims.iter().map(Vec::len).collect::<Vec<_>>());
}

#[test]
fn a_group_is_never_wider_than_its_width() {
    let stock = Stock::new();
    // Each job tells how many of its group it sees while it runs.
    let work = "mkdir at/$$; ls at | wc -l >>seen; sleep 0.05; rmdir at/$$";
    stock.bash("mkdir at", 0);
    for _ in 0..24 {
        stock.submit(&["--group", "g", "--width", "3"], &["sh", "-c", work]);
    }
    let script = "for i in 1 2 3 4 5 6 7 8; do ares-run --drain --quiet >/dev/null & done
        for j in $(jobs -p); do wait $j; done; ares-run --drain --quiet >/dev/null; sort -n seen | uniq -c";
    let seen = stock.bash(script, 0);
    let counts: BTreeMap<i32, i32> = seen
        .lines()
        .map(|line| line.split_whitespace().map(|n| n.parse().expect("a number")).collect::<Vec<i32>>())
        .map(|pair| (pair[1], pair[0]))
        .collect();
    assert_eq!(counts.values().sum::<i32>(), 24, "{seen}");
    assert!(counts.keys().all(|width| (1..=3).contains(width)) && counts.len() > 1, "{seen}");
    assert_eq!(stock.value("SELECT count(*) FROM jobs WHERE state = 'succeeded'"), "24");
}

/// Scripts that claim and die at once, scripts that settle, a runner and three that look: each job's effect is there
/// once, and nothing is left over.
#[test]
fn two_reconcilers_and_a_drainer_do_nothing_twice() {
    let stock = Stock::new();
    for n in 0..40 {
        stock.submit(&["--retry-delay", "0s"], &["sh", "-c", &format!("echo {n} >>effects")]);
    }
    let script = "(for i in $(seq 12); do bash -c 'ares-claim --reserve --owner $$ >/dev/null'; done) &
        (for i in $(seq 12); do ares-reconcile >/dev/null; done) & (for i in $(seq 12); do ares-reconcile >/dev/null; done) &
        ares-run --drain --quiet >/dev/null & ares-run --drain --quiet >/dev/null &
        for j in $(jobs -p); do wait $j; done
        ares-reconcile >/dev/null; ares-list --format '%(hold)' | grep -c releases
        ares-run --drain --quiet >/dev/null; sort effects | uniq -d; sort effects | wc -l";
    let out = stock.bash(script, 0);
    let lines: Vec<&str> = out.lines().collect();
    let held: usize = lines[0].parse().expect("a count");
    // A job that five scripts in a row gave up is held; all others ran once.
    assert_eq!(lines[1..], [(40 - held).to_string()], "{out}");
    assert_eq!(stock.value("SELECT count(*) FROM jobs WHERE state IN ('claimed', 'running', 'uncertain')"), "0");
    assert_eq!(stock.value("SELECT count(*) FROM permits WHERE state <> 'settled'"), "0");
}
