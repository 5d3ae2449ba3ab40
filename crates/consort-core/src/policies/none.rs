//! `none`: observe only.

use crate::plan::{Decision, PlanReport};
use crate::policy::{Options, Policy, PolicyError, PolicyInfo, PolicyRng, View};
use crate::signal::Tier;

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "none",
    family: "baseline",
    source: "none: the kernel alone",
    needs: &[],
    tier_min: Tier::Proc,
    quantum_ms: 1000,
    live: true,
    simulated: true,
    summary: "watches and reports; restricts nothing",
    options: &[],
    build,
};

fn build(_: &Options<'_>) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(Observer))
}

/// Leaves every thread to the operating system.
struct Observer;

impl Policy for Observer {
    fn decide(&mut self, _: View<'_>, _: &mut PolicyRng) -> Decision {
        Decision {
            report: PlanReport {
                notes: vec!["observing only".to_owned()],
                ..PlanReport::default()
            },
            ..Decision::default()
        }
    }
}
