//! A good start: near-optimal duals, few candidate edges, a first matching.
//!
//! Pricing decides what is optimal; a bad start costs only time.

use crate::PairCosts;
use crate::scaled_costs::ScaledCosts;

/// Rounds of dual ascent without a warm start, and with one.
const ROUNDS: usize = 3;
const WARM_ROUNDS: usize = 1;
const CANDIDATES: usize = 8;

/// A candidate edge from a vertex.
#[derive(Clone, Copy)]
pub(crate) struct CandidateEdge {
    pub(crate) to: usize,
    pub(crate) cost: i64,
}

/// Start of the search for a matching.
pub(crate) struct SearchStart {
    pub(crate) duals: Vec<i64>,
    pub(crate) arcs: Vec<Vec<CandidateEdge>>,
    /// Tight edges without a vertex in common.
    pub(crate) pairs: Vec<(usize, usize)>,
}

impl SearchStart {
    /// Starts at duals, in units of cost, that are a first guess.
    pub(crate) fn cold(costs: &ScaledCosts<'_>, duals: Vec<f64>) -> Self {
        Self::new(costs, duals, ROUNDS)
    }

    /// Starts at duals, in units of cost, that are a first guess.
    pub(crate) fn warm(costs: &ScaledCosts<'_>, duals: Vec<f64>) -> Self {
        Self::new(costs, duals, WARM_ROUNDS)
    }

    fn new(costs: &ScaledCosts<'_>, mut duals: Vec<f64>, rounds: usize) -> Self {
        for _ in 0..rounds {
            ascend(costs.costs(), &mut duals);
        }
        let mut start = Self {
            arcs: candidates(&duals, costs, CANDIDATES),
            duals: integer_duals(&duals, costs),
            pairs: Vec::new(),
        };
        start.make_duals_feasible();
        start.pair_tight_edges();
        start
    }

    /// Moves each dual half the way to the largest value that the others allow. Afterwards no
    /// candidate edge is refused, whatever the duals were, because both ends together move half the
    /// way to its cost.
    fn make_duals_feasible(&mut self) {
        let halfway = |(arcs, dual): (&Vec<CandidateEdge>, &i64)| {
            let allowed = arcs.iter().map(|arc| arc.cost - self.duals[arc.to]).min();
            allowed.map_or(*dual, |allowed| (dual + allowed).div_euclid(2))
        };
        self.duals = self.arcs.iter().zip(&self.duals).map(halfway).collect();
    }

    /// Raises each free vertex until an edge is tight; pairs it if the other end is free too.
    fn pair_tight_edges(&mut self) {
        let mut free = vec![true; self.duals.len()];
        for vertex in 0..self.duals.len() {
            if !free[vertex] {
                continue;
            }
            let key = |arc: &CandidateEdge| (arc.cost - self.duals[arc.to], !free[arc.to], arc.to);
            if let Some((dual, taken, other)) = self.arcs[vertex].iter().map(key).min() {
                self.duals[vertex] = dual;
                if !taken {
                    free[vertex] = false;
                    free[other] = false;
                    self.pairs.push((vertex, other));
                }
            }
        }
    }
}

/// Integer duals, at most the largest cost, because a warm start may be far off.
fn integer_duals(duals: &[f64], costs: &ScaledCosts<'_>) -> Vec<i64> {
    let (factor, limit) = (costs.factor(), costs.infinite_cost());
    let whole = |dual: &f64| ((dual * factor) as i64).clamp(-limit, limit);
    duals.iter().map(whole).collect()
}

/// Edges that are among the cheapest of either end at these duals.
pub(crate) fn candidates(
    duals: &[f64],
    costs: &ScaledCosts<'_>,
    count: usize,
) -> Vec<Vec<CandidateEdge>> {
    let slacks = Slacks::new(costs.costs(), duals);
    let mut limits = slacks.limits(count);
    let edges = slacks.edges_below(&limits);
    tighten(&mut limits, &edges, count);
    let mut arcs = empty_lists(duals.len(), 3 * count);
    for Edge {
        first,
        second,
        slack,
    } in edges
    {
        if slack <= limits[first].max(limits[second]) {
            let cost = costs.at(first, second);
            arcs[first].push(CandidateEdge { to: second, cost });
            arcs[second].push(CandidateEdge { to: first, cost });
        }
    }
    arcs
}

/// Lowers each limit so that at most `count` edges are below.
fn tighten(limits: &mut [f64], edges: &[Edge], count: usize) {
    let mut slacks = empty_lists(limits.len(), 4 * count);
    for edge in edges {
        for vertex in [edge.first, edge.second] {
            if edge.slack <= limits[vertex] {
                slacks[vertex].push(edge.slack);
            }
        }
    }
    for (limit, slacks) in limits.iter_mut().zip(&mut slacks) {
        if slacks.len() > count {
            *limit = *slacks.select_nth_unstable_by(count, f64::total_cmp).1;
        }
    }
}

/// Empty lists with capacity, so that memory is allocated once.
fn empty_lists<T>(lists: usize, room: usize) -> Vec<Vec<T>> {
    (0..lists).map(|_| Vec::with_capacity(room)).collect()
}

/// Minima that are computed side by side: of a vertex with those after it, and of it with those
/// before it.
const LANES: usize = 16;

/// Means as duals: the mean of each row less half the mean of all. Infinite costs are ignored.
///
/// Costs here are sums of one part per thread and a smaller part per pair. The means remove the
/// first; some rounds of [`ascend`] then move each dual half the way to the tightest value that the
/// others allow. Both serve the start alone, so rounding does no harm. A sweep reads each pair once
/// and keeps a fixed number of minima side by side, which compilers turn into vector code. Threads
/// that are alike get identical duals, because minima do not depend on the order of threads and
/// means are rounded.
pub(crate) fn means(costs: &PairCosts) -> Vec<f64> {
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

/// Rounds away the digits that depend on the order of summation, for values next to `size`.
fn round_coarsely(value: f64, size: f64) -> f64 {
    // 2^-20 is far from what rounding changes, 2^-53 for each thread.
    let step = size.abs() * 2.0f64.powi(-20);
    if step > 0.0 {
        libm::rint(value / step) * step
    } else {
        value
    }
}

/// Moves each dual half the way to the largest value that the others allow.
fn ascend(costs: &PairCosts, duals: &mut [f64]) {
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

/// Least cost in a row less the other's dual; `later` keeps the others' least less `own`.
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

pub(crate) fn smaller(one: f64, other: f64) -> f64 {
    if one < other { one } else { other }
}

/// Slacks of all pairs at rough duals. A little noise keeps equal threads from having all the same
/// cheapest partners.
struct Slacks<'a> {
    costs: &'a PairCosts,
    duals: &'a [f64],
    /// Noise by the sum of both vertex numbers.
    noise: Vec<f64>,
}

impl<'a> Slacks<'a> {
    fn new(costs: &'a PairCosts, duals: &'a [f64]) -> Self {
        let size = mean_slack(costs, duals);
        Self {
            costs,
            duals,
            noise: noise(2 * duals.len(), size),
        }
    }

    /// Returns for each vertex a slack that at least `count` of its edges do not exceed.
    fn limits(&self, count: usize) -> Vec<f64> {
        let vertices = self.duals.len();
        // For each lane the least slack of every vertex with those before it.
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
    fn edges_below(&self, limits: &[f64]) -> Vec<Edge> {
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
struct Edge {
    first: usize,
    second: usize,
    slack: f64,
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

/// Pseudo-random numbers between zero and a millionth of `size`.
fn noise(count: usize, size: f64) -> Vec<f64> {
    let scale = size * 1e-6 / 16_777_216.0;
    let at = |index| (splitmix64(index) >> 40) as f64 * scale;
    (1..=count as u64).map(at).collect()
}

/// Pseudo-random number for each index (splitmix64 of Steele, Lea and Flood, OOPSLA 2014).
pub(crate) fn splitmix64(index: u64) -> u64 {
    let mut mixed = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
