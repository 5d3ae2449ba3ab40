//! PID namespaces, in which numbers of threads mean something else.

use super::common::{pus, skipped, stderr, warnings};
use super::compiled::{compiled, have};
use super::under::{RUN, complaints, moves, report, scene};

/// Returns true where this test may make a PID namespace; says so if not.
fn may_unshare() -> bool {
    let works = have("unshare") && scene("unshare -pf --mount-proc true", "").status.success();
    if !works {
        skipped("no new PID namespace may be made here");
    }
    works
}

#[test]
fn inside_a_namespace_with_its_own_proc_all_works() {
    let Some(program) = compiled("whoami", &[]) else {
        return;
    };
    if !may_unshare() {
        return;
    }
    let script = format!("unshare -pf --mount-proc \"$C\" {RUN} --format json -- \"$P\"");
    let report = report(&scene(&script, program.path().to_str().unwrap()), 0);
    assert!(moves(&report) > 0 || pus() < 2, "{report:#}");
    assert_eq!(warnings(&report), [""; 0]);
}

#[test]
fn inside_a_namespace_with_the_proc_of_another_nothing_is_started() {
    if !may_unshare() {
        return;
    }
    let script = format!("unshare -pf \"$C\" {RUN} -- sh -c 'echo started'");
    let output = scene(&script, "");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(output.stdout, b"");
    let complaints = complaints(&output);
    assert!(
        complaints.len() == 1 && complaints[0].contains("/proc"),
        "{complaints:?}"
    );
}

#[test]
fn a_command_that_makes_a_namespace_is_managed_from_outside() {
    let Some(program) = compiled("whoami", &[]) else {
        return;
    };
    if !may_unshare() {
        return;
    }
    let script = format!("\"$C\" {RUN} --format json -- unshare -pf --mount-proc \"$P\"");
    let report = report(&scene(&script, program.path().to_str().unwrap()), 0);
    assert!(moves(&report) > 0 || pus() < 2, "{report:#}");
}
