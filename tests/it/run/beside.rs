//! A runner on a machine that is short of something, and beside others that tidy the same store: what is committed is
//! never reported as a failure, and a shortage of the machine is no fault of a job.

use crate::harness::{Lab, has, skipped};

#[test]
fn a_machine_without_room_for_another_process_fails_no_job() {
    // Which limit bites where depends on the build; every one of these ends with the jobs done or still queued.
    for limit in 6..22 {
        let lab = Lab::new();
        let ran = lab.sh(&format!(
            "ares init -q >/dev/null; for i in 1 2 3; do ares submit -q -- true; done >/dev/null
             (ulimit -n {limit}; ares run --drain -q) >/dev/null 2>err; echo $?
             ares list --state failed --count; ares run --drain -q >/dev/null; ares list --state succeeded --count"
        ));
        let lines: Vec<&str> = ran.out.lines().collect();
        assert_eq!(lines[1..], ["0", "3"], "{limit}: {} {}", ran.out, ran.err);
        assert!(["0", "5"].contains(&lines[0]), "{limit}: {} {}", ran.out, lab.sh("cat err").out);
        if lines[0] == "5" {
            assert!(lab.sh("cat err").out.contains("ARES_SYSTEM_LIMIT"), "{limit}");
        }
    }
}

#[test]
fn a_shortage_that_goes_on_holds_no_job() {
    let lab = Lab::new();
    // The highest limit under which the worker cannot be started, but its keeper can.
    let ran = lab.sh("ares init -q >/dev/null; ares submit -q -- true >/dev/null
         for n in $(seq 24 -1 6); do (ulimit -n $n; ares run -q) >out 2>&1; grep -q EMFILE out && break
             grep -qw ok out && ares submit -q -- true >/dev/null; done
         for i in 1 2 3 4 5 6 7; do (ulimit -n $n; ares run -q) >/dev/null 2>&1; done
         ares list --state queued --format '%(hold)'; ares run --drain -q >/dev/null; echo $?");
    assert_eq!(ran.out, "\n0\n", "{}", ran.err);
}

#[test]
fn beyond_the_limit_of_a_files_size_commands_fail_and_say_so() {
    let lab = Lab::new();
    let ran =
        lab.sh("ares init -q >/dev/null; (ulimit -f 0; ares submit -- true 2>&1; echo $?) | cat; ares list --count
         ares submit -q -- sh -c 'ulimit -f 1; trap \"\" TERM; exec head -c 4096 /dev/zero'; ares run -q; echo $?
         ares show 1 --format '%(code)'");
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].contains("ARES_SYSTEM_LIMIT") && lines.contains(&"5"), "{}", ran.out);
    assert!(lines.contains(&"0"), "nothing was queued: {}", ran.out);
    assert_eq!(lines.last(), Some(&"ARES_SIGNALLED"), "the worker has the signal's default again: {}", ran.out);
}

#[test]
fn those_who_tidy_at_the_same_time_do_not_disturb_each_other() {
    if !has("strace") {
        return;
    }
    let lab = Lab::new();
    let ran = lab.sh(
        "ares init -q >/dev/null; for i in 1 2 3; do ares submit -q -- true; done >/dev/null
         strace -f -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:delay_enter=100000 ares run --drain -q >/dev/null &
         while kill -0 $! 2>/dev/null; do ares reconcile -q >/dev/null || echo bad; ares fsck --repair -q || echo bad; done
         wait $!; echo $?; ares list --state succeeded --count",
    );
    if ran.err.contains("strace:") {
        return skipped("strace may not trace here");
    }
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("0\n3\n", ""));
}

#[test]
fn a_decision_that_is_committed_is_done_though_its_files_stay() {
    if !has("strace") {
        return;
    }
    let lab = Lab::new();
    let ran = lab.sh(
        "ares init -q >/dev/null; ares submit -q --timeout 50ms --grace 10ms -- sleep 9; ares run -q >/dev/null 2>&1
         strace -f -qq -o /dev/null -e trace=unlinkat,rmdir -e inject=unlinkat,rmdir:error=EIO \
             ares reconcile 1 --decide ok --because seen -q >/dev/null; echo $?
         ares list --format '%(state)'; ares fsck -q; echo $?; ares fsck --repair -q; echo $?",
    );
    if ran.err.contains("strace:") {
        return skipped("strace may not trace here");
    }
    assert!(
        ran.out.ends_with("0\nsucceeded\n1\n0\n") || ran.out.contains("\n0\nsucceeded\n"),
        "{} {}",
        ran.out,
        ran.err
    );
    assert!(ran.out.ends_with("\n0\n"), "the leftover is removed later: {}", ran.out);
}

#[test]
fn a_store_at_work_has_no_findings() {
    let lab = Lab::new();
    let ran = lab.sh("ares init -q >/dev/null; for i in $(seq 40); do ares submit -q -- sleep 0.01; done >/dev/null
         ares run --drain -j 4 -q >/dev/null &
         while kill -0 $! 2>/dev/null; do ares fsck --full || echo bad; done; wait $!; echo $?");
    assert_eq!(ran.out, "0\n", "{}", ran.err);
}

#[test]
fn runners_name_what_they_left_uncertain_and_nothing_of_others() {
    let lab = Lab::new();
    let ran = lab.sh("ares init -q >/dev/null
         ares submit -q --label ours -- sh -c 'while ! [ -e go ]; do sleep 0.02; done; kill -9 $$' >/dev/null
         ares submit -q --label theirs -- sh -c 'kill -9 $$' >/dev/null
         ares run --drain -j 2 --label ours -q >/dev/null 2>ours & until ares list --state running | grep -q .; do :; done
         ares run --label theirs -q >/dev/null 2>&1; touch go; wait $!; echo $?; cat ours");
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[..2], ["10", "ares-run: ARES_UNCERTAIN: some attempts ended uncertain: job 1"], "{}", ran.err);
}

#[test]
fn every_command_names_the_limit_that_it_met_and_changes_nothing() {
    let lab = Lab::new();
    let ran = lab.sh("ares init -q >/dev/null; ares submit -q -- true >/dev/null
         for n in $(seq 4 12); do for c in 'list --count' 'submit -q -- true' \"claim -q --owner $$ --job 1\" 'run --job 1' \
             'run -j 2 --drain' reconcile 'show 1' 'stop 9' 'claim -q -- true' 'init new'; do
             cp -r .ares .kept; (ulimit -n $n; ares $c) >/dev/null 2>err; echo \"$? $n $c: $(cat err)\" | tr '\\n' ' '; echo
             rm -r .ares; mv .kept .ares; rm -rf new; ares init -q --adopt .ares >/dev/null
         done; done");
    let mut limited = 0;
    for line in ran.out.lines() {
        let status = line.split(' ').next().unwrap_or_default();
        assert!(["0", "5", "14", "125"].contains(&status), "{line}");
        if ["5", "125"].contains(&status) {
            limited += 1;
            assert!(line.contains("ARES_SYSTEM_LIMIT") && line.contains("oo many open files"), "{line}");
            assert!(line.contains("hint: "), "{line}");
        }
    }
    assert!(limited > 20, "{}", ran.out);
}

#[test]
fn what_cannot_be_looked_at_for_a_limit_is_not_taken_for_dead() {
    let lab = Lab::new();
    // The owner lives, and is found by its identity.
    let ran = lab.sh("ares init -q >/dev/null; ares submit -q -- true >/dev/null; ares claim -q --owner $$ >/dev/null
         for n in $(seq 4 14); do (ulimit -n $n; ares reconcile -q) >/dev/null 2>&1; echo $? $(ares list --format '%(state)'); done");
    for line in ran.out.lines() {
        assert!(line == "0 running" || line == "5 running", "{}", ran.out);
    }
    assert!(ran.out.contains("5 running") && ran.out.contains("0 running"), "{}", ran.out);
    if !has("strace") {
        return;
    }
    // What an older kernel, or a limit met at another moment, would come to.
    let ran = lab.sh("for path in /proc/sys/kernel/random/boot_id /proc/self/ns/pid; do
         strace -f -qq -o /dev/null -P $path -e trace=all -e inject=openat,statx:error=EMFILE ares reconcile -q 2>&1 >/dev/null
         echo $? $(ares list --format '%(state)'); done");
    if ran.out.contains("strace:") {
        return skipped("strace may not trace here");
    }
    assert_eq!(ran.out.matches("\n5 running\n").count(), 2, "{}", ran.out);
}

#[test]
fn the_bound_of_a_files_size_is_named() {
    let lab = Lab::new();
    let ran = lab.sh("ares init -q >/dev/null; for i in 1 2 3 4 5; do ares submit -q -- true; done >/dev/null
         for f in 0 1 8 16 32; do (ulimit -f $f; ares submit -q -- true) 2>&1 >/dev/null | tr '\\n' ' '; echo; done
         yes | head -c 100000 >big; (ulimit -f 64; ares submit -q --file big -- cat) 2>&1 >/dev/null");
    let told: Vec<&str> = ran.out.lines().filter(|line| !line.is_empty() && !line.starts_with("hint")).collect();
    assert!(told.len() > 3, "{}", ran.out);
    for line in told {
        assert!(line.contains("ARES_SYSTEM_LIMIT") && line.contains("File too large"), "{line}");
    }
}

#[test]
fn the_work_goes_on_while_nobody_reads_what_is_told() {
    let lab = Lab::new();
    // A pipe that is full and that nobody reads: the runner cannot say how the first one ended.
    let ran =
        lab.sh("ares init -q >/dev/null; for name in one two three; do ares submit -q -- touch $name; done >/dev/null
        mkfifo pipe; exec 3<>pipe; head -c 65536 /dev/zero >&3
        ares run --drain >&3 2>/dev/null & R=$!
        for i in $(seq 300); do [ \"$(ares list --state succeeded --count)\" = 3 ] && break; sleep 0.02; done
        ls one two three; ares list --state succeeded --count; head -c 65536 <&3 >/dev/null; wait $R; echo $?
        exec 4<>pipe; exec 3>&-; timeout 0.5 cat <&4 | cut -f 1-3; ares fsck");
    let told = "1.1\tok\tsucceeded\n2.1\tok\tsucceeded\n3.1\tok\tsucceeded\n";
    assert_eq!(ran.out, format!("one\nthree\ntwo\n3\n0\n{told}"), "{}", ran.err);
}

#[test]
fn a_runner_whose_reader_does_not_read_still_does_what_it_is_asked() {
    let lab = Lab::new();
    let ran =
        lab.sh("ares init -q >/dev/null; ares submit -q -- true >/dev/null; ares submit -q -- sleep 60 >/dev/null
        mkfifo pipe; exec 3<>pipe; head -c 65536 /dev/zero >&3
        ares run --drain --grace 100ms >&3 2>/dev/null & R=$!
        for i in $(seq 300); do [ \"$(ares list --state running --format '%(job)')\" = 2 ] && break; sleep 0.02; done
        sleep 0.2; kill -TERM $R
        for i in $(seq 300); do [ \"$(ares list --state uncertain --count)\" = 1 ] && break; sleep 0.02; done
        ares list --format '%(job) %(state)'; head -c 65536 <&3 >/dev/null; wait $R; echo $?
        exec 4<>pipe; exec 3>&-; timeout 0.5 cat <&4 | cut -f 1-4");
    let told = "1.1\tok\tsucceeded\t\n2.1\tambiguous\tuncertain\tARES_STOPPED_RUNNING\n";
    assert_eq!(ran.out, format!("1 succeeded\n2 uncertain\n10\n{told}"), "{}", ran.err);
}

#[test]
fn a_runner_beside_those_who_tidy_loses_no_job_and_no_output() {
    let lab = Lab::new();
    let ran = lab.sh(
        "ares init -q >/dev/null; for i in $(seq 200); do echo '{\"argv\":[\"sh\",\"-c\",\"echo $ARES_ATTEMPT >>effects; echo out\"]}'; done |
            ares submit --stdin -q >/dev/null
        tidy() { while ! [ -e over ]; do \"$@\" >/dev/null 2>>errors; done; }
        tidy ares reconcile -q & tidy ares fsck --repair -q & tidy ares gc -q &
        ares run --drain -q -j 2 >/dev/null; echo $?; : >over; wait
        ares list --state succeeded --count; sort -u effects | wc -l; wc -l <effects
        for i in 1 57 200; do ares show $i --output stdout; done; ares fsck; cat errors",
    );
    assert_eq!(ran.out, "0\n200\n200\n200\nout\nout\nout\n", "{}", ran.err);
}
