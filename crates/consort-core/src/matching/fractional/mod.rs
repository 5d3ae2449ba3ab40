//! Fractional perfect matching: what is left of the problem without blossoms.
//!
//! Purpose: duals and a matching so good that few searches with blossoms are
//! left (Applegate and Cook, "Solving large-scale matching problems", DIMACS 12,
//! 1993, call it the fractional jump start). Every vertex is matched, or is in
//! an odd cycle whose edges count one half each. A search grows one tree of
//! tight edges from an exposed vertex; the first edge between two outer
//! vertices closes such a cycle and ends it, so trees stay small and nothing is
//! ever shrunk. All edges are then priced as for the real matching.
//!
//! Pitfalls: a vertex that no candidate edge leads out of stays exposed; the
//! blossom search, which has an edge for every vertex, deals with it.

mod extend;
mod join;
mod price;
mod search;

use super::candidates::{CandidateEdge, SearchStart};
use super::scaled_costs::ScaledCosts;
use search::FractionalTree;

/// A fractional matching under way.
pub(super) struct FractionalMatching<'a> {
    costs: &'a ScaledCosts<'a>,
    duals: Vec<i64>,
    arcs: Vec<Vec<CandidateEdge>>,
    mate: Vec<Option<usize>>,
    /// The next vertex around the odd cycle, for vertices in one.
    next: Vec<Option<usize>>,
    tree: FractionalTree,
}

impl<'a> FractionalMatching<'a> {
    pub(super) fn new(costs: &'a ScaledCosts<'a>, start: SearchStart) -> Self {
        let vertices = start.duals.len();
        let mut mate = vec![None; vertices];
        for (first, second) in start.pairs {
            mate[first] = Some(second);
            mate[second] = Some(first);
        }
        Self {
            costs,
            duals: start.duals,
            arcs: start.arcs,
            mate,
            next: vec![None; vertices],
            tree: FractionalTree::new(vertices),
        }
    }

    /// Searches and prices until no edge is refused.
    pub(super) fn solve(&mut self) {
        while self.run_round() || self.exposed_count() > 0 {}
        self.join_cycles();
    }

    /// Searches and prices once. Whether the start was good: no more than a quarter of the vertices
    /// need another search.
    pub(super) fn check_start(&mut self) -> bool {
        self.run_round();
        4 * self.exposed_count() <= self.duals.len()
    }

    /// Searches from all exposed vertices, then prices. Whether an edge was refused.
    fn run_round(&mut self) -> bool {
        for root in 0..self.duals.len() {
            while self.is_exposed(root) && !self.search(root) {
                self.add_nearest_edges();
            }
        }
        self.price()
    }

    fn exposed_count(&self) -> usize {
        (0..self.duals.len())
            .filter(|&vertex| self.is_exposed(vertex))
            .count()
    }

    /// The start for a search with blossoms: of each odd cycle one vertex is left over.
    pub(super) fn into_start(mut self) -> SearchStart {
        for vertex in 0..self.duals.len() {
            self.open(vertex);
        }
        let mates = self.mate.iter().enumerate();
        let pairs = mates.filter_map(|(first, mate)| mate.map(|second| (first, second)));
        SearchStart {
            pairs: pairs.filter(|(first, second)| first < second).collect(),
            duals: self.duals,
            arcs: self.arcs,
        }
    }

    /// The duals in units of cost.
    pub(super) fn duals(&self) -> Vec<f64> {
        let factor = self.costs.factor();
        self.duals
            .iter()
            .map(|&dual| dual as f64 / factor)
            .collect()
    }

    fn is_exposed(&self, vertex: usize) -> bool {
        self.mate[vertex].is_none() && self.next[vertex].is_none()
    }

    fn pair(&mut self, first: usize, second: usize) {
        self.mate[first] = Some(second);
        self.mate[second] = Some(first);
    }

    /// Pairs all of an odd cycle but `vertex`.
    fn open(&mut self, vertex: usize) {
        let mut at = self.next[vertex].take();
        while let Some(first) = at.filter(|&first| first != vertex) {
            let Some(second) = self.next[first].take() else {
                return;
            };
            at = self.next[second].take();
            self.pair(first, second);
        }
    }

    /// Makes a vertex exposed.
    fn separate(&mut self, vertex: usize) {
        self.open(vertex);
        if let Some(mate) = self.mate[vertex].take() {
            self.mate[mate] = None;
        }
    }
}
