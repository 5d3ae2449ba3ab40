//! Collecting the samples of one thread over one interval.
//!
//! Usage: [`Estimator::add`] per sample whose block is known, [`Estimator::add_undecoded`] per
//! sample whose code could not be read, then [`Estimator::finish`]. Weights are in any one unit
//! (the time that each sample stands for, or 1).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;

use super::accesses::{BlockAccesses, DataLevel};
use super::histogram::{BlockHistogram, InstructionSamples, KINDS, NONE, tally_by_suspicion};
use super::split::{SampleWorth, StallSplit, UNSEEN_SAMPLES, as_f64, split_time, worth};
use super::{Estimate, EstimatedStack, SamplePoint, ShareBounds};
use crate::arch::RETIRE_WIDTH;
use crate::{BlockFacts, ClassMix, SampledProcessor};

/// Samples from which a block that is no loop is judged by itself. At 64 the
/// standard error of an even share of a block of eight instructions is a third
/// of it, and a pile of twice the even share is past three of them.
const OWN_JUDGEMENT_SAMPLES: u32 = 64;

/// Samples of one thread over one interval.
#[derive(Clone, Debug, Default)]
pub struct Estimator {
    /// Keyed by start and number of instructions. Ordered, so that sums of shares are the same
    /// every time.
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

    /// An estimator for samples of this processor.
    pub fn for_processor(host: SampledProcessor) -> Self {
        Self {
            host,
            ..Self::default()
        }
    }

    /// Adds one sample at `address`, which lies in `block`. Returns whether the block has an
    /// instruction there; if not, the sample counts as undecoded. Blocks are distinguished by start
    /// and length. A weight that is not positive and finite counts as zero.
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

    /// Adds one sample as [`Estimator::add`] does, with the memory access that its code works on.
    pub fn add_at(&mut self, block: &Arc<BlockFacts>, at: SamplePoint) -> bool {
        let Some(index) = block.index_of(at.address) else {
            self.add_undecoded(at.weight);
            return false;
        };
        self.samples += 1;
        self.lines.add(at.address);
        let sequence = self.samples;
        let key = (block.start(), block.instructions().len());
        let histogram = self.histograms.entry(key);
        let histogram = histogram.or_insert_with(|| BlockHistogram::new(block));
        histogram.add(index, usable_weight(at.weight));
        histogram.accesses_mut().add(at, sequence);
        true
    }

    /// Adds one sample whose code could not be read or decoded.
    pub fn add_undecoded(&mut self, weight: f64) {
        self.samples += 1;
        self.undecoded_weight += usable_weight(weight);
    }

    /// The estimate; `None` if no sample with a weight was decoded.
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
            match stall_share(histogram, self.host, share, level) {
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

/// True if a block is judged by itself. A loop is, because its samples wait for something inside
/// it. Other blocks are if they are long enough to be calibrated and have enough samples.
///
/// So is a block whose data are known to be in the nearest cache or in no cache of its core, or
/// that ends a loop and whose data are in any known level.
fn is_judged_alone(histogram: &BlockHistogram, level: DataLevel) -> bool {
    let walks = histogram.block().ends_loop() && level != DataLevel::Unknown;
    let reported = walks || matches!(level, DataLevel::First | DataLevel::Beyond);
    let long = as_f64(histogram.len()) > RETIRE_WIDTH;
    let many = histogram.total().count >= OWN_JUDGEMENT_SAMPLES;
    histogram.block().is_loop() || reported || (long && many)
}

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

    /// Adds a loop that goes through memory: `stall` of its time waits for memory, the rest is
    /// progress.
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

/// Bytes of a cache line on all supported processors.
const LINE_BYTES: u64 = 64;

/// The size of the code that a thread ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Footprint {
    /// Bytes of the distinct 64-byte lines that samples fell into.
    pub seen_bytes: u64,
    /// An estimate with the lines that were run but not sampled.
    pub estimated_bytes: u64,
}

#[derive(Clone, Debug, Default)]
struct CodeLineSamples {
    samples: HashMap<u64, u64>,
}

impl CodeLineSamples {
    pub(super) fn add(&mut self, address: u64) {
        *self.samples.entry(address / LINE_BYTES).or_default() += 1;
    }

    /// The unseen lines by the bias-corrected estimator of Chao ("Nonparametric
    /// Estimation of the Number of Classes in a Population", 1984): with f1
    /// lines seen once and f2 seen twice, f1 (f1 - 1) / (2 (f2 + 1)). It is a
    /// lower bound in expectation.
    pub(super) fn footprint(&self) -> Footprint {
        let seen = self.samples.len() as u64;
        let once = self.count_seen(1);
        let twice = self.count_seen(2);
        let unseen = once * once.saturating_sub(1) / (2 * (twice + 1));
        Footprint {
            seen_bytes: seen * LINE_BYTES,
            estimated_bytes: (seen + unseen) * LINE_BYTES,
        }
    }

    fn count_seen(&self, times: u64) -> u64 {
        self.samples.values().filter(|&&n| n == times).count() as u64
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct SuspicionSamples {
    pile: InstructionSamples,
    /// Instructions per block, times the weight of the block.
    weighted_instructions: f64,
}

/// Blocks too small or too rarely hit to be judged one by one, taken together.
///
/// In one such block a single sample behind a load may be chance. All of them together are treated
/// as many executions of one average block: with the average length, the average number of
/// instructions per suspicion, and all their samples.
#[derive(Clone, Debug, Default)]
struct BlockPool {
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

    /// For each suspicion, the weight of its samples and their split.
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

    /// The least number of cycles in which the instructions of one part retire.
    fn cycles_of(&self, part: SuspicionSamples) -> f64 {
        if self.weight <= 0.0 {
            return 0.0;
        }
        part.weighted_instructions / self.weight / RETIRE_WIDTH
    }
}

/// The share of a loop's time beyond the minimum; `share` is the loop's part of the thread's time
/// while it runs. `None` if the samples do not show the loop's speed, or if its data may be in the
/// caches of the core: the bytes that it moves through between two samples are as good a proof as
/// `level`.
///
/// The distance between the addresses at two samples, divided by the loop's stride, is the number
/// of rounds in between. The part of a round beyond the minimum with all data in the first-level
/// cache is a stall, whichever instructions the samples stand on, because streams limited by
/// bandwidth leave samples all over the loop. A repeated string instruction is such a loop by
/// itself.
fn stall_share(
    histogram: &BlockHistogram,
    host: SampledProcessor,
    share: f64,
    level: DataLevel,
) -> Option<f64> {
    let rounds = histogram.block().rounds()?;
    let cycles_per_ns = host.cycles_per_ns?;
    let walks = rounds.strides.iter().filter_map(|&stride| {
        let walk = histogram.accesses().walk(stride, share)?;
        let ns_per_round = stride.bytes.unsigned_abs() as f64 / walk.bytes_per_ns;
        Some((ns_per_round, walk.bytes))
    });
    // The operand that moves fastest missed least.
    let (ns, bytes) = walks.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let beyond = level == DataLevel::Beyond || host.l2_bytes.is_some_and(|l2| bytes > l2 as f64);
    beyond.then(|| (1.0 - rounds.least_cycles / (ns * cycles_per_ns)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_line_counts_once() {
        let mut lines = CodeLineSamples::default();
        for _ in 0..100 {
            lines.add(0x1010);
        }
        let footprint = lines.footprint();
        assert_eq!((footprint.seen_bytes, footprint.estimated_bytes), (64, 64));
    }

    #[test]
    fn lines_seen_once_speak_for_unseen_ones() {
        let mut lines = CodeLineSamples::default();
        for line in 0..10 {
            lines.add(line * 64);
        }
        // 10 + 10 * 9 / 2 lines.
        assert_eq!(lines.footprint().estimated_bytes, 55 * 64);
    }
}
