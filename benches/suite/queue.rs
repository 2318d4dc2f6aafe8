//! Jobs that do nothing, from the queue to the end, against the same without a record and against other queues.

use crate::measure::{Lab, Times, call, feed, installed, memory};
use crate::peers;
use crate::report::Report;
use std::path::Path;
use std::process::Command;

const WIDTHS: [usize; 3] = [1, 2, 4];

pub(crate) fn run(lab: &Lab, report: &mut Report) {
    let count = lab.rounds(1000, 200);
    let mut rates = Times::default();
    let numbers = lab.file("numbers", &(0..count).map(|n| format!("{n}\n")).collect::<String>());
    let mut bytes = None;
    for turn in 0..lab.rounds(5, 3) {
        for width in WIDTHS {
            let xargs = feed(Command::new("xargs").args(["-n1", &format!("-P{width}"), "/bin/true"]), &numbers);
            rates.add(&format!("xargs {width}"), xargs / u32::try_from(count).unwrap());
            let store = filled(lab, count);
            let before = pages(&store);
            let mut command = Command::new(lab.ares("ares-run"));
            let drained = call(command.arg("--store").arg(&store).args(["--drain", &format!("-j{width}")]));
            rates.add(&format!("ares-run {width}"), drained.1 / u32::try_from(count).unwrap());
            if let (Some(empty), Some(before), Some(after)) = (pages(&lab.store("empty")), before, pages(&store)) {
                bytes = Some((after - empty) / count as f64);
                assert!(after >= before);
            }
            // The slow ones take part in every other turn.
            if turn % 2 == 0 {
                peers::all(lab, width, count / 5, &mut rates);
            }
        }
    }
    for (width, target) in WIDTHS.into_iter().zip([0.6, 0.45, 0.45]) {
        let floor = rates.median(&format!("xargs {width}")).unwrap();
        let share = |name: &str| rates.median(&format!("{name} {width}")).map(|time| floor / time);
        report.at_least(&format!("no-op jobs, P={width}: ares-run / xargs"), share("ares-run"), Some(target));
        for (name, durability) in peers::ALL {
            report.at_least(&format!("no-op jobs, P={width}: {name} ({durability}) / xargs"), share(name), None);
        }
    }
    let store = filled(lab, 100);
    let run = lab.ares("ares-run");
    let run = [run.to_str().unwrap(), "--store", store.to_str().unwrap(), "--drain"];
    report.at_most("memory of ares-run, MiB", memory(lab, &run), Some(20.0));
    report.at_most("database bytes per finished job", bytes, Some(3072.0));
}

/// A store with so many jobs that do nothing.
fn filled(lab: &Lab, count: usize) -> std::path::PathBuf {
    let store = lab.store("queue");
    let lines = lab.file("queued", &"{\"argv\":[\"/bin/true\"]}\n".repeat(count));
    feed(Command::new(lab.ares("ares-submit")).arg("--store").arg(&store).arg("--stdin"), &lines);
    store
}

/// The size of a store's database, what is still in its log included, as SQLite tells it.
fn pages(store: &Path) -> Option<f64> {
    if !installed("sqlite3") {
        return None;
    }
    let ask = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    call(Command::new("sqlite3").arg(store.join("ares.db")).arg(ask)).0.parse().ok()
}
