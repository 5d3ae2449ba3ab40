//! The search for the threads of a run: by records if the kernel writes any, and by scans of `/proc`,
//! which also complete the records.

use crate::discovery::{ProcError, ThreadEvent, ThreadTracker};
use crate::proc::latest_number;
use crate::sampling::WatchRate;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Shortest time between two scans of `/proc` that only complete the records, and longest time between
/// two while the number of the host's latest thread stays the same.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
/// Ratio of that time under [`WatchRate::Light`] to the usual one.
const LIGHT_PAUSES: u32 = 5;
/// Ratio of the time between scans to the time that one takes, so that crowds of processes cost no
/// more than a tenth of a percent of one CPU.
const PAUSE_PER_SCAN: u32 = 1000;
/// The same if scans alone find new threads.
const PAUSE_PER_ONLY_SCAN: u32 = 20;

/// Threads that are there, found by records and scans.
pub(super) struct ThreadScan {
    pub(super) tracker: ThreadTracker,
    root: PathBuf,
    /// Time at which `/proc` is next compared with the records.
    next_scan: Instant,
    /// Time from which it is compared even if no thread has begun.
    overdue: Instant,
    /// Number of the host's latest thread before the last scan; `None` if the next one is to look
    /// whatever that number is.
    latest: Option<u32>,
    /// Shortest time between two scans that only complete the records.
    least_pause: Duration,
    /// Number of threads that ended between being found and being taken in.
    pub(super) gone_at_once: u64,
}

impl ThreadScan {
    /// Searches for the threads of these processes and of all that they start; the first scan is due.
    pub(super) fn new(root: &Path, pids: &[u32], now: Instant) -> Result<Self, ProcError> {
        Ok(Self {
            tracker: ThreadTracker::new(root, pids)?,
            root: root.to_owned(),
            next_scan: now,
            overdue: now,
            latest: None,
            least_pause: LEAST_PAUSE,
            gone_at_once: 0,
        })
    }

    /// Scans at the pace of this rate from now on.
    pub(super) fn set_watch(&mut self, watch: WatchRate) {
        self.least_pause = match watch {
            WatchRate::Full => LEAST_PAUSE,
            WatchRate::Light => LEAST_PAUSE * LIGHT_PAUSES,
        };
    }

    /// Watches a process and all that it starts as well.
    pub(super) fn watch(&mut self, pid: u32) {
        self.tracker.watch(pid);
        self.latest = None;
    }

    /// Watches a process that runs already: scans at the end of this quantum, and announces the
    /// threads of processes that are `lost` again.
    pub(super) fn search(&mut self, pid: u32, lost: impl Fn(u32) -> bool) {
        self.tracker.forget_processes(lost);
        self.watch(pid);
        self.next_scan = Instant::now();
    }

    /// Announces all threads of these processes again, at the end of this quantum.
    pub(super) fn find_again(&mut self, pids: &BTreeSet<u32>) {
        self.tracker.forget_processes(|pid| pids.contains(&pid));
        self.latest = None;
        self.next_scan = Instant::now();
    }

    /// Compares with `/proc` when it is time to; returns what has changed.
    pub(super) fn scan_if_due(&mut self, now: Instant) -> Option<Vec<ThreadEvent>> {
        if now < self.next_scan {
            return None;
        }
        let latest = latest_number(&self.root);
        // The kernel gives numbers in order, so an unchanged one means that no thread has begun.
        if now < self.overdue && latest.is_some() && latest == self.latest {
            return None;
        }
        self.latest = latest;
        Some(self.tracker.scan())
    }

    /// Has the next scan look even if no thread has begun, as one was found to be gone.
    pub(super) fn note_missed_exit(&mut self) {
        self.latest = None;
    }

    /// Sets the time of the next scan, after what the one that was `begun` has found was taken in.
    /// Scans come at every quantum in which some thread of the host has begun where there are no
    /// records, unless that would take more than a twentieth of a CPU, and now and then where there
    /// are.
    pub(super) fn schedule_next_scan(&mut self, begun: Instant, has_records: bool) {
        let took = begun.elapsed();
        let pause = if has_records {
            self.least_pause.max(took * PAUSE_PER_SCAN)
        } else {
            took * PAUSE_PER_ONLY_SCAN
        };
        self.next_scan = begun + pause;
        self.overdue = begun + self.least_pause;
    }

    /// Number of threads that ended before they could be looked at.
    pub(super) fn short_lived(&self) -> u64 {
        self.tracker.short_lived_count() + self.gone_at_once
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::process;

    /// Returns true if a scan of this length puts the next one off by more than this, counted from
    /// its beginning.
    fn is_put_off(took: Duration, has_records: bool, by: Duration) -> bool {
        let begun = Instant::now().checked_sub(took).unwrap();
        let mut scan = ThreadScan::new(Path::new("/"), &[], begun).unwrap();
        assert!(scan.scan_if_due(begun).is_some());
        scan.schedule_next_scan(begun, has_records);
        scan.scan_if_due(begun + by).is_none()
    }

    #[test]
    fn dear_scans_are_rare() {
        let took = Duration::from_millis(10);
        assert!(is_put_off(took, false, Duration::from_millis(199)));
        assert!(is_put_off(took, true, Duration::from_millis(9_999)));
    }

    #[test]
    fn scan_waits_for_new_thread_or_a_second() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 10, 1, &[(10, "x", 1)]);
        let own = dir.path().join("proc/self");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(
            own.join("status"),
            "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000800000\n",
        )
        .unwrap();
        let latest = |number: u32| {
            let text = format!("0.00 0.00 0.00 1/1 {number}\n");
            std::fs::write(dir.path().join("proc/loadavg"), text).unwrap();
        };
        latest(10);
        let begun = Instant::now();
        let mut scan = ThreadScan::new(dir.path(), &[10], begun).unwrap();
        let found = |after_ms: u64, scan: &mut ThreadScan| {
            let now = begun + Duration::from_millis(after_ms);
            let events = scan.scan_if_due(now);
            if events.is_some() {
                scan.next_scan = now;
                scan.overdue = now + LEAST_PAUSE;
            }
            events.map(|events| events.len())
        };
        assert_eq!(found(0, &mut scan), Some(1));
        // One that comes without a number of its own, as threads that are restored do.
        process(dir.path(), 11, 10, &[(11, "y", 1)]);
        assert_eq!(found(500, &mut scan), None);
        assert_eq!(found(1000, &mut scan), Some(1));
        latest(12);
        assert_eq!(found(1100, &mut scan), Some(0));
        scan.note_missed_exit();
        assert_eq!(found(1200, &mut scan), Some(0));
        assert_eq!(found(1300, &mut scan), None);
        std::fs::remove_file(dir.path().join("proc/loadavg")).unwrap();
        assert_eq!(found(1400, &mut scan), Some(0));
        assert_eq!(found(1500, &mut scan), Some(0));
    }

    #[test]
    fn light_watching_scans_five_times_less() {
        let begun = Instant::now();
        let mut scan = ThreadScan::new(Path::new("/"), &[], begun).unwrap();
        scan.set_watch(WatchRate::Light);
        assert!(scan.scan_if_due(begun).is_some());
        scan.schedule_next_scan(begun, true);
        assert!(scan.scan_if_due(begun + Duration::from_secs(4)).is_none());
        assert!(scan.scan_if_due(begun + Duration::from_secs(60)).is_some());
    }

    #[test]
    fn scans_with_records_are_a_second_apart() {
        let cheap = Duration::ZERO;
        assert!(is_put_off(cheap, true, Duration::from_millis(999)));
    }
}
