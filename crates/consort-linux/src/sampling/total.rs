//! A thread's profile over its life, from those of its intervals.
//!
//! Each interval's estimate counts by the CPU time that its own samples stand
//! for. That takes the same memory however long the thread lives.

use super::profile::{ThreadProfile, ThreadSampleCounts};
use consort_isa::{ClassMix, Estimate, EstimatedStack, Footprint, ShareBounds};

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
        footprint: larger_footprint(old.footprint, new.footprint),
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

/// The larger of two footprints: code of different intervals may or may not be the same, so only
/// that is certain.
fn larger_footprint(a: Footprint, b: Footprint) -> Footprint {
    Footprint {
        seen_bytes: a.seen_bytes.max(b.seen_bytes),
        estimated_bytes: a.estimated_bytes.max(b.estimated_bytes),
    }
}

#[cfg(test)]
mod tests {
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
