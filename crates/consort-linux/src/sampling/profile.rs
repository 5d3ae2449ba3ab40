//! Profiles of threads, as their samples give them.

use consort_core::{CycleStack, MemoryLimit, Mix, Reading, Sample, Signal, Tier};
use consort_isa::{
    BlockFacts, ClassMix, Estimate, EstimatedStack, Estimator, Footprint, SamplePoint,
    SampledProcessor, ShareBounds,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Numbers of samples, and the CPU time that they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSampleCounts {
    /// Number of samples looked at.
    pub samples: u64,
    /// Number of these whose code could be read and decoded.
    pub decoded: u64,
    /// CPU time in user mode that the samples stand for, ns.
    pub sampled_ns: u64,
}

impl ThreadSampleCounts {
    pub(super) fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.decoded += other.decoded;
        self.sampled_ns += other.sampled_ns;
    }
}

/// Profile of a thread, over one interval or over its life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadProfile {
    /// Counts of the interval's, or the life's, own samples.
    pub counts: ThreadSampleCounts,
    /// Estimate from the samples. Over an interval with few of them, those before it count too (see
    /// `sampling::window`); `None` as long as none was decoded.
    pub estimate: Option<Estimate>,
    /// Number of samples behind the estimate.
    pub window_samples: u64,
}

/// Names of the components of an estimated cycle stack, in their order.
pub(crate) const ESTIMATED_STACK: [&str; 4] = ["base", "unit", "memory", "front_end"];

impl ThreadProfile {
    /// Instruction mix by time, shares from 0 to 1.
    pub fn mix(&self) -> Option<Mix> {
        // The seven classes have the same order in both crates.
        Some(Mix::from_array(self.estimate?.mix.shares()))
    }

    /// Limit that the thread runs into, latency or bandwidth, if it mainly waits for memory.
    pub fn memory_limit(&self) -> Option<MemoryLimit> {
        let estimate = self.estimate?;
        MemoryLimit::from_stall(estimate.memory_stall_share, estimate.bandwidth_share)
    }

    /// Estimated cycle stack: base, unit, memory, front end.
    pub fn stack(&self) -> Option<CycleStack> {
        let stack = self.estimate?.stack;
        let amounts = [stack.base, stack.unit, stack.memory, stack.front_end];
        Some(CycleStack::from_amounts(
            ESTIMATED_STACK.into_iter().zip(amounts),
        ))
    }

    /// Puts the signals of the sampling tier into a sample of `interval_ns`.
    pub fn fill(&self, sample: &mut Sample, interval_ns: u64) {
        let Some(estimate) = self.estimate else {
            return;
        };
        let footprint = estimate.footprint.estimated_bytes as f64;
        let readings = [
            (Signal::FpUsage, estimate.fp_usage()),
            (Signal::MemoryStall, estimate.memory_stall_share),
            (Signal::CodeFootprint, footprint),
        ];
        for (signal, value) in readings {
            sample.set(
                signal,
                Reading::fully_counted(value, Tier::Sampling, interval_ns),
            );
        }
        sample.mix = self.mix();
        sample.samples = self.counts.decoded;
        sample.memory_limit = self.memory_limit();
        let counted = |tier: Tier| tier > Tier::Sampling;
        if !sample
            .stack
            .as_ref()
            .is_some_and(|(_, tier)| counted(*tier))
        {
            sample.stack = self.stack().map(|stack| (stack, Tier::Sampling));
        }
    }
}

/// Profiles of one thread at the end of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfiledThread {
    /// Process id.
    pub pid: u32,
    /// Kernel thread id.
    pub tid: u32,
    /// True if the thread has ended; this is then its last report.
    pub ended: bool,
    /// Profile over the interval.
    pub interval: ThreadProfile,
    /// Profile over the thread's life.
    pub total: ThreadProfile,
}

/// The running total of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProfileTotal {
    counts: ThreadSampleCounts,
    estimate: Option<Estimate>,
    /// CPU time behind the estimate, ns.
    weight_ns: f64,
}

impl ProfileTotal {
    /// Adds an interval with its estimate, which may reach back further.
    pub(super) fn add(&mut self, counts: ThreadSampleCounts, estimate: Option<Estimate>) {
        self.counts.add(counts);
        let Some(new) = estimate else {
            return;
        };
        let new_ns = counts.sampled_ns as f64;
        self.weight_ns += new_ns;
        self.estimate = Some(match self.estimate {
            Some(old) if self.weight_ns > 0.0 => blend(old, new, new_ns / self.weight_ns),
            _ => new,
        });
    }

    /// The profile over the thread's life. When the window holds all samples
    /// that there ever were, its estimate is the better one.
    pub(super) fn profile(&self, window: usize, latest: Option<Estimate>) -> ThreadProfile {
        let all_in_window = self.counts.samples <= window as u64;
        ThreadProfile {
            counts: self.counts,
            estimate: if all_in_window { latest } else { self.estimate },
            window_samples: self.counts.samples,
        }
    }
}

/// Blends two estimates; `share`, 0 to 1, is the weight of the new one.
fn blend(old: Estimate, new: Estimate, share: f64) -> Estimate {
    let mean = |old: f64, new: f64| old + (new - old) * share;
    Estimate {
        mix: blend_mix(old.mix, new.mix, mean),
        mix_at_address: blend_mix(old.mix_at_address, new.mix_at_address, mean),
        stack: EstimatedStack {
            base: mean(old.stack.base, new.stack.base),
            unit: mean(old.stack.unit, new.stack.unit),
            memory: mean(old.stack.memory, new.stack.memory),
            front_end: mean(old.stack.front_end, new.stack.front_end),
        },
        memory_stall_share: mean(old.memory_stall_share, new.memory_stall_share),
        bandwidth_share: mean(old.bandwidth_share, new.bandwidth_share),
        memory_bounds: ShareBounds {
            low: mean(old.memory_bounds.low, new.memory_bounds.low),
            high: mean(old.memory_bounds.high, new.memory_bounds.high),
        },
        samples: old.samples + new.samples,
        decoded_share: mean(old.decoded_share, new.decoded_share),
        // The larger one, because code of different intervals may or may not be the same.
        footprint: Footprint {
            seen_bytes: old.footprint.seen_bytes.max(new.footprint.seen_bytes),
            estimated_bytes: (old.footprint.estimated_bytes).max(new.footprint.estimated_bytes),
        },
    }
}

fn blend_mix(old: ClassMix, new: ClassMix, mean: impl Fn(f64, f64) -> f64) -> ClassMix {
    ClassMix {
        fp: mean(old.fp, new.fp),
        vector: mean(old.vector, new.vector),
        int: mean(old.int, new.int),
        load: mean(old.load, new.load),
        store: mean(old.store, new.store),
        branch: mean(old.branch, new.branch),
        other: mean(old.other, new.other),
    }
}

// Policies look every 200 ms to 1 s. A thread that ran all the time has 100 to 500 samples by
// then; one that mostly sleeps has five, whose shares would jump about. So the window holds the
// samples of the interval, and when they are fewer than [`WINDOW_SAMPLES`], the latest ones before
// it too: a busy thread is judged by the interval alone, and a change of phase shows within one or
// two tenths of a second of CPU time; an idle one keeps the shares of its last activity. The
// standard error of a share is then at most 0.5 / sqrt(200) = 3.5 percent.

/// Number of samples for which a window reaches back beyond the interval.
pub(super) const WINDOW_SAMPLES: usize = 200;
/// Most samples that a window holds; the latest stand for the others.
const MAX_SAMPLES: usize = 4_096;

/// One sample, and its block if that could be decoded. Weights are in ns.
#[derive(Clone, Debug)]
struct WindowSample {
    block: Option<Arc<BlockFacts>>,
    at: SamplePoint,
}

/// The latest samples of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct SampleWindow {
    points: VecDeque<WindowSample>,
    /// Number of points of this interval.
    fresh: usize,
}

impl SampleWindow {
    pub(super) fn add(&mut self, block: Option<Arc<BlockFacts>>, at: SamplePoint) {
        let point = WindowSample { block, at };
        self.points.push_back(point);
        self.fresh = (self.fresh + 1).min(MAX_SAMPLES);
        self.shrink_to(WINDOW_SAMPLES.max(self.fresh));
    }

    /// Begins a new interval.
    pub(super) fn next_interval(&mut self) {
        self.fresh = 0;
        self.shrink_to(WINDOW_SAMPLES);
    }

    /// Forgets everything: the thread executes another program.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    /// Estimate from the samples; `None` when none could be decoded.
    pub(super) fn estimate(&self, host: SampledProcessor) -> Option<Estimate> {
        let mut estimator = Estimator::for_processor(host);
        for point in &self.points {
            match &point.block {
                Some(block) => {
                    estimator.add_at(block, point.at);
                }
                None => estimator.add_undecoded(point.at.weight),
            }
        }
        estimator.finish()
    }

    fn shrink_to(&mut self, len: usize) {
        let surplus = self.points.len().saturating_sub(len);
        self.points.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> ThreadProfile {
        let mut estimate = Estimate {
            mix: Default::default(),
            mix_at_address: Default::default(),
            stack: Default::default(),
            memory_stall_share: 0.25,
            bandwidth_share: 0.125,
            memory_bounds: Default::default(),
            samples: 10,
            decoded_share: 1.0,
            footprint: Default::default(),
        };
        estimate.mix.fp = 0.5;
        estimate.mix.vector = 0.125;
        estimate.mix.other = 0.375;
        estimate.stack.memory = 0.25;
        estimate.stack.base = 0.75;
        ThreadProfile {
            counts: ThreadSampleCounts {
                decoded: 9,
                ..ThreadSampleCounts::default()
            },
            estimate: Some(estimate),
            window_samples: 10,
        }
    }

    #[test]
    fn signals_are_of_the_sampling_tier() {
        let mut sample = Sample::default();
        profile().fill(&mut sample, 7);
        let fp = sample.reading(Signal::FpUsage).unwrap();
        assert_eq!(fp, Reading::fully_counted(0.5, Tier::Sampling, 7));
        assert_eq!(sample.get(Signal::MemoryStall), Some(0.25));
        assert_eq!(sample.samples, 9);
        let mix = sample.mix.unwrap();
        assert_eq!((mix.fp, mix.vector, mix.other), (0.5, 0.125, 0.375));
        let (stack, tier) = sample.stack.unwrap();
        assert_eq!((stack.share("memory"), tier), (Some(0.25), Tier::Sampling));
    }

    #[test]
    fn a_counted_stack_is_not_replaced() {
        let counted = CycleStack::from_amounts([("retiring", 1.0)]);
        let mut sample = Sample::default();
        sample.stack = Some((counted.clone(), Tier::Counters));
        profile().fill(&mut sample, 7);
        assert_eq!(sample.stack, Some((counted, Tier::Counters)));
    }
}

#[cfg(test)]
mod total_tests {
    use super::*;

    fn estimate(fp: f64) -> Estimate {
        let mix = ClassMix {
            fp,
            int: 1.0 - fp,
            ..ClassMix::default()
        };
        Estimate {
            mix,
            mix_at_address: mix,
            stack: EstimatedStack::default(),
            memory_stall_share: fp,
            bandwidth_share: 0.0,
            memory_bounds: ShareBounds::default(),
            samples: 1,
            decoded_share: 1.0,
            footprint: Footprint::default(),
        }
    }

    fn counts(samples: u64, sampled_ns: u64) -> ThreadSampleCounts {
        ThreadSampleCounts {
            samples,
            decoded: samples,
            sampled_ns,
        }
    }

    #[test]
    fn intervals_count_by_their_time() {
        let mut total = ProfileTotal::default();
        total.add(counts(300, 300), Some(estimate(1.0)));
        total.add(counts(0, 0), Some(estimate(0.5)));
        total.add(counts(100, 100), Some(estimate(0.0)));
        let profile = total.profile(200, None);
        let fp = profile.estimate.unwrap().mix.fp;
        assert!((fp - 0.75).abs() < 1e-12, "{fp}");
        assert_eq!(profile.counts.samples, 400);
    }

    #[test]
    fn a_window_with_everything_in_it_is_preferred() {
        let mut total = ProfileTotal::default();
        total.add(counts(150, 150), Some(estimate(1.0)));
        let latest = Some(estimate(0.25));
        assert_eq!(total.profile(150, latest).estimate, latest);
    }
}

#[cfg(test)]
mod window_tests {
    use super::*;
    use proptest::prelude::*;

    const AT: SamplePoint = SamplePoint {
        address: 0,
        accessed: None,
        pu: 0,
        time_ns: 0,
        weight: 1.0,
    };

    proptest! {
        #[test]
        fn it_holds_the_interval_and_reaches_back_for_the_rest(
            intervals in prop::collection::vec(0usize..900, 1..12)
        ) {
            let mut window = SampleWindow::default();
            let mut seen = 0;
            for (at, &samples) in intervals.iter().enumerate() {
                if at > 0 {
                    window.next_interval();
                }
                (0..samples).for_each(|_| window.add(None, AT));
                seen += samples;
                prop_assert_eq!(window.len(), seen.min(samples.max(WINDOW_SAMPLES)));
            }
        }
    }

    #[test]
    fn it_is_bounded() {
        let mut window = SampleWindow::default();
        (0..3 * MAX_SAMPLES).for_each(|_| window.add(None, AT));
        assert_eq!(window.len(), MAX_SAMPLES);
    }
}
