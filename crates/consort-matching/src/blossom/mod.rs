//! Exact minimum-weight perfect matching of a complete graph.
//!
//! The blossom algorithm of Edmonds ("Paths, trees, and flowers", Canadian Journal of Mathematics
//! 17, 1965; weighted: "Maximum matching and a polyhedron with 0,1-vertices", Journal of Research
//! of the NBS 69B, 1965) grows one tree at a time on few candidate edges. Then all edges are priced
//! against the duals as in Applegate and Cook ("Solving large-scale matching problems", DIMACS 12,
//! 1993): every edge that the duals refuse becomes a candidate and its vertex is matched again,
//! until no edge is refused. Then the matching is optimal for the complete graph, and the duals
//! prove it. The search starts where the fractional matching ends, so few vertices are left.
//!
//! The duals are y for vertices, of any sign, and z of at least zero for blossoms. An edge's slack,
//! its cost less y of both ends plus z of all blossoms around both, is nowhere negative, and zero
//! on matched edges and around blossoms.
//!
//! The number of vertices must be even. All numbers are integers and costs even, so all steps are
//! exact.

mod forest;
mod search;
mod tree;

use crate::scaled_costs::{PricingSweep, ScaledCosts};
use crate::start::{CandidateEdge, SearchStart, candidates};
use forest::Forest;
use tree::AlternatingTree;

/// Candidates per vertex after the candidates of the start were not enough.
const WIDE: usize = 16;
/// Round, counted from 1, after which candidates are widened.
const PATIENCE: usize = 3;

/// A matching during its search.
pub(crate) struct BlossomSolver<'a> {
    costs: &'a ScaledCosts<'a>,
    arcs: Vec<Vec<CandidateEdge>>,
    forest: Forest,
    tree: AlternatingTree,
    /// The duals at the start, in units of cost.
    at_start: Vec<f64>,
}

impl<'a> BlossomSolver<'a> {
    /// Starts from duals that no candidate edge refuses.
    pub(crate) fn new(costs: &'a ScaledCosts<'a>, start: SearchStart) -> Self {
        let units = start.duals.iter().map(|&dual| dual as f64 / costs.factor());
        let at_start = units.collect();
        let mut forest = Forest::new(start.duals);
        for (first, second) in start.pairs {
            forest.pair(first, second);
        }
        Self {
            costs,
            arcs: start.arcs,
            forest,
            tree: AlternatingTree::default(),
            at_start,
        }
    }

    /// Searches and prices until all edges agree.
    pub(crate) fn solve(&mut self) {
        for round in 1.. {
            self.match_exposed();
            if !self.price() {
                return;
            }
            if round == PATIENCE {
                self.widen();
            }
        }
    }

    /// Adds all edges that were cheap at the duals of the start as candidates, because if some were
    /// refused, more would follow. All edges must have been priced.
    fn widen(&mut self) {
        let wide = candidates(&self.at_start, self.costs, WIDE);
        for (known, arcs) in self.arcs.iter_mut().zip(wide) {
            for arc in arcs {
                if !known.iter().any(|other| other.to == arc.to) {
                    known.push(arc);
                }
            }
        }
    }

    fn match_exposed(&mut self) {
        let exposed = self.forest.exposed_vertices();
        for &root in &exposed {
            if self.forest.mate[root].is_none() {
                self.search(root, &exposed);
            }
        }
    }

    /// Each vertex's partner.
    pub(crate) fn mates(&self) -> &[Option<usize>] {
        &self.forest.mate
    }

    /// The duals of the vertices.
    pub(crate) fn duals(&self) -> impl Iterator<Item = i64> {
        let vertices = self.forest.vertex_count();
        self.forest.nodes[..vertices].iter().map(|node| node.dual)
    }

    /// Adds each edge of negative slack as a candidate and makes its vertices' duals feasible
    /// again. Returns true if there was one.
    fn price(&mut self) -> bool {
        let mut sweep = self.sweep();
        let mut refused = false;
        for first in 0..self.forest.vertex_count() {
            self.subtract_shared_blossoms(first, &mut sweep);
            while let Some(second) = sweep.first_refused(first, first + 1) {
                refused = true;
                self.admit(first, second);
                sweep = self.sweep();
                self.subtract_shared_blossoms(first, &mut sweep);
            }
            self.restore_duals(first, &mut sweep);
        }
        refused
    }

    fn sweep(&self) -> PricingSweep<'_> {
        PricingSweep::new(self.costs, &self.duals().collect::<Vec<_>>())
    }

    /// Subtracts from the duals of vertices what blossoms around both them and `first` add to the
    /// slack.
    fn subtract_shared_blossoms(&self, first: usize, sweep: &mut PricingSweep<'_>) {
        let nodes = &self.forest.nodes;
        let mut shared: i64 = self
            .forest
            .blossoms_around(first)
            .map(|node| nodes[node].dual)
            .sum();
        let mut inside = first;
        for blossom in self.forest.blossoms_around(first) {
            let others = nodes[blossom].children.iter().filter(|&&c| c != inside);
            for &vertex in others.flat_map(|&child| &nodes[child].members) {
                sweep.set(vertex, nodes[vertex].dual - shared);
            }
            shared -= nodes[blossom].dual;
            inside = blossom;
        }
    }

    fn restore_duals(&self, first: usize, sweep: &mut PricingSweep<'_>) {
        for &vertex in &self.forest.nodes[self.forest.top[first]].members {
            sweep.set(vertex, self.forest.nodes[vertex].dual);
        }
    }

    fn slack_with_blossoms(&self, first: usize, second: usize) -> i64 {
        let nodes = &self.forest.nodes;
        let mut slack = self.costs.at(first, second) - nodes[first].dual - nodes[second].dual;
        if self.forest.top[first] == self.forest.top[second] {
            let around: Vec<usize> = self.forest.blossoms_around(second).collect();
            let shared = self
                .forest
                .blossoms_around(first)
                .filter(|b| around.contains(b));
            slack += shared.map(|b| nodes[b].dual).sum::<i64>();
        }
        slack
    }

    /// Adds a refused edge, opens the blossoms around one end and lowers its dual.
    fn admit(&mut self, first: usize, second: usize) {
        let cost = self.costs.at(first, second);
        self.arcs[first].push(CandidateEdge { to: second, cost });
        self.arcs[second].push(CandidateEdge { to: first, cost });
        while self.forest.top[first] != first {
            self.dissolve(self.forest.top[first]);
        }
        let slack = self.slack_with_blossoms(first, second);
        if slack < 0 {
            self.forest.nodes[first].dual += slack;
            self.separate(first);
        }
    }

    /// Opens an outermost blossom so that all edges inside keep their slack: half of its dual is
    /// subtracted from each of its vertices. Edges to the outside gain slack, so the base loses its
    /// mate.
    fn dissolve(&mut self, blossom: usize) {
        let opened = self.forest.open(blossom);
        if opened.dual == 0 {
            return;
        }
        for &vertex in &opened.members {
            self.forest.nodes[vertex].dual -= opened.dual / 2;
        }
        self.separate(opened.base);
    }

    fn separate(&mut self, vertex: usize) {
        if let Some(mate) = self.forest.mate[vertex].take() {
            self.forest.mate[mate] = None;
        }
    }
}

#[cfg(test)]
impl BlossomSolver<'_> {
    /// Checks every condition of optimality, and names the first that fails.
    pub(crate) fn prove(&self) -> Result<(), String> {
        let vertices = self.forest.vertex_count();
        let mut cost = 0;
        for first in 0..vertices {
            for second in first + 1..vertices {
                let slack = self.slack_with_blossoms(first, second);
                let matched = self.forest.mate[first] == Some(second);
                if slack < 0 || matched && slack != 0 {
                    return Err(format!("slack of {first}, {second} is {slack}"));
                }
                cost += if matched {
                    self.costs.at(first, second)
                } else {
                    0
                };
            }
        }
        let bound = self.bound()?;
        (cost == bound)
            .then_some(())
            .ok_or(format!("cost {cost}, bound {bound}"))
    }

    /// The dual objective, a lower bound of every perfect matching's cost.
    fn bound(&self) -> Result<i64, String> {
        let vertices = self.forest.vertex_count();
        let mut bound: i64 = self.duals().sum();
        for node in &self.forest.nodes[vertices..] {
            if node.dual < 0 || node.members.len() % 2 == 0 && !node.members.is_empty() {
                return Err(format!(
                    "blossom of {} has dual {}",
                    node.members.len(),
                    node.dual
                ));
            }
            bound -= node.dual * (node.members.len() as i64 - 1).max(0) / 2;
        }
        Ok(bound)
    }
}
