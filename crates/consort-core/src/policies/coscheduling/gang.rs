//! `gang`: each program has all cores for a quantum, one after the other.
//!
//! Source: Bhadauria and McKee, ICS 2010, the baseline: quanta of 2 s, round robin.
//!
//! Observes nothing but which programs there are.

use super::options::{QUANTUM, QUANTUM_MS, quantum_ns};
use super::{Driver, Settings};
use crate::coscheduling::Gang;
use crate::policy::{Options, Policy, PolicyError, PolicyInfo};
use crate::signal::Tier;

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "gang",
    family: "co-scheduling",
    source: "Bhadauria and McKee, ICS 2010, the baseline",
    needs: &[],
    tier_min: Tier::Proc,
    quantum_ms: QUANTUM_MS,
    live: true,
    simulated: true,
    summary: "gives each program all cores in turn",
    options: &[QUANTUM],
    build,
};

fn build(options: &Options<'_>) -> Result<Box<dyn Policy>, PolicyError> {
    let settings = Settings {
        quantum_ns: quantum_ns(options)?,
        signals: &[],
        sampled: false,
        alpha: None,
        phase: None,
        revert: false,
    };
    Ok(Box::new(Driver::new(settings, Box::<Gang>::default())))
}
