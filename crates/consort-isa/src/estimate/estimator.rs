//! Collecting the samples of one thread over one interval.
//!
//! Usage: [`Estimator::add`] per sample whose block is known,
//! [`Estimator::add_undecoded`] per sample whose code could not be read, then
//! [`Estimator::finish`]. Weights are in any one unit (the time that each sample
//! stands for, or 1).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::accesses::DataLevel;
use super::calibrate::{as_f64, worth};
use super::footprint::CodeLineSamples;
use super::histogram::BlockHistogram;
use super::pace;
use super::pool::BlockPool;
use super::split::{StallSplit, split_time};
use super::tally::{KINDS, tally_by_suspicion};
use super::{Estimate, EstimatedStack, SamplePoint, ShareBounds};
use crate::sampled_processor::RETIRE_WIDTH;
use crate::{BlockFacts, ClassMix, SampledProcessor};

/// Samples from which a block that is no loop is judged by itself. At 64 the
/// standard error of an even share of a block of eight instructions is a third
/// of it, and a pile of twice the even share is past three of them.
const OWN_JUDGEMENT_SAMPLES: u32 = 64;

/// The samples of one thread.
#[derive(Clone, Debug, Default)]
pub struct Estimator {
    /// By start and number of instructions; in order, so that sums of shares
    /// come out the same every time.
    histograms: BTreeMap<(u64, usize), BlockHistogram>,
    lines: CodeLineSamples,
    samples: u64,
    undecoded_weight: f64,
    host: SampledProcessor,
}

impl Estimator {
    /// An estimator without samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// An estimator for samples of such a processor.
    pub fn for_processor(host: SampledProcessor) -> Self {
        Self {
            host,
            ..Self::default()
        }
    }

    /// Adds one sample at `address`, which lies in `block`, and returns whether
    /// the block has an instruction there; if not the sample counts as
    /// undecoded. Blocks are told apart by start and length. Weights that are
    /// not positive and finite count as zero.
    pub fn add(&mut self, block: &Arc<BlockFacts>, address: u64, weight: f64) -> bool {
        self.add_at(
            block,
            SamplePoint {
                address,
                accessed: None,
                pu: 0,
                time_ns: 0,
                weight,
            },
        )
    }

    /// Adds one sample as [`Estimator::add`] does, with what it tells of the
    /// memory that the code is about.
    pub fn add_at(&mut self, block: &Arc<BlockFacts>, at: SamplePoint) -> bool {
        let Some(index) = block.index_of(at.address) else {
            self.add_undecoded(at.weight);
            return false;
        };
        self.samples += 1;
        self.lines.add(at.address);
        let sequence = self.samples;
        let histogram = self.histogram_of(block);
        histogram.add(index, usable_weight(at.weight));
        histogram.accesses_mut().add(at, sequence);
        true
    }

    /// Adds one sample whose code could not be read or decoded.
    pub fn add_undecoded(&mut self, weight: f64) {
        self.samples += 1;
        self.undecoded_weight += usable_weight(weight);
    }

    /// Estimate that the samples give; `None` if none with a weight was decoded.
    pub fn finish(&self) -> Option<Estimate> {
        let decoded = self.decoded_weight();
        if decoded <= 0.0 {
            return None;
        }
        let stalls = self.stalls();
        let memory = (stalls.memory / decoded).clamp(0.0, 1.0);
        Some(Estimate {
            mix: self.mix(),
            mix_at_address: self.mix_at_address(),
            stack: stalls.stack(decoded),
            memory_stall_share: memory,
            bandwidth_share: (stalls.bandwidth / decoded).clamp(0.0, memory),
            memory_bounds: stalls.memory_bounds(decoded),
            samples: self.samples,
            decoded_share: decoded / (decoded + self.undecoded_weight),
            footprint: self.lines.footprint(),
        })
    }

    fn histogram_of(&mut self, block: &Arc<BlockFacts>) -> &mut BlockHistogram {
        self.histograms
            .entry((block.start(), block.instructions().len()))
            .or_insert_with(|| BlockHistogram::new(block))
    }

    fn decoded_weight(&self) -> f64 {
        self.histograms
            .values()
            .map(|histogram| histogram.total().weight)
            .sum()
    }

    fn stalls(&self) -> Stalls {
        let mut stalls = Stalls::default();
        let mut pool = BlockPool::default();
        for histogram in self.histograms.values() {
            let level = histogram.accesses().level(self.host);
            let share = histogram.accesses().share();
            match pace::stall_share(histogram, self.host, share, level) {
                Some(stall) => stalls.add_stream(histogram, stall),
                _ if is_judged_alone(histogram, level) => stalls.add_block(histogram, level),
                _ => pool.add(histogram),
            }
        }
        for (weight, split) in pool.splits(self.host) {
            stalls.add(weight, split);
        }
        stalls
    }

    fn mix(&self) -> ClassMix {
        let mut weights = [0.0; 7];
        for histogram in self.histograms.values() {
            let even_weight = histogram.total().weight / as_f64(histogram.len());
            for (weight, count) in weights.iter_mut().zip(histogram.block().class_counts()) {
                *weight += even_weight * f64::from(count);
            }
        }
        ClassMix::from_weights(weights)
    }

    fn mix_at_address(&self) -> ClassMix {
        let mut weights = [0.0; 7];
        for histogram in self.histograms.values() {
            for index in 0..histogram.len() {
                let class = histogram.block().class_at(index);
                weights[class.index()] += histogram.pile(index).weight;
            }
        }
        ClassMix::from_weights(weights)
    }
}

fn usable_weight(weight: f64) -> f64 {
    if weight.is_finite() {
        weight.max(0.0)
    } else {
        0.0
    }
}

/// A loop stands for itself: what its samples wait for is in it. Other blocks
/// do if they are long enough to be calibrated and have enough samples.
///
/// And so does a block whose data are known to be in the nearest or in no cache of its core, or that
/// ends a loop and has its data anywhere known.
fn is_judged_alone(histogram: &BlockHistogram, level: DataLevel) -> bool {
    let walks = histogram.block().ends_loop() && level != DataLevel::Unknown;
    let told = walks || matches!(level, DataLevel::First | DataLevel::Beyond);
    let long = as_f64(histogram.len()) > RETIRE_WIDTH;
    let many = histogram.total().count >= OWN_JUDGEMENT_SAMPLES;
    histogram.block().is_loop() || told || (long && many)
}

/// Weights of samples by cause.
#[derive(Clone, Copy, Debug, Default)]
struct Stalls {
    memory: f64,
    unit: f64,
    front_end: f64,
    memory_low: f64,
    memory_high: f64,
    /// The part of `memory` in streams.
    bandwidth: f64,
}

impl Stalls {
    fn add(&mut self, weight: f64, split: StallSplit) {
        self.memory += weight * split.memory;
        self.unit += weight * split.unit;
        self.front_end += weight * split.front_end;
        self.memory_low += weight * split.memory_bounds.low;
        self.memory_high += weight * split.memory_bounds.high;
    }

    /// A loop that goes through memory: what is no stall goes to the causes that
    /// its samples name.
    fn add_stream(&mut self, histogram: &BlockHistogram, stall: f64) {
        let weight = histogram.total().weight;
        self.bandwidth += stall * weight;
        let memory_bounds = ShareBounds {
            low: 0.0,
            high: 1.0,
        };
        let split = StallSplit {
            memory: stall,
            memory_bounds,
            ..StallSplit::default()
        };
        self.add(weight, split);
    }

    fn add_block(&mut self, histogram: &BlockHistogram, level: DataLevel) {
        let tallies = tally_by_suspicion(histogram);
        let loop_instructions = histogram.block().is_loop().then_some(histogram.len());
        for (suspicion, tally) in KINDS.into_iter().zip(tallies) {
            let worth = worth(tally, &tallies);
            self.add(
                tally.pile.weight,
                split_time(suspicion, worth, loop_instructions)
                    .adjust_to_level(level, suspicion, worth),
            );
        }
    }

    fn stack(&self, total: f64) -> EstimatedStack {
        let [memory, unit, front_end] =
            [self.memory, self.unit, self.front_end].map(|part| (part / total).clamp(0.0, 1.0));
        EstimatedStack {
            base: (1.0 - memory - unit - front_end).max(0.0),
            unit,
            memory,
            front_end,
        }
    }

    fn memory_bounds(&self, total: f64) -> ShareBounds {
        ShareBounds {
            low: (self.memory_low / total).clamp(0.0, 1.0),
            high: (self.memory_high / total).clamp(0.0, 1.0),
        }
    }
}
