//! Minimum-weight perfect matching of a complete graph, exactly.
//!
//! Purpose: the blossom algorithm of Edmonds ("Paths, trees, and flowers",
//! Canadian Journal of Mathematics 17, 1965; weighted: "Maximum matching and a
//! polyhedron with 0,1-vertices", Journal of Research of the NBS 69B, 1965), one
//! tree at a time on few candidate edges, then pricing of all edges against the
//! duals as in Applegate and Cook ("Solving large-scale matching problems",
//! DIMACS 12, 1993). Every edge that the duals refuse becomes a candidate, its
//! vertex is matched anew, until no edge is refused: then the matching is
//! optimal for the complete graph, and the duals prove it. It starts where the
//! fractional matching ends, so few vertices are left to search from.
//!
//! The duals: y for vertices, of any sign; z of at least zero for blossoms. An
//! edge's slack, its cost less y of both ends plus z of all blossoms around both,
//! is nowhere negative, and zero on matched edges and around blossoms.
//!
//! Pitfalls: the number of vertices must be even. All numbers are whole and
//! costs even, so all steps are exact.

mod forest;
mod price;
#[cfg(test)]
mod proof;
mod reshape;
mod search;
mod tree;

use super::candidates::{CandidateEdge, SearchStart, candidates};
use super::scaled_costs::ScaledCosts;
use forest::Forest;
use tree::AlternatingTree;

/// Candidates that each vertex brings in once those of the start have not been enough.
const WIDE: usize = 16;
/// Round, counted from 1, after which candidates are widened.
const PATIENCE: usize = 3;

/// A matching under way.
pub(super) struct BlossomSolver<'a> {
    costs: &'a ScaledCosts<'a>,
    /// Candidate edges of each vertex.
    arcs: Vec<Vec<CandidateEdge>>,
    forest: Forest,
    tree: AlternatingTree,
    /// The duals at the start, in units of cost.
    at_start: Vec<f64>,
}

impl<'a> BlossomSolver<'a> {
    /// Starts from duals that no candidate edge refuses.
    pub(super) fn new(costs: &'a ScaledCosts<'a>, start: SearchStart) -> Self {
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
    pub(super) fn solve(&mut self) {
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

    /// Makes all edges candidates that were cheap at the duals of the start:
    /// where some were refused, more would follow. All edges must have been priced.
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
    pub(super) fn mates(&self) -> &[Option<usize>] {
        &self.forest.mate
    }

    /// The duals of the vertices.
    pub(super) fn duals(&self) -> impl Iterator<Item = i64> {
        let vertices = self.forest.vertex_count();
        self.forest.nodes[..vertices].iter().map(|node| node.dual)
    }
}
