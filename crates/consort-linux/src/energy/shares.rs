//! Sharing the energy of an interval out among threads.

use crate::read;
use std::path::Path;

/// A rate at which the energy of an interval is shared out: by time on PUs, among all threads that
/// ran on the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnergyRate {
    j_per_ns: f64,
}

impl EnergyRate {
    /// Rate for `spent_j`, spent while all PUs together were busy for `host_busy_ns`. The time of
    /// managed threads, `managed_ns`, is the least that counts as busy: the kernel accounts for the
    /// host in steps of 10 ms only.
    ///
    /// `None` if nothing ran: such energy belongs to no thread.
    pub fn new(spent_j: f64, host_busy_ns: u64, managed_ns: f64) -> Option<Self> {
        let busy_ns = managed_ns.max(host_busy_ns as f64);
        (busy_ns > 0.0).then(|| Self {
            j_per_ns: spent_j / busy_ns,
        })
    }

    /// Energy of a thread that was on a PU for `cpu_ns`, J.
    pub fn energy_j(self, cpu_ns: f64) -> f64 {
        self.j_per_ns * cpu_ns
    }
}

/// Time that all PUs together were not idle since boot, ns, from the first line of `/proc/stat`
/// (`proc_stat(5)`): user, nice, system, irq, softirq and steal; guests are part of user.
pub(crate) fn host_busy_ns(root: &Path, tick_ns: u64) -> Option<u64> {
    let text = read::text(&root.join("proc/stat"))?;
    let mut fields = text.lines().next()?.split_ascii_whitespace();
    if fields.next()? != "cpu" {
        return None;
    }
    let numbers: Option<Vec<u64>> = fields.take(8).map(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal] = numbers?.try_into().ok()?;
    let busy = [user, nice, system, irq, softirq, steal].into_iter();
    let ticks = busy.fold(0, u64::saturating_add);
    Some(ticks.saturating_mul(tick_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn those_that_are_not_managed_have_their_share() {
        let shares = EnergyRate::new(8.0, 4_000, 1_000.0).unwrap();
        assert_eq!(shares.energy_j(1_000.0), 2.0);
    }

    #[test]
    fn energy_of_an_idle_host_is_nobodys() {
        assert_eq!(EnergyRate::new(8.0, 0, 0.0), None);
    }

    #[test]
    fn idle_and_iowait_are_not_busy() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let stat = root.path().join("proc/stat");
        std::fs::write(&stat, "cpu  1 2 4 800 900 8 16 32 1 0\ncpu0 0\n").unwrap();
        assert_eq!(host_busy_ns(root.path(), 10), Some(630));
        std::fs::write(&stat, "cpu  1 2 x\n").unwrap();
        assert_eq!(host_busy_ns(root.path(), 10), None);
    }

    proptest! {
        #[test]
        fn threads_never_have_more_than_was_spent(
            spent in 0.0f64..1e6,
            busy in 0u64..1 << 40,
            threads in prop::collection::vec(0.0f64..1e9, 1..20),
        ) {
            let managed: f64 = threads.iter().sum();
            if let Some(shares) = EnergyRate::new(spent, busy, managed) {
                let reported: f64 = threads.iter().map(|&ns| shares.energy_j(ns)).sum();
                prop_assert!(reported <= spent * (1.0 + 1e-9));
            }
        }
    }
}
