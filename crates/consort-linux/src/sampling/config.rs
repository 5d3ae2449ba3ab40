//! Rates and limits of the sampler.

use crate::perf::max_sample_rate_hz;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use thiserror::Error;

/// Rates and limits of the sampler, by which its cost is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplerConfig {
    /// Samples per second of a thread's CPU time. 499 is prime, so that it does
    /// not beat with timers of the programs (`perf record`'s habit).
    pub rate_hz: u64,
    /// Further samples per second of CPU time at the start of a launched program, so that one
    /// second of it is enough for a profile; 0 for none.
    pub burst_hz: u64,
    /// Length of the start, ns.
    pub burst_ns: u64,
    /// Most samples per second that are looked at, over all threads; beyond that a random part is
    /// left out before it costs anything.
    pub max_samples_per_s: u64,
    /// Size of all rings together, bytes; each CPU's is at least one page.
    pub ring_bytes: usize,
    /// Most descriptors that the sampler may keep open.
    pub fd_budget: usize,
    /// Events that are used where the kernel allows them.
    pub reach: SamplingScope,
    /// Pace at which samples are taken: at these rates, or below them.
    pub watch: WatchRate,
}

/// The threads that the events of a sampler record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SamplingScope {
    /// All that runs on each CPU, and records of strangers are dropped, where the kernel allows
    /// that; else as [`SamplingScope::Own`].
    #[default]
    Host,
    /// The sampled threads alone: their events are switched and cloned with them, which makes both
    /// dearer for them.
    Own,
}

impl Default for SamplerConfig {
    fn default() -> Self {
        Self {
            rate_hz: 499,
            burst_hz: 1499,
            burst_ns: 500_000_000,
            max_samples_per_s: 4_000,
            ring_bytes: 4 << 20,
            fd_budget: 2_048,
            reach: SamplingScope::Host,
            watch: WatchRate::Full,
        }
    }
}

/// Largest ring of one CPU, bytes: of the unprivileged allowance, `kernel.perf_event_mlock_kb` (516
/// per CPU), it leaves room for other tools.
const MAX_RING_BYTES: usize = 128 << 10;
/// Smallest ring of one CPU to ask for, bytes: a third of a second of samples of 176 bytes.
const MIN_RING_BYTES: usize = 32 << 10;
/// Largest ring of one CPU for all that runs there, bytes.
const MAX_HOST_RING_BYTES: usize = 512 << 10;
/// Most CPUs on which a burst is worth its price: every event per CPU makes each thread start 1.2
/// to
/// 2.6 microseconds dearer (measured, see `Sampler`).
const MAX_BURST_PUS: usize = 32;

/// Samples per second of CPU time under [`WatchRate::Light`]: with the last 200 a class is known within
/// some seconds. Prime, as the usual rate.
const LIGHT_HZ: u64 = 47;

impl SamplerConfig {
    /// This configuration with no rate above what the host permits
    /// (`kernel.perf_event_max_sample_rate`), since the kernel would refuse it.
    #[must_use]
    pub fn with_permitted_rates(self, root: &Path) -> Self {
        let max_hz = max_sample_rate_hz(root).unwrap_or(u64::MAX).max(1);
        Self {
            rate_hz: self.rate_hz.min(max_hz),
            burst_hz: self.burst_hz.min(max_hz),
            ..self
        }
        .with_distinct_rates()
    }

    /// This configuration with the rates of its watch.
    pub(super) fn with_watch_rates(self) -> Self {
        match self.watch {
            WatchRate::Full => self,
            WatchRate::Light => Self {
                rate_hz: self.rate_hz.min(LIGHT_HZ),
                burst_hz: 0,
                ..self
            },
        }
    }

    /// This configuration with two different rates: timers of one rate expire together, so that
    /// every sample would be taken twice. The golden section is the ratio that beats least.
    #[must_use]
    pub(super) fn with_distinct_rates(self) -> Self {
        const GOLDEN: f64 = 0.618;
        let same = self.burst_hz == self.rate_hz;
        let burst_hz = if same {
            ((self.rate_hz as f64 * GOLDEN) as u64).max(1)
        } else {
            self.burst_hz
        };
        Self { burst_hz, ..self }
    }

    /// Ring size of one CPU of `pus`, bytes.
    pub(crate) fn ring_bytes_per_pu(&self, pus: usize) -> usize {
        let share = self.ring_bytes / pus.max(1);
        let power = (share / 2 + 1).next_power_of_two();
        power.clamp(MIN_RING_BYTES, MAX_RING_BYTES)
    }

    /// Ring size of one CPU of `pus` for the records of all that runs there, bytes: the programs
    /// that a build starts in 100 ms write some 100 KiB.
    pub(crate) fn host_ring_bytes_per_pu(&self, pus: usize) -> usize {
        let power = (self.ring_bytes / pus.max(1)).next_power_of_two();
        power.clamp(MAX_RING_BYTES, MAX_HOST_RING_BYTES)
    }

    /// Returns true if a start at a higher rate is wanted, and affordable on this number of CPUs.
    pub(crate) fn wants_burst(&self, pus: usize) -> bool {
        self.burst_hz > 0 && pus <= MAX_BURST_PUS
    }
}

/// The rate at which managed programs are watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchRate {
    /// Few samples and rare scans, for programs that Consort only reports on.
    Light,
    /// As many samples as the cost of one permits, so that plans follow the programs' phases.
    #[default]
    Full,
}

impl WatchRate {
    /// The names of all rates, as [`str::parse`] takes them.
    pub const NAMES: [&str; 2] = ["light", "full"];
}

impl fmt::Display for WatchRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Light => "light",
            Self::Full => "full",
        })
    }
}

/// A name that no [`WatchRate`] has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown watch '{0}'; there are light and full")]
pub struct UnknownWatchRate(String);

impl FromStr for WatchRate {
    type Err = UnknownWatchRate;

    fn from_str(name: &str) -> Result<Self, UnknownWatchRate> {
        match name {
            "light" => Ok(Self::Light),
            "full" => Ok(Self::Full),
            _ => Err(UnknownWatchRate(name.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rate_is_above_what_the_host_permits() {
        let root = tempfile::tempdir().unwrap();
        let rates = || {
            let config = SamplerConfig::default().with_permitted_rates(root.path());
            (config.rate_hz, config.burst_hz)
        };
        assert_eq!(rates(), (499, 1499));
        let folder = root.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&folder).unwrap();
        for (limit, expect) in [
            ("100000", (499, 1499)),
            ("1000", (499, 1000)),
            ("200", (200, 123)),
        ] {
            std::fs::write(
                folder.join("perf_event_max_sample_rate"),
                format!("{limit}\n"),
            )
            .unwrap();
            assert_eq!(rates(), expect);
        }
    }

    #[test]
    fn rings_shrink_as_pus_grow() {
        let config = SamplerConfig::default();
        let sizes = [1, 2, 64, 512].map(|pus| config.ring_bytes_per_pu(pus) >> 10);
        assert_eq!(sizes, [128, 128, 64, 32]);
    }

    #[test]
    fn names_are_parsed_and_shown() {
        for name in WatchRate::NAMES {
            assert_eq!(name.parse::<WatchRate>().unwrap().to_string(), name);
        }
        assert!("none".parse::<WatchRate>().is_err());
    }
}
