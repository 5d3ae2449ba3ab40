//! `aggregate`: like with like, the deliberately bad placement (`workover --invert`).
//!
//! Source: Peternier et al., FGCS, section 5: the most FPU-heavy threads fill
//! the PUs of the first core, the next most heavy those of the second. It shows
//! what bad luck costs, as a lower bound for studies. While threads only leave,
//! those that remain stay where they are: when one class has ended, the other is
//! not spread.

use super::occupancy::{Arrangement, OPTIONS, Occupancy};
use crate::policy::{Options, Policy, PolicyError, PolicyInfo};
use crate::signal::{Signal, Tier};

#[doc(alias = "inverted WorkOver")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "aggregate",
    family: "unit-occupancy",
    source: "Peternier et al., FGCS, section 5",
    needs: &[Signal::CpuTime, Signal::FpUsage],
    tier_min: Tier::Sampling,
    quantum_ms: 1000,
    live: true,
    simulated: true,
    summary: "puts like with like: a lower bound for studies, not for use",
    options: OPTIONS,
    build,
};

fn build(options: &Options<'_>) -> Result<Box<dyn Policy>, PolicyError> {
    let policy = Occupancy::new(Arrangement::CoreByCore, options)?;
    Ok(Box::new(policy))
}
