//! `consort machine probe`, the file that it writes, and who uses it: keys, bad input, interrupts.
//! Nothing here depends on how fast this host is or on what its CPUs share.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;

use common::{
    check_refused, children_of, consort, folder, json, masks_of, own_mask, pus, run, skipped,
    stderr, wait_for,
};
use consort_core::sharing::SharingMap;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

const SHORT: [&str; 4] = ["machine", "probe", "--duration", "500ms"];

/// The lowest CPUs that may be used, two at most.
fn few() -> String {
    let mask: consort_core::PuSet = own_mask().parse().unwrap();
    let few: consort_core::PuSet = mask.iter().take(2).collect();
    few.to_string()
}

#[test]
fn a_probe_has_its_keys_and_places_every_pu() {
    let few = few();
    let output = run(consort()
        .args(SHORT)
        .args(["--cpus", &few, "--format", "json"]));
    assert!(output.status.success(), "{}", stderr(&output));
    let document = json(&output);
    assert_eq!(document["pus"], few);
    assert_eq!(document["pairs_total"], pus().min(2) - 1);
    for level in ["cores", "l2s", "llcs"] {
        let groups = document[level]["groups"].as_array().unwrap().iter();
        let undecided: consort_core::PuSet =
            serde_json::from_value(document[level]["undecided"].clone()).unwrap();
        let all = groups.fold(undecided, |all, group| {
            all.union(&serde_json::from_value(group["pus"].clone()).unwrap())
        });
        // Whatever was probed, all that may be used are in a group or undecided.
        assert_eq!(all.to_string(), own_mask(), "{document}");
    }
    for pair in document["evidence"].as_array().unwrap() {
        for effect in pair["effects"].as_array().unwrap() {
            let (mean, runs) = (&effect["slowdown"]["mean"], &effect["slowdown"]["n"]);
            assert!(
                mean.as_f64().unwrap() > 0.0 && runs.as_u64().unwrap() > 0,
                "{effect}"
            );
        }
    }
    for key in ["differences", "notes", "left_out", "pairs"] {
        assert!(document[key].is_array(), "{key}");
    }
}

#[test]
fn every_measurement_is_a_line_of_csv() {
    let output = run(consort()
        .args(SHORT)
        .args(["--cpus", &few(), "--format", "csv"]));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("a,b,what,unit,mean,low,high,runs"));
    assert!(lines.all(|line| line.split(',').count() == 8), "{text}");
}

#[test]
fn what_is_written_is_read_again_and_never_replaced_unasked() {
    let folder = folder();
    let file = folder.path().join("cores.toml");
    let name = file.to_str().unwrap();
    if pus() < 2 {
        return skipped("there is one CPU, so nothing to probe");
    }
    let probe = || {
        run(consort()
            .args(SHORT)
            .args(["--cpus", &few(), "--out", name]))
    };
    assert!(probe().status.success());
    let text = std::fs::read_to_string(&file).unwrap();
    let map = SharingMap::parse(&text, name).unwrap();
    assert!(map.source.contains("consort machine probe"), "{text}");
    let machine = run(consort().args(["machine", "--topology", name, "--format", "json"]));
    assert_eq!(json(&machine)["pus"], pus());
    check_refused(&[&SHORT[..], &["--out", name]].concat(), &[name, "--force"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    let forced = run(consort()
        .args(SHORT)
        .args(["--cpus", &few(), "--out", name, "--force"]));
    assert!(forced.status.success());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn bad_input_is_one_line() {
    let probe = |more: &[&'static str], parts: &[&str]| {
        check_refused(&[&["machine", "probe"], more].concat(), parts);
    };
    probe(&["--cpus", "65000"], &["CPU 65000", "usable are"]);
    probe(&["--cpus", "x"], &["--cpus", "'x'"]);
    probe(&["--duration", "3"], &["30s"]);
    let one = own_mask().split(['-', ',']).next().unwrap().to_owned();
    check_refused(
        &["machine", "probe", "--cpus", &one, "--out", "never.toml"],
        &["--out", "cannot be compared", "at least two"],
    );
    probe(
        &["--out", "/nowhere/cores.toml"],
        &["/nowhere/cores.toml", "topology"],
    );
    check_refused(&["machine", "--check", "probe"], &["--check"]);
}

#[test]
fn a_topology_that_does_not_fit_stops_everything() {
    let folder = folder();
    let cases = [
        ("cores = [\"0,65000\"]", "cores[0] = \"0,65000\": CPU 65000"),
        (
            "cores = [\"0\", \"0\"]",
            "cores[1] = \"0\": CPU 0 is in another",
        ),
        ("core = []", "line 1: unknown field `core`"),
    ];
    for (text, part) in cases {
        let file = folder.path().join("cores.toml");
        std::fs::write(&file, text).unwrap();
        let name = file.to_str().unwrap();
        check_refused(&["machine", "--topology", name], &[name, part]);
        check_refused(&["run", "--topology", name, "--", "true"], &[name, part]);
    }
    check_refused(&["machine", "--topology", "/nowhere"], &["/nowhere"]);
}

/// Two CPUs that a file makes one core.
fn one_core(folder: &Path) -> Option<String> {
    if pus() < 2 {
        skipped("one CPU has nothing to share");
        return None;
    }
    let file = folder.join("cores.toml");
    std::fs::write(&file, format!("cores = [\"{}\"]", few())).unwrap();
    Some(file.to_str().unwrap().to_owned())
}

#[test]
fn a_run_sees_the_cores_of_the_file() {
    let folder = folder();
    let Some(name) = one_core(folder.path()) else {
        return;
    };
    let machine = run(consort().args(["machine", "--topology", &name, "--format", "json"]));
    assert_eq!(json(&machine)["smt"], 2);
    let run_with = |more: &[&str]| {
        let output = run(consort()
            .args(["run", "--format", "json"])
            .args(more)
            .args(["--", "true"]));
        json(&output)
    };
    let config = folder.path().join("config.toml");
    std::fs::write(&config, format!("[run]\ntopology = \"{name}\"\n")).unwrap();
    for more in [
        ["--topology", &name],
        ["--config", config.to_str().unwrap()],
    ] {
        let reason = run_with(&more)["policy_reason"].to_string();
        assert!(reason.contains("2 CPUs share a core"), "{reason}");
    }
}

#[test]
fn a_model_that_does_not_fit_is_told_and_one_for_no_policy_is_refused() {
    let folder = folder();
    let Some(name) = one_core(folder.path()) else {
        return;
    };
    let model = folder.path().join("m.toml");
    let model = model.to_str().unwrap();
    let embedded = consort_core::model::embedded_model("power8-simulated").unwrap();
    std::fs::write(model, embedded).unwrap();
    let output = run(consort()
        .args(["run", "--format", "json", "--topology", &name])
        .args(["--model", model, "--", "true"]));
    let report = json(&output);
    assert_ne!(report["policy"], "symbiotic");
    let reason = report["policy_reason"].to_string();
    assert!(
        reason.contains("was trained on machine 'power8'"),
        "{reason}"
    );
    check_refused(
        &["run", "--policy", "spread", "--model", model, "--", "true"],
        &["--model", "spread"],
    );
    check_refused(
        &["run", "--model", &name, "--", "true"],
        &["--model", &name],
    );
    check_refused(
        &["run", "--model", "/nowhere.toml", "--", "true"],
        &["/nowhere.toml"],
    );
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    if pus() < 2 {
        skipped("one CPU has no pair to measure");
        return;
    }
    // Two CPUs are measured in a moment; on a busy host that can be over before we look.
    let interrupted = (0..10).any(|_| {
        let folder = folder();
        let ended = interrupt_a_probe(&folder.path().join("cores.toml"));
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert!(ended.success() || left == 0);
        !ended.success()
    });
    assert!(interrupted);
}

/// Interrupts a probe that would write a file, once bound threads show that it measures.
fn interrupt_a_probe(file: &Path) -> ExitStatus {
    let mut child = consort()
        .args(["machine", "probe", "--duration", "60s", "--out"])
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = child.id();
    wait_for("a bound thread, or the end", || {
        let bound = masks_of(pid).iter().any(|mask| *mask != own_mask());
        (bound || child.try_wait().unwrap().is_some()).then_some(())
    });
    assert!(children_of(pid).is_empty());
    if child.try_wait().unwrap().is_none() {
        kill(Pid::from_raw(pid.cast_signed()), Signal::SIGINT).unwrap();
    }
    child.wait().unwrap()
}
