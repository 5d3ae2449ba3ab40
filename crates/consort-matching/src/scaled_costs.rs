//! Costs as integers, so that the search for a matching is exact.
//!
//! A cost is multiplied by a power of two, truncated and doubled: with even costs every step of the
//! search is an integer too. Costs that have no more binary digits than the scale keeps are exact;
//! others lose less than one part in 2^34 (at 1,024 threads) of the largest.

use crate::PairCosts;

/// Costs that are processed together.
const LANES: usize = 16;

/// Costs as integers, and their scale.
pub(crate) struct ScaledCosts<'a> {
    costs: &'a PairCosts,
    scale: f64,
    /// Stands for infinity: more than all finite costs of a matching together.
    dear: i64,
}

impl<'a> ScaledCosts<'a> {
    pub(crate) fn new(costs: &'a PairCosts) -> Self {
        let bits = kept_bits(costs.threads());
        let largest = largest_cost(costs);
        Self {
            costs,
            scale: power_of_two_below(largest, bits),
            dear: (costs.threads() as i64 + 2) << (bits + 2),
        }
    }

    /// Integer cost that stands for infinity.
    pub(crate) fn infinite_cost(&self) -> i64 {
        self.dear
    }

    pub(crate) fn costs(&self) -> &'a PairCosts {
        self.costs
    }

    /// The even integer for a cost.
    pub(crate) fn scale_cost(&self, cost: f64) -> i64 {
        if cost == f64::INFINITY {
            return self.dear;
        }
        2 * ((cost * self.scale) as i64)
    }

    /// Integer cost of a pair.
    pub(crate) fn at(&self, first: usize, second: usize) -> i64 {
        self.scale_cost(self.costs.at(first, second))
    }

    /// Factor from costs to integers, including the doubling.
    pub(crate) fn factor(&self) -> f64 {
        2.0 * self.scale
    }
}

/// Binary digits of the largest finite cost. A dual stays below threads times the infinite cost,
/// and that below threads squared times 8 times the largest.
fn kept_bits(threads: usize) -> u32 {
    let of_threads = usize::BITS - (threads + 2).leading_zeros();
    57 - 2 * of_threads
}

fn largest_cost(costs: &PairCosts) -> f64 {
    // Lanes side by side, which compilers turn into vector code.
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

/// Power of two that scales `largest` to between 2^(bits-1) and 2^bits.
fn power_of_two_below(largest: f64, bits: u32) -> f64 {
    if largest == 0.0 {
        return 1.0;
    }
    let (_, exponent) = libm::frexp(largest);
    // For subnormal costs the scale itself would be infinite.
    let power = (bits as i32 - exponent).min(1023);
    libm::ldexp(1.0, power)
}

/// Pairs that are examined together; a block without a suspect costs little.
const BLOCK: usize = 16;

/// Duals against which all edges are priced, in fast sweeps. Rows are compared in floating point,
/// block by block; edges within rounding of being refused are checked again in integers.
pub(crate) struct PricingSweep<'a> {
    costs: &'a ScaledCosts<'a>,
    whole: Vec<i64>,
    duals: Vec<f64>,
    margin: f64,
}

impl<'a> PricingSweep<'a> {
    pub(crate) fn new(costs: &'a ScaledCosts<'a>, duals: &[i64]) -> Self {
        let largest = duals.iter().map(|dual| dual.unsigned_abs()).max();
        Self {
            costs,
            whole: duals.to_vec(),
            duals: duals.iter().map(|&dual| dual as f64).collect(),
            margin: margin(largest.unwrap_or(0) as f64),
        }
    }

    /// Changes a dual.
    pub(crate) fn set(&mut self, vertex: usize, dual: i64) {
        self.whole[vertex] = dual;
        self.duals[vertex] = dual as f64;
        self.margin = self.margin.max(margin(self.duals[vertex].abs()));
    }

    /// First vertex from `from` on to which the edge from `first` has negative slack; `from` is
    /// after `first`.
    pub(crate) fn first_refused(&self, first: usize, from: usize) -> Option<usize> {
        let row = &self.costs.costs().row(first)[from - first - 1..];
        let (factor, own) = (self.costs.factor(), self.whole[first]);
        let dear = self.costs.infinite_cost() as f64;
        let limit = own as f64 + self.margin;
        let mut start = from;
        for (costs, duals) in row.chunks(BLOCK).zip(self.duals[from..].chunks(BLOCK)) {
            // Counting has no early exit, so it runs on several pairs at once.
            let below =
                |(cost, dual): &(&f64, &f64)| smaller(**cost * factor, dear) - **dual < limit;
            if costs.iter().zip(duals).filter(below).count() > 0 {
                let refused =
                    |&at: &usize| self.costs.scale_cost(costs[at]) - own < self.whole[start + at];
                if let Some(at) = (0..costs.len()).find(refused) {
                    return Some(start + at);
                }
            }
            start += costs.len();
        }
        None
    }
}

/// Unlike `f64::min` a single instruction, because neither value is ever NaN.
fn smaller(one: f64, other: f64) -> f64 {
    if one < other { one } else { other }
}

/// Margin above any rounding error: a cost loses less than 2 when it becomes an integer.
fn margin(largest: f64) -> f64 {
    // 2^-48: a dual has 53 binary digits here, and the largest may still double.
    4.0 + largest * 2.0f64.powi(-48)
}
