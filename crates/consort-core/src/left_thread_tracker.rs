//! Threads that no place can help, so that policies which place by activity leave them to the
//! operating system.
//!
//! A thread that sleeps often and runs briefly, for example in a server, gets its CPU anew at each
//! wake-up, from a kernel that knows which CPU is idle at that moment. A place in a plan is as old
//! as the quantum and can only make it wait. A thread that is throttled by its control group does
//! not run on any CPU.

use crate::ids::ThreadId;
use crate::sample::LeaveReason;
use crate::sample::{Observation, ThreadObservation};
use crate::signal::Signal;
use std::collections::BTreeMap;

/// Mean time on a CPU between two switches below which a thread that sleeps runs briefly, ns. The
/// default slice of Linux' fair scheduler is about 3 ms, so a thread that uses up its slices is
/// above unless others preempt it.
const BRIEF_BELOW_NS: f64 = 2e6;
/// Mean time on a CPU from which a thread no longer runs briefly, ns. It is above the first bound
/// so that a thread near the bound does not come and go.
const LONG_FROM_NS: f64 = 2.0 * BRIEF_BELOW_NS;
/// Share of the time that a thread runs or waits below which it counts as sleeping. Without this
/// condition a busy thread that others preempt often would look brief.
const SLEEPS_BELOW: f64 = 0.9;
/// Share from which a thread no longer counts as sleeping.
const AWAKE_FROM: f64 = 0.97;
/// Consecutive intervals that a thread must run long, or not sleep, before it may be placed again.
const AGAIN_AFTER: u32 = 3;

/// Remembers the threads that are left to the operating system.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftThreadTracker {
    /// Threads that run briefly: mean time on a CPU, ms, and intervals since they last did.
    brief: BTreeMap<ThreadId, (f64, u32)>,
}

impl LeftThreadTracker {
    /// Adds the threads that are left, with the reasons, to an observation.
    pub(crate) fn mark(&mut self, seen: &mut Observation) {
        self.brief.retain(|&id, _| seen.thread(id).is_some());
        for thread in &seen.threads {
            self.follow(seen, thread);
        }
        let brief = self.brief.iter();
        seen.left = brief
            .map(|(&id, &(ms, _))| (id, LeaveReason::Brief(ms)))
            .collect();
        let throttled = seen.throttled.iter();
        seen.left.extend(
            throttled.map(|(&id, throttle)| (id, LeaveReason::Throttled(throttle.clone()))),
        );
    }

    /// Updates a thread's state. An interval without a measurement changes nothing.
    fn follow(&mut self, seen: &Observation, thread: &ThreadObservation) {
        let Some(runs) = thread.sample.get(Signal::Runs).filter(|&runs| runs > 0.0) else {
            return;
        };
        let run_ns = thread.sample.cpu_time_ns() / runs;
        let wanted = seen.wanted_share(thread);
        if run_ns < BRIEF_BELOW_NS && wanted < SLEEPS_BELOW {
            self.brief.insert(thread.id, (run_ns / 1e6, 0));
            return;
        }
        if run_ns < LONG_FROM_NS && wanted < AWAKE_FROM {
            return;
        }
        if let Some((_, since)) = self.brief.get_mut(&thread.id) {
            *since += 1;
            if *since >= AGAIN_AFTER {
                self.brief.remove(&thread.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Reading;
    use crate::sample::Throttle;
    use crate::signal::Tier;
    use crate::testing::{INTERVAL_NS, observation_with_activity, thread_id};
    use crate::topology::Topology;

    /// One thread that ran for `share` of the interval in so many pieces, and waited for `wait`.
    fn seen(share: f64, runs: Option<f64>, wait: f64) -> Observation {
        let topology = Topology::uniform(2, 1).unwrap();
        let mut seen = observation_with_activity(&topology, &[(1, 0.0, share)]);
        let reading = |raw| Reading::fully_counted(raw, Tier::Proc, INTERVAL_NS);
        let sample = &mut seen.threads[0].sample;
        sample.set(Signal::WaitTime, reading(wait * INTERVAL_NS as f64));
        if let Some(runs) = runs {
            sample.set(Signal::Runs, reading(runs));
        }
        seen
    }

    fn left(leaver: &mut LeftThreadTracker, mut seen: Observation) -> Option<String> {
        leaver.mark(&mut seen);
        seen.left.get(&thread_id(1)).map(ToString::to_string)
    }

    #[test]
    fn server_that_sleeps_often_is_left_to_the_os() {
        let mut leaver = LeftThreadTracker::default();
        let server = seen(0.6, Some(3_000.0), 0.1);
        assert_eq!(
            left(&mut leaver, server),
            Some("runs 0.2 ms between sleeps".to_owned())
        );
    }

    #[test]
    fn preempted_busy_thread_may_be_placed() {
        let mut leaver = LeftThreadTracker::default();
        assert_eq!(left(&mut leaver, seen(0.5, Some(5_000.0), 0.5)), None);
        assert_eq!(left(&mut leaver, seen(0.6, Some(50.0), 0.0)), None);
    }

    #[test]
    fn thread_near_the_threshold_does_not_come_and_go() {
        let mut leaver = LeftThreadTracker::default();
        assert!(left(&mut leaver, seen(0.6, Some(400.0), 0.0)).is_some());
        for _ in 0..10 {
            assert!(left(&mut leaver, seen(0.6, Some(250.0), 0.0)).is_some());
            assert!(left(&mut leaver, seen(0.6, None, 0.0)).is_some());
        }
        for _ in 1..AGAIN_AFTER {
            assert!(left(&mut leaver, seen(0.9, Some(100.0), 0.0)).is_some());
        }
        assert!(left(&mut leaver, seen(0.9, Some(100.0), 0.0)).is_none());
    }

    #[test]
    fn throttled_thread_is_left_with_its_limit() {
        let mut throttled = seen(0.1, Some(10.0), 0.9);
        let throttle = Throttle {
            group: "/jobs/a".into(),
            cpus: 0.1,
            share: 0.982,
        };
        throttled.throttled.insert(thread_id(1), throttle);
        assert_eq!(
            left(&mut LeftThreadTracker::default(), throttled),
            Some("throttled by the limit of /jobs/a (0.1 CPU), 98 percent of the time".to_owned())
        );
    }
}
