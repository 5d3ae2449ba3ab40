//! A PU as the operating system sees it: the thread on it and those that wait for it.

use super::relearn::OverwrittenTraining;
use super::time::NEVER;
use std::collections::VecDeque;

/// A PU's state; threads by index.
#[derive(Clone, Debug)]
pub(crate) struct PuState {
    pub(crate) current: Option<usize>,
    pub(crate) queue: VecDeque<usize>,
    /// Thread that was on it last.
    pub(crate) last: Option<usize>,
    /// Instant at which `current` came, ps.
    pub(crate) since: u64,
    /// Start of the time slice in which `current` came, ps.
    pub(crate) slice_since: u64,
    /// Start of the slice that the next thread continues, ps; none where it begins a new one.
    pub(crate) carried: Option<u64>,
    /// Branches that `current` had completed when it came.
    pub(crate) branches: f64,
    /// Training of its branch predictor that is gone.
    pub(crate) overwritten: OverwrittenTraining,
    /// Least virtual run time of its threads so far, ps; see [`super::fairness`].
    pub(crate) least_ps: i64,
    /// True if `current` must make way for a thread that has woken.
    pub(crate) preempted: bool,
    /// Instant at which `current` must make way, ps; [`NEVER`] while nobody waits.
    pub(crate) slice_end: u64,
}

impl PuState {
    pub(crate) fn new() -> Self {
        Self {
            current: None,
            queue: VecDeque::new(),
            last: None,
            since: 0,
            slice_since: 0,
            carried: None,
            branches: 0.0,
            overwritten: OverwrittenTraining::default(),
            least_ps: 0,
            preempted: false,
            slice_end: NEVER,
        }
    }

    /// Runnable threads.
    pub(crate) fn load(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }

    /// Lets a thread begin on it that has completed so many branches; [`PuState::arm`] is the caller's.
    pub(crate) fn begin(&mut self, t: usize, branches: f64, now: u64) {
        self.current = Some(t);
        self.since = now;
        self.slice_since = self.carried.take().unwrap_or(now);
        self.preempted = false;
        self.branches = branches;
    }

    /// Sets when the current thread must make way; at once, in the past, when it is preempted or
    /// has been there for longer than a slice already.
    pub(crate) fn arm(&mut self, slice_ps: u64) {
        let shared = self.current.is_some() && !self.queue.is_empty();
        // Who woke is gone again.
        self.preempted &= shared;
        self.slice_end = match (shared, self.preempted) {
            (true, true) => self.since,
            (true, false) => self.slice_since + slice_ps,
            (false, _) => NEVER,
        };
    }
}
