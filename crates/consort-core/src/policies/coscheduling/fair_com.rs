//! `fair-com`: co-schedules by contention for the bus.
//!
//! Source: Bhadauria and McKee, ICS 2010: the fair scheduler that orders programs by the vector of
//! bus occupancy and bus queue time ([`crate::coscheduling::ProgramMeasure::bus_contention`]). Else it is
//! `fair-mis`.
//!
//! Observes every program alone for a quantum of 2 s. Pitfall: cache and bus take four counters;
//! where there are two, each is counted half of the time.

use super::fair;
use super::options::QUANTUM_MS;
use crate::coscheduling::ContendedResource;
use crate::policy::{PolicyInfo, PolicyOptions, PolicyResult};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;

/// Miss rates tell phases; without energy it goes by cores and time.
const SIGNALS: &[Signal] = &[
    Signal::Cycles,
    Signal::Instructions,
    Signal::LlcAccesses,
    Signal::LlcMisses,
    Signal::BusBusyCycles,
    Signal::BusQueueCycles,
    Signal::Energy,
];

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "fair-com",
    family: "co-scheduling",
    source: "Bhadauria and McKee, ICS 2010 (HOLISYN)",
    needs: &[
        Signal::Cycles,
        Signal::Instructions,
        Signal::BusBusyCycles,
        Signal::BusQueueCycles,
    ],
    uses: |_| SIGNALS,
    tier_min: Tier::Counters,
    quantum_ms: QUANTUM_MS,
    live: true,
    simulated: true,
    summary: "lets programs share the machine that gain by it, chosen by bus contention",
    options: fair::OPTIONS,
    open,
};

fn open(_: &Topology, offers: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    fair::open(ContendedResource::Bus, offers, options)
}
