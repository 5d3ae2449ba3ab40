//! `aggregate`: like with like, the deliberately bad placement (`workover --invert`).
//!
//! Source: Peternier et al., FGCS, section 5: the most FPU-heavy threads fill
//! the PUs of the first core, the next most heavy those of the second. It shows
//! what bad luck costs, as a lower bound for studies. While threads only leave,
//! those that remain stay where they are: when one class has ended, the other is
//! not spread.

use super::occupancy::{GroupArrangement, OPTIONS, Occupancy};
use crate::policy::{ALL_USUAL, PolicyInfo, PolicyOptions, PolicyResult};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;

#[doc(alias = "inverted WorkOver")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "aggregate",
    family: "unit-occupancy",
    source: "Peternier et al., FGCS, section 5",
    needs: &[Signal::CpuTime, Signal::FpUsage],
    uses: ALL_USUAL,
    tier_min: Tier::Sampling,
    quantum_ms: 1000,
    live: true,
    simulated: true,
    summary: "puts like with like: a lower bound for studies, not for use",
    options: OPTIONS,
    open,
};

fn open(_: &Topology, _: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    Ok(Box::new(Occupancy::new(
        GroupArrangement::CoreByCore,
        options,
    )?))
}
