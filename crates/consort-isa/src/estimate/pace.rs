//! Duration of a round of a loop, told from how far the loop moves through memory between
//! samples.
//!
//! A loop that goes through memory in steps tells its speed: the distance between the addresses at
//! two samples, over its step, is the number of rounds in between. What a round takes beyond the
//! least with all data in the first-level cache is a stall, whichever instructions the samples
//! stand on: streams that are limited by bandwidth leave them all over the loop.
//!
//! A string instruction that repeats is such a loop by itself.

use super::accesses::{DataLevel, Walk};
use super::histogram::BlockHistogram;
use crate::{SampledProcessor, Stride};

/// The share of a loop's time that is beyond the least; `share` is that of the thread's time that
/// the loop has while it runs. `None` if the samples do not show the loop's speed, or its data may be
/// in the caches of the core: what it goes through between two samples is proof as good as `level`.
pub(super) fn stall_share(
    histogram: &BlockHistogram,
    host: SampledProcessor,
    share: f64,
    level: DataLevel,
) -> Option<f64> {
    let rounds = histogram.block().rounds()?;
    let cycles_per_ns = host.cycles_per_ns?;
    let walks = rounds.strides.iter().filter_map(|&stride| {
        let walk = histogram.accesses().walk(stride, share)?;
        Some((ns_per_round(stride, walk), walk.bytes))
    });
    // The operand that moves fastest missed the least.
    let (ns, bytes) = walks.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let beyond = level == DataLevel::Beyond || host.l2_bytes.is_some_and(|l2| bytes > l2 as f64);
    beyond.then(|| (1.0 - rounds.least_cycles / (ns * cycles_per_ns)).clamp(0.0, 1.0))
}

fn ns_per_round(stride: Stride, walk: Walk) -> f64 {
    stride.bytes.unsigned_abs() as f64 / walk.bytes_per_ns
}
