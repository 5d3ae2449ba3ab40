//! Baselines: `pinned` and `none`.
//!
//! `pinned`: threads stay where they were first seen, and several on one CPU share it by time.
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), the baseline of section 5. Observes only where threads are. A thread that has
//! not been on a CPU yet, or that is no longer allowed on its CPU, is left to the operating system.
//! On simulated machines `pinned` is also an operating system of its own, which places new threads
//! in turn.
//!
//! `none` only observes.

use crate::ids::{PuId, ThreadId};
use crate::plan::{Decision, Placement, PlanReport, Reason};
use crate::policy::{ALL_USUAL, Policy, PolicyInfo, PolicyRng, View};
use crate::pu_set::PuSet;
use crate::signal::{Signal, Tier};
use std::collections::BTreeMap;

pub(crate) const PINNED: PolicyInfo = PolicyInfo {
    name: "pinned",
    family: "baseline",
    source: "Markovic, PhD thesis, UPC 2015",
    needs: &[Signal::CpuTime],
    uses: ALL_USUAL,
    tier_min: Tier::Proc,
    quantum_ms: 100,
    live: true,
    simulated: true,
    summary: "leaves every thread on the CPU where it was first seen",
    options: &[],
    open: |_, _, _| Ok(Box::new(PinnedPolicy::default())),
};

/// CPU on which each thread was first seen.
#[derive(Debug, Default)]
struct PinnedPolicy(BTreeMap<ThreadId, PuId>);

impl Policy for PinnedPolicy {
    fn decide(&mut self, view: View<'_>, _: &mut PolicyRng) -> Decision {
        let mut decision = Decision::default();
        let seen = view.observation;
        self.0.retain(|&id, _| seen.thread(id).is_some());
        for thread in seen.managed_threads() {
            if let Some(pu) = thread.last_pu {
                self.0.entry(thread.id).or_insert(pu);
            }
            let may =
                |pu: &&PuId| view.topology.pus().contains(**pu) && thread.original.contains(**pu);
            let Some(&pu) = self.0.get(&thread.id).filter(may) else {
                continue;
            };
            let reason = Reason {
                considered: String::new(),
                chosen: format!("stays on CPU {pu}, where it was first seen"),
                facts: Vec::new(),
            };
            decision.place(thread.id, Placement::Restricted(PuSet::from(pu)), reason);
        }
        decision
    }
}

pub(crate) const NONE: PolicyInfo = PolicyInfo {
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
    open: |_, _, _| Ok(Box::new(ObserveOnlyPolicy)),
};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{observation, thread_id};
    use crate::topology::Topology;
    use rand::SeedableRng;

    /// Decides with one thread, last seen on a CPU.
    fn decide(policy: &mut PinnedPolicy, last_pu: Option<u32>, original: &str) -> Option<String> {
        let topology = Topology::uniform(4, 1).unwrap();
        let mut observation = observation(&topology, &[(1, 0.0)]);
        observation.threads[0].last_pu = last_pu.map(PuId);
        observation.threads[0].original = std::sync::Arc::new(original.parse().unwrap());
        let view = View {
            topology: &topology,
            observation: &observation,
        };
        let decision = policy.decide(view, &mut PolicyRng::seed_from_u64(1));
        let placement = decision.placements.get(&thread_id(1));
        placement.map(ToString::to_string)
    }

    #[test]
    fn threads_stay_where_they_were_first_seen() {
        let mut policy = PinnedPolicy::default();
        assert_eq!(decide(&mut policy, None, "0-3"), None);
        assert_eq!(
            decide(&mut policy, Some(2), "0-3"),
            Some("CPU 2".to_owned())
        );
        assert_eq!(
            decide(&mut policy, Some(3), "0-3"),
            Some("CPU 2".to_owned())
        );
    }

    #[test]
    fn thread_barred_from_its_pu_is_left_alone() {
        let mut policy = PinnedPolicy::default();
        decide(&mut policy, Some(2), "0-3");
        assert_eq!(decide(&mut policy, Some(0), "0-1"), None);
    }
}
