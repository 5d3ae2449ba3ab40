//! All edges against the duals, and room for those that are refused.

use super::super::candidates::CandidateEdge;
use super::super::sweep::PricingSweep;
use super::BlossomSolver;

impl BlossomSolver<'_> {
    /// Makes each edge of negative slack a candidate and its vertices' duals feasible again.
    /// Whether there was one.
    pub(super) fn price(&mut self) -> bool {
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

    /// Takes off the duals what blossoms around both them and `first` add to the slack.
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

    /// Slack with all blossoms around both ends.
    pub(super) fn slack_with_blossoms(&self, first: usize, second: usize) -> i64 {
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

    /// Opens an outermost blossom in such a way that all edges inside keep their slack: half of its
    /// dual is taken from each of its vertices. Edges to the outside gain slack, so the base loses
    /// its mate.
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
