//! One search: grow a tree of tight edges from an exposed vertex until it meets another.

use super::BlossomSolver;
use super::tree::{NodeLabel, TreeEvent};

impl BlossomSolver<'_> {
    /// Matches `root`, and one more of the exposed vertices, along a shortest augmenting path.
    pub(super) fn search(&mut self, root: usize, exposed: &[usize]) {
        self.tree.reset();
        self.push_nearest_exposed(root, exposed);
        self.become_outer(self.forest.top[root]);
        while let Some(event) = self.tree.pop() {
            if let Some(edge) = self.handle(event) {
                self.settle_all();
                self.augment(edge);
                return;
            }
        }
    }

    /// Notes the edge to the nearest exposed vertex, candidate or not, so that every search ends.
    fn push_nearest_exposed(&mut self, root: usize, exposed: &[usize]) {
        let others = exposed
            .iter()
            .filter(|&&v| v != root && self.forest.mate[v].is_none());
        let slack = |&&v: &&usize| {
            self.costs.at(root, v) - self.forest.nodes[root].dual - self.forest.nodes[v].dual
        };
        if let Some((at, vertex)) = others.map(|v| (slack(&v), *v)).min() {
            self.tree.push(at, TreeEvent::Tight(root, vertex));
            self.tree.bound = at;
        }
    }

    /// Lets an event happen; the last edge of an augmenting path, if that is what it closes.
    fn handle(&mut self, event: TreeEvent) -> Option<(usize, usize)> {
        match event {
            TreeEvent::Tight(from, to) => self.tighten(from, to),
            TreeEvent::Empty(node) => {
                self.open_empty_blossom(node);
                None
            }
        }
    }

    fn tighten(&mut self, from: usize, to: usize) -> Option<(usize, usize)> {
        let (here, there) = (self.forest.top[from], self.forest.top[to]);
        // An event is out of date where labels have changed since; a later one then stands for it.
        if here == there || self.slack(from, to) != 0 {
            return None;
        }
        match self.tree.label(there) {
            NodeLabel::Inner => None,
            NodeLabel::Outer => {
                self.shrink((from, to));
                None
            }
            NodeLabel::Free => self.grow((from, to)),
        }
    }

    fn grow(&mut self, edge: (usize, usize)) -> Option<(usize, usize)> {
        let node = self.forest.top[edge.1];
        let Some(mate) = self.forest.outside_mate(node) else {
            return Some(edge);
        };
        self.become_inner(node, edge);
        self.become_outer(self.forest.top[mate]);
        None
    }

    pub(super) fn become_inner(&mut self, node: usize, entry: (usize, usize)) {
        self.tree.set(node, NodeLabel::Inner, (entry.0, entry.1));
        if self.forest.is_blossom(node) {
            let at = self.tree.now + self.forest.nodes[node].dual / 2;
            self.tree.push(at, TreeEvent::Empty(node));
        }
    }

    pub(super) fn become_outer(&mut self, node: usize) {
        self.tree.set(node, NodeLabel::Outer, (0, 0));
        self.scan_members(node);
    }

    pub(super) fn scan_members(&mut self, node: usize) {
        let members = std::mem::take(&mut self.forest.nodes[node].members);
        for &vertex in &members {
            self.scan_outer(vertex);
        }
        self.forest.nodes[node].members = members;
    }

    /// Notes when each candidate edge of an outer vertex becomes tight.
    pub(super) fn scan_outer(&mut self, vertex: usize) {
        let (here, now) = (self.forest.top[vertex], self.tree.now);
        let dual = self.dual(vertex);
        for arc in &self.arcs[vertex] {
            let there = self.forest.top[arc.to];
            let label = self.tree.label(there);
            if there == here || label == NodeLabel::Inner {
                continue;
            }
            let slack = arc.cost - dual - self.forest.nodes[arc.to].dual - self.tree.shift(there);
            let free = label == NodeLabel::Free;
            let at = now + if free { slack } else { slack / 2 };
            self.tree.push(at, TreeEvent::Tight(vertex, arc.to));
            if free && at < self.tree.bound && self.forest.outside_mate(there).is_none() {
                self.tree.bound = at;
            }
        }
    }

    /// Notes when edges from the tree reach the vertices of a node that has just become free.
    pub(super) fn scan_free(&mut self, node: usize) {
        for &vertex in &self.forest.nodes[node].members {
            let dual = self.forest.nodes[vertex].dual;
            for arc in &self.arcs[vertex] {
                let there = self.forest.top[arc.to];
                if self.tree.label(there) == NodeLabel::Outer {
                    let slack =
                        arc.cost - dual - self.forest.nodes[arc.to].dual - self.tree.shift(there);
                    let at = self.tree.now + slack;
                    self.tree.push(at, TreeEvent::Tight(arc.to, vertex));
                }
            }
        }
    }

    /// The dual of a vertex now.
    fn dual(&self, vertex: usize) -> i64 {
        self.forest.nodes[vertex].dual + self.tree.shift(self.forest.top[vertex])
    }

    /// Slack of an edge between two outermost nodes: its cost less the duals of its ends, 0 where
    /// it is tight.
    fn slack(&self, from: usize, to: usize) -> i64 {
        self.costs.at(from, to) - self.dual(from) - self.dual(to)
    }

    /// Brings the stored duals of an outermost node up to date.
    pub(super) fn settle(&mut self, node: usize) {
        let shift = self.tree.shift(node);
        self.tree.refresh(node);
        if shift == 0 {
            return;
        }
        if self.forest.is_blossom(node) {
            self.forest.nodes[node].dual += 2 * shift;
        }
        let members = std::mem::take(&mut self.forest.nodes[node].members);
        for &vertex in &members {
            self.forest.nodes[vertex].dual += shift;
        }
        self.forest.nodes[node].members = members;
    }

    fn settle_all(&mut self) {
        for index in 0..self.tree.labelled_nodes().len() {
            let node = self.tree.labelled_nodes()[index];
            let alive = !self.forest.nodes[node].members.is_empty();
            if alive && self.forest.nodes[node].parent.is_none() {
                self.settle(node);
            }
        }
    }

    /// Swaps matched and unmatched edges from the last edge back to the root.
    fn augment(&mut self, last: (usize, usize)) {
        let mut edge = last;
        loop {
            let (outer, inner) = edge;
            let node = self.forest.top[outer];
            let before = self.forest.outside_mate(node);
            self.forest.rebase(self.forest.top[inner], inner);
            self.forest.rebase(node, outer);
            self.forest.pair(outer, inner);
            let Some(mate) = before else { return };
            edge = self.tree.mark(self.forest.top[mate]).entry;
        }
    }
}
