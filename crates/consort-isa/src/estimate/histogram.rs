//! Samples per instruction of one block.

use std::sync::Arc;

use super::reach::Reach;
use crate::{BlockFacts, Suspicion};

/// The samples on one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pile {
    /// Number of samples.
    pub(super) count: u32,
    /// Their weights together.
    pub(super) weight: f64,
}

impl Pile {
    pub(super) fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.weight += other.weight;
    }

    /// The weight less one standard error of a count: what the pile is worth at
    /// least, so that few samples do not make a stall.
    pub(super) fn cautious_weight(self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.weight * (1.0 - 1.0 / f64::from(self.count).sqrt())
    }

    /// The weight of one sample.
    pub(super) fn mean_weight(self) -> f64 {
        self.weight / f64::from(self.count.max(1))
    }
}

/// The samples of one block.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    block: Arc<BlockFacts>,
    piles: Vec<Pile>,
    reach: Reach,
}

impl Histogram {
    pub(super) fn new(block: &Arc<BlockFacts>) -> Self {
        Self {
            piles: vec![Pile::default(); block.instructions().len()],
            block: Arc::clone(block),
            reach: Reach::default(),
        }
    }

    pub(super) fn add(&mut self, index: usize, weight: f64) {
        self.piles[index].add(Pile { count: 1, weight });
    }

    pub(super) fn reach(&self) -> &Reach {
        &self.reach
    }

    pub(super) fn reach_mut(&mut self) -> &mut Reach {
        &mut self.reach
    }

    pub(super) fn block(&self) -> &BlockFacts {
        &self.block
    }

    /// The number of instructions.
    pub(super) fn len(&self) -> usize {
        self.piles.len()
    }

    pub(super) fn piles(&self) -> impl Iterator<Item = (Pile, Suspicion)> {
        let suspicions = self.block.suspicions().iter().copied();
        self.piles.iter().copied().zip(suspicions)
    }

    pub(super) fn pile(&self, index: usize) -> Pile {
        self.piles[index]
    }

    pub(super) fn total(&self) -> Pile {
        let mut total = Pile::default();
        for pile in &self.piles {
            total.add(*pile);
        }
        total
    }
}
