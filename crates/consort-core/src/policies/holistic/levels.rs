//! Choice from the node inwards: at each level the mapping that costs least, by priorities if none
//! can be priced, and at last whether threads are pinned.

use super::candidate::{INT, ISO, MappingCandidate, NodeDivision, ProgramDivision, SPR};
use super::characteristics::{Characteristic, ProgramCharacteristics};
use super::rules::{MappingCost, PricingCase, can_predict, pinning_cost};
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
    /// The mapping under which the characteristics were measured.
    pub(super) now: &'a MappingShape,
}

/// A mapping with its cost.
#[derive(Clone, Debug)]
pub(super) struct PricedMapping {
    pub(super) candidate: MappingCandidate,
    pub(super) shape: MappingShape,
    pub(super) bill: MappingCost,
}

/// Reason why a mapping was chosen among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChoiceBasis {
    /// It is the cheapest by the sum of prices.
    Predicted,
    /// It serves this resource best, which comes first.
    Priority(&'static str),
    /// Nothing that is known distinguishes them; it is the first.
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
        let candidates = candidates.iter();
        let weighed: Vec<PricedMapping> = candidates.map(|&c| self.price_candidate(c)).collect();
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

/// Chooses by prediction if there is one, else by priorities.
fn choose_mapping(
    known: &[ProgramCharacteristics],
    weighed: &[PricedMapping],
) -> (usize, ChoiceBasis) {
    if can_predict(known) {
        let totals: Vec<f64> = weighed.iter().map(|w| w.bill.total()).collect();
        let least = totals.iter().copied().fold(f64::INFINITY, f64::min);
        let first = totals.iter().position(|&t| t <= least).unwrap_or(0);
        let how = if totals.iter().any(|&t| t > least) {
            ChoiceBasis::Predicted
        } else {
            ChoiceBasis::Undecided
        };
        return (first, how);
    }
    for resource in order_resources(known) {
        let strains: Vec<f64> = weighed.iter().map(|w| resource.strain(&w.shape)).collect();
        let least = strains.iter().copied().fold(f64::INFINITY, f64::min);
        let most = strains.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let first = strains.iter().position(|&s| s <= least);
        if let Some(first) = first.filter(|_| most > least) {
            return (first, ChoiceBasis::Priority(resource.name()));
        }
    }
    (0, ChoiceBasis::Undecided)
}

/// Share of time waiting for data from which on bandwidth is extreme.
const EXTREME_WAITS: f64 = 0.5;
/// Share of accesses that hit near, from which on the L1 matters.
const HIGH_HITS: f64 = 0.99;
/// Share of cycles lost to branches, from which on the predictor matters.
const MISPREDICTS: f64 = 0.1;

/// A resource that can come first, for programs without a prediction. Mappings are compared by the
/// first resource on which they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PriorityResource {
    MemoryPath,
    Cores,
    LevelOne,
    Predictor,
}

impl PriorityResource {
    fn name(self) -> &'static str {
        match self {
            Self::MemoryPath => "memory path",
            Self::Cores => "use of the cores",
            Self::LevelOne => "level 1",
            Self::Predictor => "predictor",
        }
    }

    /// Strain of a mapping on the resource. Less is better; values of different resources are not
    /// comparable.
    fn strain(self, shape: &MappingShape) -> f64 {
        match self {
            // Paths are used least if siblings are spread over the machine's parts and only one
            // program runs at a time.
            Self::MemoryPath => {
                let turns = if shape.in_turns { 1.0 } else { 0.0 };
                let nodes = shape.nodes.iter().map(|n| n.shares.len());
                -(turns + nodes.sum::<usize>() as f64)
            }
            // CPUs without a thread, and the distance of the last sibling behind the mean.
            Self::Cores => {
                let groups = shape.groups.iter();
                let behind = groups.map(|m| m.running / m.threads.max(1.0) - m.least);
                shape.idle as f64 + behind.sum::<f64>()
            }
            Self::LevelOne | Self::Predictor => shape.groups.iter().map(|m| m.strangers).sum(),
        }
    }
}

/// The resources that are known to matter to these programs, the first one first. The order is the
/// source's: with extremely high bandwidth the memory path, else the use of the cores; with a high
/// hit rate of the L1 and few misses the L1; with many mispredictions the predictor.
fn order_resources(known: &[ProgramCharacteristics]) -> Vec<PriorityResource> {
    let limits = [
        (
            PriorityResource::MemoryPath,
            Characteristic::Waits,
            EXTREME_WAITS,
        ),
        (
            PriorityResource::Cores,
            Characteristic::Syncs,
            f64::MIN_POSITIVE,
        ),
        (
            PriorityResource::LevelOne,
            Characteristic::NearHits,
            HIGH_HITS,
        ),
        (
            PriorityResource::Predictor,
            Characteristic::BranchCycles,
            MISPREDICTS,
        ),
    ];
    let mut order = Vec::new();
    for (resource, what, from) in limits {
        let mut values = known.iter().filter_map(|program| program.get(what));
        if values.any(|value| value >= from) {
            order.push(resource);
        }
    }
    order
}

/// Set of CPUs that a program's threads may not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PinningScope {
    /// For each thread, its CPU.
    Pu,
    /// The cache domain of their CPUs.
    Domain,
    /// The whole machine.
    Free,
}

impl PinningScope {
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Pu => "each thread stays on its CPU",
            Self::Domain => "threads stay in their cache domain",
            Self::Free => "threads are free to run anywhere, as pinning costs more",
        }
    }
}

/// Chooses for each program the cheaper of pinning it and leaving it free. If both cost the same,
/// the mapping decides: whole programs in domains need not be pinned within.
pub(super) fn choose_pinning(
    candidate: MappingCandidate,
    known: &[ProgramCharacteristics],
    shape: &MappingShape,
) -> Vec<PinningScope> {
    let with_pinning = |pinned| {
        let mut shape = shape.clone();
        shape.groups.iter_mut().for_each(|m| m.pinned = pinned);
        shape
    };
    let (pinned, free) = (with_pinning(true), with_pinning(false));
    let pinned = PricingCase::new(known, &pinned, shape);
    let free = PricingCase::new(known, &free, shape);
    let keeps_to_domains = matches!(
        candidate,
        MappingCandidate::Placed {
            inside: ISO | NodeDivision::Balanced,
            ..
        }
    );
    let mut scopes = Vec::new();
    for group in 0..known.len() {
        let (pinned, free) = (pinning_cost(&pinned, group), pinning_cost(&free, group));
        scopes.push(if free < pinned {
            PinningScope::Free
        } else if pinned < free || !keeps_to_domains {
            PinningScope::Pu
        } else {
            PinningScope::Domain
        });
    }
    scopes
}
