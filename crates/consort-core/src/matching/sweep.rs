//! Fast sweeps over all edges for those that duals refuse.
//!
//! Rows are compared in floating point, block by block; what is within
//! rounding of being refused is looked at again in whole numbers.

use super::scaled_costs::ScaledCosts;

/// Pairs that are looked at together; a block without a suspect costs little.
const BLOCK: usize = 16;

/// Duals against which edges are priced.
pub(super) struct PricingSweep<'a> {
    costs: &'a ScaledCosts<'a>,
    whole: Vec<i64>,
    duals: Vec<f64>,
    margin: f64,
}

impl<'a> PricingSweep<'a> {
    pub(super) fn new(costs: &'a ScaledCosts<'a>, duals: &[i64]) -> Self {
        let largest = duals.iter().map(|dual| dual.unsigned_abs()).max();
        Self {
            costs,
            whole: duals.to_vec(),
            duals: duals.iter().map(|&dual| dual as f64).collect(),
            margin: margin(largest.unwrap_or(0) as f64),
        }
    }

    /// Changes a dual.
    pub(super) fn set(&mut self, vertex: usize, dual: i64) {
        self.whole[vertex] = dual;
        self.duals[vertex] = dual as f64;
        self.margin = self.margin.max(margin(self.duals[vertex].abs()));
    }

    /// The first vertex from `from` on, all later than `first`, to which the edge has negative slack.
    pub(super) fn first_refused(&self, first: usize, from: usize) -> Option<usize> {
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

/// Unlike `f64::min`, a single instruction: neither is ever no number.
fn smaller(one: f64, other: f64) -> f64 {
    if one < other { one } else { other }
}

/// More than rounding can hide: a cost is cut by less than 2 when it becomes whole.
fn margin(largest: f64) -> f64 {
    // 2^-48: a dual has 53 binary digits here, and the largest may still double.
    4.0 + largest * 2.0f64.powi(-48)
}
