//! `oracle`: the best pairing by what the simulation knows and no counter tells.
//!
//! Not in the registry of policies, since it can only be had on a simulated machine and only by
//! who holds it: [`OracleMachine`] wraps the machine and puts the truth into a [`SharedDemands`] that the
//! oracle shares, while policies of the registry get observations alone.
//!
//! Each quantum it knows the phase that every thread is in, solves every pair of threads on one
//! core, and takes the pairing of the least cost; for more than two per core the groups that
//! [`consort_core::matching::group_threads`] finds. Like `symbiotic` it leaves threads on the node of
//! their memory. It takes bursts at their mean, since the next one is drawn anew, and it knows
//! neither what threads on other cores do to memory nor what a move costs: it tells what knowing
//! the slowdowns of all pairs is worth, and is no bound for policies that see further.

mod machine;
mod slowdowns;

pub(super) use machine::{OracleMachine, SharedDemands};
pub use slowdowns::GroupSlowdowns;

use consort_core::matching::{self, GroupRoom, PairCosts};
use consort_core::plan::{Decision, Reason};
use consort_core::policies::SlowdownObjective;
use consort_core::policies::grouping::{
    GroupedThreads, HomeNodes, is_in_own_domain, leave_to_os, place_groups,
};
use consort_core::policy::{Policy, PolicyError, PolicyRng, View};
use consort_sim::chip::Chip;
use consort_sim::contention::Demand;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The contender's name.
pub(super) const NAME: &str = "oracle";
/// Its quantum, that of `symbiotic`, ms.
pub(super) const QUANTUM_MS: u64 = 100;

/// Swaps that the search for groups of more than two tries, per thread.
const SWAPS_PER_THREAD: usize = 50;
/// Share of a PU from which a thread takes part, as for `symbiotic`.
const ACTIVE: f64 = 0.1;

/// The objective that the options ask for.
pub(super) fn parse_objective(
    options: &BTreeMap<String, String>,
) -> Result<SlowdownObjective, PolicyError> {
    if let Some(key) = options.keys().find(|key| *key != "objective") {
        return Err(PolicyError::UnknownOption {
            policy: NAME,
            key: key.clone(),
            known: "objective".to_owned(),
        });
    }
    let Some(word) = options.get("objective") else {
        return Ok(SlowdownObjective::Slowdown);
    };
    SlowdownObjective::from_name(word).ok_or_else(|| PolicyError::BadValue {
        policy: NAME,
        key: "objective",
        value: word.clone(),
        expected: "slowdown, throughput or fairness",
    })
}

/// The scheduler that knows the truth.
pub(super) struct OraclePolicy {
    truth: SharedDemands,
    objective: SlowdownObjective,
    slowdowns: GroupSlowdowns,
    homes: HomeNodes,
}

impl OraclePolicy {
    pub(super) fn new(
        chip: &Arc<Chip>,
        truth: &SharedDemands,
        objective: SlowdownObjective,
    ) -> Self {
        Self {
            truth: truth.clone(),
            objective,
            slowdowns: GroupSlowdowns::new(chip),
            homes: HomeNodes::default(),
        }
    }

    /// The groups of the least cost; threads that do not run now are of no weight.
    fn groups(&mut self, demands: &[Option<Demand>], cores: usize) -> Vec<Vec<usize>> {
        if demands.len() <= 2 * cores {
            self.pairs(demands, cores)
        } else {
            self.larger_groups(demands, cores)
        }
    }

    fn pairs(&mut self, demands: &[Option<Demand>], cores: usize) -> Vec<Vec<usize>> {
        let alone = vec![self.objective.cost(1.0); demands.len()];
        let costs = PairCosts::from_fn(demands.len(), |i, j| self.cost(demands, &[i, j]));
        let pairing = costs.and_then(|costs| matching::pairs(&costs, &alone, cores));
        let pairs = pairing.map(|pairing| pairing.pairs).unwrap_or_default();
        let group = |(first, second)| std::iter::once(first).chain(second).collect();
        pairs.into_iter().map(group).collect()
    }

    fn larger_groups(&mut self, demands: &[Option<Demand>], cores: usize) -> Vec<Vec<usize>> {
        let shape = GroupRoom {
            cores,
            ways: demands.len().div_ceil(cores.max(1)),
            swaps: SWAPS_PER_THREAD * demands.len(),
        };
        let found =
            matching::group_threads(demands.len(), shape, |group| self.cost(demands, group));
        found.map(|found| found.groups).unwrap_or_default()
    }

    fn cost(&mut self, demands: &[Option<Demand>], group: &[usize]) -> f64 {
        let running: Vec<&Demand> = group.iter().filter_map(|&i| demands[i].as_ref()).collect();
        let slowdowns = self.slowdowns.group_slowdowns(&running);
        let waiting = group.len() - running.len();
        let costs = slowdowns.iter().map(|&s| self.objective.cost(s));
        costs.sum::<f64>() + waiting as f64 * self.objective.cost(1.0)
    }
}

impl Policy for OraclePolicy {
    fn decide(&mut self, view: View<'_>, _: &mut PolicyRng) -> Decision {
        let mut decision = Decision::default();
        let crew = GroupedThreads::new(view, ACTIVE, view.topology.pus().len(), |_| false);
        for (thread, why) in &crew.left {
            leave_to_os(thread, why, &mut decision);
        }
        let domains = self.homes.divide_by_node(view.topology, &crew);
        let mut groups = Vec::new();
        for domain in &domains {
            let id = |&i: &usize| crew.members[i].id;
            let demands = domain.members.iter().map(|i| self.truth.demand(id(i)));
            let demands: Vec<Option<Demand>> = demands.collect();
            let found = self.groups(&demands, domain.cores.len()).into_iter();
            let in_crew = |group: Vec<usize>| -> Vec<usize> {
                group.into_iter().map(|i| domain.members[i]).collect()
            };
            groups.extend(found.map(in_crew));
        }
        let wanted = |group: usize, core: usize| is_in_own_domain(&domains, &groups[group], core);
        place_groups(
            view.topology,
            &crew,
            &groups,
            wanted,
            &mut decision,
            |_, _| Reason {
                considered: "all groups, by the simulation's own truth".to_owned(),
                chosen: "of the groups with the least cost".to_owned(),
                facts: Vec::new(),
            },
        );
        decision
    }
}

#[cfg(test)]
mod tests;
