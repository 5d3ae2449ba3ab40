//! `consort trial` and `run --trial` end to end: stretches are really unmanaged, and verdicts are
//! numbers.

mod common;

use common::{
    children_of, consort, folder, json, masks_of, own_mask, pus, run, skipped, stderr, wait_for,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Stdio;

/// A shell that computes for about two seconds of CPU time and starts nothing.
const LOOP: &str = "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done";

#[test]
fn unmanaged_stretches_have_every_mask_as_it_was() {
    if pus() < 2 {
        return skipped("a mask can be narrowed only where there are two CPUs");
    }
    let mut child = consort()
        .args([
            "run",
            "--no-daemon",
            "--format",
            "json",
            "--trial",
            "--stretch",
            "300ms",
        ])
        .args([
            "-i",
            "20ms",
            "--enact",
            "pin",
            "--policy",
            "mapping:map=0",
            "--",
        ])
        .args(["sh", "-c", LOOP])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let is_shell = |&pid: &u32| common::comm_of(pid) == "sh";
    let shell = wait_for("the shell", || {
        children_of(child.id()).into_iter().find(is_shell)
    });
    let mut seen = BTreeSet::new();
    while child.try_wait().unwrap().is_none() {
        seen.extend(masks_of(shell));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let report = json(&child.wait_with_output().unwrap());
    assert!(seen.contains(&own_mask()) && seen.len() > 1, "{seen:?}");
    assert_eq!(report["restored"], true);
    let verdict = &report["verdict"];
    assert!(
        verdict["pairs"].as_u64().is_some_and(|pairs| pairs >= 1),
        "{verdict}"
    );
    assert!(verdict["measure"].is_string(), "{verdict}");
}

#[test]
fn run_without_trial_says_that_nothing_was_measured() {
    let output = run(consort().args([
        "run",
        "--no-daemon",
        "--format",
        "json",
        "--policy",
        "none",
        "--",
        "true",
    ]));
    let verdict = &json(&output)["verdict"];
    assert_eq!(verdict["effect"], Value::Null);
    assert!(
        verdict["text"].as_str().unwrap().contains("watching only"),
        "{verdict}"
    );
}

/// A command that counts twice as much if Consort manages it: its parent is `consort run` then.
const TWICE_IF_MANAGED: &str =
    "tr '\\0' ' ' </proc/$PPID/cmdline | grep -q q[u]iet && echo done: 2.0 || echo done: 1.0";

#[test]
fn winner_of_runs_is_written() {
    let home = folder();
    let mut command = consort();
    command
        .args([
            "trial",
            "-n",
            "4",
            "--warm-up",
            "0",
            "--policies",
            "spread",
            "--write",
        ])
        .args([
            "--metric",
            "print:done:",
            "--format",
            "json",
            "--",
            "sh",
            "-c",
            TWICE_IF_MANAGED,
        ])
        .env("HOME", home.path())
        .env_remove("XDG_CONFIG_HOME");
    let output = run(&mut command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    assert_eq!(report["winner"], "spread");
    let verdict = &report["verdict"];
    assert_eq!(
        (verdict["effect"].as_f64(), verdict["pairs"].as_u64()),
        (Some(2.0), Some(4))
    );
    assert!(
        verdict["text"]
            .as_str()
            .unwrap()
            .starts_with("100.00 % faster"),
        "{verdict}"
    );
    let written = home.path().join(".config/consort/config.d/50-trial.toml");
    let written = std::fs::read_to_string(written).unwrap();
    assert!(written.contains("[run]\npolicy = \"spread\""), "{written}");
}

#[test]
fn loser_is_dropped_early_and_nothing_is_written() {
    let home = folder();
    let mut command = consort();
    command
        .args([
            "trial",
            "-n",
            "30",
            "--warm-up",
            "0",
            "--policies",
            "spread",
            "--write",
        ])
        .args([
            "--metric",
            "print:done:",
            "--metric-is",
            "less",
            "--format",
            "json",
            "--",
        ])
        .args(["sh", "-c", TWICE_IF_MANAGED])
        .env("HOME", home.path())
        .env_remove("XDG_CONFIG_HOME");
    let report = json(&run(&mut command));
    assert_eq!(report["winner"], Value::Null);
    assert!(report["rounds"].as_u64().unwrap() < 30, "{report}");
    assert_eq!(report["arms"][1]["dropped"], true);
    assert!(!home.path().join(".config").exists());
}

#[test]
fn failing_command_concludes_nothing() {
    let output = run(consort().args(["trial", "--", "sh", "-c", "echo no such input >&2; exit 3"]));
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(
        text.contains("exit status: 3") && text.contains("no such input"),
        "{text}"
    );
}

#[test]
fn wrong_trials_are_refused() {
    for (args, why) in [
        (
            &["run", "--trial", "--dry-run", "--", "true"][..],
            "leave --dry-run out",
        ),
        (
            &["run", "--trial", "--group", "g", "--", "true"],
            "leave --group out",
        ),
        (
            &["run", "--metric", "file:/x", "--", "true"],
            "--metric needs --trial",
        ),
        (
            &["run", "--trial", "--metric", "print:x", "--", "true"],
            "use it with `consort trial`",
        ),
        (
            &["trial", "--policies", "none", "--", "true"],
            "name a policy",
        ),
        (
            &["trial", "--policies", "nonsense", "--", "true"],
            "unknown policy 'nonsense'",
        ),
        (&["trial", "-n", "3", "--", "true"], "from 4 to 1000"),
    ] {
        let output = run(consort().args(args));
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            stderr(&output).contains(why),
            "{args:?}: {}",
            stderr(&output)
        );
    }
}
