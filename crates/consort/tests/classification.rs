//! Consort's classification of programs against exact counts: instruction mixes counted by
//! callgrind, with classes from a table of its own (`tests/truth`).

mod common;

use common::{demo, folder, skipped, stderr};
use std::path::Path;
use std::process::Command;

/// Of each kind some, most of them not ours; the whole catalogue takes too long
/// for every change (`tests/truth/check.py` does it). Without `demo-stream`, of
/// which callgrind does not know the time (`docs/research/validation.md`).
const PROGRAMS: &[&str] = &[
    "demo-fp",
    "demo-vector",
    "demo-int",
    "demo-branchy",
    "demo-l2",
    "demo-bigcode",
    "oggenc",
    "opusenc",
    "sox-reverb",
    "java-planets",
    "gzip",
    "zstd",
    "sqlite",
    "openssl-sha256",
    "java-words",
];

#[test]
fn floating_point_and_integer_programs_are_told_apart() {
    if cfg!(not(target_arch = "x86_64")) {
        return skipped("the ground truth reads x86-64 only");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/truth/check.py");
    let results = folder();
    let mut check = Command::new("python3");
    check
        .arg(script)
        .args(["--consort", env!("CARGO_BIN_EXE_consort"), "--folder"])
        .arg(results.path())
        .args(PROGRAMS)
        .env("CONSORT_DEMO", demo());
    let Ok(output) = check.output() else {
        return skipped("python3 is not installed");
    };
    let said = stderr(&output);
    for reason in said.lines().filter_map(|l| l.strip_prefix("skipped: ")) {
        skipped(reason);
    }
    let table = String::from_utf8_lossy(&output.stdout);
    println!("{table}");
    assert!(output.status.success(), "{table}\n{said}");
}
