//! Choice of the threads that share a core.

use super::machine_model::MachineModel;
use super::objective::SlowdownObjective;
use crate::ids::ThreadId;
use crate::matching::{self, GroupRoom, PairCosts};
use crate::model::{Corrections, PairSlowdowns};
use crate::plan::{Fact, Reason};
use crate::policies::grouping::{FillDomain, GroupedThreads};
use std::collections::BTreeMap;

/// Most swaps, per thread, that the search for groups of more than two tries.
const SWAPS_PER_THREAD: usize = 200;

/// Prediction for a thread, before correction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SlowdownPrediction {
    pub(super) co_runners: Vec<ThreadId>,
    pub(super) slowdown: f64,
    /// Factor by which the prediction of its performance was multiplied.
    pub(super) factor: f64,
}

/// The groups of the last decision, and the predictions for them.
#[derive(Debug, Default)]
pub(super) struct Partners {
    /// Threads of each group, as indices into the crew.
    groups: Vec<Vec<usize>>,
    predictions: BTreeMap<ThreadId, SlowdownPrediction>,
    pairs: PairSlowdowns,
    costs: PairCosts,
}

impl Partners {
    pub(super) fn groups(&self) -> &[Vec<usize>] {
        &self.groups
    }

    pub(super) fn has(&self, thread: ThreadId) -> bool {
        self.predictions.contains_key(&thread)
    }

    pub(super) fn prediction(&self, thread: ThreadId) -> Option<&SlowdownPrediction> {
        let prediction = self.predictions.get(&thread);
        prediction.filter(|p| !p.co_runners.is_empty())
    }

    /// The predicted slowdown of a thread, corrected; 1 where nothing was predicted.
    pub(super) fn slowdown(&self, thread: ThreadId) -> f64 {
        let prediction = self.predictions.get(&thread);
        prediction.map_or(1.0, |p| p.slowdown / p.factor)
    }

    pub(super) fn retain(&mut self, is_here: impl Fn(ThreadId) -> bool) {
        self.predictions.retain(|&id, _| is_here(id));
    }

    /// Returns true where the groups of the last decision are of just these threads, so that its
    /// indices are those of this crew.
    pub(super) fn is_valid_for(&self, crew: &GroupedThreads<'_>) -> bool {
        let grouped: usize = self.groups.iter().map(Vec::len).sum();
        let same = crew.members.iter().all(|thread| self.has(thread.id));
        grouped > 0 && grouped == crew.members.len() && same
    }

    /// Groups of the least predicted cost inside each domain; `stacks` are those of the members,
    /// one after another.
    pub(super) fn choose_groups(
        &mut self,
        crew: &GroupedThreads<'_>,
        stacks: &[f64],
        trained: &MachineModel,
        corrections: &Corrections,
        objective: SlowdownObjective,
        domains: &[FillDomain],
    ) {
        self.groups.clear();
        self.predictions.clear();
        for domain in domains {
            let own = |&i: &usize| stacks.chunks(trained.components().max(1)).nth(i);
            let stacks = domain.members.iter().filter_map(own).flatten();
            let ids = domain.members.iter().map(|&i| crew.members[i].id);
            let chooser = GroupChooser {
                ids: &ids.collect::<Vec<ThreadId>>(),
                stacks: &stacks.copied().collect::<Vec<f64>>(),
                trained,
                corrections,
                objective,
            };
            self.choose_in_domain(domain, &chooser);
        }
    }

    fn choose_in_domain(&mut self, domain: &FillDomain, chooser: &GroupChooser<'_>) {
        let cores = domain.cores.len();
        let groups = if chooser.ids.len() <= 2 * cores {
            chooser.choose_pairs(cores, &mut self.pairs, &mut self.costs)
        } else {
            chooser.choose_groups(cores)
        };
        self.predictions.extend(chooser.predictions(&groups));
        let in_crew = |group: Vec<usize>| group.into_iter().map(|i| domain.members[i]).collect();
        self.groups.extend(groups.into_iter().map(in_crew));
    }

    /// Returns the reason why a member is in its group.
    pub(super) fn reason(
        &self,
        crew: &GroupedThreads<'_>,
        group: &[usize],
        member: usize,
    ) -> Reason {
        let prediction = self.predictions.get(&crew.members[member].id);
        let others = group.iter().filter(|&&i| i != member);
        let names: Vec<&str> = others.map(|&i| &*crew.members[i].name).collect();
        let chosen = match names.as_slice() {
            [] => "alone on its core".to_owned(),
            names => format!(
                "beside {}, of the groups with the least cost",
                names.join(", ")
            ),
        };
        Reason {
            considered: "all groups, by predicted slowdown".to_owned(),
            chosen,
            facts: prediction.map(facts).unwrap_or_default(),
        }
    }
}

fn facts(prediction: &SlowdownPrediction) -> Vec<Fact> {
    let fact = |name: &'static str, value, unit: &'static str| Fact {
        name: name.into(),
        value,
        unit: unit.into(),
    };
    vec![
        fact(
            "predicted slowdown",
            prediction.slowdown / prediction.factor,
            "x",
        ),
        fact("correction", prediction.factor, "x"),
    ]
}

/// Inputs of one choice.
struct GroupChooser<'a> {
    ids: &'a [ThreadId],
    stacks: &'a [f64],
    trained: &'a MachineModel,
    corrections: &'a Corrections,
    objective: SlowdownObjective,
}

impl GroupChooser<'_> {
    /// Pairs threads, at most two per core, at the least cost; threads as they come where there is
    /// no such model.
    fn choose_pairs(
        &self,
        cores: usize,
        pairs: &mut PairSlowdowns,
        costs: &mut PairCosts,
    ) -> Vec<Vec<usize>> {
        let alone = vec![self.objective.cost(1.0); self.ids.len()];
        let predicted = self
            .trained
            .level(2)
            .map(|level| level.pairs_into(self.stacks, pairs));
        let Some(Ok(())) = predicted else {
            return groups_in_order(self.ids.len(), cores);
        };
        self.corrections.apply(self.ids, pairs);
        let filled = costs.refill(self.ids.len(), |first, row| {
            pairs.fill_costs_after(first, |slowdown| self.objective.cost(slowdown), row);
        });
        let matched = filled.and_then(|()| matching::pairs(costs, &alone, cores));
        match matched {
            Ok(pairing) => pairing.pairs.into_iter().map(pair_members).collect(),
            Err(_) => groups_in_order(self.ids.len(), cores),
        }
    }

    /// Groups threads, more than two per core.
    fn choose_groups(&self, cores: usize) -> Vec<Vec<usize>> {
        let shape = GroupRoom {
            cores,
            ways: self.ids.len().div_ceil(cores.max(1)),
            swaps: SWAPS_PER_THREAD * self.ids.len(),
        };
        let cost = |members: &[usize]| -> f64 {
            let one = |&i: &usize| {
                let (slowdown, factor) = self.slowdown(i, members);
                self.objective.cost(slowdown / factor)
            };
            members.iter().map(one).sum()
        };
        let found = matching::group_threads(self.ids.len(), shape, cost);
        found.map_or_else(
            |_| groups_in_order(self.ids.len(), cores),
            |found| found.groups,
        )
    }

    fn predictions(&self, groups: &[Vec<usize>]) -> BTreeMap<ThreadId, SlowdownPrediction> {
        let of_group = |group: &Vec<usize>| {
            let of_one = |&i: &usize| {
                let (slowdown, factor) = self.slowdown(i, group);
                let others = group.iter().filter(|&&other| other != i);
                let co_runners = others.map(|&other| self.ids[other]).collect();
                (
                    self.ids[i],
                    SlowdownPrediction {
                        co_runners,
                        slowdown,
                        factor,
                    },
                )
            };
            group.iter().map(of_one).collect::<Vec<_>>()
        };
        groups.iter().flat_map(of_group).collect()
    }

    /// The predicted slowdown of a thread in a group, and the factor that corrects its
    /// performance.
    fn slowdown(&self, thread: usize, group: &[usize]) -> (f64, f64) {
        if group.len() < 2 {
            return (1.0, 1.0);
        }
        let mut sum = vec![0.0; self.trained.components()];
        let others: Vec<usize> = group.iter().copied().filter(|&i| i != thread).collect();
        for &other in &others {
            sum.iter_mut()
                .zip(self.stack(other))
                .for_each(|(sum, share)| *sum += share);
        }
        let level = self.trained.level(group.len());
        let slowdown = level.map_or(1.0, |level| level.slowdown(self.stack(thread), &sum));
        let ids: Vec<ThreadId> = others.iter().map(|&i| self.ids[i]).collect();
        (
            slowdown,
            self.corrections.factor_among(self.ids[thread], &ids),
        )
    }

    fn stack(&self, thread: usize) -> &[f64] {
        let components = self.trained.components();
        let from = thread * components;
        self.stacks.get(from..from + components).unwrap_or_default()
    }
}

fn pair_members((first, second): (usize, Option<usize>)) -> Vec<usize> {
    std::iter::once(first).chain(second).collect()
}

/// Threads dealt to cores in their order.
fn groups_in_order(threads: usize, cores: usize) -> Vec<Vec<usize>> {
    let cores = cores.max(1);
    let mut groups = vec![Vec::new(); cores.min(threads)];
    (0..threads).for_each(|thread| groups[thread % cores].push(thread));
    groups
}
