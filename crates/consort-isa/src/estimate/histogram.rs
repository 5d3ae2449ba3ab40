//! Samples per instruction of one block.

use std::sync::Arc;

use super::accesses::BlockAccesses;
use crate::{BlockFacts, Suspicion};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct InstructionSamples {
    pub(super) count: u32,
    pub(super) weight: f64,
}

impl InstructionSamples {
    pub(super) fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.weight += other.weight;
    }

    /// The weight less one standard error of a count: a lower bound, so that few samples do not
    /// make a stall.
    pub(super) fn cautious_weight(self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.weight * (1.0 - 1.0 / f64::from(self.count).sqrt())
    }

    pub(super) fn mean_weight(self) -> f64 {
        self.weight / f64::from(self.count.max(1))
    }
}

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

/// The suspicions, [`Suspicion::None`] last.
pub(super) const KINDS: [Suspicion; 7] = [
    Suspicion::Memory { chained: true },
    Suspicion::Memory { chained: false },
    Suspicion::MemoryOrUnit,
    Suspicion::StoreBuffer,
    Suspicion::Unit,
    Suspicion::FrontEnd,
    Suspicion::None,
];

pub(super) const NONE: usize = KINDS.len() - 1;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SuspicionTally {
    pub(super) pile: InstructionSamples,
    pub(super) instructions: usize,
}

/// One tally per suspicion, as in [`KINDS`].
pub(super) fn tally_by_suspicion(histogram: &BlockHistogram) -> [SuspicionTally; KINDS.len()] {
    let mut tallies = [SuspicionTally::default(); KINDS.len()];
    for (pile, suspicion) in histogram.piles() {
        let index = KINDS.iter().position(|&kind| kind == suspicion);
        let tally = &mut tallies[index.unwrap_or(NONE)];
        tally.pile.add(pile);
        tally.instructions += 1;
    }
    tallies
}
