//! What managing costs: `cargo bench -p consort --bench overhead [-- PAIRS]`.
//!
//! The same fixed work is run with and without Consort, in turn and in changing
//! order, and the CPU time of everything is compared pair by pair: the command's,
//! with the timer interrupts that sampling causes in it, and Consort's own with
//! its guardian's. CPU time, unlike wall time, stands still while others run; the
//! median over pairs is not moved by the few that the host disturbed.

#![expect(clippy::unwrap_used, reason = "a bench may fail loudly")]

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Work of one run: about two seconds of CPU time in two threads.
const WORK: &str = "80000";
const THREADS: &str = "2";
const PAIRS: usize = 20;

fn main() {
    let pairs = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    let pairs: usize = pairs.unwrap_or(PAIRS);
    for kernel in ["int", "fp"] {
        measure(kernel, pairs);
    }
}

fn measure(kernel: &str, pairs: usize) {
    let mut increases = Vec::new();
    let mut reports = Vec::new();
    for pair in 0..pairs {
        let (plain, managed) = if pair % 2 == 0 {
            let plain = plain(kernel);
            (plain, managed(kernel, &mut reports))
        } else {
            let managed = managed(kernel, &mut reports);
            (plain(kernel), managed)
        };
        increases.push(100.0 * (managed / plain - 1.0));
    }
    let of = |key: &str| -> Vec<f64> {
        let values = reports
            .iter()
            .map(|r: &Value| r["overhead"][key].as_f64().unwrap());
        values.collect()
    };
    let share = of("share_of_managed").iter().map(|s| 100.0 * s).collect();
    print(kernel, "increase of CPU time, paired", "percent", increases);
    print(
        kernel,
        "overhead by the report, estimated",
        "percent",
        share,
    );
    print(kernel, "Consort's own CPU time", "s", of("cpu_s"));
    print(kernel, "peak resident memory", "KiB", of("peak_rss_kib"));
}

fn print(kernel: &str, what: &str, unit: &str, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    let quantile = |q: f64| values[((values.len() - 1) as f64 * q).round() as usize];
    println!(
        "{kernel}: {what}: median {:.3} {unit}, quartiles {:.3} to {:.3}, n = {}",
        quantile(0.5),
        quantile(0.25),
        quantile(0.75),
        values.len()
    );
}

fn demo() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_consort")).with_file_name("consort-demo")
}

fn plain(kernel: &str) -> f64 {
    let mut command = Command::new(demo());
    cpu_s(command.args([kernel, "--threads", THREADS, "--work", WORK]))
}

fn managed(kernel: &str, reports: &mut Vec<Value>) -> f64 {
    let file = std::env::temp_dir().join(format!("consort-overhead-{}", std::process::id()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
    command
        .args(["run", "-q", "--policy", "none", "--report"])
        .arg(&file)
        .arg("--");
    command
        .arg(demo())
        .args([kernel, "--threads", THREADS, "--work", WORK]);
    let cpu_s = cpu_s(&mut command);
    reports.push(serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap());
    std::fs::remove_file(file).unwrap();
    cpu_s
}

/// CPU time of a command and all its children, s.
fn cpu_s(command: &mut Command) -> f64 {
    let before = children_s();
    let status = command.stdout(Stdio::null()).status().unwrap();
    assert!(
        status.success(),
        "{command:?}: build consort-demo first (cargo build --release)"
    );
    children_s() - before
}

fn children_s() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}
