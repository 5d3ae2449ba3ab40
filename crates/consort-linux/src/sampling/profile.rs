//! Profiles of threads, as their samples give them.

use consort_core::{CycleStack, MemoryLimit, Mix, Reading, Sample, Signal, Tier};
use consort_isa::Estimate;

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
