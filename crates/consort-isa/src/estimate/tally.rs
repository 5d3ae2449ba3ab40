//! The samples of a block by suspicion.

use super::histogram::{BlockHistogram, InstructionSamples};
use crate::Suspicion;

/// The suspicions that are told apart, none last.
pub(super) const KINDS: [Suspicion; 7] = [
    Suspicion::Memory { chained: true },
    Suspicion::Memory { chained: false },
    Suspicion::MemoryOrUnit,
    Suspicion::StoreBuffer,
    Suspicion::Unit,
    Suspicion::FrontEnd,
    Suspicion::None,
];

/// The position of [`Suspicion::None`].
pub(super) const NONE: usize = KINDS.len() - 1;

/// The samples on all instructions of a block under one suspicion.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SuspicionTally {
    pub(super) pile: InstructionSamples,
    pub(super) instructions: usize,
}

/// One tally per suspicion, as in [`KINDS`].
pub(super) fn tally_by_suspicion(histogram: &BlockHistogram) -> [SuspicionTally; KINDS.len()] {
    let mut tallies = [SuspicionTally::default(); KINDS.len()];
    for (pile, suspicion) in histogram.piles() {
        let tally = &mut tallies[kind_index(suspicion)];
        tally.pile.add(pile);
        tally.instructions += 1;
    }
    tallies
}

fn kind_index(suspicion: Suspicion) -> usize {
    KINDS
        .iter()
        .position(|&kind| kind == suspicion)
        .unwrap_or(NONE)
}
