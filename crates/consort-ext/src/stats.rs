//! Counts of the kernel's part.

use std::time::Duration;

/// Running time, by the place in which it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunningTimes {
    /// Time that the thread ran in its place.
    pub in_place: Duration,
    /// Time that it ran outside its place, although the plan named one.
    pub elsewhere: Duration,
    /// Time that it ran while the plan named no place.
    pub unplanned: Duration,
    /// Number of times that the kernel switched to the thread.
    pub turns: u64,
}

impl RunningTimes {
    /// Share of the planned running time that was spent in place, 0 to 1; `None` if there was none.
    #[must_use]
    pub fn adherence(&self) -> Option<f64> {
        let planned = self.in_place + self.elsewhere;
        (!planned.is_zero()).then(|| self.in_place.as_secs_f64() / planned.as_secs_f64())
    }

    /// Times that were added since an earlier reading of the same thread or CPU.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            in_place: self.in_place.saturating_sub(earlier.in_place),
            elsewhere: self.elsewhere.saturating_sub(earlier.elsewhere),
            unplanned: self.unplanned.saturating_sub(earlier.unplanned),
            turns: self.turns.saturating_sub(earlier.turns),
        }
    }
}

/// Account of one CPU under the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PuTimes {
    /// Running time of governed threads.
    pub times: RunningTimes,
    /// Threads that were sent back because they were not, or no longer, allowed to run here.
    pub turned_away: u64,
    /// Idle time while threads that may run here waited for their slot. Each idle stretch is judged
    /// when it begins and at every change of slots.
    pub forced_idle: Duration,
}

/// Counts that are not about one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtStats {
    /// Account of each CPU, by CPU number.
    pub pus: Vec<PuTimes>,
    /// Number of slots that began.
    pub slots_opened: u64,
    /// Number of times that a thread began to run while one of another slot did.
    pub overlaps: u64,
    /// Number of slots that began although threads of the one before had not stopped.
    pub overruns: u64,
    /// Number of times that a place's threads were released because none of its CPUs came for them.
    pub reliefs: u64,
    /// Threads that could not be recorded; they run anywhere.
    pub unrecorded: u64,
}

impl ExtStats {
    /// Sum over all CPUs.
    #[must_use]
    pub fn total(&self) -> RunningTimes {
        self.pus
            .iter()
            .fold(RunningTimes::default(), |all, pu| RunningTimes {
                in_place: all.in_place + pu.times.in_place,
                elsewhere: all.elsewhere + pu.times.elsewhere,
                unplanned: all.unplanned + pu.times.unplanned,
                turns: all.turns + pu.times.turns,
            })
    }
}

/// State of the scheduler with the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchedulerState {
    /// The kernel follows plans.
    Running,
    /// The kernel has ended the scheduler, and every thread runs as without it; the reason in the
    /// kernel's words.
    Ejected(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(in_place: u64, elsewhere: u64) -> RunningTimes {
        RunningTimes {
            in_place: Duration::from_millis(in_place),
            elsewhere: Duration::from_millis(elsewhere),
            ..RunningTimes::default()
        }
    }

    #[test]
    fn adherence_is_a_share_of_planned_time() {
        assert_eq!(times(0, 0).adherence(), None);
        assert_eq!(times(30, 10).adherence(), Some(0.75));
        assert_eq!(times(30, 10).since(&times(20, 10)).adherence(), Some(1.0));
    }

    #[test]
    fn total_is_over_all_pus() {
        let pu = |in_place, elsewhere| PuTimes {
            times: times(in_place, elsewhere),
            ..PuTimes::default()
        };
        let stats = ExtStats {
            pus: vec![pu(10, 5), pu(20, 0)],
            ..ExtStats::default()
        };
        assert_eq!(stats.total(), times(30, 5));
    }
}
