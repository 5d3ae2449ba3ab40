//! Jobs of shells and other tools: pipelines, niced, timed and nested commands.

use super::common::{consort, warnings};
use super::compiled::have;
use super::programs::command;
use super::side_by_side::{compare, compare_but_warnings, threads};
use std::process::Command;

fn shell(script: &str) -> Command {
    command(&["sh", "-c", script])
}

#[test]
fn pipelines_of_many_short_processes_come_through() {
    let report = compare(shell(
        "for i in $(seq 150); do echo $i | tr 1 2 | cat; done | sort | cksum",
    ));
    let unlisted = report["others"]["count"].as_u64().unwrap();
    assert!(
        threads(&report).len() as u64 + unlisted >= 450,
        "{report:#}"
    );
}

#[test]
fn statuses_and_signals_of_jobs_come_through() {
    for script in [
        "exit 77",
        "kill -SEGV $$",
        "kill -KILL $$",
        "sleep 0.2 & wait; exit 4",
        "nice -n 3 nice",
        "echo to-stdout; echo to-stderr >&2; exit 1",
        "(sleep 0.3; echo late) & echo early; wait",
        "trap 'echo bye' EXIT; exit 9",
    ] {
        compare(shell(script));
    }
}

#[test]
fn a_timeout_inside_works() {
    if have("timeout") {
        let report = compare(command(&["timeout", "0.5", "sleep", "30"]));
        assert_eq!(report["exit_code"], 124);
    }
}

#[test]
fn a_run_inside_a_run_works() {
    let inner = consort();
    let consort = inner.get_program().to_str().unwrap();
    let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; exit 3";
    let words = [
        consort,
        "run",
        "-q",
        "--interval",
        "50ms",
        "--",
        "sh",
        "-c",
        work,
    ];
    let report = compare_but_warnings(command(&words));
    assert_eq!(report["exit_code"], 3);
    // Whichever run comes first manages a thread; the other one says that it does not.
    let known = |text: &str| text.contains("another consort") || text.contains("another program");
    let unknown = warnings(&report).into_iter().find(|text| !known(text));
    assert_eq!(unknown, None);
}
