//! Choice from the node inwards: at each level the mapping that costs least.

use super::candidate::{Candidate, INT, ISO, Inside, SPR};
use super::characteristics::Characteristics;
use super::deal::Way;
use super::priorities;
use super::rules::{Bill, Case, can_predict};
use super::shape::Shape;
use crate::mapping::domains;
use crate::topology::Topology;

/// Situation for which a mapping is chosen.
pub(super) struct Scene<'a> {
    pub(super) topology: &'a Topology,
    /// Threads by program.
    pub(super) counts: &'a [usize],
    /// Characteristics by program.
    pub(super) known: &'a [Characteristics],
    /// The mapping under which the characteristics were seen.
    pub(super) now: &'a Shape,
}

/// A mapping with its cost.
#[derive(Clone, Debug)]
pub(super) struct Weighed {
    pub(super) candidate: Candidate,
    pub(super) shape: Shape,
    pub(super) bill: Bill,
}

/// Ground on which a mapping was chosen among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// It is the cheapest by the sum of prices.
    Predicted,
    /// It serves this resource best, which comes first.
    Priority(&'static str),
    /// Nothing that is known tells them apart; it is the first.
    Undecided,
}

/// The choice at one level.
#[derive(Clone, Debug)]
pub(super) struct Level {
    pub(super) name: &'static str,
    pub(super) weighed: Vec<Weighed>,
    pub(super) chosen: usize,
    pub(super) how: How,
}

impl Scene<'_> {
    pub(super) fn weigh(&self, candidate: Candidate) -> Weighed {
        let places = candidate.places(self.topology, self.counts, self.known);
        let shape = candidate.shape(self.topology, self.counts, places.as_deref());
        let bill = Bill::of(&Case::new(self.known, &shape, self.now));
        Weighed {
            candidate,
            shape,
            bill,
        }
    }

    fn level(&self, name: &'static str, candidates: &[Candidate]) -> Level {
        let weighed: Vec<Weighed> = candidates.iter().map(|&c| self.weigh(c)).collect();
        let (chosen, how) = choose(self.known, &weighed);
        Level {
            name,
            weighed,
            chosen,
            how,
        }
    }

    /// The choices from the node inwards; the last one's is the mapping.
    pub(super) fn levels(&self) -> Vec<Level> {
        let mut levels = Vec::new();
        let (mut nodes, mut inside) = (Way::Together, ISO);
        let placed = |nodes, inside| Candidate::Placed { nodes, inside };
        if self.topology.nodes().len() > 1 {
            let ways = [Way::Together, Way::Spread, Way::Balanced];
            let level = self.level("node", &ways.map(|way| placed(way, ISO)));
            nodes = ways[level.chosen];
            levels.push(level);
        }
        if domains(self.topology).len() > 1 {
            let ways = [ISO, INT, Inside::Balanced];
            let level = self.level("LLC domain", &ways.map(|way| placed(nodes, way)));
            inside = ways[level.chosen];
            levels.push(level);
        }
        if self.counts.iter().sum::<usize>() > self.topology.cores().len() {
            let ways = [inside, SPR];
            levels.push(self.level("core", &ways.map(|way| placed(nodes, way))));
        }
        levels
    }
}

impl Level {
    pub(super) fn best(&self) -> &Weighed {
        &self.weighed[self.chosen]
    }
}

/// Chooses by prediction where there is one, else by priorities.
fn choose(known: &[Characteristics], weighed: &[Weighed]) -> (usize, How) {
    if can_predict(known) {
        let totals: Vec<f64> = weighed.iter().map(|w| w.bill.total()).collect();
        let least = totals.iter().copied().fold(f64::INFINITY, f64::min);
        let first = totals.iter().position(|&t| t <= least).unwrap_or(0);
        let differ = totals.iter().any(|&t| t > least);
        let how = if differ {
            How::Predicted
        } else {
            How::Undecided
        };
        return (first, how);
    }
    let shapes: Vec<&Shape> = weighed.iter().map(|w| &w.shape).collect();
    match priorities::best(&priorities::order(known), &shapes) {
        Some((at, resource)) => (at, How::Priority(resource.name())),
        None => (0, How::Undecided),
    }
}
