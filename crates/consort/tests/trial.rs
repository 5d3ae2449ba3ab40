//! `consort trial` and `run --trial` end to end: stretches are really unmanaged, and verdicts are
//! numbers.

mod common;

use common::{
    children_of, consort, folder, json, masks_of, own_mask, pus, run, skipped, stderr, wait_for,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

/// A shell that computes for about two seconds of CPU time and starts nothing.
const LOOP: &str = "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done";

#[test]
fn unmanaged_stretches_have_every_mask_as_it_was() {
    if pus() < 2 {
        return skipped("a mask can be narrowed only where there are two CPUs");
    }
    let folder = folder();
    let [page, trace] = ["run.html", "trace.json"].map(|name| folder.path().join(name));
    let trial = ["--trial", "--stretch", "300ms", "-i", "20ms"];
    let mut child = consort()
        .args(["run", "--no-daemon", "--format", "json"])
        .args(trial)
        .args(["--enact", "pin", "--policy", "mapping:map=0"])
        .arg("--report-html")
        .arg(&page)
        .arg("--timeline")
        .arg(&trace)
        .args(["--", "sh", "-c", LOOP])
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
    assert_eq!(report["command"]["wall_s"], report["duration_s"]);
    let verdict = &report["verdict"];
    assert!(
        verdict["pairs"].as_u64().is_some_and(|pairs| pairs >= 1),
        "{verdict}"
    );
    assert!(verdict["measure"].is_string(), "{verdict}");
    check_picture(&std::fs::read_to_string(page).unwrap());
    check_timeline(&std::fs::read_to_string(trace).unwrap());
}

/// Progress is the number of CPUs that the shell may use, so that the effect does not depend on the
/// load of the host: half of it on one CPU of two.
#[test]
fn harmful_placement_is_reported_slower_and_switched_off() {
    if pus() < 2 {
        return skipped("one CPU leaves nothing to place");
    }
    let folder = folder();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (seen, pid, done) = (at("seen"), at("pid"), at("done"));
    let shell = format!("echo $$ > {pid}; until [ -e {done} ]; do :; done");
    // Enough readings for ten pairs of stretches.
    let metric = format!(
        "cmd:sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/$(cat {pid})/status | tee -a {seen} | \
         awk -F, '{{ n = 0; for (i = 1; i <= NF; i++) {{ split($i, ends, \"-\"); \
         n += ends[2] == \"\" ? 1 : ends[2] - ends[1] + 1 }} print n }}'; \
         [ $(wc -l < {seen}) -lt 60 ] || touch {done}"
    );
    let output = run(consort()
        .args(["run", "--no-daemon", "--format", "json"])
        .args(["--trial", "--stretch", "600ms", "-i", "20ms"])
        .args(["--enact", "pin", "--policy", "mapping:map=0"])
        .args(["--metric", &metric, "--metric-is", "more"])
        .args(["--", "sh", "-c", &shell]));
    let report = json(&output);
    let verdict = &report["verdict"];
    let text = verdict["text"].as_str().unwrap();
    assert!(
        text.contains(" % slower ± ") && text.ends_with("policy switched off"),
        "{verdict}"
    );
    assert!(verdict["high"].as_f64().unwrap() < 1.0, "{verdict}");
    let masks = std::fs::read_to_string(seen).unwrap();
    let last = masks.lines().last().unwrap().trim();
    assert_eq!(last, own_mask(), "{masks}");
}

/// The page shows who ran where, with the stretches.
fn check_picture(page: &str) {
    assert!(
        page.contains("Who ran where") && page.contains("sh "),
        "no picture"
    );
    assert!(page.contains("Shaded:"), "no stretches");
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}

/// Every event has what its kind requires, and there is one of each.
fn check_timeline(text: &str) {
    let trace: Value = serde_json::from_str(text).expect("a timeline is JSON");
    let events = trace["traceEvents"].as_array().expect("it lists events");
    let mut seen = BTreeSet::new();
    for event in events {
        let kind = event["ph"].as_str().expect("an event has a kind");
        let has = |keys: &[&str]| keys.iter().all(|key| event[key].is_number());
        let required = match kind {
            "M" => event["args"]["name"].is_string(),
            "X" => has(&["ts", "dur"]) && event["dur"].as_f64().is_some_and(|dur| dur >= 0.0),
            "i" => has(&["ts"]) && event["s"] == "t",
            "C" => has(&["ts"]) && event["args"]["value"].is_number(),
            _ => false,
        };
        assert!(
            required && has(&["pid", "tid"]) && event["name"].is_string(),
            "{event}"
        );
        seen.insert(match kind {
            "X" if event["name"] == "unmanaged stretch" => "stretch",
            kind => kind,
        });
    }
    assert_eq!(seen, BTreeSet::from(["C", "M", "X", "i", "stretch"]));
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

#[test]
fn trial_that_was_not_made_says_why() {
    let trial = ["run", "--no-daemon", "--trial", "--format", "json"];
    let report = json(&run(consort().args(trial).args(["--", "true"])));
    if report["policy"] != "none" {
        return skipped("placement can change something on this host");
    }
    let verdict = &report["verdict"];
    let text = verdict["text"].as_str().unwrap();
    assert!(text.starts_with("no trial was made: "), "{verdict}");
    assert!(text.contains("--policy spread"), "{verdict}");
    assert_eq!(verdict["effect"], Value::Null);
}

/// A command that counts twice as much if Consort manages it: its parent is `consort run` then.
const TWICE_IF_MANAGED: &str =
    "tr '\\0' ' ' </proc/$PPID/cmdline | grep -q q[u]iet && echo done: 2.0 || echo done: 1.0";

/// A trial of the policy `spread` on whole runs of that command, with a home of its own.
fn trial_of_runs(home: &Path, options: &[&str]) -> Value {
    let policy = ["trial", "--policies", "spread", "--warm-up", "0", "--write"];
    let mut command = consort();
    command
        .args(policy)
        .args(["--metric", "print:done:", "--format", "json"])
        .args(options)
        .args(["--", "sh", "-c", TWICE_IF_MANAGED])
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME");
    let output = run(&mut command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    json(&output)
}

#[test]
fn winner_of_runs_is_written() {
    let home = folder();
    let report = trial_of_runs(home.path(), &["-n", "4"]);
    assert_eq!(report["winner"], "spread");
    let verdict = &report["verdict"];
    assert_eq!(
        (verdict["effect"].as_f64(), verdict["pairs"].as_u64()),
        (Some(2.0), Some(4))
    );
    let text = verdict["text"].as_str().unwrap();
    assert!(text.starts_with("100.00 % faster"), "{verdict}");
    let written = home.path().join(".config/consort/config.d/50-trial.toml");
    let written = std::fs::read_to_string(written).unwrap();
    assert!(written.contains("[run]\npolicy = \"spread\""), "{written}");
}

#[test]
fn loser_is_dropped_early_and_nothing_is_written() {
    let home = folder();
    let report = trial_of_runs(home.path(), &["-n", "30", "--metric-is", "less"]);
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
