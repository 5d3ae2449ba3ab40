//! The slot that runs.

use super::meter::SlotMeter;
use crate::coscheduling::{CoscheduleSlot, SlotTrial};
use crate::sample::Observation;

/// A slot, the time that it is to run, and the measures of it so far.
#[derive(Clone, Debug)]
pub(super) struct RunningSlot {
    pub(super) slot: CoscheduleSlot,
    pub(super) quanta: u32,
    length_ns: f64,
    meter: SlotMeter,
}

impl RunningSlot {
    pub(super) fn new(slot: CoscheduleSlot, quanta: u32, quantum_ns: u64) -> Self {
        Self {
            slot,
            quanta,
            length_ns: f64::from(quanta) * quantum_ns as f64,
            meter: SlotMeter::default(),
        }
    }

    /// Adds an interval. Returns the trial of the slot once it has run its time, or would run
    /// longer with another such interval than it falls short without.
    pub(super) fn add_interval(&mut self, seen: &Observation, metered: bool) -> Option<SlotTrial> {
        self.meter.add_interval(seen);
        let next = self.meter.time_ns() + seen.interval_ns as f64 / 2.0;
        (next >= self.length_ns).then(|| self.meter.trial(&self.slot, metered))
    }
}
