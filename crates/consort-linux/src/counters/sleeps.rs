//! Returns from blocking system calls, from the sleeps that a thread begins and its state at the
//! end of an interval.
//!
//! # The source
//!
//! The tracepoint `sched:sched_switch` fires in the context of the thread that leaves its PU.
//! Counted per thread where the thread's state is not "running" ([`BLOCKED`]) it is the exact
//! number of sleeps begun: voluntary switches, preemptions excluded. A sleep that has ended is a
//! sleep that was begun and is not under way, so
//!
//! > sleeps ended so far = sleeps begun so far − (1 if asleep now)
//!
//! and of the sleeps ended those within futex calls, which are counted on their own, are taken
//! off. One descriptor per thread, read with the group; whether the thread is asleep now is read
//! from `/proc` only if it has begun a sleep in the interval.
//!
//! # Error
//!
//! - Futex calls that did not sleep (wakes above all) are taken off too, so that the number of
//!   *other* returns is a lower bound in an interval in which the thread also called futex.
//!   Whether it returned from the kernel at all is exact: it did if either count is positive.
//! - A call that sleeps twice before it returns counts twice; waits for a page from disk count as
//!   calls; so does being stopped and continued.
//! - A sleep between the two reads is counted one interval late, never twice.

use crate::perf::PerfEventSpec;
use crate::proc::RunState;
use std::ffi::CStr;

/// Filter for the states that a thread reports while it sleeps, of `TASK_REPORT`
/// (include/linux/sched.h); that of a preempted thread is the next higher bit.
const BLOCKED: &CStr = c"prev_state & 255";

/// Restricts the tracepoint `sched:sched_switch` to switches of a thread that goes to sleep.
pub(super) fn filter_blocked_switches(sched_switch: PerfEventSpec) -> PerfEventSpec {
    sched_switch.with_filter(BLOCKED)
}

/// One thread's sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SleepCounter {
    begun: u64,
    ended: u64,
    asleep: bool,
}

impl SleepCounter {
    /// The sleeps of a thread that is seen for the first time.
    pub(crate) fn from_state(state: RunState) -> Self {
        let asleep = state != RunState::Runnable;
        Self {
            begun: u64::from(asleep),
            ended: 0,
            asleep,
        }
    }

    /// State of the thread at the end of an interval, where it can be inferred: true for runnable.
    /// A thread that has begun no sleep is awake if it ran, and asleep if it was asleep before and
    /// did not run. One that was woken but has not run yet seems asleep for that interval.
    pub(crate) fn infer_state(&self, begun: u64, ran: bool) -> Option<bool> {
        match (begun, ran, self.asleep) {
            (0, true, _) => Some(true),
            (0, false, true) => Some(false),
            _ => None,
        }
    }

    /// Takes an interval in; returns the number of sleeps that ended in it.
    pub(crate) fn add_interval(&mut self, begun: u64, runnable: bool) -> u64 {
        self.asleep = !runnable;
        self.begun += begun;
        let ended = self.begun.saturating_sub(u64::from(self.asleep));
        let now = ended.saturating_sub(self.ended);
        self.ended = self.ended.max(ended);
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn return_is_counted_when_sleep_ends() {
        let mut sleeps = SleepCounter::from_state(RunState::Runnable);
        assert_eq!(sleeps.add_interval(1, false), 0);
        assert_eq!(sleeps.add_interval(0, false), 0);
        assert_eq!(sleeps.add_interval(0, true), 1);
    }

    #[test]
    fn thread_found_asleep_returns_on_waking() {
        let mut sleeps = SleepCounter::from_state(RunState::Sleeping);
        assert_eq!(sleeps.add_interval(0, false), 0);
        assert_eq!(sleeps.add_interval(2, false), 2);
        assert_eq!(sleeps.add_interval(0, true), 1);
    }

    #[test]
    fn sleep_between_reads_is_counted_late_once() {
        let mut sleeps = SleepCounter::from_state(RunState::Runnable);
        // The counter was read before the sleep, the state after it.
        assert_eq!(sleeps.add_interval(0, false), 0);
        assert_eq!(sleeps.add_interval(1, true), 1);
    }

    #[test]
    fn what_follows_need_not_be_asked() {
        let awake = SleepCounter::from_state(RunState::Runnable);
        let asleep = SleepCounter::from_state(RunState::Sleeping);
        assert_eq!(awake.infer_state(0, true), Some(true));
        assert_eq!(asleep.infer_state(0, true), Some(true));
        assert_eq!(asleep.infer_state(0, false), Some(false));
        assert_eq!(asleep.infer_state(1, true), None);
        // It waits for a PU, or is gone.
        assert_eq!(awake.infer_state(0, false), None);
    }

    proptest! {
        #[test]
        fn in_the_end_every_sleep_that_is_over_was_counted_once(
            quanta in prop::collection::vec((0u64..4, any::<bool>()), 1..40), found_asleep: bool,
        ) {
            let state = if found_asleep { RunState::Sleeping } else { RunState::Runnable };
            let mut sleeps = SleepCounter::from_state(state);
            let mut begun = u64::from(found_asleep);
            let mut counted = 0;
            for (n, runnable) in quanta {
                // Who is asleep has begun a sleep.
                let runnable = runnable || begun + n == 0;
                counted += sleeps.add_interval(n, runnable);
                begun += n;
                let over = begun - u64::from(!runnable);
                prop_assert!(counted >= over && counted <= begun);
            }
        }
    }
}
