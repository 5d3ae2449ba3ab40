//! More candidates for a tree that those there are do not lead out of.

use super::FractionalMatching;

impl FractionalMatching<'_> {
    /// Gives each outer vertex of a tree that cannot grow its nearest edge to an outer or free one.
    /// There is one: outer vertices and inner ones are odd in number together, all are even.
    pub(super) fn add_nearest_edges(&mut self) {
        for outer in self.tree.outer_vertices() {
            let nearest = (1..self.duals.len())
                // From its own number on, so that vertices that are alike find different ones.
                .map(|step| (outer + step) % self.duals.len())
                .filter(|&other| !self.tree.is_inner(other))
                .min_by_key(|&other| self.slack(outer, other));
            if let Some(nearest) = nearest {
                self.admit(outer, nearest);
            }
        }
    }

    pub(super) fn slack(&self, first: usize, second: usize) -> i64 {
        self.costs.at(first, second) - self.duals[first] - self.duals[second]
    }
}
