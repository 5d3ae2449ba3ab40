//! The same command alone and under `consort run`: nobody shall see a difference.

use super::common::{consort, folder, own_mask, run, stderr, warnings};
use super::compiled::Compiled;
use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};

/// Restricts whatever runs at all, and often, so that the comparison is worth something.
const ACTIVE: [&str; 6] = [
    "--interval",
    "100ms",
    "--policy",
    "spread:active=0",
    "--no-back-off",
    "-q",
];

/// Samples from which on shares of a mix mean something.
const ENOUGH: f64 = 50.0;

/// A command that runs a compiled program.
pub fn command_of(program: &Compiled, args: &[&str]) -> Command {
    let mut command = Command::new(program.path());
    command.args(args);
    command
}

/// A managed run.
pub struct Managed {
    pub output: Output,
    pub report: Value,
}

/// The same command under Consort, its report in `file`.
pub fn managed_command(bare: &Command, file: &Path) -> Command {
    let mut managed = consort();
    managed.arg("run").args(ACTIVE).arg("--report").arg(file);
    managed
        .arg("--")
        .arg(bare.get_program())
        .args(bare.get_args());
    for (name, value) in bare.get_envs() {
        match value {
            Some(value) => managed.env(name, value),
            None => managed.env_remove(name),
        };
    }
    if let Some(dir) = bare.get_current_dir() {
        managed.current_dir(dir);
    }
    managed
}

/// Runs a command under Consort; everything must be as it was afterwards.
pub fn managed(bare: &Command) -> Managed {
    let folder = folder();
    let file = folder.path().join("report.json");
    let output = run(&mut managed_command(bare, &file));
    let text = std::fs::read(&file).unwrap_or_else(|e| panic!("{e}: {}", stderr(&output)));
    let report: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(report["restored"], true, "{report:#}");
    assert_eq!(
        Some(&report["exit_code"]),
        output.status.code().map(Value::from).as_ref()
    );
    sane(&report);
    Managed { output, report }
}

/// Runs a command both ways and compares; no warning is called for.
pub fn compare(bare: Command) -> Value {
    let report = compare_but_warnings(bare);
    assert_eq!(warnings(&report), [""; 0], "{report:#}");
    report
}

/// As [`compare`], for commands that give cause to warn.
pub fn compare_but_warnings(mut bare: Command) -> Value {
    let expected = run(bare.stderr(Stdio::piped()));
    let Managed { output, report } = managed(&bare);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&output.stdout), text(&expected.stdout), "{bare:?}");
    assert_eq!(text(&output.stderr), text(&expected.stderr), "{bare:?}");
    assert_eq!(
        output.status.code(),
        Some(code(expected.status)),
        "{bare:?}"
    );
    report
}

/// An exit status as shells count it.
fn code(status: ExitStatus) -> i32 {
    let signal = status.signal().map_or(0, |signal| 128 + signal);
    status.code().unwrap_or(signal)
}

/// Asserts what holds for any report.
fn sane(report: &Value) {
    let pus = own_mask();
    for thread in threads(report) {
        assert_ne!(thread["name"], "", "{thread:#}");
        assert!(thread["cpu_s"].as_f64().unwrap() >= 0.0, "{thread:#}");
        assert!(pus.contains(thread["cpus"].as_str().unwrap()) || pus.contains('-'));
        let shares = thread["mix"].as_object().into_iter().flatten();
        let total: f64 = shares.filter_map(|(_, share)| share.as_f64()).sum();
        assert!(
            thread["mix"].is_null() || (total - 1.0).abs() < 1e-6,
            "{thread:#}"
        );
    }
}

/// The rows of a report's threads.
pub fn threads(report: &Value) -> &[Value] {
    report["threads"].as_array().unwrap()
}

/// Number of samples, and the share of them that was decoded, 0 to 1.
fn samples(report: &Value) -> (f64, f64) {
    let count = |key: &str| report["sampling"][key].as_f64().unwrap_or(0.0);
    (
        count("samples"),
        count("decoded") / count("samples").max(1.0),
    )
}

/// Most samples are decoded: code is found in files, in JIT arenas and in the vDSO alike.
pub fn assert_decoded(report: &Value, least: f64) {
    let (count, decoded) = samples(report);
    assert!(count < ENOUGH || decoded > least, "{}", report["sampling"]);
}

/// Asserts that the floating-point share of the whole run, weighted by CPU time, is as said, as far
/// as its samples can show: on a busy host a run of some CPU time gets few.
pub fn assert_fp(report: &Value, is_fp: bool) {
    let rows = || threads(report).iter().filter(|t| !t["mix"].is_null());
    let seconds: f64 = rows().map(|t| t["cpu_s"].as_f64().unwrap()).sum();
    let fp = |t: &Value| t["mix"]["fp"].as_f64().unwrap() * t["cpu_s"].as_f64().unwrap();
    let share = rows().map(fp).sum::<f64>() / seconds.max(1e-9);
    let n = samples(report).0;
    // Three standard errors of a share; that of none or all of n samples is not 0.
    let error = 3.0 * ((share * (1.0 - share)).max(1.0 / n.max(1.0)) / n.max(1.0)).sqrt();
    let is_shown = match is_fp {
        true => share + error >= 0.15,
        false => share - error < 0.05,
    };
    assert!(
        is_shown || n < ENOUGH,
        "floating point: {share:.3} ± {error:.3} in {report:#}"
    );
}
