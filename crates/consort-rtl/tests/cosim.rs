//! Promise: the hardware units ask for the same exchanges as the policies of consort-core, at every
//! cycle, whatever the cores do; and the comparison would tell if they did not.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use consort_rtl::{
    PolicyRecording, RtlError, RtlModel, SOURCES, UnitParameters, UnitPolicy, find_verilator,
};
use consort_rtl::{replay, run_random_quanta};
use std::path::{Path, PathBuf};

const QUANTA: u64 = 2_000;

/// Folder in which a test's models are kept from run to run; none without Verilator.
fn models(test: &str) -> Option<PathBuf> {
    match find_verilator() {
        Ok(_) => Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join(test)),
        Err(reason) => {
            println!("skipped: {reason}");
            None
        }
    }
}

fn compare(setting: &UnitParameters) {
    let Some(folder) = models("drawn") else {
        return;
    };
    let mut model = RtlModel::build(setting, &folder, None).unwrap();
    let summary = run_random_quanta(setting, &mut model, QUANTA, 1).unwrap();
    assert!(summary.quanta >= QUANTA);
    assert!(summary.swaps > QUANTA / 5, "{summary}");
}

#[test]
fn hrrs_decides_as_its_policy() {
    compare(&UnitParameters::new(UnitPolicy::Hrrs, 4));
    let counter = UnitParameters {
        queue: false,
        ..UnitParameters::new(UnitPolicy::Hrrs, 5)
    };
    compare(&counter);
}

#[test]
fn kuths_decides_as_its_policy_on_many_cores() {
    let regions = UnitParameters {
        groups: 2,
        ..UnitParameters::new(UnitPolicy::Kuths, 8)
    };
    compare(&regions);
}

#[test]
fn tcs_decides_as_its_policy() {
    compare(&UnitParameters::new(UnitPolicy::Tcs, 4));
}

#[test]
fn units_decide_as_their_policies_in_recorded_runs() {
    let Some(folder) = models("recorded") else {
        return;
    };
    for (policy, name) in [
        (UnitPolicy::Hrrs, "hrrs"),
        (UnitPolicy::Tcs, "tcs:arithmetic=integer,immediate=false"),
    ] {
        let recording =
            PolicyRecording::record_run("acmp-1+3", name, &[("ocean.cont", 4)], 20).unwrap();
        let setting = UnitParameters::new(policy, 4);
        let mut model = RtlModel::build(&setting, &folder, None).unwrap();
        let (summary, alike) = replay(&setting, &mut model, &recording).unwrap();
        assert!(summary.swaps > 10, "{name}: {summary}");
        // Units see cycles where the recorded run saw intervals.
        assert_eq!(alike, recording.intervals(), "{name}");
    }
}

/// The units' sources with one replacement in one of them.
fn changed(into: &Path, file: &str, from: &str, to: &str) {
    for entry in std::fs::read_dir(SOURCES).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "sv") {
            std::fs::copy(&path, into.join(path.file_name().unwrap())).unwrap();
        }
    }
    let text = std::fs::read_to_string(into.join(file)).unwrap();
    assert_eq!(text.matches(from).count(), 1, "{file}: {from}");
    std::fs::write(into.join(file), text.replace(from, to)).unwrap();
}

#[test]
fn a_unit_that_differs_is_found_out() {
    let Some(_) = models("changed") else { return };
    let faults = [
        (UnitPolicy::Kuths, "kuths.sv", "&& !idle[on_large];", ";"),
        (
            UnitPolicy::Tcs,
            "tcs.sv",
            "key > best_key",
            "key >= best_key",
        ),
    ];
    for (policy, file, from, to) in faults {
        let sources = tempfile::tempdir().unwrap();
        changed(sources.path(), file, from, to);
        let setting = UnitParameters::new(policy, 4);
        let folder = sources.path().join("models");
        let mut model = RtlModel::build_from(sources.path(), &setting, &folder, None).unwrap();
        let error = run_random_quanta(&setting, &mut model, QUANTA, 1).unwrap_err();
        assert!(matches!(error, RtlError::Differs { .. }), "{error}");
    }
}
