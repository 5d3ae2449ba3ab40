//! Duration of a round of a loop, told from how far the loop moves through memory between
//! samples.
//!
//! A loop that goes through memory in steps tells its speed: the distance between the addresses at
//! two samples, over its step, is the number of rounds in between. What a round takes beyond the
//! least with all data in the first-level cache is a stall, whichever instructions the samples
//! stand on: streams that are limited by bandwidth leave them all over the loop.

use super::histogram::Histogram;
use crate::{Host, Rounds, Stride};

/// The share of a loop's time that is beyond the least; `share` is that of the thread's time that
/// the loop has. None if the loop does not tell its speed.
pub(super) fn stall(histogram: &Histogram, host: Host, share: f64) -> Option<f64> {
    let rounds = histogram.block().rounds()?;
    let cycles_per_ns = host.cycles_per_ns?;
    let ns = ns_per_round(histogram, rounds, share)?;
    Some((1.0 - rounds.least_cycles / (ns * cycles_per_ns)).clamp(0.0, 1.0))
}

/// The operand that moves fastest missed the least.
fn ns_per_round(histogram: &Histogram, rounds: &Rounds, share: f64) -> Option<f64> {
    let of = |stride: &Stride| {
        let bytes_per_ns = histogram.reach().bytes_per_ns(*stride, share)?;
        Some(stride.bytes.unsigned_abs() as f64 / bytes_per_ns)
    };
    rounds.strides.iter().filter_map(of).min_by(f64::total_cmp)
}
