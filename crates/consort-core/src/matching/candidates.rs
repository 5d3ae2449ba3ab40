//! A good start: near-optimal duals, few candidate edges, a first matching.
//!
//! Nothing here decides what is optimal: pricing does, and a bad start costs
//! time alone.

use super::ascent::{Edge, Slacks, ascend};
use super::scaled_costs::ScaledCosts;

/// Rounds of dual ascent without a warm start, and with one.
const ROUNDS: usize = 3;
const WARM_ROUNDS: usize = 1;
/// Candidates that each vertex brings in.
const CANDIDATES: usize = 8;

/// A candidate edge from a vertex.
#[derive(Clone, Copy)]
pub(super) struct CandidateEdge {
    pub(super) to: usize,
    pub(super) cost: i64,
}

/// Start of the search for a matching.
pub(super) struct SearchStart {
    pub(super) duals: Vec<i64>,
    pub(super) arcs: Vec<Vec<CandidateEdge>>,
    /// Tight edges without a vertex in common.
    pub(super) pairs: Vec<(usize, usize)>,
}

impl SearchStart {
    /// A start at duals, in units of cost, that are a first guess.
    pub(super) fn cold(costs: &ScaledCosts<'_>, duals: Vec<f64>) -> Self {
        Self::new(costs, duals, ROUNDS)
    }

    /// A start at duals, in units of cost, that are near the best.
    pub(super) fn warm(costs: &ScaledCosts<'_>, duals: Vec<f64>) -> Self {
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

    /// Lets each dual go half the way to the largest that the others' allow. No candidate edge is
    /// refused then, whatever the duals were: both ends together go half the way to its cost.
    fn make_duals_feasible(&mut self) {
        let halfway = |(arcs, dual): (&Vec<CandidateEdge>, &i64)| {
            let allowed = arcs.iter().map(|arc| arc.cost - self.duals[arc.to]).min();
            allowed.map_or(*dual, |allowed| (dual + allowed).div_euclid(2))
        };
        self.duals = self.arcs.iter().zip(&self.duals).map(halfway).collect();
    }

    /// Raises each free vertex until an edge is tight; pairs it where the other end is free too.
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

/// Whole duals, none beyond the dearest cost: a warm start may be far off.
fn integer_duals(duals: &[f64], costs: &ScaledCosts<'_>) -> Vec<i64> {
    let (factor, limit) = (costs.factor(), costs.infinite_cost());
    let whole = |dual: &f64| ((dual * factor) as i64).clamp(-limit, limit);
    duals.iter().map(whole).collect()
}

/// The edges that are among the cheapest of either end at these duals.
pub(super) fn candidates(
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

/// Lowers each limit to what no more than `count` edges are below.
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

/// So many empty lists with room for so many elements each.
fn empty_lists<T>(lists: usize, room: usize) -> Vec<Vec<T>> {
    (0..lists).map(|_| Vec::with_capacity(room)).collect()
}
