//! Bounds on nudges: their number per second, and the windows in which a program could see a narrow
//! mask.
//!
//! Each window is measured, from before the first write of a nudge to after the second. Most take
//! microseconds. A few are longer, because Consort's thread was displaced between the two writes. So
//! each thread has an allowance of the time beyond two plain writes, and is not nudged while it has
//! used that up.

use consort_core::ThreadId;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Greatest share of its time for which nudges may keep a thread's mask narrow in the long run, plain
/// windows aside.
const MOST_NARROW: f64 = 0.001;
/// Time that is not charged to a thread's allowance: that of two writes in a row. The thread is being
/// moved meanwhile, so that it hardly ever runs, and policies with quanta of 4 ms need one a quantum.
const PLAIN: Duration = Duration::from_micros(10);
/// Time that a thread may be narrow at once, ns, if it was not nudged for long: enough for some
/// hundred nudges.
const ALLOWANCE_NS: f64 = 1e6;

/// Counts of windows over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WindowCounts {
    /// Number of windows.
    pub n: u64,
    /// Share of the time of threads with places for which their masks were narrow, 0 to 1; an upper
    /// bound. `None` before any time has passed.
    pub share: Option<f64>,
    /// Length of the longest window, us.
    pub longest_us: f64,
    /// Number of nudges that were put off because of a bound.
    pub put_off: u64,
}

/// Windows of a run, and what is left of each thread's allowance.
#[derive(Debug, Default)]
pub(crate) struct NudgeWindows {
    n: u64,
    narrow: Duration,
    longest: Duration,
    /// Time of all threads with places, added up, ns.
    placed_ns: f64,
    /// Time until which that was added, `CLOCK_MONOTONIC`, ns.
    until_ns: Option<u64>,
    allowances: BTreeMap<ThreadId, Allowance>,
}

#[derive(Clone, Copy, Debug)]
struct Allowance {
    /// Below 0 after a window that was longer than what was left.
    left_ns: f64,
    filled: Instant,
}

impl NudgeWindows {
    /// Returns true if a thread's mask may be narrowed again.
    pub(crate) fn may_narrow(&self, id: ThreadId, now: Instant) -> bool {
        let allowance = self.allowances.get(&id);
        allowance.is_none_or(|allowance| allowance.left_ns_at(now) >= 0.0)
    }

    /// Takes in a window that ended at `now`.
    pub(crate) fn add(&mut self, id: ThreadId, narrow: Duration, now: Instant) {
        self.n += 1;
        self.narrow += narrow;
        self.longest = self.longest.max(narrow);
        let allowance = self.allowances.entry(id).or_insert(Allowance {
            left_ns: ALLOWANCE_NS,
            filled: now,
        });
        *allowance = Allowance {
            left_ns: allowance.left_ns_at(now) - narrow.saturating_sub(PLAIN).as_nanos() as f64,
            filled: now,
        };
    }

    /// Notes that so many threads have had a place until `now_ns` (`CLOCK_MONOTONIC`).
    pub(crate) fn note_time_passed(&mut self, threads: usize, now_ns: u64) {
        let since_ns = self.until_ns.replace(now_ns).unwrap_or(now_ns);
        self.placed_ns += threads as f64 * now_ns.saturating_sub(since_ns) as f64;
    }

    /// Forgets a thread that has exited or was let go.
    pub(crate) fn forget(&mut self, id: ThreadId) {
        self.allowances.remove(&id);
    }

    /// Counts so far.
    pub(crate) fn counts(&self, put_off: u64) -> WindowCounts {
        let narrow_ns = self.narrow.as_nanos() as f64;
        WindowCounts {
            n: self.n,
            share: (self.placed_ns > 0.0).then(|| (narrow_ns / self.placed_ns).min(1.0)),
            longest_us: self.longest.as_nanos() as f64 / 1e3,
            put_off,
        }
    }
}

impl Allowance {
    fn left_ns_at(&self, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.filled);
        ALLOWANCE_NS.min(self.left_ns + MOST_NARROW * since.as_nanos() as f64)
    }
}

/// Most nudges per second. A nudge takes up to 50 us of Consort's time on a busy host
/// (docs/figures.md), so this many take at most five percent of one CPU.
pub(crate) const NUDGES_PER_S: f64 = 1_000.0;

/// Nudges that may be made now; refilled over time, never more than those of one second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NudgeBudget {
    left: f64,
    filled: Instant,
}

impl NudgeBudget {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            left: NUDGES_PER_S,
            filled: now,
        }
    }

    /// Takes one nudge out; returns false when none is left.
    pub(crate) fn take_nudge(&mut self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.filled);
        self.left = NUDGES_PER_S.min(self.left + NUDGES_PER_S * since.as_secs_f64());
        self.filled = now;
        let there = self.left >= 1.0;
        if there {
            self.left -= 1.0;
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    const THREAD: ThreadId = ThreadId {
        pid: 7,
        tid: 8,
        start_ticks: 1,
    };

    #[test]
    fn long_window_puts_off_the_next_ones() {
        let (mut windows, start) = (NudgeWindows::default(), Instant::now());
        assert!(windows.may_narrow(THREAD, start));
        windows.add(THREAD, Duration::from_millis(48), start);
        assert!(!windows.may_narrow(THREAD, start + Duration::from_secs(45)));
        assert!(windows.may_narrow(THREAD, start + Duration::from_secs(48)));
        windows.forget(THREAD);
        assert!(windows.may_narrow(THREAD, start));
    }

    #[test]
    fn plain_windows_never_put_off_the_next_ones() {
        let (mut windows, start) = (NudgeWindows::default(), Instant::now());
        for n in 0..10_000 {
            let now = start + n * Duration::from_millis(4);
            assert!(windows.may_narrow(THREAD, now));
            windows.add(THREAD, PLAIN, now);
        }
        assert_eq!(windows.counts(0).n, 10_000);
    }

    #[test]
    fn windows_count_against_time_of_all_threads() {
        let mut windows = NudgeWindows::default();
        assert_eq!(windows.counts(0).share, None);
        windows.note_time_passed(4, 1_000);
        windows.add(THREAD, Duration::from_micros(3), Instant::now());
        windows.add(THREAD, Duration::from_micros(1), Instant::now());
        windows.note_time_passed(4, 10_001_000);
        let counts = windows.counts(5);
        assert_eq!((counts.n, counts.longest_us, counts.put_off), (2, 3.0, 5));
        assert_eq!(counts.share, Some(1e-4));
    }

    proptest! {
        #[test]
        fn no_thread_is_narrow_for_longer_than_its_allowance(
            tries in prop::collection::vec((0u64..20_000, 1u64..3_000), 1..200),
        ) {
            let (mut windows, start) = (NudgeWindows::default(), Instant::now());
            let (mut now, mut narrow, mut longest) = (start, Duration::ZERO, Duration::ZERO);
            for (gap_us, window_us) in tries {
                now += Duration::from_micros(gap_us);
                if windows.may_narrow(THREAD, now) {
                    let window = Duration::from_micros(window_us);
                    windows.add(THREAD, window, now);
                    narrow += window.saturating_sub(PLAIN);
                    longest = longest.max(window);
                }
            }
            let elapsed_ns = (now - start).as_nanos() as f64;
            let most_ns = ALLOWANCE_NS + MOST_NARROW * elapsed_ns + longest.as_nanos() as f64;
            prop_assert!(narrow.as_nanos() as f64 <= most_ns + 1.0);
        }
    }

    #[test]
    fn nudges_per_second_stay_within_the_bound() {
        let start = Instant::now();
        let mut budget = NudgeBudget::new(start);
        let made = |budget: &mut NudgeBudget, ms: u64| {
            let now = start + Duration::from_millis(ms);
            (0..10_000).filter(|_| budget.take_nudge(now)).count()
        };
        assert_eq!(made(&mut budget, 0), 1_000);
        assert_eq!(made(&mut budget, 0), 0);
        assert_eq!(made(&mut budget, 250), 250);
        assert_eq!(made(&mut budget, 60_000), 1_000);
    }
}
