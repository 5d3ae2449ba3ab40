//! Odd cycles next to each other, by a tight edge, become pairs.

use super::super::candidates::CandidateEdge;
use super::FractionalMatching;

impl FractionalMatching<'_> {
    /// Pairs all vertices of two odd cycles wherever a tight edge, candidate or not, leads from one
    /// to the other. Threads that are alike have many; a search would have to find each.
    pub(super) fn join_cycles(&mut self) {
        let vertices: Vec<usize> = (0..self.duals.len())
            .filter(|&v| self.next[v].is_some())
            .collect();
        let cycles = self.cycles();
        for (at, &first) in vertices.iter().enumerate() {
            if self.next[first].is_none() {
                continue;
            }
            let other = vertices[at + 1..].iter().copied().find(|&second| {
                self.next[second].is_some()
                    && cycles[first] != cycles[second]
                    && self.slack(first, second) == 0
            });
            if let Some(second) = other {
                self.join(first, second);
            }
        }
    }

    fn join(&mut self, first: usize, second: usize) {
        self.open(first);
        self.open(second);
        self.pair(first, second);
        self.connect(first, second);
    }

    /// The least vertex of each vertex's cycle; of others, themselves.
    fn cycles(&self) -> Vec<usize> {
        let mut cycles: Vec<usize> = (0..self.duals.len()).collect();
        for vertex in 0..cycles.len() {
            let mut at = self.next[vertex];
            while let Some(other) =
                at.filter(|&other| cycles[other] > vertex && cycles[vertex] == vertex)
            {
                cycles[other] = vertex;
                at = self.next[other];
            }
        }
        cycles
    }

    /// Makes an edge a candidate.
    pub(super) fn connect(&mut self, first: usize, second: usize) {
        let cost = self.costs.at(first, second);
        self.arcs[first].push(CandidateEdge { to: second, cost });
        self.arcs[second].push(CandidateEdge { to: first, cost });
    }
}
