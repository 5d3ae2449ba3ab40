//! Mappings that come into question.

use super::characteristics::{Characteristic, ProgramCharacteristics};
use super::division::{ProgramDemand, ProgramDivision, divide_programs};
use super::shape::{MappingShape, relative_caches};
use crate::ids::PuId;
use crate::mapping::{Mapping, MappingScheme};
use crate::topology::{Domain, Topology};
use std::fmt;

/// Division of the inside of a node among programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeDivision {
    /// One of the source's schemes.
    Scheme(MappingScheme),
    /// Whole programs in LLC domains, so that the domains' demands are alike.
    Balanced,
}

/// A mapping by its construction, from the node inwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MappingCandidate {
    /// The mapping of the operating system.
    Os,
    /// A mapping of the guidelines.
    Placed {
        /// Division of programs among nodes.
        nodes: ProgramDivision,
        /// Division of the inside of each node.
        inside: NodeDivision,
    },
}

pub(super) const ISO: NodeDivision = NodeDivision::Scheme(MappingScheme::Iso);
pub(super) const INT: NodeDivision = NodeDivision::Scheme(MappingScheme::Int);
pub(super) const SPR: NodeDivision = NodeDivision::Scheme(MappingScheme::Spr);

impl fmt::Display for NodeDivision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(scheme) => f.write_str(scheme.name()),
            Self::Balanced => f.write_str("balanced"),
        }
    }
}

impl fmt::Display for MappingCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os => f.write_str("os"),
            Self::Placed { nodes, inside } => match nodes {
                ProgramDivision::Together => write!(f, "{inside}"),
                ProgramDivision::Spread => write!(f, "{inside} over all nodes"),
                ProgramDivision::Balanced => write!(f, "{inside} in balanced nodes"),
            },
        }
    }
}

impl MappingCandidate {
    /// The mappings of the source. What it calls `int` and `spr` on one node is over all nodes on
    /// several.
    pub(super) fn source_mappings() -> [Self; 4] {
        let placed = |nodes, inside| Self::Placed { nodes, inside };
        [
            Self::Os,
            placed(ProgramDivision::Together, ISO),
            placed(ProgramDivision::Spread, INT),
            placed(ProgramDivision::Spread, SPR),
        ]
    }

    /// Returns true where the programs take turns on PUs.
    fn is_in_turns(self) -> bool {
        matches!(self, Self::Placed { inside: SPR, .. })
    }

    /// The PU of every thread, program by program; none where the operating system places them.
    pub(super) fn places(
        self,
        topology: &Topology,
        counts: &[usize],
        known: &[ProgramCharacteristics],
    ) -> Option<Vec<Vec<PuId>>> {
        let Self::Placed { nodes, inside } = self else {
            return None;
        };
        let demands = |what| program_demands(counts, known, what);
        let all = demands(Characteristic::Path);
        let mut places = vec![Vec::new(); counts.len()];
        for (node, counts) in divide_machine(topology, topology.nodes(), nodes, &all) {
            let of_node = program_demands(&counts, known, Characteristic::LlcAccesses);
            append_places(&mut places, place_within(&node, inside, &of_node));
        }
        Some(places)
    }

    /// Shape of the mapping, by which the rules price it.
    pub(super) fn shape(
        self,
        topology: &Topology,
        counts: &[usize],
        places: Option<&[Vec<PuId>]>,
    ) -> MappingShape {
        match places {
            Some(places) => MappingShape::from_places(topology, places, self.is_in_turns()),
            None => MappingShape::from_even_spread(topology, counts),
        }
    }
}

fn program_demands(
    counts: &[usize],
    known: &[ProgramCharacteristics],
    what: Characteristic,
) -> Vec<ProgramDemand> {
    let hand = |(&threads, known): (&usize, &ProgramCharacteristics)| ProgramDemand {
        threads,
        // Where nothing is known all ask for the same.
        demand: known.get(what).unwrap_or(1.0),
    };
    counts.iter().zip(known).map(hand).collect()
}

/// Parts of a machine as machines, each with its threads of every program.
fn divide_machine(
    topology: &Topology,
    domains: &[Domain],
    way: ProgramDivision,
    hands: &[ProgramDemand],
) -> Vec<(Topology, Vec<usize>)> {
    let counts = |hands: &[ProgramDemand]| hands.iter().map(|h| h.threads).collect();
    if domains.len() < 2 {
        return vec![(topology.clone(), counts(hands))];
    }
    let sizes: Vec<usize> = domains.iter().map(|d| d.pus.len()).collect();
    let dealt = divide_programs(way, hands, &sizes, &relative_caches(domains)).into_iter();
    let part = |(counts, domain): (Vec<usize>, &Domain)| {
        let part = topology.restrict_to(&domain.pus).ok()?;
        Some((part, counts))
    };
    dealt.zip(domains).filter_map(part).collect()
}

fn place_within(node: &Topology, inside: NodeDivision, hands: &[ProgramDemand]) -> Vec<Vec<PuId>> {
    let counts: Vec<usize> = hands.iter().map(|h| h.threads).collect();
    match inside {
        NodeDivision::Scheme(scheme) => Mapping::from_scheme(scheme, node, &counts)
            .programs()
            .to_vec(),
        NodeDivision::Balanced => {
            let mut places = vec![Vec::new(); hands.len()];
            for (part, counts) in
                divide_machine(node, node.llcs(), ProgramDivision::Balanced, hands)
            {
                let here = Mapping::from_scheme(MappingScheme::Iso, &part, &counts);
                append_places(&mut places, here.programs().to_vec());
            }
            places
        }
    }
}

fn append_places(places: &mut [Vec<PuId>], more: Vec<Vec<PuId>>) {
    for (places, more) in places.iter_mut().zip(more) {
        places.extend(more);
    }
}
