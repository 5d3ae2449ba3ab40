//! A good start: near-optimal duals, few candidate edges, a first matching.
//!
//! Costs as they occur here are sums of one part per thread and a smaller part
//! per pair. The first is removed by means, then some rounds let each dual go
//! half the way to the tightest value that the others leave it. Only the cheapest edges at
//! these duals are candidates. Nothing here decides what is optimal: pricing
//! does, and a bad start costs time alone.

use super::scaled::Scaled;
use super::table::Table;

/// Rounds of dual ascent without a warm start, and with one.
const ROUNDS: usize = 8;
const WARM_ROUNDS: usize = 1;
/// Candidates that each vertex brings in.
const CANDIDATES: usize = 8;

/// A candidate edge from a vertex.
#[derive(Clone, Copy)]
pub(super) struct Arc {
    pub(super) to: usize,
    pub(super) cost: i64,
}

/// Where the blossom algorithm starts.
pub(super) struct Start {
    pub(super) duals: Vec<i64>,
    pub(super) arcs: Vec<Vec<Arc>>,
    /// Tight edges without a vertex in common.
    pub(super) pairs: Vec<(usize, usize)>,
}

impl Start {
    /// A start at the given duals, in units of cost, where there is one for each thread.
    pub(super) fn new(costs: &Scaled<'_>, warm: &[f64]) -> Self {
        let table = Table::new(costs);
        let fits = warm.len() == costs.threads() && warm.iter().all(|dual| dual.is_finite());
        let (mut duals, rounds) = if fits {
            (table.reduced(warm, costs), WARM_ROUNDS)
        } else {
            (table.zero(), ROUNDS)
        };
        for _ in 0..rounds {
            table.ascend(&mut duals);
        }
        let mut start = Self {
            arcs: candidates(&table, &duals, costs),
            duals: table.whole(&duals, costs.dear()),
            pairs: Vec::new(),
        };
        start.make_feasible();
        start.pair_tight();
        start
    }

    /// Gives each vertex in turn the largest dual that the others' allow. Later ones see it, so no
    /// candidate edge is refused in the end.
    fn make_feasible(&mut self) {
        for vertex in 0..self.duals.len() {
            let slack = |arc: &Arc| arc.cost - self.duals[arc.to];
            if let Some(dual) = self.arcs[vertex].iter().map(slack).min() {
                self.duals[vertex] = dual;
            }
        }
    }

    /// Raises each free vertex until an edge is tight; pairs it where the other end is free too.
    fn pair_tight(&mut self) {
        let mut free = vec![true; self.duals.len()];
        for vertex in 0..self.duals.len() {
            if !free[vertex] {
                continue;
            }
            let key = |arc: &Arc| (arc.cost - self.duals[arc.to], !free[arc.to], arc.to);
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

/// The edges that are among the cheapest of either end at these duals.
fn candidates(table: &Table, duals: &[f32], costs: &Scaled<'_>) -> Vec<Vec<Arc>> {
    let threads = costs.threads();
    let mut arcs = vec![Vec::with_capacity(3 * CANDIDATES); threads];
    let limits: Vec<f32> = (0..threads)
        .map(|vertex| table.limit(vertex, duals, CANDIDATES) - duals[vertex])
        .collect();
    for first in 0..threads {
        table.each_below(first, duals, &limits, |second| {
            let cost = costs.at(first, second);
            arcs[first].push(Arc { to: second, cost });
            arcs[second].push(Arc { to: first, cost });
        });
    }
    arcs
}
