//! Memory of the last count of each event of one thread.

/// A count and the quantum that it is from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EventCount {
    /// The count as read.
    pub(super) amount: f64,
    /// Cycles as read in the same quantum, above 0.
    pub(super) cycles: f64,
    /// Time on a PU in the quantum, s.
    pub(super) on_pu_s: f64,
    /// Start of the quantum, ns since the thread was first sampled.
    pub(super) begin_ns: u64,
    /// End of the quantum, ns since the thread was first sampled.
    pub(super) end_ns: u64,
}

/// The last count of every event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LastCounts(Vec<Option<EventCount>>);

impl LastCounts {
    pub(super) fn new(events: usize) -> Self {
        Self(vec![None; events])
    }

    pub(super) fn set(&mut self, event: usize, seen: EventCount) {
        self.0[event] = Some(seen);
    }

    pub(super) fn get(&self, event: usize) -> Option<EventCount> {
        self.0[event]
    }

    /// The event's last count by the length of its quantum.
    pub(super) fn per_ns(&self, event: usize) -> Option<f64> {
        let seen = self.get(event)?;
        Some(seen.amount / (seen.end_ns - seen.begin_ns).max(1) as f64)
    }

    /// The event's last count by the cycles of the same quantum.
    pub(super) fn per_cycle(&self, event: usize) -> Option<f64> {
        self.get(event).map(|seen| seen.amount / seen.cycles)
    }
}
