//! Choice from the node inwards: at each level the mapping that costs least.

use super::candidate::{INT, ISO, MappingCandidate, NodeDivision, SPR};
use super::characteristics::ProgramCharacteristics;
use super::division::ProgramDivision;
use super::priorities;
use super::rules::{MappingCost, PricingCase, can_predict};
use super::shape::MappingShape;
use crate::mapping::domains;
use crate::topology::Topology;

/// Situation for which a mapping is chosen.
pub(super) struct MappingContext<'a> {
    pub(super) topology: &'a Topology,
    /// Threads by program.
    pub(super) counts: &'a [usize],
    /// Characteristics by program.
    pub(super) known: &'a [ProgramCharacteristics],
    /// The mapping under which the characteristics were seen.
    pub(super) now: &'a MappingShape,
}

/// A mapping with its cost.
#[derive(Clone, Debug)]
pub(super) struct PricedMapping {
    pub(super) candidate: MappingCandidate,
    pub(super) shape: MappingShape,
    pub(super) bill: MappingCost,
}

/// Ground on which a mapping was chosen among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChoiceBasis {
    /// It is the cheapest by the sum of prices.
    Predicted,
    /// It serves this resource best, which comes first.
    Priority(&'static str),
    /// Nothing that is known tells them apart; it is the first.
    Undecided,
}

/// The choice at one level.
#[derive(Clone, Debug)]
pub(super) struct ChoiceLevel {
    pub(super) name: &'static str,
    pub(super) weighed: Vec<PricedMapping>,
    pub(super) chosen: usize,
    pub(super) how: ChoiceBasis,
}

impl MappingContext<'_> {
    pub(super) fn price_candidate(&self, candidate: MappingCandidate) -> PricedMapping {
        let places = candidate.places(self.topology, self.counts, self.known);
        let shape = candidate.shape(self.topology, self.counts, places.as_deref());
        let bill = MappingCost::from_case(&PricingCase::new(self.known, &shape, self.now));
        PricedMapping {
            candidate,
            shape,
            bill,
        }
    }

    fn choose_level(&self, name: &'static str, candidates: &[MappingCandidate]) -> ChoiceLevel {
        let weighed: Vec<PricedMapping> = candidates
            .iter()
            .map(|&c| self.price_candidate(c))
            .collect();
        let (chosen, how) = choose_mapping(self.known, &weighed);
        ChoiceLevel {
            name,
            weighed,
            chosen,
            how,
        }
    }

    /// The choices from the node inwards; the last one's is the mapping.
    pub(super) fn choose_levels(&self) -> Vec<ChoiceLevel> {
        let mut levels = Vec::new();
        let (mut nodes, mut inside) = (ProgramDivision::Together, ISO);
        let placed = |nodes, inside| MappingCandidate::Placed { nodes, inside };
        if self.topology.nodes().len() > 1 {
            let ways = [
                ProgramDivision::Together,
                ProgramDivision::Spread,
                ProgramDivision::Balanced,
            ];
            let level = self.choose_level("node", &ways.map(|way| placed(way, ISO)));
            nodes = ways[level.chosen];
            levels.push(level);
        }
        if domains(self.topology).len() > 1 {
            let ways = [ISO, INT, NodeDivision::Balanced];
            let level = self.choose_level("LLC domain", &ways.map(|way| placed(nodes, way)));
            inside = ways[level.chosen];
            levels.push(level);
        }
        if self.counts.iter().sum::<usize>() > self.topology.cores().len() {
            let ways = [inside, SPR];
            levels.push(self.choose_level("core", &ways.map(|way| placed(nodes, way))));
        }
        levels
    }
}

impl ChoiceLevel {
    pub(super) fn best(&self) -> &PricedMapping {
        &self.weighed[self.chosen]
    }
}

/// Chooses by prediction where there is one, else by priorities.
fn choose_mapping(
    known: &[ProgramCharacteristics],
    weighed: &[PricedMapping],
) -> (usize, ChoiceBasis) {
    if can_predict(known) {
        let totals: Vec<f64> = weighed.iter().map(|w| w.bill.total()).collect();
        let least = totals.iter().copied().fold(f64::INFINITY, f64::min);
        let first = totals.iter().position(|&t| t <= least).unwrap_or(0);
        let differ = totals.iter().any(|&t| t > least);
        let how = if differ {
            ChoiceBasis::Predicted
        } else {
            ChoiceBasis::Undecided
        };
        return (first, how);
    }
    let shapes: Vec<&MappingShape> = weighed.iter().map(|w| &w.shape).collect();
    match priorities::choose_best(&priorities::order_resources(known), &shapes) {
        Some((at, resource)) => (at, ChoiceBasis::Priority(resource.name())),
        None => (0, ChoiceBasis::Undecided),
    }
}
