//! Energy as the processor's RAPL meters show it, and the share of each thread.
//!
//! The signal [`Energy`](consort_core::Signal::Energy) exists on hosts with RAPL (Intel Software
//! Developer's Manual volume 3B, section 15.10; AMD has the same meters since family 17h), as Linux
//! shows them in `/sys/class/powercap` (Linux `Documentation/power/powercap/powercap.rst`).
//!
//! [`probe`] finds the meters, [`RaplMeter::open`] opens them, and [`RaplMeter::spent_j`] returns the
//! energy spent since the last call. [`EnergyRate`] divides that among threads by time on CPUs.
//!
//! Pitfalls: meters are per package, so a thread's energy is a share by time on CPUs and not a
//! measurement: a thread that works hard and one that waits for memory get the same. A counter that
//! wraps around more than once between two readings shows too little; how soon that can happen
//! depends on its range (about a minute on some processors at full power). Since Linux 5.10 only
//! root may read the counters, because they leak secrets (CVE-2020-8694).

use crate::read;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// One RAPL meter, which the kernel calls a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Zone {
    /// File with the energy counted so far, µJ.
    pub counter: PathBuf,
    /// Largest count, µJ, after which the counter begins at zero again.
    pub range_uj: u64,
    /// The metered part of the machine, as the kernel names it: `package-0`, `dram`.
    pub name: String,
}

/// Availability of the energy signal on a host, as `consort probe` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnergyStatus {
    /// True if there is a package's meter and all meters can be read.
    pub available: bool,
    /// The metered parts, or the obstacle to reading them.
    pub reason: String,
}

/// Looks for readable meters on the host below `root`.
pub fn probe(root: &Path) -> EnergyStatus {
    let found = zones(root);
    let reason = match &found {
        Ok(zones) => {
            let names: Vec<&str> = zones.iter().map(|zone| zone.name.as_str()).collect();
            format!("RAPL meters {}", names.join(", "))
        }
        Err(why) => why.clone(),
    };
    EnergyStatus {
        available: found.is_ok(),
        reason,
    }
}

/// Meters of every package, and of memory where it is metered apart from its package. Cores and
/// uncore are parts of their package, and packages are parts of `psys`: they would count twice. So
/// would `intel-rapl-mmio`, a second interface to the same meters.
fn zones(root: &Path) -> Result<Vec<Zone>, String> {
    let dir = root.join("sys/class/powercap");
    let Ok(entries) = fs::read_dir(&dir) else {
        return Err("no /sys/class/powercap: the processor or the hypervisor has no RAPL".into());
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut zones = Vec::new();
    for path in paths {
        let file_name = path.file_name().and_then(|name| name.to_str());
        if !file_name.is_some_and(|name| name.starts_with("intel-rapl:")) {
            continue;
        }
        let Some(name) = read::text(&path.join("name")) else {
            continue;
        };
        if name.starts_with("package") || name == "dram" {
            let (counter, range) = (path.join("energy_uj"), path.join("max_energy_range_uj"));
            read_uj(&counter).map_err(|e| refusal(&counter, &e))?;
            zones.push(Zone {
                counter,
                range_uj: read_uj(&range).map_err(|e| refusal(&range, &e))?,
                name,
            });
        }
    }
    if zones.iter().any(|zone| zone.name.starts_with("package")) {
        return Ok(zones);
    }
    Err("/sys/class/powercap has no RAPL meter of a package".into())
}

fn read_uj(path: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(path)?;
    let number = text.trim().parse();
    number.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not a number"))
}

fn refusal(path: &Path, error: &io::Error) -> String {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "; only root may, since Linux 5.10",
        _ => "",
    };
    format!("{} cannot be read: {error}{hint}", path.display())
}

const UJ_PER_J: f64 = 1e6;

/// The meters of a host, each with its count at the last reading, µJ.
#[derive(Debug)]
pub struct RaplMeter {
    zones: Vec<(Zone, u64)>,
}

impl RaplMeter {
    /// Opens the meters of the host below `root` and reads them once.
    ///
    /// # Errors
    /// When the host has no meter of a package, or one that cannot be read; the text names it.
    pub fn open(root: &Path) -> Result<Self, String> {
        let read = |zone: Zone| {
            let count = read_uj(&zone.counter).map_err(|e| e.to_string())?;
            Ok((zone, count))
        };
        let zones = zones(root)?.into_iter().map(read);
        Ok(Self {
            zones: zones.collect::<Result<_, String>>()?,
        })
    }

    /// Energy spent since the last call, or since [`open`](Self::open), J; `None` if a meter can no
    /// longer be read.
    pub fn spent_j(&mut self) -> Option<f64> {
        let mut spent_uj = 0;
        for (zone, before) in &mut self.zones {
            let now = read_uj(&zone.counter).ok()?;
            spent_uj += count_difference(*before, now, zone.range_uj);
            *before = now;
        }
        Some(spent_uj as f64 / UJ_PER_J)
    }
}

/// Energy counted between two readings of a meter, µJ; right if the counter wrapped around at most
/// once in between.
fn count_difference(before: u64, now: u64, range_uj: u64) -> u64 {
    if now >= before {
        now - before
    } else {
        range_uj.saturating_sub(before) + now
    }
}

/// A rate at which the energy of an interval is shared out: by time on CPUs, among all threads that
/// ran on the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnergyRate {
    j_per_ns: f64,
}

impl EnergyRate {
    /// Rate for `spent_j`, spent while all CPUs together were busy for `host_busy_ns`. The time of
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

    /// Energy of a thread that was on a CPU for `cpu_ns`, J.
    pub fn energy_j(self, cpu_ns: f64) -> f64 {
        self.j_per_ns * cpu_ns
    }
}

/// Time that all CPUs together were not idle since boot, ns, from the first line of `/proc/stat`
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

    /// Puts meters, each with its count and range in µJ, into a made-up `/sys`.
    fn host(zones: &[(&str, &str, u64, u64)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (id, name, count, range) in zones {
            let dir = root.path().join("sys/class/powercap").join(id);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("name"), format!("{name}\n")).unwrap();
            fs::write(dir.join("energy_uj"), format!("{count}\n")).unwrap();
            fs::write(dir.join("max_energy_range_uj"), format!("{range}\n")).unwrap();
        }
        root
    }

    #[test]
    fn packages_and_memory_are_metered_once() {
        let root = host(&[
            ("intel-rapl:0", "package-0", 5, 100),
            ("intel-rapl:0:0", "core", 3, 100),
            ("intel-rapl:0:1", "dram", 2, 100),
            ("intel-rapl:1", "psys", 9, 100),
            ("intel-rapl-mmio:0", "package-0", 5, 100),
        ]);
        let status = probe(root.path());
        assert_eq!(
            (status.available, status.reason.as_str()),
            (true, "RAPL meters package-0, dram")
        );
    }

    #[test]
    fn missing_meters_are_the_reason() {
        let none = tempfile::tempdir().unwrap();
        assert!(probe(none.path()).reason.contains("no RAPL"));
        let status = probe(host(&[("intel-rapl:0", "psys", 1, 2)]).path());
        assert!(!status.available);
        assert!(status.reason.contains("no RAPL meter of a package"));
    }

    #[test]
    fn a_meter_that_cannot_be_read_is_named() {
        let root = host(&[("intel-rapl:0", "package-0", 1, 2)]);
        let counter = root
            .path()
            .join("sys/class/powercap/intel-rapl:0/energy_uj");
        fs::write(&counter, "x").unwrap();
        let reason = probe(root.path()).reason;
        assert!(
            reason.ends_with("energy_uj cannot be read: not a number"),
            "{reason}"
        );
        fs::remove_file(&counter).unwrap();
        assert!(probe(root.path()).reason.contains("cannot be read"));
    }

    #[test]
    fn permission_error_names_root() {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let text = refusal(Path::new("/energy_uj"), &denied);
        assert_eq!(
            text,
            "/energy_uj cannot be read: permission denied; only root may, since Linux 5.10"
        );
    }

    fn count(root: &Path, id: &str, uj: u64) {
        let path = root.join(format!("sys/class/powercap/{id}/energy_uj"));
        fs::write(path, uj.to_string()).unwrap();
    }

    #[test]
    fn packages_and_memory_add_up() {
        let root = host(&[
            ("intel-rapl:0", "package-0", 1_000_000, 9_000_000),
            ("intel-rapl:0:1", "dram", 500_000, 9_000_000),
        ]);
        let mut meter = RaplMeter::open(root.path()).unwrap();
        assert_eq!(meter.spent_j(), Some(0.0));
        count(root.path(), "intel-rapl:0", 3_000_000);
        count(root.path(), "intel-rapl:0:1", 750_000);
        assert_eq!(meter.spent_j(), Some(2.25));
        assert_eq!(meter.spent_j(), Some(0.0));
    }

    #[test]
    fn wrapped_meter_loses_nothing() {
        let root = host(&[("intel-rapl:0", "package-0", 8_000_000, 9_000_000)]);
        let mut meter = RaplMeter::open(root.path()).unwrap();
        count(root.path(), "intel-rapl:0", 2_000_000);
        assert_eq!(meter.spent_j(), Some(3.0));
    }

    #[test]
    fn removed_meter_gives_none_not_zero() {
        let root = host(&[("intel-rapl:0", "package-0", 8, 9)]);
        let mut meter = RaplMeter::open(root.path()).unwrap();
        fs::remove_dir_all(root.path().join("sys")).unwrap();
        assert_eq!(meter.spent_j(), None);
    }

    proptest! {
        #[test]
        fn energy_within_one_range_is_exact(
            range in 1u64..1 << 40,
            start: u64,
            spent: u64,
        ) {
            let (before, spent) = (start % range, spent % range);
            prop_assert_eq!(count_difference(before, (before + spent) % range, range), spent);
        }
    }
}

#[cfg(test)]
mod shares_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn those_that_are_not_managed_have_their_share() {
        let shares = EnergyRate::new(8.0, 4_000, 1_000.0).unwrap();
        assert_eq!(shares.energy_j(1_000.0), 2.0);
    }

    #[test]
    fn energy_of_idle_host_is_not_shared() {
        assert_eq!(EnergyRate::new(8.0, 0, 0.0), None);
    }

    #[test]
    fn idle_and_iowait_are_not_busy() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        let stat = root.path().join("proc/stat");
        fs::write(&stat, "cpu  1 2 4 800 900 8 16 32 1 0\ncpu0 0\n").unwrap();
        assert_eq!(host_busy_ns(root.path(), 10), Some(630));
        fs::write(&stat, "cpu  1 2 x\n").unwrap();
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
