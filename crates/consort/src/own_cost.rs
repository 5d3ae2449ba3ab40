//! CPU time and memory that Consort itself has taken so far.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// CPU time and memory of Consort, its guardian and its readers of code; without the readers' memory.
pub(crate) struct OwnCost {
    /// CPU time, s.
    pub(crate) cpu_s: f64,
    /// Largest resident memory of both, KiB.
    pub(crate) peak_rss_kib: u64,
}

impl OwnCost {
    /// Returns the cost up to now, with that of the guardian, where there is one.
    pub(crate) fn measure(guardian: Option<u32>) -> Self {
        let guardian = guardian.map(|pid| pid.to_string());
        let of_guardian = guardian.as_deref().and_then(guardian_cpu_s);
        let peak = |process: &str| peak_rss_kib(process).unwrap_or(0);
        Self {
            cpu_s: own_cpu_s() + of_guardian.unwrap_or(0.0) + consort_linux::reader::cpu_s(),
            peak_rss_kib: peak("self") + guardian.as_deref().map_or(0, peak),
        }
    }
}

fn own_cpu_s() -> f64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return 0.0;
    };
    let cpu = usage.user_time() + usage.system_time();
    cpu.num_microseconds() as f64 / 1e6
}

/// Reads the guardian's CPU time, s, from schedstat, which tells nanoseconds.
fn guardian_cpu_s(pid: &str) -> Option<f64> {
    let schedstat = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let cpu_ns: f64 = schedstat.split_whitespace().next()?.parse().ok()?;
    Some(cpu_ns / 1e9)
}

/// Reads `VmHWM`, KiB; unlike the maximum of `getrusage` it does not outlive an `exec`, so it is
/// not that of whoever started Consort.
fn peak_rss_kib(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().trim_end_matches("kB").trim().parse().ok()
}
