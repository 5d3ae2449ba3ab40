//! The alternating tree of one search: labels and coming events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Place of a node in the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NodeLabel {
    /// Not in the tree.
    #[default]
    Free,
    /// At even distance from the root: its duals grow.
    Outer,
    /// At odd distance: its duals shrink.
    Inner,
}

/// Label of one node, with its time and the edge by which it came.
#[derive(Clone, Copy, Default)]
pub(super) struct NodeMark {
    pub(super) label: NodeLabel,
    /// Time since which its stored duals are out of date.
    pub(super) since: i64,
    /// The edge by which an inner node was reached: outer vertex, own vertex.
    pub(super) entry: (usize, usize),
}

/// Event that happens when duals have moved far enough.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TreeEvent {
    /// The edge from an outer vertex becomes tight.
    Tight(usize, usize),
    /// The dual of an inner blossom reaches zero.
    Empty(usize),
}

/// Alternating tree of one search. Its time is the distance that the root's dual has moved.
#[derive(Default)]
pub(super) struct AlternatingTree {
    pub(super) now: i64,
    /// Time by which an exposed vertex is reached; later events do not matter.
    pub(super) bound: i64,
    marks: Vec<NodeMark>,
    labelled: Vec<usize>,
    events: BinaryHeap<Reverse<(i64, TreeEvent)>>,
}

impl AlternatingTree {
    pub(super) fn reset(&mut self) {
        for node in self.labelled.drain(..) {
            self.marks[node] = NodeMark::default();
        }
        self.events.clear();
        self.now = 0;
        self.bound = i64::MAX;
    }

    pub(super) fn push(&mut self, at: i64, event: TreeEvent) {
        if at <= self.bound {
            self.events.push(Reverse((at, event)));
        }
    }

    /// Returns the next event and moves time to it.
    pub(super) fn pop(&mut self) -> Option<TreeEvent> {
        let Reverse((at, event)) = self.events.pop()?;
        self.now = at;
        Some(event)
    }

    pub(super) fn mark(&self, node: usize) -> NodeMark {
        self.marks.get(node).copied().unwrap_or_default()
    }

    pub(super) fn label(&self, node: usize) -> NodeLabel {
        self.mark(node).label
    }

    /// Labels a node at the current time.
    pub(super) fn set(&mut self, node: usize, label: NodeLabel, entry: (usize, usize)) {
        if node >= self.marks.len() {
            self.marks.resize(node + 1, NodeMark::default());
        }
        self.marks[node] = NodeMark {
            label,
            since: self.now,
            entry,
        };
        self.labelled.push(node);
    }

    /// Distance that the duals of a node's vertices have moved since they were stored.
    pub(super) fn shift(&self, node: usize) -> i64 {
        let mark = self.mark(node);
        match mark.label {
            NodeLabel::Free => 0,
            NodeLabel::Outer => self.now - mark.since,
            NodeLabel::Inner => mark.since - self.now,
        }
    }

    /// Marks the stored duals of a node as current.
    pub(super) fn refresh(&mut self, node: usize) {
        if let Some(mark) = self.marks.get_mut(node) {
            mark.since = self.now;
        }
    }

    /// All nodes that got a label, including the ones that are no longer outermost.
    pub(super) fn labelled_nodes(&self) -> &[usize] {
        &self.labelled
    }
}
