//! `gang`: each program has all cores for a quantum, one after the other.
//!
//! Source: Bhadauria and McKee, ICS 2010, the baseline: quanta of 2 s, round robin.
//!
//! Observes nothing but which programs there are.

use super::options::{QUANTUM, QUANTUM_MS, is_metered, quantum_ns};
use super::{CoschedulingSettings, Rotations};
use crate::coscheduling::GangChooser;
use crate::policy::{ALL_USUAL, PolicyInfo, PolicyOptions, PolicyResult};
use crate::signal::{SignalOffers, Tier};
use crate::topology::Topology;

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "gang",
    family: "co-scheduling",
    source: "Bhadauria and McKee, ICS 2010, the baseline",
    needs: &[],
    uses: ALL_USUAL,
    tier_min: Tier::Proc,
    quantum_ms: QUANTUM_MS,
    live: true,
    simulated: true,
    summary: "gives each program all cores in turn",
    options: &[QUANTUM],
    open,
};

fn open(_: &Topology, offers: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let settings = CoschedulingSettings {
        quantum_ns: quantum_ns(options)?,
        metered: is_metered(offers),
        sampled: false,
        alpha: None,
        phase: None,
        revert: false,
    };
    Ok(Box::new(Rotations::new(settings, GangChooser::default())))
}
