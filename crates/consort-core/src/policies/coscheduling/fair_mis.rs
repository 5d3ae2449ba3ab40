//! `fair-mis`: co-schedules by miss rates of the last-level cache.
//!
//! Source: Bhadauria and McKee, ICS 2010: the fair scheduler that orders programs by misses. The
//! program that misses most is joined by those that miss least while everybody's energy-delay
//! falls; then cores go where they help most.
//!
//! Observes every program alone for a quantum of 2 s. Pitfalls: those of
//! [`super::super::coscheduling`]; the source gives no threshold for a change of phase.

use super::fair;
use super::options::QUANTUM_MS;
use crate::coscheduling::ContendedResource;
use crate::policy::{PolicyInfo, PolicyOptions, PolicyResult};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;

/// Without energy it goes by cores and time.
const SIGNALS: &[Signal] = &[
    Signal::Cycles,
    Signal::Instructions,
    Signal::LlcAccesses,
    Signal::LlcMisses,
    Signal::Energy,
];

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "fair-mis",
    family: "co-scheduling",
    source: "Bhadauria and McKee, ICS 2010 (HOLISYN)",
    needs: &[
        Signal::Cycles,
        Signal::Instructions,
        Signal::LlcAccesses,
        Signal::LlcMisses,
    ],
    uses: |_| SIGNALS,
    tier_min: Tier::Counters,
    quantum_ms: QUANTUM_MS,
    live: true,
    simulated: true,
    summary: "lets programs share the machine that gain by it, chosen by LLC miss rate",
    options: fair::OPTIONS,
    open,
};

fn open(_: &Topology, offers: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    fair::open(ContendedResource::Misses, offers, options)
}
