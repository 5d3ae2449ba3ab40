//! `random`: a new random distribution each quantum, the baseline of Feliu et
//! al., "Symbiotic Job Scheduling on the IBM POWER8" (HPCA 2016), section 6.

use crate::ids::PuId;
use crate::plan::{Decision, Placement, Reason};
use crate::policy::{ALL_USUAL, Policy, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng, View};
use crate::pu_set::PuSet;
use crate::sample::ThreadObservation;
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use rand::seq::SliceRandom;

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "random",
    family: "baseline",
    source: "Feliu et al., HPCA 2016, section 6",
    needs: &[Signal::CpuTime],
    uses: ALL_USUAL,
    tier_min: Tier::Proc,
    quantum_ms: 1000,
    live: true,
    simulated: true,
    summary: "deals the active threads to CPUs anew each quantum, evenly and at random",
    options: &[],
    open,
};

fn open(_: &Topology, _: &SignalOffers, _: &PolicyOptions<'_>) -> PolicyResult {
    Ok(Box::new(RandomPolicy))
}

/// Deals threads to CPUs like cards.
struct RandomPolicy;

impl Policy for RandomPolicy {
    fn decide(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision {
        let mut deck: Vec<PuId> = view.topology.pus().iter().collect();
        deck.shuffle(rng);
        let mut decision = Decision::default();
        let threads = view.observation.managed_threads();
        for thread in threads.filter(|t| t.sample.cpu_time_ns() > 0.0) {
            place_on_next(&mut deck, thread, &mut decision);
        }
        decision
    }
}

/// Gives the thread the first CPU of the deck that it may use, and puts that CPU at the bottom.
fn place_on_next(deck: &mut Vec<PuId>, thread: &ThreadObservation, decision: &mut Decision) {
    let usable = deck.iter().position(|&pu| thread.original.contains(pu));
    let Some(at) = usable else {
        return;
    };
    let pu = deck.remove(at);
    deck.push(pu);
    let reason = Reason {
        considered: "every CPU of the thread's mask".to_owned(),
        chosen: format!("CPU {pu} by lot"),
        facts: Vec::new(),
    };
    decision.place(thread.id, Placement::Restricted(PuSet::from(pu)), reason);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{observation, thread_id};
    use crate::topology::Topology;
    use rand::SeedableRng;
    use std::collections::BTreeSet;

    fn placements(seed: u64) -> Vec<Placement> {
        let topology = Topology::uniform(2, 2).unwrap();
        let observation = observation(&topology, &[(1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0)]);
        let view = View {
            topology: &topology,
            observation: &observation,
        };
        let decision = RandomPolicy.decide(view, &mut PolicyRng::seed_from_u64(seed));
        (1..=4)
            .map(|tid| decision.placements[&thread_id(tid)].clone())
            .collect()
    }

    #[test]
    fn every_thread_has_its_own_pu() {
        let distinct: BTreeSet<String> = placements(7).iter().map(ToString::to_string).collect();
        assert_eq!(distinct.len(), 4);
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(placements(1), placements(1));
        let seeds: BTreeSet<String> = (0..20).map(|s| format!("{:?}", placements(s))).collect();
        assert!(seeds.len() > 5);
    }
}
