//! The energy meters of a host, read together: energy spent since the last reading.

use super::zones::{Zone, read_uj, zones};
use std::path::Path;

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

    /// Energy spent since the last call, or since [`open`](Self::open), J; none when a meter can no
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

#[cfg(test)]
mod tests {
    use super::super::zones::tests::host;
    use super::*;
    use proptest::prelude::*;

    fn count(root: &Path, id: &str, uj: u64) {
        let path = root.join(format!("sys/class/powercap/{id}/energy_uj"));
        std::fs::write(path, uj.to_string()).unwrap();
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
    fn a_meter_that_ran_over_is_no_loss() {
        let root = host(&[("intel-rapl:0", "package-0", 8_000_000, 9_000_000)]);
        let mut meter = RaplMeter::open(root.path()).unwrap();
        count(root.path(), "intel-rapl:0", 2_000_000);
        assert_eq!(meter.spent_j(), Some(3.0));
    }

    #[test]
    fn a_meter_that_has_gone_tells_nothing_rather_than_zero() {
        let root = host(&[("intel-rapl:0", "package-0", 8, 9)]);
        let mut meter = RaplMeter::open(root.path()).unwrap();
        std::fs::remove_dir_all(root.path().join("sys")).unwrap();
        assert_eq!(meter.spent_j(), None);
    }

    proptest! {
        #[test]
        fn whatever_was_spent_within_one_range_is_told(
            range in 1u64..1 << 40,
            start: u64,
            spent: u64,
        ) {
            let (before, spent) = (start % range, spent % range);
            prop_assert_eq!(count_difference(before, (before + spent) % range, range), spent);
        }
    }
}
