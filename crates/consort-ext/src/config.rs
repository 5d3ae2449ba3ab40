//! Settings of the scheduler that hold for all plans.

use std::time::Duration;

/// Settings that hold from start to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtConfig {
    /// Time that a thread runs before the next one of its place has its turn. The kernel looks at
    /// its ticks only, so that at 250 ticks a second a turn takes 4 ms however short this is.
    pub slice: Duration,
    /// Time that a runnable thread may wait before the kernel ends the scheduler; at most 30 s.
    pub watchdog: Duration,
    /// Time that threads wait for PUs that do not come for them, because threads above sched_ext
    /// keep them, until they may run anywhere.
    pub relief: Duration,
    /// Most time slots of a plan, at most 8. Each costs a queue per PU and core.
    pub slots: usize,
    /// Takes plans whose slots are longer than half of the watchdog's patience. Only for tests of
    /// the watchdog: the kernel ends the scheduler.
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
