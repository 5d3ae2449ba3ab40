//! One search of the fractional matching.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::FractionalMatching;

/// Place of a vertex in the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VertexLabel {
    Free,
    /// At even distance from the root: its dual grows.
    Outer,
    /// At odd distance, reached from this outer vertex: its dual shrinks.
    Inner(usize),
}

/// The tree of one search. Its time is the distance that the root's dual has moved.
pub(super) struct FractionalTree {
    now: i64,
    /// The time at which an edge is known to end the search: later events do not matter.
    bound: i64,
    labels: Vec<VertexLabel>,
    /// Time at which each labelled vertex got its label.
    since: Vec<i64>,
    labelled: Vec<usize>,
    /// Edges from outer vertices that are tight now: the newest is taken first, so that among many
    /// the search goes deep, not wide.
    tight: Vec<(usize, usize)>,
    /// Time at which each other edge from an outer vertex becomes tight, with the edge.
    events: BinaryHeap<Reverse<(i64, u32, u32)>>,
}

impl FractionalTree {
    pub(super) fn new(vertices: usize) -> Self {
        Self {
            now: 0,
            bound: i64::MAX,
            labels: vec![VertexLabel::Free; vertices],
            since: vec![0; vertices],
            labelled: Vec::new(),
            tight: Vec::new(),
            events: BinaryHeap::new(),
        }
    }

    fn reset(&mut self) {
        for vertex in self.labelled.drain(..) {
            self.labels[vertex] = VertexLabel::Free;
        }
        self.tight.clear();
        self.events.clear();
        self.now = 0;
        self.bound = i64::MAX;
    }

    /// The next edge that is tight; time moves on to it.
    fn pop(&mut self) -> Option<(usize, usize)> {
        if let Some(edge) = self.tight.pop() {
            return Some(edge);
        }
        let Reverse((at, from, to)) = self.events.pop()?;
        self.now = at;
        Some((from as usize, to as usize))
    }

    /// Notes an edge that becomes tight; `ends` where it will end the search.
    fn push(&mut self, at: i64, edge: (usize, usize), ends: bool) {
        if at == self.now {
            self.tight.push(edge);
        } else if at < self.bound {
            // Half the size is twice the speed, and there are fewer than 2^32 threads.
            let (from, to) = (edge.0 as u32, edge.1 as u32);
            self.events.push(Reverse((at, from, to)));
        }
        if ends {
            self.bound = self.bound.min(at);
        }
    }

    fn set(&mut self, vertex: usize, label: VertexLabel) {
        self.labels[vertex] = label;
        self.since[vertex] = self.now;
        self.labelled.push(vertex);
    }

    pub(super) fn is_inner(&self, vertex: usize) -> bool {
        matches!(self.labels[vertex], VertexLabel::Inner(_))
    }

    /// All outer vertices.
    pub(super) fn outer_vertices(&self) -> Vec<usize> {
        let labelled = self.labelled.iter().copied();
        labelled
            .filter(|&vertex| self.labels[vertex] == VertexLabel::Outer)
            .collect()
    }

    /// The outer vertex from which an inner one was reached.
    fn parent(&self, inner: usize) -> Option<usize> {
        match self.labels[inner] {
            VertexLabel::Inner(outer) => Some(outer),
            VertexLabel::Free | VertexLabel::Outer => None,
        }
    }
}

impl FractionalMatching<'_> {
    /// Gives `root` a mate or a cycle. Returns false where it could not: candidate edges may not
    /// lead far enough.
    pub(super) fn search(&mut self, root: usize) -> bool {
        self.tree.reset();
        self.become_outer(root);
        while let Some((from, to)) = self.tree.pop() {
            match (self.tree.labels[to], self.mate[to]) {
                (VertexLabel::Inner(_), _) => {}
                (VertexLabel::Free, Some(mate)) => {
                    self.tree.set(to, VertexLabel::Inner(from));
                    self.become_outer(mate);
                }
                (VertexLabel::Free, None) => {
                    self.settle();
                    self.open(to);
                    self.augment(from, to);
                    return true;
                }
                (VertexLabel::Outer, _) => {
                    self.settle();
                    self.close(from, to);
                    return true;
                }
            }
        }
        self.settle();
        false
    }

    /// Notes when each candidate edge of a vertex that is outer from now on becomes tight.
    fn become_outer(&mut self, vertex: usize) {
        self.tree.set(vertex, VertexLabel::Outer);
        let (now, dual) = (self.tree.now, self.duals[vertex]);
        for arc in &self.arcs[vertex] {
            let slack = arc.cost - dual - self.duals[arc.to];
            let (at, ends) = match self.tree.labels[arc.to] {
                VertexLabel::Inner(_) => continue,
                VertexLabel::Free => (now + slack, self.mate[arc.to].is_none()),
                // The other's dual has grown since its label was set.
                VertexLabel::Outer => (now + (slack - (now - self.tree.since[arc.to])) / 2, true),
            };
            self.tree.push(at, (vertex, arc.to), ends);
            if ends && at == now {
                return;
            }
        }
    }

    /// Brings the duals of the tree up to date.
    fn settle(&mut self) {
        for &vertex in &self.tree.labelled {
            let shift = self.tree.now - self.tree.since[vertex];
            match self.tree.labels[vertex] {
                VertexLabel::Outer => self.duals[vertex] += shift,
                VertexLabel::Inner(_) => self.duals[vertex] -= shift,
                VertexLabel::Free => {}
            }
        }
    }

    /// Swaps matched and unmatched edges from an outer vertex, which gets a new mate, to the root.
    fn augment(&mut self, outer: usize, mate: usize) {
        let (mut outer, mut mate) = (outer, mate);
        loop {
            let before = self.mate[outer];
            self.pair(outer, mate);
            let Some(inner) = before else { return };
            let Some(parent) = self.tree.parent(inner) else {
                return;
            };
            (outer, mate) = (parent, inner);
        }
    }

    /// Makes an odd cycle of an edge between outer vertices and the tree's ways to where they meet.
    fn close(&mut self, first: usize, second: usize) {
        let (mut down, mut up) = (self.path_to_root(first), self.path_to_root(second));
        let mut meeting = None;
        while down.last().is_some() && down.last() == up.last() {
            meeting = down.pop();
            up.pop();
            // Inner vertices have one child, so ways part at outer ones.
        }
        let Some(meeting) = meeting else { return };
        if let Some(inner) = self.mate[meeting]
            && let Some(parent) = self.tree.parent(inner)
        {
            self.augment(parent, inner);
        }
        let around: Vec<usize> = [meeting]
            .into_iter()
            .chain(down.into_iter().rev())
            .chain(up)
            .collect();
        for (at, &vertex) in around.iter().enumerate() {
            self.mate[vertex] = None;
            self.next[vertex] = Some(around[(at + 1) % around.len()]);
        }
    }

    /// All vertices from an outer one to the root.
    fn path_to_root(&self, outer: usize) -> Vec<usize> {
        let mut way = vec![outer];
        let mut at = outer;
        while let Some(inner) = self.mate[at]
            && let Some(parent) = self.tree.parent(inner)
        {
            way.extend([inner, parent]);
            at = parent;
        }
        way
    }
}
