//! Worth, in cycles, of the samples under one suspicion per execution of
//! their block.
//!
//! Samples count time in an unknown unit; the instructions beside a pile make it
//! known. At most w = [`RETIRE_WIDTH`] instructions retire per cycle. Of m
//! instructions beside a pile up to w - 1 may retire in the cycle that ends the
//! wait; the other m - w + 1 take at least ceil((m - w + 1) / w) cycles per
//! execution, in which they are seen. If they hold R samples together and the
//! pile holds c, the pile takes at least c / R times these cycles. With fewer
//! than w instructions beside it a pile cannot be calibrated.
//!
//! The piles of one suspicion are taken together, since what they wait for
//! overlaps: independent loads of a block hit or miss at the same time.

use super::histogram::InstructionSamples;
use super::tally::{KINDS, NONE, SuspicionTally};
use crate::sampled_processor::RETIRE_WIDTH;

/// Half a sample stands for what chance may have kept from a pile (the prior of
/// Jeffreys for a count).
pub(super) const UNSEEN_SAMPLES: f64 = 0.5;

/// Worth of the samples under one suspicion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SampleWorth {
    /// Cycles per execution, at least; of no meaning by themselves unless
    /// `calibrated`.
    pub(super) cycles: f64,
    /// Those of `cycles` that the instructions take to retire anyway.
    pub(super) base_cycles: f64,
    /// True where the rest of the block is large enough to tell.
    pub(super) calibrated: bool,
}

/// The time of a block beside a pile.
#[derive(Clone, Copy, Debug)]
struct BlockRemainder {
    weight: f64,
    instructions: usize,
}

impl BlockRemainder {
    fn is_large(self) -> bool {
        as_f64(self.instructions) >= RETIRE_WIDTH
    }

    /// The cycles in which the rest is seen to retire; where it is too small to
    /// be seen, its part of a group.
    fn least_cycles(self) -> f64 {
        let instructions = as_f64(self.instructions);
        if self.is_large() {
            ((instructions - RETIRE_WIDTH + 1.0) / RETIRE_WIDTH).ceil()
        } else {
            instructions / RETIRE_WIDTH
        }
    }

    fn pile_worth(self, pile: InstructionSamples, one_sample: f64) -> f64 {
        let weight = self.weight + UNSEEN_SAMPLES * one_sample;
        pile.cautious_weight() / weight * self.least_cycles()
    }
}

/// Worth of the samples of `tally` in the block that `all` are of.
///
/// Both the instructions without suspicion and all those without this one give
/// a lower bound; the greater one of those that hold is taken.
pub(super) fn worth(tally: SuspicionTally, all: &[SuspicionTally; KINDS.len()]) -> SampleWorth {
    let total = total(all);
    if tally.pile.count == 0 || total.pile.weight <= 0.0 {
        return SampleWorth {
            cycles: 0.0,
            base_cycles: 0.0,
            calibrated: true,
        };
    }
    let others = BlockRemainder {
        weight: (total.pile.weight - tally.pile.weight).max(0.0),
        instructions: total.instructions - tally.instructions,
    };
    let unsuspected = BlockRemainder {
        weight: all[NONE].pile.weight,
        instructions: all[NONE].instructions,
    };
    let calibrated = others.is_large();
    let cycles = [others, unsuspected]
        .into_iter()
        .filter(|rest| rest.is_large() || !calibrated)
        .map(|rest| rest.pile_worth(tally.pile, total.pile.mean_weight()))
        .fold(0.0, f64::max);
    SampleWorth {
        cycles,
        base_cycles: as_f64(tally.instructions) / RETIRE_WIDTH,
        calibrated,
    }
}

fn total(all: &[SuspicionTally; KINDS.len()]) -> SuspicionTally {
    let mut total = SuspicionTally::default();
    for tally in all {
        total.pile.add(tally.pile);
        total.instructions += tally.instructions;
    }
    total
}

/// Instructions and samples of one interval are far below 2^32.
pub(super) fn as_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
