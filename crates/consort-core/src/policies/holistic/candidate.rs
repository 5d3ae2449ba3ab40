//! Mappings that come into question.

use super::characteristics::{Characteristic, Characteristics};
use super::deal::{Hand, Way, deal};
use super::shape::{Shape, relative_caches};
use crate::ids::PuId;
use crate::mapping::{Mapping, Scheme};
use crate::topology::{Domain, Topology};
use std::fmt;

/// Division of the inside of a node among programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Inside {
    /// One of the source's schemes.
    Scheme(Scheme),
    /// Whole programs in LLC domains, so that the domains' demands are alike.
    Balanced,
}

/// A mapping by its construction, from the node inwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Candidate {
    /// The mapping of the operating system.
    Os,
    /// A mapping of the guidelines.
    Placed {
        /// Division of programs among nodes.
        nodes: Way,
        /// Division of the inside of each node.
        inside: Inside,
    },
}

pub(super) const ISO: Inside = Inside::Scheme(Scheme::Iso);
pub(super) const INT: Inside = Inside::Scheme(Scheme::Int);
pub(super) const SPR: Inside = Inside::Scheme(Scheme::Spr);

impl fmt::Display for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(scheme) => f.write_str(scheme.name()),
            Self::Balanced => f.write_str("balanced"),
        }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os => f.write_str("os"),
            Self::Placed { nodes, inside } => match nodes {
                Way::Together => write!(f, "{inside}"),
                Way::Spread => write!(f, "{inside} over all nodes"),
                Way::Balanced => write!(f, "{inside} in balanced nodes"),
            },
        }
    }
}

impl Candidate {
    /// The mappings of the source. What it calls `int` and `spr` on one node is over all nodes on
    /// several.
    pub(super) fn named() -> [Self; 4] {
        let placed = |nodes, inside| Self::Placed { nodes, inside };
        [
            Self::Os,
            placed(Way::Together, ISO),
            placed(Way::Spread, INT),
            placed(Way::Spread, SPR),
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
        known: &[Characteristics],
    ) -> Option<Vec<Vec<PuId>>> {
        let Self::Placed { nodes, inside } = self else {
            return None;
        };
        let demands = |what| hands(counts, known, what);
        let all = demands(Characteristic::Path);
        let mut places = vec![Vec::new(); counts.len()];
        for (node, counts) in parts(topology, topology.nodes(), nodes, &all) {
            let of_node = hands(&counts, known, Characteristic::LlcAccesses);
            add(&mut places, within(&node, inside, &of_node));
        }
        Some(places)
    }

    /// Shape of the mapping, by which the rules price it.
    pub(super) fn shape(
        self,
        topology: &Topology,
        counts: &[usize],
        places: Option<&[Vec<PuId>]>,
    ) -> Shape {
        match places {
            Some(places) => Shape::of(topology, places, self.is_in_turns()),
            None => Shape::expected(topology, counts),
        }
    }
}

fn hands(counts: &[usize], known: &[Characteristics], what: Characteristic) -> Vec<Hand> {
    let hand = |(&threads, known): (&usize, &Characteristics)| Hand {
        threads,
        // Where nothing is known all ask for the same.
        demand: known.get(what).unwrap_or(1.0),
    };
    counts.iter().zip(known).map(hand).collect()
}

/// Parts of a machine as machines, each with its threads of every program.
fn parts(
    topology: &Topology,
    domains: &[Domain],
    way: Way,
    hands: &[Hand],
) -> Vec<(Topology, Vec<usize>)> {
    let counts = |hands: &[Hand]| hands.iter().map(|h| h.threads).collect();
    if domains.len() < 2 {
        return vec![(topology.clone(), counts(hands))];
    }
    let sizes: Vec<usize> = domains.iter().map(|d| d.pus.len()).collect();
    let dealt = deal(way, hands, &sizes, &relative_caches(domains)).into_iter();
    let part = |(counts, domain): (Vec<usize>, &Domain)| {
        let part = topology.restricted(&domain.pus).ok()?;
        Some((part, counts))
    };
    dealt.zip(domains).filter_map(part).collect()
}

fn within(node: &Topology, inside: Inside, hands: &[Hand]) -> Vec<Vec<PuId>> {
    let counts: Vec<usize> = hands.iter().map(|h| h.threads).collect();
    match inside {
        Inside::Scheme(scheme) => Mapping::of(scheme, node, &counts).programs().to_vec(),
        Inside::Balanced => {
            let mut places = vec![Vec::new(); hands.len()];
            for (part, counts) in parts(node, node.llcs(), Way::Balanced, hands) {
                let here = Mapping::of(Scheme::Iso, &part, &counts);
                add(&mut places, here.programs().to_vec());
            }
            places
        }
    }
}

fn add(places: &mut [Vec<PuId>], more: Vec<Vec<PuId>>) {
    for (places, more) in places.iter_mut().zip(more) {
        places.extend(more);
    }
}
