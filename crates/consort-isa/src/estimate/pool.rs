//! Blocks too small or too rarely hit to be judged one by one, taken together.
//!
//! In one such block a single sample behind a load may be chance. All of them
//! together are taken for many executions of one average block: as long as they
//! are on average, with the average number of instructions per suspicion, and
//! with all their samples.

use super::accesses::BlockAccesses;
use super::calibrate::{SampleWorth, UNSEEN_SAMPLES, as_f64};
use super::histogram::{BlockHistogram, InstructionSamples};
use super::split::{StallSplit, split_time};
use super::tally::{KINDS, NONE, tally_by_suspicion};
use crate::SampledProcessor;
use crate::sampled_processor::RETIRE_WIDTH;

/// The samples under one suspicion.
#[derive(Clone, Copy, Debug, Default)]
struct SuspicionSamples {
    pile: InstructionSamples,
    /// Instructions per block, times the weight of the block.
    weighted_instructions: f64,
}

/// Several blocks together.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockPool {
    weight: f64,
    parts: [SuspicionSamples; KINDS.len()],
    reach: BlockAccesses,
}

impl BlockPool {
    pub(super) fn add(&mut self, histogram: &BlockHistogram) {
        let weight = histogram.total().weight;
        self.weight += weight;
        self.reach.join(histogram.accesses());
        for (part, tally) in self.parts.iter_mut().zip(tally_by_suspicion(histogram)) {
            part.pile.add(tally.pile);
            part.weighted_instructions += weight * as_f64(tally.instructions);
        }
    }

    /// Per suspicion: the weight of its samples and how to split it.
    pub(super) fn splits(&self, host: SampledProcessor) -> impl Iterator<Item = (f64, StallSplit)> {
        let level = self.reach.level(host);
        KINDS
            .iter()
            .zip(&self.parts)
            .map(move |(&suspicion, part)| {
                let worth = self.worth(*part);
                let split =
                    split_time(suspicion, worth, None).adjust_to_level(level, suspicion, worth);
                (part.pile.weight, split)
            })
    }

    /// Here the instructions without suspicion retire in all groups alike, so
    /// they take their part of the width.
    fn worth(&self, part: SuspicionSamples) -> SampleWorth {
        let rest = self.parts[NONE];
        let seen = rest.pile.weight + UNSEEN_SAMPLES * part.pile.mean_weight();
        let ratio = if seen > 0.0 {
            part.pile.cautious_weight() / seen
        } else {
            0.0
        };
        SampleWorth {
            cycles: ratio * self.cycles_of(rest),
            base_cycles: self.cycles_of(part),
            calibrated: true,
        }
    }

    /// The cycles in which the instructions of one part retire, at least.
    fn cycles_of(&self, part: SuspicionSamples) -> f64 {
        if self.weight <= 0.0 {
            return 0.0;
        }
        part.weighted_instructions / self.weight / RETIRE_WIDTH
    }
}
