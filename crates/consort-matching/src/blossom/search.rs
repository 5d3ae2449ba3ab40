//! One search: grows a tree of tight edges from an exposed vertex until it meets another. Odd
//! cycles in the tree are shrunk, empty blossoms opened.

use crate::blossom::BlossomSolver;
use crate::blossom::tree::{NodeLabel, TreeEvent};

/// Path from a node towards the root: nodes, and the edge that leaves each.
type RootPath = Vec<(usize, (usize, usize))>;

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

    /// Queues the edge to the nearest exposed vertex, candidate or not, so that every search ends.
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

    /// Handles an event; returns the last edge of an augmenting path if the event completes one.
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
        // An event is obsolete if labels have changed since; a later event replaces it.
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

    /// Queues the times at which the candidate edges of an outer vertex become tight.
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

    /// Queues the times at which edges from the tree reach the vertices of a node that has just
    /// become free.
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

    /// Current dual of a vertex.
    fn dual(&self, vertex: usize) -> i64 {
        self.forest.nodes[vertex].dual + self.tree.shift(self.forest.top[vertex])
    }

    /// Slack of an edge between two outermost nodes: its cost less the duals of its ends, 0 if it
    /// is tight.
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

    /// Shrinks the odd cycle that a tight edge between two outer nodes closes.
    pub(super) fn shrink(&mut self, edge: (usize, usize)) {
        let (children, links) = self.cycle(edge);
        let inner: Vec<usize> = children
            .iter()
            .copied()
            .filter(|&child| self.tree.label(child) == NodeLabel::Inner)
            .collect();
        for &child in &children {
            self.settle(child);
        }
        let blossom = self.forest.shrink(children, links);
        self.tree.set(blossom, NodeLabel::Outer, (0, 0));
        // Edges of nodes that were outer before are in the queue already.
        for child in inner {
            self.scan_members(child);
        }
    }

    /// Nodes of the cycle from the meeting point of both root paths, and the edges between them.
    fn cycle(&self, edge: (usize, usize)) -> (Vec<usize>, Vec<(usize, usize)>) {
        let (first, second) = (self.path_to_root(edge.0), self.path_to_root(edge.1));
        let shared = first
            .iter()
            .rev()
            .zip(second.iter().rev())
            .take_while(|(a, b)| a.0 == b.0)
            .count();
        let (down, up) = (
            &first[..first.len() - shared],
            &second[..second.len() - shared],
        );
        let meeting = first[first.len() - shared].0;
        let reversed = down.iter().rev().map(|&(_, (from, to))| (to, from));
        let links = reversed.chain([edge]).chain(up.iter().map(|step| step.1));
        let nodes = down.iter().rev().chain(up).map(|step| step.0);
        (
            [meeting].into_iter().chain(nodes).collect(),
            links.collect(),
        )
    }

    /// Path from the outermost node around `vertex`, which is outer, to the root.
    fn path_to_root(&self, vertex: usize) -> RootPath {
        let mut way = RootPath::new();
        let mut outer = self.forest.top[vertex];
        while let Some(mate) = self.forest.outside_mate(outer) {
            let inner = self.forest.top[mate];
            let (parent, own) = self.tree.mark(inner).entry;
            way.push((outer, (self.forest.nodes[outer].base, mate)));
            way.push((inner, (own, parent)));
            outer = self.forest.top[parent];
        }
        way.push((outer, (0, 0)));
        way
    }

    /// Opens an inner blossom whose dual has reached zero.
    pub(super) fn open_empty_blossom(&mut self, node: usize) {
        let outermost = self.forest.nodes[node].parent.is_none();
        let inner = self.tree.label(node) == NodeLabel::Inner;
        if !outermost || !inner || self.forest.nodes[node].dual + 2 * self.tree.shift(node) != 0 {
            return;
        }
        self.settle(node);
        let entry = self.tree.mark(node).entry;
        self.tree.set(node, NodeLabel::Free, (0, 0));
        let opened = self.forest.open(node);
        let reached = self.forest.top[entry.1];
        let count = opened.children.len();
        let at = opened
            .children
            .iter()
            .position(|&child| child == reached)
            .unwrap_or(0);
        let way = EvenPath {
            at,
            count,
            links: &opened.links,
        };
        let kept = self.relabel(&way, &opened.children, entry);
        self.scan_children(&kept, &opened.children);
    }

    /// Adds the children on the even path from the entry to the base to the tree.
    fn relabel(
        &mut self,
        way: &EvenPath<'_>,
        children: &[usize],
        entry: (usize, usize),
    ) -> Vec<bool> {
        let mut kept = vec![false; children.len()];
        let mut entry = entry;
        for step in 0..=way.length() {
            let position = way.position(step);
            kept[position] = true;
            if step % 2 == 0 {
                self.become_inner(children[position], entry);
            } else {
                self.tree.set(children[position], NodeLabel::Outer, (0, 0));
                entry = way.edge(step);
            }
        }
        kept
    }

    fn scan_children(&mut self, kept: &[bool], children: &[usize]) {
        for (&child, &kept) in children.iter().zip(kept) {
            match self.tree.label(child) {
                NodeLabel::Outer => self.scan_members(child),
                NodeLabel::Free if !kept => self.scan_free(child),
                NodeLabel::Free | NodeLabel::Inner => {}
            }
        }
    }
}

/// The even path around an opened blossom, from the child at `at` to the base at 0.
struct EvenPath<'a> {
    at: usize,
    count: usize,
    links: &'a [(usize, usize)],
}

impl EvenPath<'_> {
    fn is_backwards(&self) -> bool {
        self.at.is_multiple_of(2)
    }

    fn length(&self) -> usize {
        if self.is_backwards() {
            self.at
        } else {
            self.count - self.at
        }
    }

    fn position(&self, step: usize) -> usize {
        if self.is_backwards() {
            self.at - step
        } else {
            (self.at + step) % self.count
        }
    }

    /// The edge from the child at `step` to the one at the next step.
    fn edge(&self, step: usize) -> (usize, usize) {
        if self.is_backwards() {
            let (from, to) = self.links[self.position(step + 1)];
            (to, from)
        } else {
            self.links[self.position(step)]
        }
    }
}
