//! Energy of threads: their shares of the energy that the host spends.

use crate::energy::{EnergyRate, RaplMeter, host_busy_ns};
use crate::proc::tick_ns;
use consort_core::{Observation, Reading, Signal, ThreadObservation, Tier};
use std::path::{Path, PathBuf};

/// Tier of energy: the shares depend on the host's busy time in `/proc`, whatever tier a thread's
/// CPU time is of.
pub(in crate::live) const TIER: Tier = Tier::Proc;

/// Energy where it is metered.
#[derive(Debug)]
pub(super) struct EnergyObserver(Option<HostEnergyMeter>);

impl EnergyObserver {
    /// Opens the meters, if there are any to read.
    pub(super) fn open(root: &Path) -> Self {
        Self(HostEnergyMeter::open(root))
    }

    /// Adds each thread's energy to an observation; returns a warning, once, when it can no longer
    /// be read.
    pub(super) fn add(&mut self, seen: &mut Observation) -> Option<String> {
        if self.0.as_mut()?.add_shares(seen).is_none() {
            self.0 = None;
            return Some("energy can no longer be read".to_owned());
        }
        None
    }
}

/// The meters, with the busy time of all PUs since boot at the last reading, ns.
#[derive(Debug)]
struct HostEnergyMeter {
    root: PathBuf,
    meter: RaplMeter,
    busy_ns: u64,
}

impl HostEnergyMeter {
    /// Opens the meters; none where there are none to read.
    fn open(root: &Path) -> Option<Self> {
        Some(Self {
            meter: RaplMeter::open(root).ok()?,
            busy_ns: host_busy_ns(root, tick_ns())?,
            root: root.to_owned(),
        })
    }

    /// Gives each thread its share of the interval's energy; none when the meters are lost.
    fn add_shares(&mut self, seen: &mut Observation) -> Option<()> {
        let spent_j = self.meter.spent_j()?;
        let busy_ns = host_busy_ns(&self.root, tick_ns())?;
        let host_ns = busy_ns.saturating_sub(std::mem::replace(&mut self.busy_ns, busy_ns));
        let interval_ns = seen.interval_ns;
        let threads = || seen.threads.iter().chain(&seen.exited);
        let managed_ns = threads().map(|t| t.sample.cpu_time_ns()).sum();
        if let Some(shares) = EnergyRate::new(spent_j, host_ns, managed_ns) {
            let all = seen.threads.iter_mut().chain(&mut seen.exited);
            all.for_each(|thread| set_energy(thread, shares, interval_ns));
        }
        Some(())
    }
}

fn set_energy(thread: &mut ThreadObservation, shares: EnergyRate, interval_ns: u64) {
    if let Some(cpu_ns) = thread.sample.get(Signal::CpuTime) {
        let reading = Reading::fully_counted(shares.energy_j(cpu_ns), TIER, interval_ns);
        thread.sample.set(Signal::Energy, reading);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::{Sample, ThreadId};
    use std::fs;

    fn host(uj: u64, ticks: u64) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let zone = root.path().join("sys/class/powercap/intel-rapl:0");
        fs::create_dir_all(&zone).unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        fs::write(zone.join("name"), "package-0").unwrap();
        fs::write(zone.join("max_energy_range_uj"), "1000000000").unwrap();
        count(&root, uj, ticks);
        root
    }

    fn count(root: &tempfile::TempDir, uj: u64, ticks: u64) {
        let zone = root.path().join("sys/class/powercap/intel-rapl:0");
        fs::write(zone.join("energy_uj"), uj.to_string()).unwrap();
        let stat = format!("cpu {ticks} 0 0 5 5 0 0 0\n");
        fs::write(root.path().join("proc/stat"), stat).unwrap();
    }

    fn seen(cpu_ns: &[Option<f64>]) -> Observation {
        let thread = |(tid, &cpu_ns): (u32, &Option<f64>)| {
            let mut sample = Sample::default();
            if let Some(cpu_ns) = cpu_ns {
                sample.set(
                    Signal::CpuTime,
                    Reading::fully_counted(cpu_ns, Tier::Proc, 1),
                );
            }
            ThreadObservation {
                id: ThreadId {
                    pid: 1,
                    tid,
                    start_ticks: 0,
                },
                name: "x".into(),
                original: Default::default(),
                managed: true,
                last_pu: None,
                sample,
            }
        };
        Observation {
            interval_ns: 1,
            threads: (1..).zip(cpu_ns).map(thread).collect(),
            ..Observation::default()
        }
    }

    #[test]
    fn each_thread_has_its_share_by_time_on_pus() {
        let root = host(5_000_000, 100);
        let mut energy = HostEnergyMeter::open(root.path()).unwrap();
        // 4 J in 80 ms of all PUs.
        count(&root, 9_000_000, 100 + 80_000_000 / tick_ns());
        let mut seen = seen(&[Some(20e6), Some(0.0), None]);
        energy.add_shares(&mut seen).unwrap();
        let reported = seen.threads.iter().map(|t| t.sample.get(Signal::Energy));
        assert_eq!(reported.collect::<Vec<_>>(), [Some(1.0), Some(0.0), None]);
    }

    #[test]
    fn lost_meters_tell_nothing() {
        let root = host(5_000_000, 100);
        let mut energy = HostEnergyMeter::open(root.path()).unwrap();
        fs::remove_dir_all(root.path().join("sys")).unwrap();
        let mut seen = seen(&[Some(20e6)]);
        assert_eq!(energy.add_shares(&mut seen), None);
        assert_eq!(seen.threads[0].sample.get(Signal::Energy), None);
        assert!(HostEnergyMeter::open(root.path()).is_none());
    }
}
