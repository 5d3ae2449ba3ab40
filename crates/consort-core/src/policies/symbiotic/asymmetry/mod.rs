//! Cores that are alike by name and are not: learning which are bad for threads that wait for
//! memory, and placing groups by it.
//!
//! The paper saw memory-bound programs run faster on the first half of the cores of its POWER8 and
//! put them there (Feliu et al., HPCA 2016): [`CoreHalves`]. Learning which cores are faster is
//! beyond the paper. Every measurement alone is on a core drawn at random, so that threads come
//! onto several; [`fit`] separates the cores' part from the threads'; groups then go to the cores
//! where they lose least.
//!
//! Pitfalls: a core has one disadvantage for all threads. If each thread's memory is on another
//! node, what is near for one is far for the other, and the mean over both is about nothing; `numa`
//! is for that case.

mod fit;
mod memory;
#[cfg(test)]
mod tests;

use self::fit::{AloneIpcSample, disadvantages};
use self::memory::MemoryShares;
use super::partners::{Partners, core_of, ipc};
use super::{COUNTED, SlowdownObjective};
use crate::ids::ThreadId;
use crate::plan::{Decision, Fact};
use crate::policies::grouping::{
    CorePrices, FillDomain, GroupedThreads, place_groups_on, priced_cores,
};
use crate::policy::PolicyRng;
use crate::signal::SignalOffers;
use crate::topology::Topology;
use rand::RngExt;
use std::collections::BTreeMap;
use std::ops::Range;

/// Quanta from the first measurement to the second; it doubles from one to the next up to the
/// period. Two measurements are the least that separate a thread's part from its core's.
pub(super) const FIRST_WAIT_QUANTA: u64 = 4;

/// Weight of a measurement one round later, relative to now. An estimate: half of it is gone after
/// seven rounds.
const KEPT: f64 = 0.9;

/// Rounds after which a measurement, then of a weight of 0.015, is forgotten.
const ROUNDS: u64 = 40;

/// Knowledge of the cores so far.
#[derive(Debug)]
pub(super) struct CoreDisadvantages {
    shares: MemoryShares,
    round: u64,
    seen: Vec<CoreVisit>,
    /// Disadvantage by core, as [`CoreDisadvantages::disadvantage`] returns it.
    disadvantages: Vec<f64>,
}

/// A thread alone on a core.
#[derive(Clone, Copy, Debug)]
struct CoreVisit {
    round: u64,
    thread: ThreadId,
    core: usize,
    ln_ipc: f64,
}

impl CoreDisadvantages {
    /// Finds the signals of speed and of waiting for memory on a machine.
    ///
    /// # Errors
    /// A signal is missing; the text names it.
    pub(super) fn from_offers(offers: &SignalOffers) -> Result<Self, String> {
        if !offers.missing_signals(&COUNTED).is_empty() {
            return Err(
                "needs cycles and instructions for core-asymmetry=true, and they are not counted here"
                    .to_owned(),
            );
        }
        Ok(Self {
            shares: MemoryShares::from_offers(offers)?,
            round: 0,
            seen: Vec::new(),
            disadvantages: Vec::new(),
        })
    }

    /// Records the performance of every thread alone in the quantum that has just ended.
    pub(super) fn record_alone(&mut self, topology: &Topology, crew: &GroupedThreads<'_>) {
        let cores = topology.cores().len();
        if self.disadvantages.len() != cores {
            // Cores came or went, and the numbers of the others changed with them.
            (self.seen, self.disadvantages) = (Vec::new(), vec![0.0; cores]);
        }
        self.round += 1;
        for thread in &crew.members {
            self.shares.update(thread);
            if let Some((core, ipc)) = core_of(topology, thread).zip(ipc(&thread.sample)) {
                self.seen.push(CoreVisit {
                    round: self.round,
                    thread: thread.id,
                    core,
                    ln_ipc: libm::log(ipc),
                });
            }
        }
        self.fit_disadvantages();
    }

    fn fit_disadvantages(&mut self) {
        let round = self.round;
        self.seen.retain(|seen| round - seen.round < ROUNDS);
        let mut numbers: BTreeMap<ThreadId, usize> = BTreeMap::new();
        for seen in &self.seen {
            let next = numbers.len();
            numbers.entry(seen.thread).or_insert(next);
        }
        self.shares.retain(|thread| numbers.contains_key(&thread));
        let measured = self.seen.iter().map(|seen| AloneIpcSample {
            thread: numbers[&seen.thread],
            core: seen.core,
            ln_ipc: seen.ln_ipc,
            memory: self.shares.share(seen.thread),
            weight: libm::pow(KEPT, (round - seen.round) as f64),
        });
        let measured: Vec<AloneIpcSample> = measured.collect();
        self.disadvantages = disadvantages(&measured, self.disadvantages.len());
    }

    /// Logarithm of the ratio of the time that waiting for memory takes on a core to that on the
    /// mean core.
    fn disadvantage(&self, core: usize) -> f64 {
        self.disadvantages.get(core).copied().unwrap_or(0.0)
    }

    /// Slowdown of a thread alone on `core` relative to `other`, by the model.
    pub(super) fn slowdown(&self, thread: ThreadId, core: usize, other: usize) -> f64 {
        let farther = self.disadvantage(core) - self.disadvantage(other);
        libm::exp(self.shares.share(thread) * farther)
    }

    /// The core that is best for memory.
    fn best_core(&self) -> usize {
        let by = |&a: &usize, &b: &usize| self.disadvantage(a).total_cmp(&self.disadvantage(b));
        (0..self.disadvantages.len()).min_by(by).unwrap_or(0)
    }
}

/// Parts of a slowdown of 1 that prices are counted in.
const PARTS: f64 = 1e6;

/// Gain that a move must bring a thread, as a part of its slowdown. To fetch again what an LLC
/// domain of 8 MB holds takes some 2 ms, which is this share of a quantum of 100 ms. An estimate.
const MOVE: f64 = 0.02;

/// A core for every group, all arrangements equally likely if affinity masks allow all: the
/// cheapest of random prices.
pub(super) fn random_cores(
    topology: &Topology,
    crew: &GroupedThreads<'_>,
    groups: &[Vec<usize>],
    rng: &mut PolicyRng,
) -> Vec<Option<usize>> {
    let cores = topology.cores().len();
    let drawn: Vec<u32> = (0..groups.len() * cores)
        .map(|_| rng.random::<u32>())
        .collect();
    let prices = CorePrices {
        move_cost: 0,
        of: &|group, core| drawn[group * cores + core],
    };
    priced_cores(topology, crew, groups, prices)
}

/// Places the groups where cores and moves add the least slowdown.
pub(super) fn place_groups(
    topology: &Topology,
    crew: &GroupedThreads<'_>,
    (partners, objective): (&Partners, SlowdownObjective),
    asymmetry: &CoreDisadvantages,
    decision: &mut Decision,
) {
    let groups = partners.groups();
    let best = asymmetry.best_core();
    let price = |group: usize, core: usize| {
        let extra = groups[group].iter().map(|&member| {
            let thread = crew.members[member].id;
            let slowdown = partners.slowdown(thread);
            let here = slowdown * asymmetry.slowdown(thread, core, best);
            objective.cost(here) - objective.cost(slowdown)
        });
        (extra.sum::<f64>().max(0.0) * PARTS) as u32
    };
    let prices = CorePrices {
        move_cost: (MOVE * PARTS) as u32,
        of: &price,
    };
    let cores = priced_cores(topology, crew, groups, prices);
    place_groups_on(
        topology,
        crew,
        groups,
        &cores,
        decision,
        |group, member, core| {
            let mut reason = partners.reason(crew, group, member);
            let share = asymmetry.shares.share(crew.members[member].id);
            let facts = [
                ("waiting for memory alone", share, "of cycles"),
                (
                    CORE_DISADVANTAGE,
                    asymmetry.disadvantage(core),
                    "of that, ln",
                ),
            ];
            reason.facts.extend(facts.map(|(name, value, unit)| Fact {
                name: name.into(),
                value,
                unit: unit.into(),
            }));
            reason
        },
    );
}

/// Name of the fact of a thread's core: logarithm of the ratio of the time that waiting for memory
/// takes there to that on the mean core.
pub const CORE_DISADVANTAGE: &str = "disadvantage of the core";

/// The paper's rule: the most memory-intensive threads go to the first half of the cores.
///
/// Feliu et al., HPCA 2016, found the first five of its ten cores faster for such programs and, as
/// an experiment, put them there. Which cores are faster is given, not learnt. Its scheduler does
/// not put two memory-intensive programs on one core, so that pairs are made as usual and then
/// seated; by another reading of the rule, threads are divided and pairs are made inside each half.
#[derive(Debug)]
pub(super) struct CoreHalves {
    shares: MemoryShares,
    /// True if pairs are made inside each half.
    pub(super) pairs_inside: bool,
}

impl CoreHalves {
    /// Finds the signal of waiting for memory on a machine.
    ///
    /// # Errors
    /// It is missing; the text says which ones would do.
    pub(super) fn from_offers(offers: &SignalOffers, pairs_inside: bool) -> Result<Self, String> {
        let shares = MemoryShares::from_offers(offers)?;
        Ok(Self {
            shares,
            pairs_inside,
        })
    }

    pub(super) fn record_quantum(&mut self, crew: &GroupedThreads<'_>) {
        let members = crew.members.iter();
        members.for_each(|thread| self.shares.update(thread));
    }

    pub(super) fn retain(&mut self, is_here: impl Fn(ThreadId) -> bool) {
        self.shares.retain(is_here);
    }

    /// The cores for each group: the first half for the groups that wait for memory most, as many as
    /// the half's share of the cores, and the second half for the others.
    pub(super) fn seats(
        &self,
        topology: &Topology,
        crew: &GroupedThreads<'_>,
        groups: &[Vec<usize>],
    ) -> Vec<Range<usize>> {
        let cores = topology.cores().len();
        let first = cores.div_ceil(2);
        let share = |group: &usize| -> f64 {
            let members = groups[*group].iter();
            members
                .map(|&m| self.shares.share(crew.members[m].id))
                .sum()
        };
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.cmp(b)));
        let near = (groups.len() * first).div_ceil(cores.max(1));
        let mut seats = vec![first..cores; groups.len()];
        for &group in &order[..near] {
            seats[group] = 0..first;
        }
        seats
    }

    /// The first half of the cores with its share of the threads, which wait for memory most,
    /// and the second half with the others.
    pub(super) fn domains(
        &self,
        topology: &Topology,
        crew: &GroupedThreads<'_>,
    ) -> Vec<FillDomain> {
        let cores = topology.cores().len();
        let first = cores.div_ceil(2);
        let share = |&member: &usize| self.shares.share(crew.members[member].id);
        let mut members: Vec<usize> = (0..crew.members.len()).collect();
        members.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.cmp(b)));
        let mut others = members.split_off((members.len() * first).div_ceil(cores.max(1)));
        members.sort_unstable();
        others.sort_unstable();
        vec![
            FillDomain {
                members,
                cores: (0..first).collect(),
            },
            FillDomain {
                members: others,
                cores: (first..cores).collect(),
            },
        ]
    }
}
