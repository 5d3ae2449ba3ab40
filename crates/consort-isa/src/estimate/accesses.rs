//! Data of a block: how much memory its code works on, and how fast it moves through it, from the
//! addresses that it accesses at its samples.
//!
//! Samples are spread over time, so these addresses are drawn from those on which the thread spends
//! its time. Draws from a small set repeat; draws from a large one do not.

use super::SamplePoint;
use crate::{MemoryAccess, SampledProcessor, Stride};
use std::collections::HashMap;

/// Bytes of a cache line on all supported processors.
const LINE_BYTES: u64 = 64;
/// Bytes of the smallest page on all supported processors.
const PAGE_BYTES: u64 = 4096;
/// Above this share of addresses whose line was drawn once, the draws are too few to estimate the
/// number of lines (Good, "The Population Frequencies of Species", 1953: it is the chance that the
/// next draw is of a new line).
const UNTOLD: f64 = 0.5;

/// Level of the memory hierarchy that holds the data of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum DataLevel {
    Unknown,
    /// In the first-level cache.
    First,
    /// In the second-level cache, except for the part that fits the first.
    Second {
        /// Share that does not fit the first, 0 to 1.
        misses: f64,
    },
    /// In a shared cache or in memory.
    Beyond,
}

#[derive(Clone, Copy, Debug)]
struct AccessSample {
    access: MemoryAccess,
    pu: u32,
    time_ns: u64,
    /// The number of the sample in the thread.
    sequence: u64,
    weight: f64,
}

/// The accesses at the samples of one block, in the order of the samples.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockAccesses {
    draws: Vec<AccessSample>,
    /// Number of the latest sample in the thread, 0 before the first.
    latest: u64,
    /// Number of samples after the first, and how many of them directly follow another one of the
    /// block.
    later: u32,
    directly: u32,
}

impl BlockAccesses {
    pub(super) fn add(&mut self, at: SamplePoint, sequence: u64) {
        if self.latest > 0 {
            self.later += 1;
            self.directly += u32::from(sequence == self.latest + 1);
        }
        self.latest = sequence;
        self.draws.extend(at.accessed.map(|access| AccessSample {
            access,
            pu: at.pu,
            time_ns: at.time_ns,
            sequence,
            weight: at.weight,
        }));
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.draws.extend(&other.draws);
    }

    /// The nearest level that can hold the data.
    pub(super) fn level(&self, host: SampledProcessor) -> DataLevel {
        let (Some(l1), Some(l2)) = (host.l1_bytes, host.l2_bytes) else {
            return DataLevel::Unknown;
        };
        let bytes = self.bytes();
        if self.draws.is_empty() {
            DataLevel::Unknown
        } else if bytes <= l1 as f64 {
            if self.has_repeats() {
                DataLevel::First
            } else {
                DataLevel::Unknown
            }
        } else if bytes <= l2 as f64 {
            let misses = 1.0 - l1 as f64 / bytes;
            DataLevel::Second { misses }
        } else {
            DataLevel::Beyond
        }
    }

    /// True if enough pages were drawn again to bound their number. Three draws of three pages
    /// prove no more than three.
    fn has_repeats(&self) -> bool {
        DistinctUnits::from_samples(&self.draws, PAGE_BYTES).once
            <= UNTOLD * self.draws.len() as f64
    }

    /// Bytes of distinct memory: lines, as if each were used alone, or pages, as if each were used
    /// whole. Pages if the draws are too few to count lines, or if the pages are fewer bytes.
    fn bytes(&self) -> f64 {
        let lines = DistinctUnits::from_samples(&self.draws, LINE_BYTES);
        let pages = DistinctUnits::from_samples(&self.draws, PAGE_BYTES).bytes();
        if lines.once > UNTOLD * self.draws.len() as f64 {
            pages
        } else {
            pages.min(lines.bytes())
        }
    }

    /// Share of the thread's time that the block has while it runs: the chance that the sample
    /// after one of the block is of the block too. Unlike its share of all samples, it is 1 for a
    /// loop that runs alone before and after other code.
    pub(super) fn share(&self) -> f64 {
        f64::from(self.directly) / f64::from(self.later.max(1))
    }

    /// Movement of an operand in the direction of its stride, if the block has `share` of the
    /// thread's time: medians over consecutive samples. `None` if it does not move, or has no
    /// consistent speed.
    pub(super) fn walk(&self, stride: Stride, share: f64) -> Option<Walk> {
        let of_operand = |d: &&AccessSample| d.access.operand.has_same_registers(stride.operand);
        let draws: Vec<&AccessSample> = self.draws.iter().filter(of_operand).collect();
        let along = stride.bytes.signum() as f64;
        let steps = { draws.windows(2) }.filter_map(|pair| step_between(pair[0], pair[1], share));
        let steps: Vec<AccessStep> = steps.map(|step| step.in_direction(along)).collect();
        let onward: Vec<_> = steps.iter().filter(|step| step.bytes > 0.0).collect();
        if onward.len() < LEAST_PAIRS {
            None
        } else if 2 * onward.len() >= steps.len() {
            // Steps the other way are returns to the start of the data.
            let mut gone: Vec<f64> = onward.iter().map(|step| step.bytes).collect();
            gone.sort_by(f64::total_cmp);
            let bytes = gone[gone.len() / 2];
            let mostly = onward.len() as f64 >= MOSTLY_ONWARD * steps.len() as f64;
            let on_average = (mostly && steps.len() >= LEAST_PAIRS_ON_AVERAGE)
                .then(|| mean_speed(&steps, span(&draws)));
            let speeds = onward.iter().map(|step| step.bytes / step.ns());
            let bytes_per_ns = consistent_median(speeds.collect()).or(on_average)?;
            Some(Walk {
                bytes_per_ns,
                bytes,
            })
        } else {
            // The data are passed within two samples, so most steps are beyond a return.
            let bytes = span(&draws);
            let speeds =
                { steps.iter() }.map(|step| (step.bytes + step.wrap_bytes(bytes)) / step.ns());
            let bytes_per_ns = consistent_median(speeds.collect())?;
            Some(Walk {
                bytes_per_ns,
                bytes,
            })
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Walk {
    pub(super) bytes_per_ns: f64,
    /// Least number of bytes that it goes through before it starts again.
    pub(super) bytes: f64,
}

/// Pairs of samples needed for a speed: the median of eight is within the middle half with a chance
/// of 0.99.
const LEAST_PAIRS: usize = 8;

/// Samples further apart have too much else in between.
const MOST_APART: u64 = 4;

/// Greatest distance of the quartiles of the speeds, as a share of their median. It excludes random
/// jumps, which have any speed: their quartiles are 1.2 medians apart, and with 50 draws or more
/// none of a thousand trials came within this.
const MOST_SPREAD: f64 = 0.5;

/// Pairs of samples from which a mean speed is computed if single pairs do not agree, and the share
/// of them that must go onward. Random jumps go either way: the chance that so many of 24 go the
/// same way is 0.01.
const LEAST_PAIRS_ON_AVERAGE: usize = 24;
const MOSTLY_ONWARD: f64 = 0.75;

/// Bytes per nanosecond over all steps. The timer of a CPU runs on while other threads have the
/// CPU, so the CPU time between two samples of a thread varies, and equals what they stand for only
/// on average.
fn mean_speed(steps: &[AccessStep], whole: f64) -> f64 {
    let sum = |of: &dyn Fn(&AccessStep) -> f64| steps.iter().map(of).sum::<f64>();
    let bytes = sum(&|step| step.bytes + step.wrap_bytes(whole));
    bytes / sum(&|step| step.passed_ns).min(sum(&|step| step.stands_for_ns))
}

#[derive(Clone, Copy, Debug)]
struct AccessStep {
    bytes: f64,
    /// The block's share of the time that passed, ns, more than 0.
    passed_ns: f64,
    /// Its share of the CPU time that the samples stand for, ns, more than 0.
    stands_for_ns: f64,
}

impl AccessStep {
    /// The block's CPU time: the time that passed or, if the thread was interrupted, the time that
    /// the samples stand for. With two timers, samples are closer than those of one, and a loop
    /// seems up to two thirds faster between samples further apart than they stand for.
    fn ns(self) -> f64 {
        self.passed_ns.min(self.stands_for_ns)
    }

    /// The step with bytes counted in a direction, 1 or -1.
    fn in_direction(self, direction: f64) -> Self {
        let bytes = self.bytes * direction;
        Self { bytes, ..self }
    }

    /// Bytes to add to a step against the stride, if the loop started again once.
    fn wrap_bytes(self, whole: f64) -> f64 {
        if self.bytes > 0.0 { 0.0 } else { whole }
    }
}

/// The step between draws that follow each other closely enough.
fn step_between(first: &AccessSample, second: &AccessSample, share: f64) -> Option<AccessStep> {
    let apart = second.sequence.checked_sub(first.sequence)?;
    let passed_ns = second.time_ns.saturating_sub(first.time_ns) as f64 * share;
    let stands_for_ns = apart as f64 * second.weight * share;
    let bytes = second.access.address.wrapping_sub(first.access.address);
    let step = AccessStep {
        bytes: bytes.cast_signed() as f64,
        passed_ns,
        stands_for_ns,
    };
    let near = first.pu == second.pu && apart <= MOST_APART && step.ns() > 0.0;
    near.then_some(step)
}

/// Bytes that a loop works on, from uniformly drawn places in it: the greatest distance of two of
/// `n` is `(n - 1) / (n + 1)` of the whole on average.
fn span(draws: &[&AccessSample]) -> f64 {
    let addresses = || draws.iter().map(|draw| draw.access.address);
    let (first, last) = (addresses().min(), addresses().max());
    let seen = last.unwrap_or(0) - first.unwrap_or(0);
    let n = draws.len() as f64;
    seen as f64 * (n + 1.0) / (n - 1.0).max(1.0)
}

/// Median of the speeds, if they are consistent.
fn consistent_median(mut speeds: Vec<f64>) -> Option<f64> {
    speeds.sort_by(f64::total_cmp);
    let quantile = |quarters: usize| speeds[speeds.len() * quarters / 4];
    let alike = quantile(3) - quantile(1) <= MOST_SPREAD * quantile(2);
    alike.then(|| quantile(2))
}

struct DistinctUnits {
    unit: u64,
    seen: f64,
    once: f64,
    twice: f64,
}

impl DistinctUnits {
    fn from_samples(draws: &[AccessSample], unit: u64) -> Self {
        let mut counts: HashMap<u64, u32> = HashMap::new();
        for draw in draws {
            *counts.entry(draw.access.address / unit).or_default() += 1;
        }
        let exactly = |n| counts.values().filter(|&&count| count == n).count() as f64;
        Self {
            unit,
            seen: counts.len() as f64,
            once: exactly(1),
            twice: exactly(2),
        }
    }

    /// Chao ("Nonparametric Estimation of the Number of Classes in a Population", 1984),
    /// bias-corrected: a lower bound in expectation.
    fn bytes(&self) -> f64 {
        let unseen = self.once * (self.once - 1.0).max(0.0) / (2.0 * (self.twice + 1.0));
        (self.seen + unseen) * self.unit as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operand;

    const HOST: SampledProcessor = SampledProcessor {
        l1_bytes: Some(32 << 10),
        l2_bytes: Some(1 << 20),
        cycles_per_ns: Some(3.0),
    };
    const OPERAND: Operand = Operand {
        base: Some(1),
        index: None,
        scale: 1,
        displacement: 0,
    };
    const STRIDE: Stride = Stride {
        operand: OPERAND,
        bytes: 8,
    };

    /// Samples each 1,000 ns after the one before.
    fn reach(addresses: impl IntoIterator<Item = u64>) -> BlockAccesses {
        reach_at((0..).step_by(1_000).zip(addresses))
    }

    /// Samples at these times, ns, that stand for 1,000 ns each.
    fn reach_at(samples: impl IntoIterator<Item = (u64, u64)>) -> BlockAccesses {
        let mut reach = BlockAccesses::default();
        for (sequence, (time_ns, address)) in samples.into_iter().enumerate() {
            let access = MemoryAccess {
                operand: OPERAND,
                address,
            };
            let at = SamplePoint {
                address: 0,
                accessed: Some(access),
                pu: 0,
                time_ns,
                weight: 1_000.0,
            };
            reach.add(at, sequence as u64);
        }
        reach
    }

    /// Places in so many bytes, as if drawn at random.
    fn spread(bytes: u64) -> impl Iterator<Item = u64> {
        (1..200_u64).map(move |n| mixed(mixed(n)) % bytes)
    }

    /// A step of a mixing function: without it the places would be a stream that begins anew.
    fn mixed(n: u64) -> u64 {
        let n = (n ^ (n >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        n ^ (n >> 29)
    }

    #[test]
    fn data_are_as_near_as_their_size_allows() {
        assert_eq!(reach([]).level(HOST), DataLevel::Unknown);
        assert_eq!(reach([4096; 50]).level(HOST), DataLevel::First);
        assert_eq!(reach(spread(16 << 10)).level(HOST), DataLevel::First);
        let second = reach(spread(512 << 10)).level(HOST);
        assert!(
            matches!(second, DataLevel::Second { misses } if misses > 0.9),
            "{second:?}"
        );
        assert_eq!(reach(spread(256 << 20)).level(HOST), DataLevel::Beyond);
        assert_eq!(
            reach(spread(256 << 20)).level(SampledProcessor::default()),
            DataLevel::Unknown
        );
    }

    #[test]
    fn few_samples_of_much_memory_prove_nothing() {
        let few = spread(256 << 20).take(5);
        assert_ne!(reach(few).level(HOST), DataLevel::Beyond);
    }

    #[test]
    fn few_samples_of_few_pages_prove_nothing() {
        let few = (0..3).map(|n| n << 20);
        assert_eq!(reach(few).level(HOST), DataLevel::Unknown);
    }

    #[test]
    fn stream_restarting_now_and_then_has_its_speed() {
        // 4,000 bytes in each 1,000 ns.
        let stream = reach((0..40_u64).map(|n| n % 8 * 4_000));
        assert_eq!(stream.walk(STRIDE, 1.0).map(|w| w.bytes_per_ns), Some(4.0));
        // Half of the thread's time is spent elsewhere.
        assert_eq!(stream.walk(STRIDE, 0.5).map(|w| w.bytes_per_ns), Some(8.0));
    }

    #[test]
    fn stream_restarting_within_two_samples_has_its_speed() {
        // 3,900 of 5,000 bytes in each 1,000 ns: three in four steps seem to go back.
        let stream = reach((0..200_u64).map(|n| n * 3_900 % 5_000));
        let speed = stream.walk(STRIDE, 1.0).map(|w| w.bytes_per_ns).unwrap();
        assert!((speed - 3.9).abs() < 0.1, "{speed}");
    }

    #[test]
    fn close_samples_use_the_time_between_them() {
        // Two timers: a sample 800 ns after each of the others, which are 2,000 ns apart.
        let times = (0..40_u64).map(|n| n / 2 * 2_000 + n % 2 * 800);
        let stream = reach_at(times.map(|time_ns| (time_ns, 4 * time_ns)));
        assert_eq!(stream.walk(STRIDE, 1.0).map(|w| w.bytes_per_ns), Some(4.0));
    }

    #[test]
    fn stream_on_shared_pu_has_its_mean_speed() {
        // The CPU's timer takes a sample each 1,000 ns, and one in four of this thread, which moves
        // by 4 bytes per ns of its own time: by any part of 8,000 ns from sample to sample.
        let mut place = 0;
        let places = (1..200_u64).map(|n| {
            place += 4 * (mixed(mixed(n)) % 2_000);
            place % 150_000
        });
        let stream = reach_at((0..).step_by(4_000).zip(places));
        let speed = stream.walk(STRIDE, 1.0).unwrap().bytes_per_ns;
        assert!((speed - 4.0).abs() < 0.4, "{speed}");
    }

    #[test]
    fn share_of_a_block_is_while_it_runs() {
        let at = |reach: &mut BlockAccesses, sequence| {
            let point = SamplePoint {
                address: 0,
                accessed: None,
                pu: 0,
                time_ns: 0,
                weight: 1.0,
            };
            reach.add(point, sequence);
        };
        let (mut alone, mut in_turn) = (BlockAccesses::default(), BlockAccesses::default());
        (101..=200).for_each(|sequence| at(&mut alone, sequence));
        (1..=200)
            .filter(|n| n % 4 < 2)
            .for_each(|n| at(&mut in_turn, n));
        assert_eq!(alone.share(), 1.0);
        assert!((in_turn.share() - 0.5).abs() < 0.01, "{}", in_turn.share());
    }

    #[test]
    fn jumps_hardly_ever_have_a_speed_by_chance() {
        let jumps = |seed: u64, draws: u64| {
            let places = (0..draws).map(|n| mixed(mixed(seed << 16 | n)) % (256 << 20));
            reach(places).walk(STRIDE, 1.0).map(|w| w.bytes_per_ns)
        };
        let by_chance = |draws| (1..1_000).filter(|&s| jumps(s, draws).is_some()).count();
        assert!(by_chance(20) < 30, "{}", by_chance(20));
        assert_eq!([50, 100, 200].map(by_chance), [0; 3]);
    }

    #[test]
    fn jumps_have_no_speed() {
        assert_eq!(
            reach(spread(256 << 20))
                .walk(STRIDE, 1.0)
                .map(|w| w.bytes_per_ns),
            None
        );
        let back = reach((0..40_u64).rev().map(|n| n * 4_000));
        assert_eq!(back.walk(STRIDE, 1.0).map(|w| w.bytes_per_ns), None);
    }
}
