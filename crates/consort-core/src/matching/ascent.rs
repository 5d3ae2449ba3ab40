//! Rough duals and the cheapest edges at them, by sweeps over all costs.
//!
//! Costs as they occur here are sums of one part per thread and a smaller part
//! per pair. The first is removed by means, then some rounds let each dual go
//! half the way to the tightest value that the others leave it. It all serves
//! the start alone, so rounding does no harm. A sweep sees each pair once and
//! keeps a fixed number of minima side by side, which compilers turn into
//! vector code. Threads that are alike get the very same duals: minima do not
//! depend on the order of threads, and means are rounded.

use super::PairCosts;

/// Minima side by side, of a vertex with those after it and of it with those before it.
const LANES: usize = 16;

/// Means as duals: the mean of each row less half the mean of all. Costs that are infinite have no
/// part in it.
pub(super) fn means(costs: &PairCosts) -> Vec<f64> {
    let threads = costs.threads();
    let (mut sums, mut counts) = (vec![0.0; threads], vec![0.0; threads]);
    for first in 0..threads {
        let others = sums[first + 1..].chunks_mut(LANES);
        let others = others.zip(counts[first + 1..].chunks_mut(LANES));
        let (mut own_sums, mut own_counts) = ([0.0; LANES], [0.0; LANES]);
        for (costs, (sums, counts)) in costs.row(first).chunks(LANES).zip(others) {
            let own = own_sums.iter_mut().zip(&mut own_counts);
            let others = sums.iter_mut().zip(counts).zip(own);
            for (cost, ((sum, count), (own_sum, own_count))) in costs.iter().zip(others) {
                let is_finite = *cost < f64::INFINITY;
                let (cost, one) = if is_finite { (*cost, 1.0) } else { (0.0, 0.0) };
                *sum += cost;
                *count += one;
                *own_sum += cost;
                *own_count += one;
            }
        }
        sums[first] += own_sums.iter().sum::<f64>();
        counts[first] += own_counts.iter().sum::<f64>();
    }
    let all = sums.iter().sum::<f64>() / counts.iter().sum::<f64>().max(1.0);
    let mean = |(sum, count): (&f64, &f64)| round_coarsely(sum / count.max(1.0) - 0.5 * all, all);
    sums.iter().zip(&counts).map(mean).collect()
}

/// A number without what the order of sums may change, next to `size`.
fn round_coarsely(value: f64, size: f64) -> f64 {
    // 2^-20 is far from what rounding changes, 2^-53 for each thread.
    let step = size.abs() * 2.0f64.powi(-20);
    if step > 0.0 {
        libm::rint(value / step) * step
    } else {
        value
    }
}

/// Lets each dual go half the way to the largest value that the others allow it.
pub(super) fn ascend(costs: &PairCosts, duals: &mut [f64]) {
    let mut allowed = vec![f64::INFINITY; duals.len()];
    for first in 0..duals.len() {
        let later = &mut allowed[first + 1..];
        let own = least_reduced_cost(costs.row(first), &duals[first + 1..], duals[first], later);
        allowed[first] = allowed[first].min(own);
    }
    for (dual, allowed) in duals.iter_mut().zip(allowed) {
        if allowed.is_finite() {
            *dual = 0.5 * (*dual + allowed);
        }
    }
}

/// The least cost in a row less the other's dual; `later` keeps the others' least less `own`.
fn least_reduced_cost(row: &[f64], duals: &[f64], own: f64, later: &mut [f64]) -> f64 {
    let mut lanes = [f64::INFINITY; LANES];
    let blocks = row.chunks(LANES).zip(duals.chunks(LANES));
    for ((costs, duals), later) in blocks.zip(later.chunks_mut(LANES)) {
        let pairs = costs.iter().zip(duals).zip(later);
        for (((cost, dual), later), lane) in pairs.zip(&mut lanes) {
            *lane = smaller(cost - dual, *lane);
            *later = smaller(cost - own, *later);
        }
    }
    lanes.into_iter().fold(f64::INFINITY, f64::min)
}

fn larger(one: f64, other: f64) -> f64 {
    if one > other { one } else { other }
}

pub(super) fn smaller(one: f64, other: f64) -> f64 {
    if one < other { one } else { other }
}

/// Slacks of all pairs at rough duals, with a little noise that keeps threads that are alike from
/// having all the same cheapest partners.
pub(super) struct Slacks<'a> {
    costs: &'a PairCosts,
    duals: &'a [f64],
    /// By the sum of both numbers.
    noise: Vec<f64>,
}

impl<'a> Slacks<'a> {
    pub(super) fn new(costs: &'a PairCosts, duals: &'a [f64]) -> Self {
        let size = mean_slack(costs, duals);
        Self {
            costs,
            duals,
            noise: noise(2 * duals.len(), size),
        }
    }

    /// Returns for each vertex a slack that at least `count` of its edges do not exceed.
    pub(super) fn limits(&self, count: usize) -> Vec<f64> {
        let vertices = self.duals.len();
        // For each of the lanes the least slack of every vertex with those before it.
        let mut before = vec![f64::INFINITY; LANES * vertices];
        let mut limits = Vec::with_capacity(vertices);
        for first in 0..vertices {
            let lane = first % LANES * vertices;
            let earlier = &mut before[lane + first + 1..lane + vertices];
            let mut lanes = [f64::INFINITY; 2 * LANES];
            self.keep(first, &mut lanes[..LANES], earlier);
            for (lane, known) in lanes[LANES..].iter_mut().enumerate() {
                *known = before[lane * vertices + first];
            }
            limits.push(*lanes.select_nth_unstable_by(count, f64::total_cmp).1);
        }
        limits
    }

    fn keep(&self, first: usize, lanes: &mut [f64], earlier: &mut [f64]) {
        let blocks = self.row(first).zip(earlier.chunks_mut(LANES));
        let own = self.duals[first];
        for (((costs, duals), noise), earlier) in blocks {
            let pairs = costs.iter().zip(duals).zip(noise).zip(earlier);
            for ((((cost, dual), noise), earlier), lane) in pairs.zip(&mut *lanes) {
                let slack = cost - own - dual + noise;
                *lane = smaller(slack, *lane);
                *earlier = smaller(slack, *earlier);
            }
        }
    }

    /// Costs, duals and noise of a vertex with those after it, in blocks.
    fn row(&self, first: usize) -> impl Iterator<Item = ((&[f64], &[f64]), &[f64])> {
        let costs = self.costs.row(first).chunks(LANES);
        let duals = self.duals[first + 1..].chunks(LANES);
        costs
            .zip(duals)
            .zip(self.noise[2 * first + 1..].chunks(LANES))
    }

    /// All edges within the limit of either end.
    pub(super) fn edges_below(&self, limits: &[f64]) -> Vec<Edge> {
        let mut edges = Vec::with_capacity(8 * limits.len());
        for first in 0..limits.len() {
            self.push_edges_below(first, limits, &mut edges);
        }
        edges
    }

    fn push_edges_below(&self, first: usize, limits: &[f64], edges: &mut Vec<Edge>) {
        let (own, limit) = (self.duals[first], limits[first]);
        let mut second = first + 1;
        let blocks = self.row(first).zip(limits[second..].chunks(LANES));
        for (((costs, duals), noise), limits) in blocks {
            let pairs = costs.iter().zip(duals).zip(noise).zip(limits);
            let slacks = pairs.map(|(((cost, dual), noise), other)| {
                (cost - own - dual + noise, larger(limit, *other))
            });
            // Counting has no early exit, so it runs on several pairs at once.
            if slacks
                .clone()
                .filter(|(slack, limit)| slack <= limit)
                .count()
                > 0
            {
                let found = slacks
                    .enumerate()
                    .filter(|(_, (slack, limit))| slack <= limit);
                edges.extend(found.map(|(at, (slack, _))| Edge {
                    first,
                    second: second + at,
                    slack,
                }));
            }
            second += costs.len();
        }
    }
}

/// A pair and its slack at rough duals.
pub(super) struct Edge {
    pub(super) first: usize,
    pub(super) second: usize,
    pub(super) slack: f64,
}

/// The mean size of a slack, from the first row.
fn mean_slack(costs: &PairCosts, duals: &[f64]) -> f64 {
    let row = costs.row(0);
    let slacks = row
        .iter()
        .zip(&duals[1..])
        .map(|(cost, dual)| (cost - dual - duals[0]).abs());
    slacks.filter(|size| size.is_finite()).sum::<f64>() / row.len().max(1) as f64
}

/// Numbers between zero and a millionth of `size`, without a pattern.
fn noise(count: usize, size: f64) -> Vec<f64> {
    let scale = size * 1e-6 / 16_777_216.0;
    let at = |index| (splitmix64(index) >> 40) as f64 * scale;
    (1..=count as u64).map(at).collect()
}

/// A number without a pattern for each number (splitmix64 of Steele, Lea and Flood, OOPSLA 2014).
pub(super) fn splitmix64(index: u64) -> u64 {
    let mut mixed = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
