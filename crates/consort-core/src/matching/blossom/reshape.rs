//! Blossoms come and go: odd cycles in the tree are shrunk, empty blossoms opened.

use super::BlossomSolver;
use super::tree::NodeLabel;

/// A way from a node towards the root: nodes, and the edge that leaves each.
type RootPath = Vec<(usize, (usize, usize))>;

impl BlossomSolver<'_> {
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
        // Edges of those that were outer before have been noted already.
        for child in inner {
            self.scan_members(child);
        }
    }

    /// The cycle's nodes from where the two ways to the root meet, and the edges between them.
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

    /// Way from the outermost node around `vertex`, an outer one, to the root.
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

    /// Puts the children on the even way from the entry to the base into the tree.
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

/// The even way around an opened blossom, from the child at `at` to the base at 0.
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
