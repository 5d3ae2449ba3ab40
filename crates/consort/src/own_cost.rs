//! What Consort itself has taken so far.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// CPU time and memory of Consort and its guardian.
pub(crate) struct Cost {
    /// CPU time, s.
    pub(crate) cpu_s: f64,
    /// Largest resident memory of Consort plus that of the guardian now, KiB.
    pub(crate) peak_rss_kib: u64,
}

impl Cost {
    /// Up to now; of the guardian, what `/proc` tells.
    pub(crate) fn so_far(guardian: u32) -> Self {
        let (cpu_s, rss_kib) = own();
        let (guardian_s, guardian_kib) = of_process(guardian).unwrap_or_default();
        Self {
            cpu_s: cpu_s + guardian_s,
            peak_rss_kib: rss_kib + guardian_kib,
        }
    }
}

fn own() -> (f64, u64) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return (0.0, 0);
    };
    let cpu = usage.user_time() + usage.system_time();
    let rss = u64::try_from(usage.max_rss()).unwrap_or(0);
    (cpu.num_microseconds() as f64 / 1e6, rss)
}

/// CPU time, s (from schedstat, in ns), and peak resident memory, KiB, of another process.
fn of_process(pid: u32) -> Option<(f64, u64)> {
    let schedstat = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let cpu_ns: f64 = schedstat.split_whitespace().next()?.parse().ok()?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib = peak.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some((cpu_ns / 1e9, kib))
}
