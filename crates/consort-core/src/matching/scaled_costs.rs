//! Costs as whole numbers, so that the search for a matching is exact.
//!
//! A cost is multiplied by a power of two, cut to a whole number and doubled:
//! with even costs every step of the search is a whole number too. Costs that
//! have no more binary digits than the scale keeps stay exactly what they were;
//! others lose less than one part in 2^34 (at 1,024 threads) of the largest.

use super::PairCosts;

/// Costs that are looked at together.
const LANES: usize = 16;

/// Costs in whole numbers, and how they were made.
pub(super) struct ScaledCosts<'a> {
    costs: &'a PairCosts,
    scale: f64,
    /// Stands for infinity: dearer than all finite costs of a matching together.
    dear: i64,
}

impl<'a> ScaledCosts<'a> {
    pub(super) fn new(costs: &'a PairCosts) -> Self {
        let bits = kept_bits(costs.threads());
        let largest = largest_cost(costs);
        Self {
            costs,
            scale: power_of_two_below(largest, bits),
            dear: (costs.threads() as i64 + 2) << (bits + 2),
        }
    }

    /// The whole cost that stands for infinity.
    pub(super) fn infinite_cost(&self) -> i64 {
        self.dear
    }

    pub(super) fn costs(&self) -> &'a PairCosts {
        self.costs
    }

    /// The even whole number for a cost.
    pub(super) fn scale_cost(&self, cost: f64) -> i64 {
        if cost == f64::INFINITY {
            return self.dear;
        }
        2 * ((cost * self.scale) as i64)
    }

    /// The whole cost of a pair.
    pub(super) fn at(&self, first: usize, second: usize) -> i64 {
        self.scale_cost(self.costs.at(first, second))
    }

    /// The factor from costs to whole numbers, doubling included.
    pub(super) fn factor(&self) -> f64 {
        2.0 * self.scale
    }
}

/// Binary digits of the largest finite cost. A dual stays below threads times
/// the dear cost, and that below threads squared times 8 times the largest.
fn kept_bits(threads: usize) -> u32 {
    let of_threads = usize::BITS - (threads + 2).leading_zeros();
    57 - 2 * of_threads
}

fn largest_cost(costs: &PairCosts) -> f64 {
    // Side by side, which compilers turn into vector code.
    let mut lanes = [0.0; LANES];
    for values in costs.values().chunks(LANES) {
        for (lane, value) in lanes.iter_mut().zip(values) {
            let size = value.abs();
            let size = if size < f64::INFINITY { size } else { 0.0 };
            *lane = if size > *lane { size } else { *lane };
        }
    }
    lanes.into_iter().fold(0.0, f64::max)
}

/// The power of two that brings `largest` to between 2^(bits-1) and 2^bits.
fn power_of_two_below(largest: f64, bits: u32) -> f64 {
    if largest == 0.0 {
        return 1.0;
    }
    let (_, exponent) = libm::frexp(largest);
    // Below this, a subnormal cost, the scale itself would be infinite.
    let power = (bits as i32 - exponent).min(1023);
    libm::ldexp(1.0, power)
}
