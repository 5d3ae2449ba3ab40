//! Idle time of the usable PUs, which shows whether there is room for threads that wait.

use crate::proc::tick_ns;
use crate::read;
use consort_core::{PuId, PuSet};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Least time between two readings: the kernel counts in ticks of 10 ms, and on large machines the
/// file takes milliseconds.
const READ_EVERY: Duration = Duration::from_millis(900);

/// Idle time of PUs since boot, in ticks, as it was read last.
#[derive(Debug)]
pub(super) struct IdleTime {
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
    /// Idle time of these PUs over about the last second, in PUs; `None` before the second reading,
    /// or if the kernel shows none of them, as in containers with a view of their own.
    pub(super) fn idle_pus(&mut self, root: &Path, pus: &PuSet, now: Instant) -> Option<f64> {
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

/// Idle ticks of each PU, those with waiting for input and output too, from `/proc/stat`
/// (`proc_stat(5)`).
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

    fn host(idle: [u64; 2]) -> String {
        let [a, b] = idle;
        format!(
            "cpu  9 9 9 99 9 0 0 0 0 0\ncpu0 5 0 5 {a} 10 0 0 0 0 0\n\
             cpu1 5 0 5 {b} 0 0 0 0 0 0\nintr 5\n"
        )
    }

    #[test]
    fn idle_time_of_usable_pus_is_summed_over_a_second() {
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
