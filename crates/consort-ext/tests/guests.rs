//! Promise: on a kernel with sched_ext, threads are where the plan has them and run when it says,
//! others are left alone, nothing shows from inside, and however the scheduler ends, everything
//! runs on as without it.
//!
//! What the scenarios assert is in `src/bin/ext_guest/`; one that fails ends with a status that is
//! not 0 and says why. A boot takes longer than most of them, so they share guests.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use consort_vmtest::{GuestTopology, Host, Vm};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// Far above the usual minutes, for a host that is busy with other things.
const LIMIT: Duration = Duration::from_secs(900);

fn say(line: &str) {
    // Past the capture of the test harness; without a stderr there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A guest in which each line is one call with the scenarios that it names; prints what they
/// measured, and fails with what those said that failed.
fn show(cores: u32, ways: u32, calls: &[&str]) {
    let Some(program) = option_env!("CARGO_BIN_EXE_ext-guest") else {
        say("skipped: built without the feature 'bpf'");
        return;
    };
    let Some(host) = Host::find_ext_or_skip() else {
        return;
    };
    let vm = Vm::new(GuestTopology::smt(cores, ways));
    let vm = vm.program("/bin/ext-guest", Path::new(program)).unwrap();
    let vm = vm.command("kernel", "uname -r; cat /sys/kernel/sched_ext/state");
    let name = |call: &str| call.replace(' ', "-");
    let add =
        |vm: Vm, call: &&str| vm.command(&name(call), &format!("ext-guest {cores} {ways} {call}"));
    let outcome = calls.iter().fold(vm, add).run(&host, LIMIT).unwrap();
    assert!(outcome.output("kernel").unwrap().ends_with("disabled"));
    let mut failed = Vec::new();
    for call in calls {
        let section = outcome.section(&name(call)).unwrap();
        say(&format!("{cores} x {ways}, {call}:\n{}", section.text));
        if section.status != 0 {
            failed.push(section.text.lines().last().unwrap_or(call));
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn four_cores_of_two_ways() {
    let shared = "full double mask stale moves gangs forks looks cost";
    show(
        4,
        2,
        &["refused", shared, "relief", "stall", "killed", "dropped"],
    );
}

#[test]
fn eight_cores_of_four_ways() {
    show(8, 4, &["full double gangs", "killed"]);
}
