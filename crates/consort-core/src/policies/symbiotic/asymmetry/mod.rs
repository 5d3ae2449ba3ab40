//! Cores that are alike by name and are not: learning which are bad for threads that wait for
//! memory.
//!
//! The paper saw memory-bound programs run faster on the first half of the cores of its POWER8 and
//! put them there (Feliu et al., HPCA 2016): [`CoreHalves`]. The rest learns which cores are faster,
//! which is beyond the paper. Every measurement alone is on a core drawn at random, so that threads
//! come onto several; `fit` tells the cores' part from the threads'; groups then go to the cores
//! where they lose least.
//!
//! Pitfalls: a core has one disadvantage for all threads. Where each thread's memory is on another
//! node, what is near for one is far for the other, and the mean over both is about nothing; `numa`
//! is for that case.

mod core_halves;
mod fit;
mod memory;
mod seating;
#[cfg(test)]
mod tests;

pub(super) use self::core_halves::CoreHalves;
use self::fit::{AloneIpcSample, disadvantages};
use self::memory::MemoryShares;
pub use self::seating::CORE_DISADVANTAGE;
pub(super) use self::seating::{place_groups, random_cores};
use super::COUNTED;
use super::measured_performance::{core_of, ipc};
use crate::ids::ThreadId;
use crate::policies::grouping::GroupedThreads;
use crate::signal::SignalOffers;
use crate::topology::Topology;
use std::collections::BTreeMap;

/// Quanta from the first measurement to the second; it doubles from one to the next up to the
/// period. Two are the least from which a thread's part can be told from its core's.
pub(super) const FIRST_WAIT_QUANTA: u64 = 4;

/// Weight of a measurement one round later, relative to now. An estimate: half of it is gone after
/// seven rounds.
const KEPT: f64 = 0.9;

/// Rounds after which a measurement, then of a weight of 0.015, is forgotten.
const ROUNDS: u64 = 40;

/// Knowledge of the cores that was learnt so far.
#[derive(Debug)]
pub(super) struct CoreDisadvantages {
    shares: MemoryShares,
    round: u64,
    seen: Vec<CoreVisit>,
    /// Disadvantage by core, as [`CoreDisadvantages::disadvantage`] tells it.
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
    /// Finds out how a machine tells of speed and of waiting for memory.
    ///
    /// # Errors
    /// It does not; the text says what would be right.
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

    /// Takes the performance of every thread alone in the quantum that has just ended.
    pub(super) fn record_alone(&mut self, topology: &Topology, crew: &GroupedThreads<'_>) {
        let cores = topology.cores().len();
        if self.disadvantages.len() != cores {
            // Cores came or went, and with them the numbers of the others.
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
    pub(super) fn disadvantage(&self, core: usize) -> f64 {
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
