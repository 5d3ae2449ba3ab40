//! Fractional perfect matching: the problem without blossoms.
//!
//! It yields duals and a matching so good that few searches with blossoms are left (Applegate and
//! Cook, "Solving large-scale matching problems", DIMACS 12, 1993, call it the fractional jump
//! start). Every vertex is matched, or is in an odd cycle whose edges count one half each. A search
//! grows one tree of tight edges from an exposed vertex; the first edge between two outer vertices
//! closes such a cycle and ends it, so trees stay small and nothing is ever shrunk. All edges are
//! then priced as for the real matching.
//!
//! A vertex without a way out over candidate edges stays exposed; the blossom search, which has an
//! edge for every vertex, matches it.

use crate::scaled_costs::{PricingSweep, ScaledCosts};
use crate::start::{CandidateEdge, SearchStart};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A fractional matching during its search.
pub(crate) struct FractionalMatching<'a> {
    costs: &'a ScaledCosts<'a>,
    duals: Vec<i64>,
    arcs: Vec<Vec<CandidateEdge>>,
    mate: Vec<Option<usize>>,
    /// The next vertex around the odd cycle, for vertices in one.
    next: Vec<Option<usize>>,
    tree: FractionalTree,
}

impl<'a> FractionalMatching<'a> {
    pub(crate) fn new(costs: &'a ScaledCosts<'a>, start: SearchStart) -> Self {
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
    pub(crate) fn solve(&mut self) {
        while self.run_round() || self.exposed_count() > 0 {}
        self.join_cycles();
    }

    /// Searches and prices once. Returns true if the start was good: at most a quarter of the
    /// vertices need another search.
    pub(crate) fn check_start(&mut self) -> bool {
        self.run_round();
        4 * self.exposed_count() <= self.duals.len()
    }

    /// Searches from all exposed vertices, then prices. Returns true if an edge was refused.
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

    /// Returns the start for a search with blossoms; one vertex of each odd cycle is left over.
    pub(crate) fn into_start(mut self) -> SearchStart {
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
    pub(crate) fn duals(&self) -> Vec<f64> {
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

    /// Gives `root` a mate or a cycle. Returns false if candidate edges do not lead far enough.
    fn search(&mut self, root: usize) -> bool {
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

    /// Makes a vertex outer and queues the times at which its candidate edges become tight.
    fn become_outer(&mut self, vertex: usize) {
        self.tree.set(vertex, VertexLabel::Outer);
        let (now, dual) = (self.tree.now, self.duals[vertex]);
        for arc in &self.arcs[vertex] {
            let slack = arc.cost - dual - self.duals[arc.to];
            let (at, ends) = match self.tree.labels[arc.to] {
                VertexLabel::Inner(_) => continue,
                VertexLabel::Free => (now + slack, self.mate[arc.to].is_none()),
                // The other vertex's dual has grown since its label was set.
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

    /// Closes an odd cycle from an edge between outer vertices and their tree paths to the meeting
    /// point.
    fn close(&mut self, first: usize, second: usize) {
        let (mut down, mut up) = (self.path_to_root(first), self.path_to_root(second));
        let mut meeting = None;
        while down.last().is_some() && down.last() == up.last() {
            meeting = down.pop();
            up.pop();
            // Inner vertices have one child, so paths part at outer ones.
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

    /// Adds each edge of negative slack as a candidate and lowers the dual of one end until it is
    /// allowed. Returns true if there was one.
    fn price(&mut self) -> bool {
        let mut sweep = PricingSweep::new(self.costs, &self.duals);
        let mut refused = false;
        for first in 0..self.duals.len() {
            let mut from = first + 1;
            while let Some(second) = sweep.first_refused(first, from) {
                refused = true;
                self.admit(first, second);
                sweep.set(first, self.duals[first]);
                from = second + 1;
            }
        }
        refused
    }

    /// Adds an edge as a candidate, and lowers the dual of its first end if the duals refuse it.
    fn admit(&mut self, first: usize, second: usize) {
        self.connect(first, second);
        let slack = self.slack(first, second);
        if slack < 0 {
            self.duals[first] += slack;
            self.separate(first);
        }
    }

    /// Pairs all vertices of two odd cycles if a tight edge, candidate or not, leads from one to
    /// the other. Equal threads have many such edges; a search would have to find each.
    fn join_cycles(&mut self) {
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

    /// The least vertex of each vertex's cycle; other vertices stand for themselves.
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

    fn connect(&mut self, first: usize, second: usize) {
        let cost = self.costs.at(first, second);
        self.arcs[first].push(CandidateEdge { to: second, cost });
        self.arcs[second].push(CandidateEdge { to: first, cost });
    }

    /// Gives each outer vertex of a tree that cannot grow its nearest edge to an outer or free one.
    /// Such an edge exists, because the number of all vertices is even and the number of vertices
    /// in the tree is odd.
    fn add_nearest_edges(&mut self) {
        for outer in self.tree.outer_vertices() {
            let nearest = (1..self.duals.len())
                // Starts after its own number, so that equal vertices find different ones.
                .map(|step| (outer + step) % self.duals.len())
                .filter(|&other| !self.tree.is_inner(other))
                .min_by_key(|&other| self.slack(outer, other));
            if let Some(nearest) = nearest {
                self.admit(outer, nearest);
            }
        }
    }

    fn slack(&self, first: usize, second: usize) -> i64 {
        self.costs.at(first, second) - self.duals[first] - self.duals[second]
    }
}

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
struct FractionalTree {
    now: i64,
    /// Time at which a known edge ends the search; later events do not matter.
    bound: i64,
    labels: Vec<VertexLabel>,
    /// Time at which each labelled vertex got its label.
    since: Vec<i64>,
    labelled: Vec<usize>,
    /// Edges from outer vertices that are tight now. The newest is taken first, so that among many
    /// the search goes deep, not wide.
    tight: Vec<(usize, usize)>,
    /// Time at which each other edge from an outer vertex becomes tight, with the edge.
    events: BinaryHeap<Reverse<(i64, u32, u32)>>,
}

impl FractionalTree {
    fn new(vertices: usize) -> Self {
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

    /// Returns the next tight edge and moves time to it.
    fn pop(&mut self) -> Option<(usize, usize)> {
        if let Some(edge) = self.tight.pop() {
            return Some(edge);
        }
        let Reverse((at, from, to)) = self.events.pop()?;
        self.now = at;
        Some((from as usize, to as usize))
    }

    /// Queues an edge that becomes tight; `ends` if it will end the search.
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

    fn is_inner(&self, vertex: usize) -> bool {
        matches!(self.labels[vertex], VertexLabel::Inner(_))
    }

    fn outer_vertices(&self) -> Vec<usize> {
        let labelled = self.labelled.iter().copied();
        labelled
            .filter(|&vertex| self.labels[vertex] == VertexLabel::Outer)
            .collect()
    }

    /// Outer vertex from which an inner one was reached.
    fn parent(&self, inner: usize) -> Option<usize> {
        match self.labels[inner] {
            VertexLabel::Inner(outer) => Some(outer),
            VertexLabel::Free | VertexLabel::Outer => None,
        }
    }
}
