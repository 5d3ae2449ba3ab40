//! Meters of the whole host: its energy, which is shared out among threads, and the idle time of its
//! CPUs, which shows whether there is room for threads that wait.

use crate::energy::{EnergyRate, RaplMeter, host_busy_ns};
use crate::proc::tick_ns;
use crate::read;
use consort_core::{Observation, PuId, PuSet, Reading, Signal, Tier};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Tier of energy: the shares depend on the host's busy time in `/proc`, whatever tier a thread's
/// CPU time is of.
pub(in crate::live) const TIER: Tier = Tier::Proc;

/// The energy meters, with the busy time of all CPUs since boot at the last reading, ns.
#[derive(Debug)]
pub(in crate::live) struct HostEnergyMeter {
    root: PathBuf,
    meter: RaplMeter,
    busy_ns: u64,
}

impl HostEnergyMeter {
    /// Opens the meters; `None` if there are none that can be read.
    pub(super) fn open(root: &Path) -> Option<Self> {
        Some(Self {
            meter: RaplMeter::open(root).ok()?,
            busy_ns: host_busy_ns(root, tick_ns())?,
            root: root.to_owned(),
        })
    }

    /// Gives each thread its share of the interval's energy; `None` if the meters cannot be read any
    /// more.
    pub(in crate::live) fn add_shares(&mut self, seen: &mut Observation) -> Option<()> {
        let spent_j = self.meter.spent_j()?;
        let busy_ns = host_busy_ns(&self.root, tick_ns())?;
        let host_ns = busy_ns.saturating_sub(std::mem::replace(&mut self.busy_ns, busy_ns));
        let interval_ns = seen.interval_ns;
        // Threads that have exited have used energy, too.
        let threads = || seen.threads.iter().chain(&seen.exited);
        let managed_ns = threads().map(|t| t.sample.cpu_time_ns()).sum();
        if let Some(shares) = EnergyRate::new(spent_j, host_ns, managed_ns) {
            let all = seen.threads.iter_mut().chain(&mut seen.exited);
            for thread in all {
                if let Some(cpu_ns) = thread.sample.get(Signal::CpuTime) {
                    let energy_j = shares.energy_j(cpu_ns);
                    let reading = Reading::fully_counted(energy_j, TIER, interval_ns);
                    thread.sample.set(Signal::Energy, reading);
                }
            }
        }
        Some(())
    }
}

/// Least time between two readings: the kernel counts in ticks of 10 ms, and on large machines the
/// file takes milliseconds.
const READ_EVERY: Duration = Duration::from_millis(900);

/// Idle time of CPUs since boot, in ticks, as it was read last.
#[derive(Debug)]
pub(in crate::live) struct IdleTime {
    tick_ns: u64,
    last: Option<(Instant, BTreeMap<PuId, u64>)>,
    idle_pus: Option<f64>,
}

impl Default for IdleTime {
    fn default() -> Self {
        Self {
            tick_ns: tick_ns(),
            last: None,
            idle_pus: None,
        }
    }
}

impl IdleTime {
    /// Idle time of these CPUs over about the last second, in CPUs; `None` before the second
    /// reading, or if the kernel shows none of them, as in containers with a view of their own.
    pub(in crate::live) fn idle_pus(
        &mut self,
        root: &Path,
        pus: &PuSet,
        now: Instant,
    ) -> Option<f64> {
        let is_due = |(read, _): &(Instant, _)| now.duration_since(*read) >= READ_EVERY;
        if self.last.as_ref().is_none_or(is_due) {
            self.idle_pus = self.read(root, pus, now);
        }
        self.idle_pus
    }

    fn read(&mut self, root: &Path, pus: &PuSet, now: Instant) -> Option<f64> {
        let text = read::text(&root.join("proc/stat"));
        let ticks: BTreeMap<PuId, u64> = text.iter().flat_map(|text| idle_ticks(text)).collect();
        let (before, earlier) = self.last.replace((now, ticks.clone()))?;
        let idle = pus.iter().map(|pu| {
            let (now, earlier) = (ticks.get(&pu)?, earlier.get(&pu)?);
            // The kernel's counts can fall by a tick (proc_stat(5), "iowait").
            Some(now.saturating_sub(*earlier))
        });
        let idle_ticks = idle.sum::<Option<u64>>()?;
        let length_ns = now.duration_since(before).as_nanos() as f64;
        Some(idle_ticks as f64 * self.tick_ns as f64 / length_ns)
    }
}

/// Idle ticks of each CPU, including ticks in which a thread waited for input or output, from
/// `/proc/stat` (`proc_stat(5)`).
fn idle_ticks(text: &str) -> impl Iterator<Item = (PuId, u64)> + '_ {
    text.lines().filter_map(|line| {
        let mut fields = line.strip_prefix("cpu")?.split(' ');
        let pu = PuId(fields.next()?.parse().ok()?);
        let numbers: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
        Some((pu, numbers.get(3)? + numbers.get(4).unwrap_or(&0)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::{Sample, ThreadId, ThreadObservation};
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
    fn energy_is_shared_by_cpu_time() {
        let root = host(5_000_000, 100);
        let mut energy = HostEnergyMeter::open(root.path()).unwrap();
        // 4 J in 80 ms of all CPUs.
        count(&root, 9_000_000, 100 + 80_000_000 / tick_ns());
        let mut seen = seen(&[Some(20e6), Some(0.0), None]);
        energy.add_shares(&mut seen).unwrap();
        let reported = seen.threads.iter().map(|t| t.sample.get(Signal::Energy));
        assert_eq!(reported.collect::<Vec<_>>(), [Some(1.0), Some(0.0), None]);
    }

    #[test]
    fn lost_meters_set_no_energy() {
        let root = host(5_000_000, 100);
        let mut energy = HostEnergyMeter::open(root.path()).unwrap();
        fs::remove_dir_all(root.path().join("sys")).unwrap();
        let mut seen = seen(&[Some(20e6)]);
        assert_eq!(energy.add_shares(&mut seen), None);
        assert_eq!(seen.threads[0].sample.get(Signal::Energy), None);
        assert!(HostEnergyMeter::open(root.path()).is_none());
    }
}

#[cfg(test)]
mod idle_tests {
    use super::*;

    fn host(idle: [u64; 2]) -> String {
        let [a, b] = idle;
        format!(
            "cpu  9 9 9 99 9 0 0 0 0 0\ncpu0 5 0 5 {a} 10 0 0 0 0 0\n\
             cpu1 5 0 5 {b} 0 0 0 0 0 0\nintr 5\n"
        )
    }

    #[test]
    fn idle_time_is_summed_over_a_second() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let set = |idle| std::fs::write(root.path().join("proc/stat"), host(idle)).unwrap();
        let mut idle = IdleTime {
            tick_ns: 10_000_000,
            ..IdleTime::default()
        };
        let (begin, both) = (Instant::now(), "0-1".parse().unwrap());
        set([100, 100]);
        assert_eq!(idle.idle_pus(root.path(), &both, begin), None);
        set([150, 200]);
        let soon = begin + Duration::from_millis(500);
        assert_eq!(
            idle.idle_pus(root.path(), &both, soon),
            None,
            "not read again"
        );
        let later = begin + Duration::from_secs(1);
        assert_eq!(idle.idle_pus(root.path(), &both, later), Some(1.5));
        set([160, 300]);
        let one = "0".parse().unwrap();
        assert_eq!(
            idle.idle_pus(root.path(), &one, later + Duration::from_secs(1)),
            Some(0.1)
        );
        let hidden = "0,7".parse().unwrap();
        assert_eq!(
            idle.idle_pus(root.path(), &hidden, later + Duration::from_secs(3)),
            None
        );
    }
}
