//! `none`: observe only.

use crate::plan::{Decision, PlanReport};
use crate::policy::{ALL_USUAL, Opened, Options, Policy, PolicyInfo, PolicyRng, View};
use crate::signal::{Offers, Tier};
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

fn open(_: &Topology, _: &Offers, _: &Options<'_>) -> Opened {
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
