//! Promise: on a kernel with sched_ext, threads are where the plan has them and run when it says,
//! others are left alone, nothing shows from inside, and however the scheduler ends, everything
//! runs on as without it.
//!
//! What the scenarios assert is in `src/bin/ext_guest/`; one that fails ends with a status that is
//! not 0 and says why. A boot takes longer than most of them, so they share guests.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use consort_vmtest::{GuestTools, GuestTopology, Vm};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// Time after which a guest is killed: far above the usual minutes, for a host that is busy with
/// other things.
const LIMIT: Duration = Duration::from_secs(900);

fn say(line: &str) {
    // Past the capture of the test harness; without a stderr there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Scenarios that hold at the first try or not at all: they are about who is refused, which masks a
/// thread has and what an end leaves behind, not about when a thread runs.
const FIRM: [&str; 4] = ["refused", "mask", "killed", "dropped"];

/// A call that failed, and its last words.
type Failed<'a> = (&'a str, String);

/// Runs a guest in which each line is one call with the scenarios that it names; prints what they
/// measured, and fails with the words of those that failed.
///
/// An emulated processor stands still whenever its host has something else to do, and then threads
/// may be late by no fault of the scheduler's: what is about times gets one more try in a fresh
/// guest, and what else fails does not ([`FIRM`]).
fn show(cores: u32, ways: u32, calls: &[&'static str]) {
    let program = option_env!("CARGO_BIN_EXE_ext-guest").filter(|_| cfg!(feature = "bpf"));
    let Some(program) = program else {
        say("skipped: built without the feature 'bpf'");
        return;
    };
    let Some(host) = GuestTools::find_ext_or_skip() else {
        return;
    };
    let boot = |calls: &[&'static str]| boot(&host, Path::new(program), (cores, ways), calls);
    let first = boot(calls);
    if first.is_empty() {
        return;
    }
    let is_firm = first.iter().any(|(call, _)| FIRM.contains(call));
    assert!(!is_firm, "{first:?}");
    say(&format!("failed, tried once more: {first:?}"));
    let failed: Vec<&str> = first.iter().map(|&(call, _)| call).collect();
    let then = boot(&failed);
    assert!(then.is_empty(), "first {first:?}, then {then:?}");
}

/// Boots a guest that makes these calls, and returns those that failed.
fn boot<'a>(
    host: &GuestTools,
    program: &Path,
    (cores, ways): (u32, u32),
    calls: &[&'a str],
) -> Vec<Failed<'a>> {
    let vm = Vm::new(GuestTopology::smt(cores, ways));
    let vm = vm.program("/bin/ext-guest", program).unwrap();
    let vm = vm.command("kernel", "uname -r; cat /sys/kernel/sched_ext/state");
    let name = |call: &str| call.replace(' ', "-");
    let add =
        |vm: Vm, call: &&str| vm.command(&name(call), &format!("ext-guest {cores} {ways} {call}"));
    let outcome = calls.iter().fold(vm, add).run(host, LIMIT).unwrap();
    assert!(outcome.output("kernel").unwrap().ends_with("disabled"));
    let mut failed = Vec::new();
    for call in calls {
        let section = outcome.section(&name(call)).unwrap();
        say(&format!("{cores} x {ways}, {call}:\n{}", section.text));
        if section.status != 0 {
            let last = section.text.lines().last().unwrap_or_default();
            failed.push((*call, last.to_owned()));
        }
    }
    failed
}

#[test]
fn four_cores_of_two_ways() {
    let shared = "full double stale moves gangs forks looks cost";
    show(
        4,
        2,
        &[
            "refused", "mask", shared, "relief", "stall", "killed", "dropped",
        ],
    );
}

#[test]
fn eight_cores_of_four_ways() {
    show(8, 4, &["full double gangs", "killed"]);
}

/// Variable that names a `consort` with the feature `ext`, beside a `consort-demo`.
const BINARY: &str = "CONSORT_EXT";

/// A run of four fp and four int threads under the scheduler.
const RUN: &str = "consort run --enact ext --policy workover:active=0.002 --no-back-off \
    --interval 2s --report /tmp/r.json -- consort-demo mixed --seconds 40 >&2; cat /tmp/r.json";

#[test]
fn consort_run_has_its_plans_followed() {
    let Some(consort) = std::env::var_os(BINARY) else {
        say(&format!(
            "skipped: {BINARY} does not name a consort with the feature ext"
        ));
        return;
    };
    let Some(host) = GuestTools::find_ext_or_skip() else {
        return;
    };
    let consort = Path::new(&consort);
    // A thread may be off its place for a moment where its emulated processor stands still.
    if !is_never_nudged(&host, consort) {
        say("nudged, tried once more");
        assert!(is_never_nudged(&host, consort), "nudged twice");
    }
}

/// Makes the run in a guest; true if all threads were where the plan had them whenever it looked.
fn is_never_nudged(host: &GuestTools, consort: &Path) -> bool {
    let vm = Vm::new(GuestTopology::smt(4, 2));
    let vm = vm.program("/bin/consort", consort).unwrap();
    let demo = consort.with_file_name("consort-demo");
    let vm = vm.program("/bin/consort-demo", &demo).unwrap();
    let vm = vm
        .command("machine", "consort machine --format json")
        .command("run", RUN)
        .command("state", "cat /sys/kernel/sched_ext/state");
    let outcome = vm.run(host, LIMIT).unwrap();
    let machine = outcome.output("machine").unwrap();
    let ext = machine.split("\"name\": \"ext\"").nth(1).unwrap();
    assert!(
        ext.trim_start_matches([',', ' ', '\n'])
            .starts_with("\"available\": true"),
        "{machine}"
    );
    let report = outcome.output("run").unwrap();
    say(report);
    assert_eq!(outcome.output("state").unwrap(), "disabled");
    for line in ["\"enactor\": \"ext\"", "\"restored\": true"] {
        assert!(report.contains(line), "{line}: {report}");
    }
    report.contains("\"nudges\": 0")
}
