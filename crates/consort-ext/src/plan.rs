//! Plans for the kernel: which thread belongs where, and which programs run when.

use consort_core::{ProgramId, PuSet, ThreadId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The least time after which a plan whose author is silent is no longer followed.
pub const LEAST_STALE: Duration = Duration::from_secs(1);

/// A plan that the kernel follows until the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtPlan {
    /// Places of threads: one PU, a core's PUs or any other set. Threads that are not named run
    /// anywhere. A place of which a thread's own mask has nothing is not followed.
    pub places: BTreeMap<ThreadId, PuSet>,
    /// Time slots in their order; without any, all threads may run at all times.
    pub slots: Vec<TimeSlot>,
    /// Time within which the author makes itself heard again, by [`apply`](crate::Scheduler::apply)
    /// or [`beat`](crate::Scheduler::send_heartbeat). After three times this, and at least a second, of
    /// silence every thread may run anywhere and at all times.
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

/// A stretch of time that some programs have for themselves, among those that have slots.
///
/// Programs and threads that are in no slot run at all times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeSlot {
    /// Its length; the slots follow each other and then begin anew.
    pub length: Duration,
    /// Programs all of whose threads run in this slot only, those started later included.
    pub programs: BTreeSet<ProgramId>,
    /// Threads that run in this slot only, whatever slot their program has.
    pub threads: BTreeSet<ThreadId>,
}
