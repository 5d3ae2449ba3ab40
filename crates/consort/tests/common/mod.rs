//! Helpers of the end-to-end tests.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may fail loudly")]
#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test file uses its own part of this"
)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The binary under test.
pub fn consort() -> Command {
    Command::new(env!("CARGO_BIN_EXE_consort"))
}

/// The demonstration programs: built beside the binary under test.
pub fn demo() -> PathBuf {
    let place = Path::new(env!("CARGO_BIN_EXE_consort")).with_file_name("consort-demo");
    if !place.exists() {
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "-p",
                "consort-kernels",
                "--bin",
                "consort-demo",
            ])
            .status()
            .unwrap();
        assert!(built.success());
    }
    place
}

/// Copies a program for everybody to execute. A process of its own does it: a copy that this one
/// held open for writing, another test's fork could hold open when it is executed.
pub fn install(from: &Path, to: &Path) {
    let mut install = Command::new("install");
    let done = install.args(["-m", "755"]).args([from, to]).status();
    assert!(done.unwrap().success());
}

/// Returns true if a process is stopped, or in a cgroup that was made for pausing.
pub fn is_held(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let cgroup = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    stat.contains(") T ") || cgroup.contains("/consort-")
}

/// CPU time of a process so far, clock ticks.
pub fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let numbers = fields.split_whitespace().skip(11).take(2);
    numbers.filter_map(|n| n.parse::<u64>().ok()).sum()
}

/// Returns true if a process is paused just now, by a signal or a freezer.
pub fn is_paused(pid: u32) -> bool {
    let of =
        |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let waits = of("wchan");
    // Frozen by version 2 it waits in `do_freezer_trap`, which may be a part of `get_signal`.
    let places = ["freezer", "refrigerator", "get_signal"];
    of("stat").contains(") T ") || places.iter().any(|place| waits.contains(place))
}

/// Runs to the end and collects the output.
pub fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

/// stderr as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// stdout as one JSON document.
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e} in: {}", String::from_utf8_lossy(&output.stdout)))
}

/// Runs a command on bad input: exit code 2, nothing on stdout, and one line on stderr that has all
/// these parts.
pub fn check_refused_command(command: &mut Command, parts: &[&str]) {
    let output = run(command);
    let line = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{command:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{command:?}: {line}");
    assert!(output.stdout.is_empty(), "{command:?}");
    for part in parts {
        assert!(
            line.contains(part),
            "{command:?}: '{part}' is missing in: {line}"
        );
    }
}

/// As `check_refused_command`, for arguments of the binary under test.
pub fn check_refused(args: &[&str], parts: &[&str]) {
    check_refused_command(consort().args(args), parts);
}

/// The warnings of a report without those that a busy host alone causes.
pub fn warnings(report: &Value) -> Vec<&str> {
    let warnings = report["warnings"].as_array().unwrap().iter();
    let warnings = warnings.filter_map(Value::as_str);
    let of_pace = ["a turn ", "quanta took ", "managing took "];
    warnings
        .filter(|text| !of_pace.iter().any(|start| text.starts_with(start)))
        .collect()
}

/// A fresh folder.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Says why a test did nothing, past the test harness's capture.
pub fn skipped(reason: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// Waits until `ready` gives something; panics after a minute.
pub fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(Instant::now() < end, "waited a minute for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// `Cpus_allowed_list` of a task directory below `/proc`.
pub fn mask_of(task: &Path) -> Option<String> {
    let status = std::fs::read_to_string(task.join("status")).ok()?;
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?;
    Some(line.trim().to_owned())
}

/// Masks of all threads of a process.
pub fn masks_of(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    tasks.filter_map(|task| mask_of(&task.path())).collect()
}

/// This process's own mask: what every thread must have in the end.
pub fn own_mask() -> String {
    mask_of(Path::new("/proc/self")).unwrap()
}

/// Processes whose parent is `pid`.
pub fn children_of(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// The name of a process.
pub fn comm_of(pid: u32) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    text.trim().to_owned()
}

/// Number of CPUs that this process may use.
pub fn pus() -> usize {
    std::thread::available_parallelism().unwrap().get()
}
