//! Profiles beside what valgrind's tools, which share nothing with them, count.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use consort_profile::measure::CAPACITIES;
use consort_profile::recorder::{OutputDestination, RecordedPart, record};
use consort_profile::{ExecutionFigures, ProgramProfiler};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// A program that takes a few million instructions and prints nothing.
const COMMAND: [&str; 3] = ["/usr/bin/gzip", "-t", "INPUT"];

fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        println!("skipped: {program} is not installed (.ci/install-profile)");
    }
    there
}

/// Compressed text, made of a fixed recurrence.
fn input(folder: &Path) -> OsString {
    let mut state = 1_u32;
    let text = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b"etaoin shrdlu\n"[(state >> 24) as usize % 14]
    });
    let path = folder.join("text");
    std::fs::write(&path, text.take(400_000).collect::<Vec<u8>>()).unwrap();
    assert!(
        Command::new(COMMAND[0])
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    folder.join("text.gz").into_os_string()
}

fn command(input: &OsString) -> Vec<OsString> {
    let part = |&part: &&str| {
        if part == "INPUT" {
            input.clone()
        } else {
            part.into()
        }
    };
    COMMAND.iter().map(part).collect()
}

fn profile(input: &OsString) -> ExecutionFigures {
    let extent = RecordedPart::default();
    let mut profiler = ProgramProfiler::new(extent, false);
    let ended = record(
        &command(input),
        extent,
        OutputDestination::Same,
        &mut profiler,
    )
    .unwrap();
    assert!(ended.status.success());
    profiler.finish_profile().figures
}

/// Figure of a valgrind tool's summary, read from the first line that contains `figure`.
fn valgrind(tool: &[&str], input: &OsString, figure: &str) -> u64 {
    let output = Command::new("valgrind")
        .args(tool)
        .args(command(input))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = said.lines().find(|line| line.contains(figure));
    let line = line.ok_or(&said).unwrap();
    let (_, numbers) = line.rsplit_once(':').unwrap();
    let number: String = numbers
        .split('(')
        .next()
        .unwrap()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    number.parse().unwrap()
}

fn within(share: f64, ours: u64, theirs: u64) {
    let error = ours.abs_diff(theirs) as f64 / theirs as f64;
    assert!(error <= share, "{ours} here, {theirs} there");
}

#[test]
fn instructions_and_misses_are_those_of_valgrind() {
    if !is_there("valgrind") || !is_there("qemu-x86_64") || !is_there(COMMAND[0]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let input = input(folder.path());
    let profile = profile(&input);
    let tool = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
    // valgrind counts each round of a repeated instruction, and offers another processor.
    within(
        0.02,
        profile.mix.instructions,
        valgrind(&tool, &input, "Collected"),
    );
    for kib in [8, 32, 128] {
        // Fully associative within what cachegrind takes, so that it is LRU as well.
        let cache = format!("--D1={},{},64", kib << 10, kib * 16);
        let tool = [
            "--tool=cachegrind",
            "--cachegrind-out-file=/dev/null",
            &cache,
            "--LL=8388608,16,64",
        ];
        let size = CAPACITIES
            .iter()
            .position(|&size| size == kib << 10)
            .unwrap();
        within(
            0.05,
            profile.memory.data.misses[size],
            valgrind(&tool, &input, "D1  misses"),
        );
    }
}
