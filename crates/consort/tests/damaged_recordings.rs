//! Promise: a recording that is damaged, or that finds no room, ends in one line and takes nothing
//! along. Apart from the other tests of recordings, whose quanta a busy host would stretch.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod common;

use common::{consort, folder, json, run, skipped, stderr};
use std::path::Path;
use std::process::Command;

fn record(path: &Path) {
    let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let output = run(consort()
        .args(["record", "--interval", "50ms", "-o"])
        .arg(path)
        .args(["--", "sh", "-c", script]));
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Flips a bit of a recording where the reader of Parquet asserts that nobody does.
fn damage_pages(path: &Path) {
    let whole = std::fs::read(path).unwrap();
    let asserts = (4..whole.len()).any(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(path, bytes).unwrap();
        let recording = consort_data::recording::Recording::open(path).ok();
        let quanta = recording
            .iter()
            .flat_map(consort_data::recording::Recording::quanta);
        let mut errors = quanta.filter_map(Result::err);
        errors.any(|error| error.to_string().contains("its pages are damaged"))
    });
    assert!(asserts, "no bit of it makes the reader assert");
}

#[test]
fn damaged_pages_are_one_line_without_the_words_of_a_panic() {
    let folder = folder();
    let path = folder.path().join("r.parquet");
    record(&path);
    damage_pages(&path);
    let output = run(consort().arg("replay").arg(&path));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let reported = stderr(&output);
    assert!(
        reported.trim_end().ends_with("its pages are damaged"),
        "{reported}"
    );
    assert_eq!(reported.lines().count(), 1, "{reported}");
}

/// Output of a script in which `small` is a file system of 12 KiB and `$C` the binary under test.
fn with_a_small_disk(script: &str) -> Option<std::process::Output> {
    let folder = folder();
    std::fs::create_dir(folder.path().join("small")).unwrap();
    let mounted = format!("mount -t tmpfs -o size=12k none small || exit 99; {script}");
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &mounted])
        .current_dir(folder.path())
        .env("C", env!("CARGO_BIN_EXE_consort"))
        .output()
        .ok()
        .filter(|output| output.status.code() != Some(99) && !stderr(output).contains("unshare: "));
    if output.is_none() {
        skipped("no file system can be mounted here");
    }
    output
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_command() {
    let command = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; exit 5";
    let record = "\"$C\" record --interval 20ms --format json -o small/r.parquet";
    let Some(output) = with_a_small_disk(&format!(
        "{record} -- sh -c '{command}'; s=$?; ls small >&2; exit $s"
    )) else {
        return;
    };
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let report = json(&output);
    assert_eq!(report["restored"], true, "{report:#}");
    let warnings = report["warnings"].to_string();
    assert_eq!(warnings.matches("No space left").count(), 1, "{warnings}");
}
