//! Clocks that are set back and forth: nobody is taken for dead by one, nothing is done twice, nothing is left out. What
//! follows the calendar by its nature, such as `--not-before`, is in `cron.rs`.

use crate::run::{Shop, eventually, runs};
use crate::stock::{Stock, faketime};

/// A day back and ten years on: more than any time that is named anywhere.
const JUMPS: [&str; 2] = ["-1d", "+10y"];

/// Works until it is told to go on; says that it runs, and how often.
const LONG: &str = "echo $ARES_ATTEMPT >> runs; echo $$ > pid; while ! [ -e go ]; do sleep 0.02; done; echo done";

#[test]
fn case_2_a_job_that_lasts_longer_than_any_time_in_the_program_is_never_claimed_again() {
    let Some(library) = faketime() else { return };
    let shop = Shop::new();
    let options = ["--max-tries", "9", "--if-uncertain", "retry", "--retry-delay", "0s", "--timeout", "2000h"];
    let job = shop.script(&options, LONG);
    let clock = shop.path().join("clock");
    std::fs::write(&clock, "+0").unwrap();
    // The owner's own clocks jump under it, also the one that only measures: as far as it can tell, ten years went by.
    let clock_of =
        [("LD_PRELOAD", library), ("FAKETIME_TIMESTAMP_FILE", clock.to_str().unwrap()), ("FAKETIME_NO_CACHE", "1")];
    let run = shop.start(&clock_of, "ares-run", &["--drain"]);
    let worker = shop.pid("pid");
    let others = |found: &str| {
        for jump in JUMPS {
            let at = [("LD_PRELOAD", library), ("FAKETIME", jump)];
            let looked = shop.run_with(&at, "ares-reconcile", &["--format", "%(found) %(done)"]);
            assert_eq!((looked.status, looked.out.trim()), (0, format!("{found} nothing").as_str()), "{jump}");
            assert_eq!(shop.run_with(&at, "ares-run", &["--drain"]).status, 0, "{jump}");
            let me = std::process::id().to_string();
            assert_eq!(shop.run_with(&at, "ares-claim", &["--owner", &me]).status, 1, "{jump}");
            let waited = shop.run_with(&at, "ares-wait", &[&job, "--timeout", "100ms"]);
            assert_ne!(waited.status, 0, "{jump}: {waited:?}");
        }
    };
    for jump in JUMPS {
        std::fs::write(&clock, jump).unwrap();
        // It looks several times in this while.
        std::thread::sleep(std::time::Duration::from_millis(600));
        others("alive");
        assert!(runs(run.pid()) && runs(worker), "{jump}");
    }
    // Without an owner the worker's keeper proves that it lives, for as long as it does.
    run.kill();
    others("orphaned");
    assert!(runs(worker));
    std::fs::write(shop.path().join("go"), "").unwrap();
    eventually("its end is recorded", || {
        shop.run_with(&[("LD_PRELOAD", library), ("FAKETIME", JUMPS[1])], "ares-reconcile", &[]);
        (shop.state(&job) == "succeeded").then_some(())
    });
    assert_eq!((shop.file("runs"), shop.output(&job, "stdout")), (format!("{job}.1\n"), "done\n".to_owned()));
    shop.clean();
}

/// All that can become of jobs, each command under one of two clocks; then what the store holds.
fn life(library: &str, one: &str, two: &str) -> (String, String) {
    let stock = Stock::new();
    let script = format!(
        "at() {{ case $1 in now) \"${{@:2}}\";; *) LD_PRELOAD={library} FAKETIME=\"$1\" \"${{@:2}}\";; esac; }}
        at {one} ares-submit --key k -- sh -c 'echo a >>effects'
        at {two} ares-submit --max-tries 2 --retry-delay 0s -- sh -c 'echo b >>effects; test -e x || {{ : >x; exit 1; }}'
        at {one} ares-submit --max-tries 3 -- sh -c 'echo c >>effects; kill -9 $$'
        at {two} ares-submit --after 1 -- sh -c 'echo d >>effects'; at {two} ares-submit --key k -- sh -c 'echo a >>effects'
        at {two} ares-run --drain; echo $?; at {one} ares-reconcile --quiet; echo $?
        at {one} ares-reconcile 3 --decide retry --because x --format '%(state)'; at {two} ares-run --drain; echo $?
        at {one} ares-reconcile 3 --decide abandon --because x --format '%(state)'
        at {two} ares-submit --if-active l queue -- true; at {one} ares-submit --if-active l queue -- true
        handle=$(at {two} ares-claim --owner $$); at {one} ares-settle $handle ok; at {one} ares-run --drain; echo $?
        at {one} ares-submit -- true; at {two} ares-claim --reserve --owner 1 >/dev/null; at {one} ares-stop 7 --format '%(state)'
        at {one} ares-fsck; at {two} ares-list --all --format '%(job) %(state) %(tries)'; at {one} ares-wait 1 2 4 --format '%(state)'
        at {one} ares-gc --dry-run >/dev/null; echo $?; cat effects"
    );
    let ran = crate::stock::bash(&stock, &script);
    (ran.out, stock.picture())
}

#[test]
fn a_life_under_clocks_that_jump_is_the_same_life() {
    let Some(library) = faketime() else { return };
    let wanted = life(library, "now", "now");
    assert!(wanted.0.contains("cancelled") && wanted.0.ends_with("a\nb\nb\nc\nd\nc\n"), "{}", wanted.0);
    for (one, two) in [("-1d", "+10y"), ("+10y", "-1d")] {
        let found = life(library, one, two);
        assert_eq!(found.0, wanted.0, "{one}, {two}");
        assert_eq!(found.1, wanted.1, "{one}, {two}");
    }
}
