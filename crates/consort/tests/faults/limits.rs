//! Limits that are reached or permissions that are missing: descriptors, perf events, space on
//! disk.

use super::common::{pus, stderr, warnings};
use super::compiled::compiled;
use super::under::{RUN, complaints, moves, report, scene};

/// Limits on descriptors from none for a guardian to enough for all; how many sampling needs depends
/// on the number of CPUs.
#[test]
fn without_descriptors_for_sampling_threads_are_still_placed() {
    let Some(program) = compiled("whoami", &[]) else {
        return;
    };
    let mut unsampled = 0;
    for limit in 9..=16 {
        let script = format!("ulimit -n {limit}; exec \"$C\" {RUN} --format json -- \"$P\"");
        let output = scene(&script, program.path().to_str().unwrap());
        if output.status.code() == Some(1) {
            assert_eq!(complaints(&output).len(), 1, "{}", stderr(&output));
            assert_eq!(output.stdout, b"");
            continue;
        }
        let report = report(&output, 0);
        let sampling = |w: &&&str| w.contains("no sampling");
        unsampled += warnings(&report).iter().filter(sampling).count();
        let topology = |w: &&str| w.contains("topology") || w.contains("usable CPUs");
        assert!(
            !warnings(&report).iter().any(topology),
            "{limit}: {:?}",
            warnings(&report)
        );
        assert!(moves(&report) > 0 || pus() < 2, "{limit}: {report:#}");
    }
    assert!(unsampled > 0);
}

#[test]
fn command_has_the_limit_on_descriptors_that_consort_was_started_with() {
    let script = "sh -c 'ulimit -Sn; ulimit -Hn'";
    let all = format!("ulimit -Sn 99; {script}; \"$C\" {RUN} -q -- {script}");
    let output = scene(&all, "");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let limits: Vec<&str> = said.lines().collect();
    assert_eq!(limits[..2], limits[2..], "{said}{}", stderr(&output));
    assert_eq!(limits[0], "99");
}

#[test]
fn without_descriptors_for_a_guardian_nothing_is_started() {
    let script = format!("ulimit -n 8; exec \"$C\" {RUN} -- sh -c 'echo started'");
    let output = scene(&script, "");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(complaints(&output).len(), 1, "{}", stderr(&output));
    assert_eq!(output.stdout, b"");
}

#[test]
fn where_perf_is_forbidden_proc_must_do_and_is_said_to() {
    let (Some(filter), Some(program)) = (compiled("no_perf", &[]), compiled("whoami", &[])) else {
        return;
    };
    let filter = filter.path().display().to_string();
    let script = format!("exec {filter} \"$C\" {RUN} --format json -- \"$P\"");
    let report = report(&scene(&script, program.path().to_str().unwrap()), 0);
    assert_eq!(report["tier"], "proc");
    assert!(warnings(&report).len() <= 1, "{:?}", warnings(&report));
    assert!(moves(&report) > 0 || pus() < 2, "{report:#}");
    assert!(
        report["threads"][0]["cpu_s"].as_f64().unwrap() > 0.05,
        "{report:#}"
    );
    assert!(report["threads"][0]["mix"].is_null(), "{report:#}");
}

#[test]
fn nothing_is_started_if_no_file_may_have_content() {
    let script = format!("ulimit -f 0; exec \"$C\" {RUN} -- sh -c 'echo started'");
    let output = scene(&script, "");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(complaints(&output).len(), 1, "{}", stderr(&output));
    assert!(
        complaints(&output)[0].contains("journal"),
        "{}",
        stderr(&output)
    );
    assert_eq!(output.stdout, b"");
}

#[test]
fn the_command_meets_a_limit_on_file_size_as_it_would_alone() {
    let command = "head -c 100000 /dev/zero >\"$T\"";
    let script = format!(
        "T=$(mktemp); export T; ulimit -f 40; \"$C\" {RUN} -q -- sh -c '{command}'; \
         s=$?; sh -c '{command}'; echo $s $?; rm \"$T\""
    );
    let output = scene(&script, "");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let codes: Vec<&str> = said.split_whitespace().collect();
    assert!(codes[0] == codes[1] && codes[0] != "0", "{said}");
}

#[test]
fn a_user_who_may_have_no_more_processes_is_told_so() {
    if !super::compiled::have("setpriv") || !super::under::is_root() {
        return;
    }
    // A user of no other processes; root has no such limit.
    let user = "setpriv --reuid 61234 --regid 61234 --clear-groups";
    for most in [1, 2, 3, 5, 7] {
        let script = format!(
            "cd /; {user} sh -c 'ulimit -u {most}; exec \"$C\" {RUN} -- sh -c \"exit 7\"'; s=$?; \
             {user} sh -c 'ulimit -u {most}; exec \"$C\" machine probe --quick' >&2; echo $s $?"
        );
        let output = scene(&script, "");
        let said = stderr(&output);
        assert!(!said.contains("panicked"), "{most}: {said}");
        let codes = String::from_utf8_lossy(&output.stdout).into_owned();
        let codes: Vec<&str> = codes.split_whitespace().collect();
        assert!(
            matches!(codes[0], "1" | "7") && matches!(codes[1], "0" | "1"),
            "{most}: {codes:?} {said}"
        );
    }
}
