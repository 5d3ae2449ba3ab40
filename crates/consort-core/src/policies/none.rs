//! `none`: observe only.

use crate::plan::{Decision, PlanReport};
use crate::policy::{ALL_USUAL, Policy, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng, View};
use crate::signal::{SignalOffers, Tier};
use crate::topology::Topology;

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "none",
    family: "baseline",
    source: "none: the kernel alone",
    needs: &[],
    uses: ALL_USUAL,
    tier_min: Tier::Proc,
    quantum_ms: 1000,
    live: true,
    simulated: true,
    summary: "watches and reports; restricts nothing",
    options: &[],
    open,
};

fn open(_: &Topology, _: &SignalOffers, _: &PolicyOptions<'_>) -> PolicyResult {
    Ok(Box::new(ObserveOnlyPolicy))
}

/// Leaves every thread to the operating system.
struct ObserveOnlyPolicy;

impl Policy for ObserveOnlyPolicy {
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
