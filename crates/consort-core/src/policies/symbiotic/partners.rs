//! Choice of the threads that share a core, and correction of the predictions by measured
//! performance.

use super::SlowdownObjective;
use super::machine_model::MachineModel;
use crate::ids::ThreadId;
use crate::matching::{self, GroupRoom, PairCosts};
use crate::model::{Corrections, PairSlowdowns};
use crate::plan::{Alternative, Fact, Reason};
use crate::policies::grouping::{FillDomain, GroupedThreads};
use crate::sample::{Sample, ThreadObservation};
use crate::signal::Signal;
use crate::topology::Topology;
use std::collections::BTreeMap;

/// Co-runners that are reported next to the chosen one.
const RIVALS: usize = 3;
/// Threads of a domain above which rivals are not reported: to find them takes a look at every pair.
const MOST_COMPARED: usize = 256;
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
    /// Threads of each group, as indices into the members of [`GroupedThreads`].
    groups: Vec<Vec<usize>>,
    predictions: BTreeMap<ThreadId, SlowdownPrediction>,
    // Kept from decision to decision, so that the tables are not allocated each time.
    pairs: PairSlowdowns,
    costs: PairCosts,
    /// By thread, the pairs with the chosen co-runner and with its cheapest rivals.
    alternatives: BTreeMap<ThreadId, Vec<Alternative>>,
}

impl Partners {
    pub(super) fn groups(&self) -> &[Vec<usize>] {
        &self.groups
    }

    pub(super) fn has(&self, thread: ThreadId) -> bool {
        self.predictions.contains_key(&thread)
    }

    /// The predicted slowdown of a thread, corrected; 1 if nothing was predicted.
    pub(super) fn slowdown(&self, thread: ThreadId) -> f64 {
        let prediction = self.predictions.get(&thread);
        prediction.map_or(1.0, |p| p.slowdown / p.factor)
    }

    pub(super) fn retain(&mut self, is_here: impl Fn(ThreadId) -> bool) {
        self.predictions.retain(|&id, _| is_here(id));
    }

    /// Returns true if the groups of the last decision consist of exactly these threads, so that
    /// their indices are still valid.
    pub(super) fn is_valid_for(&self, crew: &GroupedThreads<'_>) -> bool {
        let grouped: usize = self.groups.iter().map(Vec::len).sum();
        let same = crew.members.iter().all(|thread| self.has(thread.id));
        grouped > 0 && grouped == crew.members.len() && same
    }

    /// Chooses the groups of the least predicted cost inside each domain. `stacks` are those of the
    /// members, one after another.
    pub(super) fn choose_groups(
        &mut self,
        crew: &GroupedThreads<'_>,
        stacks: &[f64],
        model: &MachineModel,
        corrections: &Corrections,
        objective: SlowdownObjective,
        domains: &[FillDomain],
    ) {
        self.groups.clear();
        self.predictions.clear();
        self.alternatives.clear();
        let stacks: Vec<&[f64]> = stacks.chunks(model.components().max(1)).collect();
        for domain in domains {
            let own = domain.members.iter().filter_map(|&i| stacks.get(i));
            let ids = domain.members.iter().map(|&i| crew.members[i].id);
            let chooser = GroupChooser {
                ids: &ids.collect::<Vec<ThreadId>>(),
                stacks: &own.copied().flatten().copied().collect::<Vec<f64>>(),
                model,
                corrections,
                objective,
            };
            let cores = domain.cores.len();
            let groups = if chooser.ids.len() <= 2 * cores {
                let chosen = chooser.choose_pairs(cores, &mut self.pairs, &mut self.costs);
                if chosen.is_some() && chooser.ids.len() <= MOST_COMPARED {
                    for pair in chosen.iter().flatten() {
                        for (at, &own) in pair.iter().enumerate() {
                            let chosen = pair.get(1 - at).copied();
                            let rivals = rivals(&self.costs, own, chosen);
                            let name = |i: usize| &*crew.members[domain.members[i]].name;
                            let alternatives = { rivals.into_iter() }
                                .map(|(i, cost)| Alternative {
                                    place: format!("next to {}", name(i)),
                                    cost,
                                    measure: objective.cost_name().into(),
                                    is_chosen: chosen == Some(i),
                                })
                                .collect();
                            let id = crew.members[domain.members[own]].id;
                            self.alternatives.insert(id, alternatives);
                        }
                    }
                }
                chosen.unwrap_or_else(|| groups_in_order(chooser.ids.len(), cores))
            } else {
                chooser.choose_groups(cores)
            };
            for group in groups {
                self.predictions.extend(chooser.predictions(&group));
                let members = group.into_iter().map(|i| domain.members[i]);
                self.groups.push(members.collect());
            }
        }
    }

    /// Takes the compared pairs of every thread of the last decision.
    pub(super) fn take_alternatives(&mut self) -> BTreeMap<ThreadId, Vec<Alternative>> {
        std::mem::take(&mut self.alternatives)
    }

    /// Returns the reason why a member is in its group.
    pub(super) fn reason(
        &self,
        crew: &GroupedThreads<'_>,
        group: &[usize],
        member: usize,
    ) -> Reason {
        let others = group.iter().filter(|&&i| i != member);
        let names: Vec<&str> = others.map(|&i| &*crew.members[i].name).collect();
        let names = names.join(", ");
        let fact = |name: &'static str, value| Fact {
            name: name.into(),
            value,
            unit: "x".into(),
        };
        let prediction = self.predictions.get(&crew.members[member].id);
        Reason {
            considered: "all groups, by predicted slowdown".to_owned(),
            chosen: if group.len() < 2 {
                "alone on its core".to_owned()
            } else {
                format!("next to {names}, of the groups with the least cost")
            },
            facts: prediction.map_or_else(Vec::new, |p| {
                vec![
                    fact("predicted slowdown", p.slowdown / p.factor),
                    fact("correction", p.factor),
                ]
            }),
        }
    }
}

/// Inputs of the choice in one domain.
struct GroupChooser<'a> {
    ids: &'a [ThreadId],
    stacks: &'a [f64],
    model: &'a MachineModel,
    corrections: &'a Corrections,
    objective: SlowdownObjective,
}

impl GroupChooser<'_> {
    /// Pairs threads, at most two per core, at the least cost; `None` if the model has no level for
    /// pairs.
    fn choose_pairs(
        &self,
        cores: usize,
        pairs: &mut PairSlowdowns,
        costs: &mut PairCosts,
    ) -> Option<Vec<Vec<usize>>> {
        let alone = vec![self.objective.cost(1.0); self.ids.len()];
        let level = self.model.level(2)?;
        level.pairs_into(self.stacks, pairs).ok()?;
        self.corrections.apply(self.ids, pairs);
        let filled = costs.refill(self.ids.len(), |first, row| {
            pairs.fill_costs_after(first, |slowdown| self.objective.cost(slowdown), row);
        });
        let pairing = filled.and_then(|()| matching::pairs(costs, &alone, cores));
        let pairs = pairing.ok()?.pairs.into_iter();
        let pair = |(first, second)| std::iter::once(first).chain(second).collect();
        Some(pairs.map(pair).collect())
    }

    /// Groups threads, more than two per core.
    fn choose_groups(&self, cores: usize) -> Vec<Vec<usize>> {
        let room = GroupRoom {
            cores,
            ways: self.ids.len().div_ceil(cores.max(1)),
            swaps: SWAPS_PER_THREAD * self.ids.len(),
        };
        let cost = |members: &[usize]| -> f64 {
            let costs = members.iter().map(|&i| {
                let (slowdown, factor) = self.slowdown(i, members);
                self.objective.cost(slowdown / factor)
            });
            costs.sum()
        };
        match matching::group_threads(self.ids.len(), room, cost) {
            Ok(found) => found.groups,
            Err(_) => groups_in_order(self.ids.len(), cores),
        }
    }

    fn predictions(&self, group: &[usize]) -> Vec<(ThreadId, SlowdownPrediction)> {
        let mut predictions = Vec::new();
        for &i in group {
            let (slowdown, factor) = self.slowdown(i, group);
            let others = group.iter().filter(|&&other| other != i);
            let prediction = SlowdownPrediction {
                co_runners: others.map(|&other| self.ids[other]).collect(),
                slowdown,
                factor,
            };
            predictions.push((self.ids[i], prediction));
        }
        predictions
    }

    /// The predicted slowdown of a thread in a group, and the factor that corrects its performance.
    fn slowdown(&self, thread: usize, group: &[usize]) -> (f64, f64) {
        if group.len() < 2 {
            return (1.0, 1.0);
        }
        let mut sum = vec![0.0; self.model.components()];
        let mut ids = Vec::new();
        for &other in group.iter().filter(|&&i| i != thread) {
            for (sum, share) in sum.iter_mut().zip(self.stack(other)) {
                *sum += share;
            }
            ids.push(self.ids[other]);
        }
        let level = self.model.level(group.len());
        let slowdown = level.map_or(1.0, |level| level.slowdown(self.stack(thread), &sum));
        let factor = self.corrections.factor_among(self.ids[thread], &ids);
        (slowdown, factor)
    }

    fn stack(&self, thread: usize) -> &[f64] {
        let components = self.model.components();
        let from = thread * components;
        self.stacks.get(from..from + components).unwrap_or_default()
    }
}

/// The chosen co-runner of a thread and the others with which it would cost least, with the costs of
/// the pairs.
fn rivals(costs: &PairCosts, own: usize, chosen: Option<usize>) -> Vec<(usize, f64)> {
    let others = (0..costs.threads()).filter(|&i| i != own && Some(i) != chosen);
    let mut others: Vec<(usize, f64)> = others.map(|i| (i, costs.at(own, i))).collect();
    let by_cost = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
    if others.len() > RIVALS {
        others.select_nth_unstable_by(RIVALS, by_cost);
        others.truncate(RIVALS);
    }
    others.sort_by(by_cost);
    let chosen = chosen.map(|i| (i, costs.at(own, i)));
    chosen.into_iter().chain(others).collect()
}

fn groups_in_order(threads: usize, cores: usize) -> Vec<Vec<usize>> {
    let cores = cores.max(1);
    let mut groups = vec![Vec::new(); cores.min(threads)];
    (0..threads).for_each(|thread| groups[thread % cores].push(thread));
    groups
}

/// Performance of threads alone, and the corrections of predictions.
#[derive(Debug, Default)]
pub(super) struct MeasuredPerformance {
    /// Instructions per cycle alone on a core, and the core if it is known.
    alone_ipc: BTreeMap<ThreadId, (f64, Option<usize>)>,
    corrections: Corrections,
}

impl MeasuredPerformance {
    pub(super) fn corrections(&self) -> &Corrections {
        &self.corrections
    }

    pub(super) fn retain(&mut self, is_here: impl Fn(ThreadId) -> bool) {
        self.alone_ipc.retain(|&id, _| {
            let here = is_here(id);
            if !here {
                self.corrections.forget(id);
            }
            here
        });
    }

    /// Records the performance of every thread alone in the quantum that has just ended.
    #[doc(alias = "isolated IPC")]
    pub(super) fn record_alone(&mut self, topology: &Topology, crew: &GroupedThreads<'_>) {
        for thread in &crew.members {
            if let Some(ipc) = ipc(&thread.sample) {
                let core = core_of(topology, thread);
                self.alone_ipc.insert(thread.id, (ipc, core));
            }
        }
    }

    /// Compares the performance of each thread next to its partners with the prediction. `factor`
    /// is the speed of a thread alone on its present core over that on another.
    pub(super) fn correct_predictions(
        &mut self,
        crew: &GroupedThreads<'_>,
        partners: &Partners,
        factor: impl Fn(&ThreadObservation, usize) -> f64,
    ) {
        for thread in &crew.members {
            let prediction = partners.predictions.get(&thread.id);
            let prediction = prediction.filter(|p| !p.co_runners.is_empty());
            let (Some(&(alone, core)), Some(now), Some(predicted)) = (
                self.alone_ipc.get(&thread.id),
                ipc(&thread.sample),
                prediction,
            ) else {
                continue;
            };
            let alone = match core {
                Some(core) => alone * factor(thread, core),
                None => alone,
            };
            let performance = 1.0 / predicted.slowdown;
            self.corrections
                .update(thread.id, &predicted.co_runners, now / alone, performance);
        }
    }
}

/// The core on which a thread was last seen.
pub(super) fn core_of(topology: &Topology, thread: &ThreadObservation) -> Option<usize> {
    topology.core_of(thread.last_pu?)
}

/// Instructions per cycle.
pub(super) fn ipc(sample: &Sample) -> Option<f64> {
    let cycles = sample.get(Signal::Cycles)?;
    let ipc = sample.get(Signal::Instructions)? / cycles;
    (ipc.is_finite() && ipc > 0.0).then_some(ipc)
}
