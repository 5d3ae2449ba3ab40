//! Priorities of resources, for programs of which no prediction exists.
//!
//! The order is the source's: with extremely high bandwidth the memory path, else the use of the
//! cores; with a high hit rate of the L1 and few misses the L1; with many mispredictions the
//! predictor. Mappings are compared by the first resource on which they differ.

use super::characteristics::{Characteristic, ProgramCharacteristics};
use super::shape::MappingShape;

/// Share of time waiting for data from which on bandwidth is extreme.
const EXTREME_WAITS: f64 = 0.5;
/// Share of accesses that hit near, from which on the L1 matters.
const HIGH_HITS: f64 = 0.99;
/// Share of cycles lost to branches, from which on the predictor matters.
const MISPREDICTS: f64 = 0.1;

/// A resource that can come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PriorityResource {
    MemoryPath,
    Cores,
    LevelOne,
    Predictor,
}

impl PriorityResource {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MemoryPath => "memory path",
            Self::Cores => "use of the cores",
            Self::LevelOne => "level 1",
            Self::Predictor => "predictor",
        }
    }

    /// Strain of a mapping on the resource; less is better, and values of different resources do
    /// not compare.
    fn strain(self, shape: &MappingShape) -> f64 {
        match self {
            Self::MemoryPath => -distinct_domains(shape),
            Self::Cores => shape.idle as f64 + unevenness(shape),
            Self::LevelOne | Self::Predictor => shape.groups.iter().map(|m| m.strangers).sum(),
        }
    }
}

/// Number of nodes that each program has threads on, summed over programs; one more where they take
/// turns. Paths are spared most where siblings are spread over the machine's parts and only one
/// program runs at a time.
fn distinct_domains(shape: &MappingShape) -> f64 {
    let turns = if shape.in_turns { 1.0 } else { 0.0 };
    let nodes = shape.nodes.iter().map(|n| n.shares.len());
    turns + nodes.sum::<usize>() as f64
}

/// Distance of the least lucky sibling behind the mean, summed over programs.
fn unevenness(shape: &MappingShape) -> f64 {
    let behind = |m: &super::shape::ProgramOccupancy| m.running / m.threads.max(1.0) - m.least;
    shape.groups.iter().map(behind).sum()
}

/// The resources that are known to matter to these programs, the first one first; none where
/// nothing is known of any.
pub(super) fn order_resources(known: &[ProgramCharacteristics]) -> Vec<PriorityResource> {
    let any = |what, from| {
        known
            .iter()
            .any(|k| k.get(what).is_some_and(|value| value >= from))
    };
    let mut order = Vec::new();
    if any(Characteristic::Waits, EXTREME_WAITS) {
        order.push(PriorityResource::MemoryPath);
    }
    if any(Characteristic::Syncs, f64::MIN_POSITIVE) {
        order.push(PriorityResource::Cores);
    }
    if any(Characteristic::NearHits, HIGH_HITS) {
        order.push(PriorityResource::LevelOne);
    }
    if any(Characteristic::BranchCycles, MISPREDICTS) {
        order.push(PriorityResource::Predictor);
    }
    order
}

/// The mapping that serves best the first resource on which they differ, by its place, with that
/// resource; none where they serve all alike.
pub(super) fn choose_best(
    order: &[PriorityResource],
    shapes: &[&MappingShape],
) -> Option<(usize, PriorityResource)> {
    order.iter().find_map(|&resource| {
        let strains: Vec<f64> = shapes.iter().map(|s| resource.strain(s)).collect();
        let (least, most) = { strains.iter() }
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), &s| {
                (l.min(s), m.max(s))
            });
        let first = strains.iter().position(|&s| s <= least)?;
        (most > least).then_some((first, resource))
    })
}
