//! `pinned`: threads stay where they were first seen; several on one PU share it by time.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), the baseline of section 5.
//!
//! Observes nothing but where threads are. A thread that has not been on a PU yet, or that is not
//! allowed on it any more, is left to the operating system until it is seen on one. On simulated
//! machines `pinned` is also an operating system of its own, which deals new threads out in turn.

use crate::ids::{PuId, ThreadId};
use crate::plan::{Decision, Placement, Reason};
use crate::policy::{ALL_USUAL, Policy, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng, View};
use crate::pu_set::PuSet;
use crate::sample::ThreadObservation;
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use std::collections::BTreeMap;

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "pinned",
    family: "baseline",
    source: "Markovic, PhD thesis, UPC 2015",
    needs: &[Signal::CpuTime],
    uses: ALL_USUAL,
    tier_min: Tier::Proc,
    quantum_ms: 100,
    live: true,
    simulated: true,
    summary: "leaves every thread on the PU where it was first seen",
    options: &[],
    open,
};

fn open(_: &Topology, _: &SignalOffers, _: &PolicyOptions<'_>) -> PolicyResult {
    Ok(Box::new(PinnedPolicy::default()))
}

/// PU on which each thread was first seen.
#[derive(Debug, Default)]
struct PinnedPolicy(BTreeMap<ThreadId, PuId>);

impl PinnedPolicy {
    /// The thread's PU, if it is known and may still be used.
    fn find_home(&mut self, thread: &ThreadObservation, pus: &PuSet) -> Option<PuId> {
        if let Some(pu) = thread.last_pu {
            self.0.entry(thread.id).or_insert(pu);
        }
        let home = self.0.get(&thread.id).copied();
        home.filter(|&pu| pus.contains(pu) && thread.original.contains(pu))
    }
}

impl Policy for PinnedPolicy {
    fn decide(&mut self, view: View<'_>, _: &mut PolicyRng) -> Decision {
        let mut decision = Decision::default();
        let threads = &view.observation;
        self.0.retain(|&id, _| threads.thread(id).is_some());
        for thread in threads.managed_threads() {
            let Some(pu) = self.find_home(thread, view.topology.pus()) else {
                continue;
            };
            let reason = Reason {
                considered: String::new(),
                chosen: format!("stays on PU {pu}, where it was first seen"),
                facts: Vec::new(),
            };
            decision.place(thread.id, Placement::Restricted(PuSet::from(pu)), reason);
        }
        decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{observation, thread_id};
    use crate::topology::Topology;
    use rand::SeedableRng;

    /// Decides with one thread, last seen on a PU.
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
        assert_eq!(decide(&mut policy, Some(2), "0-3"), Some("PU 2".to_owned()));
        assert_eq!(decide(&mut policy, Some(3), "0-3"), Some("PU 2".to_owned()));
    }

    #[test]
    fn a_thread_that_may_not_be_there_any_more_is_left_alone() {
        let mut policy = PinnedPolicy::default();
        decide(&mut policy, Some(2), "0-3");
        assert_eq!(decide(&mut policy, Some(0), "0-1"), None);
    }
}
