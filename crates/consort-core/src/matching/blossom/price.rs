//! All edges against the duals, and room for those that are refused.

use super::super::candidates::Arc;
use super::Solver;

/// Pairs that are looked at together; a block without a suspect costs little.
const BLOCK: usize = 16;

impl Solver<'_> {
    /// Makes each edge of negative slack a candidate and its vertices' duals feasible again.
    /// Whether there was one.
    pub(super) fn price(&mut self) -> bool {
        let mut duals: Vec<f64> = self.duals().map(|dual| dual as f64).collect();
        let margin = margin(&duals);
        let mut refused = false;
        for first in 0..duals.len() {
            self.shade(first, &mut duals);
            while let Some(second) = self.refused_in_row(first, &duals, margin) {
                refused = true;
                self.admit(first, second);
                duals = self.duals().map(|dual| dual as f64).collect();
                self.shade(first, &mut duals);
            }
            self.unshade(first, &mut duals);
        }
        refused
    }

    /// The first later vertex to which the edge has negative slack.
    fn refused_in_row(&self, first: usize, duals: &[f64], margin: f64) -> Option<usize> {
        let (costs, factor) = (self.costs.costs().row(first), self.costs.factor());
        let limit = self.forest.nodes[first].dual as f64 + margin;
        let mut second = first + 1;
        for (costs, duals) in costs.chunks(BLOCK).zip(duals[second..].chunks(BLOCK)) {
            let suspects = costs.iter().zip(duals);
            // Counting has no early exit, so it runs on several pairs at once.
            let count = suspects
                .filter(|(cost, dual)| *cost * factor - *dual < limit)
                .count();
            let mut block = second..second + costs.len();
            if count > 0 {
                let found = block.find(|&other| self.slack_of_all(first, other) < 0);
                if found.is_some() {
                    return found;
                }
            }
            second += costs.len();
        }
        None
    }

    /// Takes off the duals what blossoms around both them and `first` add to the slack.
    fn shade(&self, first: usize, duals: &mut [f64]) {
        let nodes = &self.forest.nodes;
        let mut shared: i64 = self.forest.around(first).map(|node| nodes[node].dual).sum();
        let mut inside = first;
        for blossom in self.forest.around(first) {
            for &child in nodes[blossom]
                .children
                .iter()
                .filter(|&&child| child != inside)
            {
                for &vertex in &nodes[child].members {
                    duals[vertex] -= shared as f64;
                }
            }
            shared -= nodes[blossom].dual;
            inside = blossom;
        }
    }

    fn unshade(&self, first: usize, duals: &mut [f64]) {
        let top = self.forest.top[first];
        for &vertex in &self.forest.nodes[top].members {
            duals[vertex] = self.forest.nodes[vertex].dual as f64;
        }
    }

    /// Slack with all blossoms around both ends.
    pub(super) fn slack_of_all(&self, first: usize, second: usize) -> i64 {
        let nodes = &self.forest.nodes;
        let mut slack = self.costs.at(first, second) - nodes[first].dual - nodes[second].dual;
        if self.forest.top[first] == self.forest.top[second] {
            let around: Vec<usize> = self.forest.around(second).collect();
            let shared = self.forest.around(first).filter(|b| around.contains(b));
            slack += shared.map(|b| nodes[b].dual).sum::<i64>();
        }
        slack
    }

    /// Adds a refused edge, opens the blossoms around one end and lowers its dual.
    fn admit(&mut self, first: usize, second: usize) {
        let cost = self.costs.at(first, second);
        self.arcs[first].push(Arc { to: second, cost });
        self.arcs[second].push(Arc { to: first, cost });
        while self.forest.top[first] != first {
            self.dissolve(self.forest.top[first]);
        }
        let slack = self.slack_of_all(first, second);
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

/// More than rounding can hide: a cost is cut by less than 2 when it becomes whole.
fn margin(duals: &[f64]) -> f64 {
    let largest = duals
        .iter()
        .fold(0.0, |most: f64, dual| most.max(dual.abs()));
    // 2^-48: a dual has 53 binary digits here, and the largest may still double.
    4.0 + largest * 2.0f64.powi(-48)
}
