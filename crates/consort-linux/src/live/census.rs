//! The census of a run: which threads of its processes there are, told by records where there are
//! any, and by `/proc` when it is time to compare.

use crate::discovery::{Discovery, ProcError, ThreadEvent, Unmanageable};
use crate::sampling::Batch;
use consort_core::ThreadId;
use std::path::Path;
use std::time::{Duration, Instant};

/// Shortest time between two scans of `/proc` that only complete the records.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
/// Ratio of the time between scans to the time that one takes, so that crowds of processes cost no
/// more than a tenth of a percent of one PU.
const PAUSE_PER_SCAN: u32 = 1000;
/// The same where scans alone find new threads.
const PAUSE_PER_ONLY_SCAN: u32 = 20;

/// Threads that are there, found by records and scans.
pub(super) struct Census {
    discovery: Discovery,
    /// Time at which `/proc` is next compared with what records have told.
    next_scan: Instant,
    /// Number of threads that ended between being found and being taken in.
    gone_at_once: u64,
}

impl Census {
    /// A census of these processes and all that they start; the first scan is due.
    pub(super) fn new(root: &Path, pids: &[u32], now: Instant) -> Result<Self, ProcError> {
        Ok(Self {
            discovery: Discovery::new(root, pids)?,
            next_scan: now,
            gone_at_once: 0,
        })
    }

    /// Watches a process and all that it starts as well.
    pub(super) fn watch(&mut self, pid: u32) {
        self.discovery.watch(pid);
    }

    /// Watches a process that runs already: scans at the end of this quantum, and announces the
    /// threads of processes that are `lost` again.
    pub(super) fn search(&mut self, pid: u32, lost: impl Fn(u32) -> bool) {
        self.discovery.find_again(lost);
        self.discovery.watch(pid);
        self.next_scan = Instant::now();
    }

    /// Stops looking for a process in `/proc`.
    pub(super) fn unwatch(&mut self, pid: u32) {
        self.discovery.unwatch(pid);
    }

    /// Returns true if threads of this process are known.
    pub(super) fn knows(&self, pid: u32) -> bool {
        self.discovery.knows(pid)
    }

    /// The thread that has this tid now.
    pub(super) fn id_of(&self, tid: u32) -> Option<ThreadId> {
        self.discovery.id_of(tid)
    }

    /// Reason for which a process must be left alone, if it must; an error when it is gone.
    pub(super) fn unmanageable(&self, pid: u32) -> Result<Option<Unmanageable>, ProcError> {
        self.discovery.unmanageable(pid)
    }

    /// Takes records in; returns what has changed.
    pub(super) fn take_in(&mut self, batch: &Batch) -> Vec<ThreadEvent> {
        self.discovery.apply(batch)
    }

    /// Compares with `/proc` when it is time to; returns what has changed.
    pub(super) fn scan_if_due(&mut self, now: Instant) -> Option<Vec<ThreadEvent>> {
        (now >= self.next_scan).then(|| self.discovery.scan())
    }

    /// Sets the time of the next scan, after what the one that was `begun` has found was taken in.
    /// Scans come at every quantum where there are no records, unless that would take more than a
    /// twentieth of a PU, and now and then where there are.
    pub(super) fn scanned(&mut self, begun: Instant, has_records: bool) {
        let took = begun.elapsed();
        let pause = if has_records {
            LEAST_PAUSE.max(took * PAUSE_PER_SCAN)
        } else {
            took * PAUSE_PER_ONLY_SCAN
        };
        self.next_scan = begun + pause;
    }

    /// Counts a thread that ended before it was taken in.
    pub(super) fn count_gone(&mut self) {
        self.gone_at_once += 1;
    }

    /// Number of threads that ended before they could be looked at.
    pub(super) fn short_lived(&self) -> u64 {
        self.discovery.short_lived() + self.gone_at_once
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if a scan of this length puts the next one off by more than this, counted from
    /// its beginning.
    fn is_put_off(took: Duration, has_records: bool, by: Duration) -> bool {
        let begun = Instant::now().checked_sub(took).unwrap();
        let mut census = Census::new(Path::new("/"), &[], begun).unwrap();
        assert!(census.scan_if_due(begun).is_some());
        census.scanned(begun, has_records);
        census.scan_if_due(begun + by).is_none()
    }

    #[test]
    fn dear_scans_are_rare() {
        let took = Duration::from_millis(10);
        assert!(is_put_off(took, false, Duration::from_millis(199)));
        assert!(is_put_off(took, true, Duration::from_millis(9_999)));
    }

    #[test]
    fn scans_that_only_complete_records_are_a_second_apart() {
        let cheap = Duration::ZERO;
        assert!(is_put_off(cheap, true, Duration::from_millis(999)));
    }
}
