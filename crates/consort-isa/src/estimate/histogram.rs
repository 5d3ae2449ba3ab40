//! Samples per instruction of one block.

use std::sync::Arc;

use super::accesses::BlockAccesses;
use crate::{BlockFacts, Suspicion};

/// The samples on one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct InstructionSamples {
    /// Number of samples.
    pub(super) count: u32,
    /// Their weights together.
    pub(super) weight: f64,
}

impl InstructionSamples {
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
pub(super) struct BlockHistogram {
    block: Arc<BlockFacts>,
    piles: Vec<InstructionSamples>,
    reach: BlockAccesses,
}

impl BlockHistogram {
    pub(super) fn new(block: &Arc<BlockFacts>) -> Self {
        Self {
            piles: vec![InstructionSamples::default(); block.instructions().len()],
            block: Arc::clone(block),
            reach: BlockAccesses::default(),
        }
    }

    pub(super) fn add(&mut self, index: usize, weight: f64) {
        self.piles[index].add(InstructionSamples { count: 1, weight });
    }

    pub(super) fn accesses(&self) -> &BlockAccesses {
        &self.reach
    }

    pub(super) fn accesses_mut(&mut self) -> &mut BlockAccesses {
        &mut self.reach
    }

    pub(super) fn block(&self) -> &BlockFacts {
        &self.block
    }

    /// The number of instructions.
    pub(super) fn len(&self) -> usize {
        self.piles.len()
    }

    pub(super) fn piles(&self) -> impl Iterator<Item = (InstructionSamples, Suspicion)> {
        let suspicions = self.block.suspicions().iter().copied();
        self.piles.iter().copied().zip(suspicions)
    }

    pub(super) fn pile(&self, index: usize) -> InstructionSamples {
        self.piles[index]
    }

    pub(super) fn total(&self) -> InstructionSamples {
        let mut total = InstructionSamples::default();
        for pile in &self.piles {
            total.add(*pile);
        }
        total
    }
}
