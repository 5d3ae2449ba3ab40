//! Plans for the kernel: which thread belongs where, and which programs run when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use consort_core::{ProgramId, PuSet, ThreadId};

/// The least silence of its author after which a plan is no longer followed.
pub const LEAST_STALE: Duration = Duration::from_secs(1);

/// A plan that the kernel follows until the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtPlan {
    /// Places of threads: one CPU, a core's CPUs or any other set. Threads that are not named run
    /// anywhere. A place that has no CPU of a thread's own mask is not followed.
    pub places: BTreeMap<ThreadId, PuSet>,
    /// Time slots in order; if there are none, all threads may run at all times.
    pub slots: Vec<TimeSlot>,
    /// Time within which the author calls [`apply`](crate::Scheduler::apply) or
    /// [`send_heartbeat`](crate::Scheduler::send_heartbeat) again. After a silence of three times
    /// this, and at least a second, every thread may run anywhere and at all times.
    pub quantum: Duration,
}

impl ExtPlan {
    /// A plan that lets every thread run anywhere.
    #[must_use]
    pub fn unrestricted(quantum: Duration) -> Self {
        Self {
            places: BTreeMap::new(),
            slots: Vec::new(),
            quantum,
        }
    }

    /// The silence after which the plan is no longer followed.
    #[must_use]
    pub fn stale_after(&self) -> Duration {
        self.quantum.saturating_mul(3).max(LEAST_STALE)
    }
}

/// A stretch of time that some programs have for themselves, among programs with slots.
///
/// Programs and threads that are in no slot run at all times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeSlot {
    /// Its length; the slots follow each other and then start again.
    pub length: Duration,
    /// Programs whose threads all run in this slot only, including threads that are started later.
    pub programs: BTreeSet<ProgramId>,
    /// Threads that run in this slot only, whatever slot their program has.
    pub threads: BTreeSet<ThreadId>,
}

/// Settings that hold from start to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtConfig {
    /// Time that a thread runs before the next one of its place runs. The kernel checks only at its
    /// ticks, so at 250 ticks a second a turn takes 4 ms however short this is.
    pub slice: Duration,
    /// Time that a runnable thread may wait before the kernel ends the scheduler; at most 30 s.
    pub watchdog: Duration,
    /// Time that threads wait for CPUs that other threads, above sched_ext, keep from them, until
    /// they may run anywhere.
    pub relief: Duration,
    /// Most time slots of a plan, at most 8. Each costs a queue per CPU and core.
    pub slots: usize,
    /// Accepts plans whose slots are longer than half of the watchdog's limit. Only for tests of
    /// the watchdog, because the kernel then ends the scheduler.
    pub unchecked_slots: bool,
}

impl Default for ExtConfig {
    fn default() -> Self {
        Self {
            slice: Duration::from_millis(1),
            watchdog: Duration::from_secs(10),
            relief: Duration::from_millis(100),
            slots: 4,
            unchecked_slots: false,
        }
    }
}
