//! Candidate mappings, and the division of programs among parts of the machine.

use super::characteristics::{Characteristic, ProgramCharacteristics};
use super::shape::{MappingShape, relative_caches};
use crate::ids::PuId;
use crate::mapping::{Mapping, MappingScheme};
use crate::topology::{Domain, Topology};
use std::cmp::Reverse;
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
    /// The mappings of the source. Its `int` and `spr` on one node are over all nodes on several.
    pub(super) fn source_mappings() -> [Self; 4] {
        let placed = |nodes, inside| Self::Placed { nodes, inside };
        [
            Self::Os,
            placed(ProgramDivision::Together, ISO),
            placed(ProgramDivision::Spread, INT),
            placed(ProgramDivision::Spread, SPR),
        ]
    }

    /// The CPU of every thread, program by program; `None` if the operating system places them.
    pub(super) fn places(
        self,
        topology: &Topology,
        counts: &[usize],
        known: &[ProgramCharacteristics],
    ) -> Option<Vec<Vec<PuId>>> {
        let Self::Placed { nodes, inside } = self else {
            return None;
        };
        let demands = program_demands(counts, known, Characteristic::Path);
        let mut places = vec![Vec::new(); counts.len()];
        for (node, counts) in divide_machine(topology, topology.nodes(), nodes, &demands) {
            match inside {
                NodeDivision::Scheme(scheme) => {
                    append_places(&mut places, &Mapping::from_scheme(scheme, &node, &counts));
                }
                NodeDivision::Balanced => {
                    let demands = program_demands(&counts, known, Characteristic::LlcAccesses);
                    let way = ProgramDivision::Balanced;
                    for (part, counts) in divide_machine(&node, node.llcs(), way, &demands) {
                        let here = Mapping::from_scheme(MappingScheme::Iso, &part, &counts);
                        append_places(&mut places, &here);
                    }
                }
            }
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
        let is_in_turns = matches!(self, Self::Placed { inside: SPR, .. });
        match places {
            Some(places) => MappingShape::from_places(topology, places, is_in_turns),
            None => MappingShape::from_even_spread(topology, counts),
        }
    }
}

fn program_demands(
    counts: &[usize],
    known: &[ProgramCharacteristics],
    what: Characteristic,
) -> Vec<ProgramDemand> {
    let programs = counts.iter().zip(known);
    programs
        .map(|(&threads, known)| ProgramDemand {
            threads,
            // If nothing is known, all demands are equal.
            demand: known.get(what).unwrap_or(1.0),
        })
        .collect()
}

/// Parts of a machine as machines, each with its threads of every program.
fn divide_machine(
    topology: &Topology,
    domains: &[Domain],
    way: ProgramDivision,
    hands: &[ProgramDemand],
) -> Vec<(Topology, Vec<usize>)> {
    if domains.len() < 2 {
        return vec![(topology.clone(), hands.iter().map(|h| h.threads).collect())];
    }
    let sizes: Vec<usize> = domains.iter().map(|d| d.pus.len()).collect();
    let dealt = divide_programs(way, hands, &sizes, &relative_caches(domains));
    let mut parts = Vec::new();
    for (counts, domain) in dealt.into_iter().zip(domains) {
        if let Ok(part) = topology.restrict_to(&domain.pus) {
            parts.push((part, counts));
        }
    }
    parts
}

fn append_places(places: &mut [Vec<PuId>], more: &Mapping) {
    for (places, more) in places.iter_mut().zip(more.programs()) {
        places.extend(more);
    }
}

/// Division of programs among parts of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProgramDivision {
    /// Each whole in one part, as far as it fits.
    Together,
    /// Each over all parts.
    Spread,
    /// Each whole in one part, so that the parts' demands are alike.
    Balanced,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct ProgramDemand {
    threads: usize,
    /// Demand of each thread on the resource that the part shares.
    demand: f64,
}

/// Threads of each program in each part, by part and program. `sizes` are the CPUs of the parts,
/// which get threads in proportion. `caches` are the capacities of their caches relative to the
/// largest, by which demands are balanced.
fn divide_programs(
    way: ProgramDivision,
    hands: &[ProgramDemand],
    sizes: &[usize],
    caches: &[f64],
) -> Vec<Vec<usize>> {
    let all: usize = hands.iter().map(|h| h.threads).sum();
    let mut table = DivisionTable {
        hands,
        sizes,
        caches,
        room: shares(all, sizes),
        dealt: vec![vec![0; hands.len()]; sizes.len()],
    };
    match way {
        ProgramDivision::Together => {
            table.assign_largest_first(|h| h.threads as f64, DivisionTable::most_room);
        }
        ProgramDivision::Balanced => {
            let demand = |h: &ProgramDemand| h.demand * h.threads as f64;
            table.assign_largest_first(demand, DivisionTable::least_demand);
        }
        ProgramDivision::Spread => table.spread_threads(),
    }
    table.dealt
}

struct DivisionTable<'a> {
    hands: &'a [ProgramDemand],
    sizes: &'a [usize],
    caches: &'a [f64],
    /// Threads that each part may still get.
    room: Vec<usize>,
    /// Threads assigned so far, by part and program.
    dealt: Vec<Vec<usize>>,
}

impl DivisionTable<'_> {
    /// Assigns the largest program first, to the part that `choose` returns. Threads that do not
    /// fit go to the next such part.
    fn assign_largest_first(
        &mut self,
        size: impl Fn(&ProgramDemand) -> f64,
        choose: impl Fn(&Self, usize) -> Option<usize>,
    ) {
        let mut order: Vec<usize> = (0..self.hands.len()).collect();
        order.sort_by(|&a, &b| size(&self.hands[b]).total_cmp(&size(&self.hands[a])));
        for program in order {
            let mut left = self.hands[program].threads;
            while left > 0 {
                let Some(part) = choose(self, left).filter(|&part| self.room[part] > 0) else {
                    return;
                };
                let here = left.min(self.room[part]);
                self.assign_threads(program, part, here);
                left -= here;
            }
        }
    }

    fn assign_threads(&mut self, program: usize, part: usize, threads: usize) {
        self.dealt[part][program] += threads;
        self.room[part] -= threads;
    }

    fn most_room(&self, _: usize) -> Option<usize> {
        (0..self.sizes.len()).max_by_key(|&part| (self.room[part], Reverse(part)))
    }

    /// Returns the part with the least demand for its size, among those with room for so many
    /// threads, else among those with any room.
    fn least_demand(&self, threads: usize) -> Option<usize> {
        // Of parts with equal demand, such as empty ones, the one with the largest cache.
        let least = |a: &usize, b: &usize| {
            let by_demand = self.demand(*a).total_cmp(&self.demand(*b));
            by_demand.then(self.caches[*b].total_cmp(&self.caches[*a]))
        };
        let parts = || 0..self.sizes.len();
        let whole = parts().filter(|&part| self.room[part] >= threads);
        let any = parts().filter(|&part| self.room[part] > 0);
        whole.min_by(least).or_else(|| any.min_by(least))
    }

    fn demand(&self, part: usize) -> f64 {
        let pairs = self.hands.iter().zip(&self.dealt[part]);
        let requested: f64 = pairs.map(|(h, &n)| h.demand * n as f64).sum();
        requested / (self.sizes[part].max(1) as f64 * self.caches[part])
    }

    /// Assigns thread by thread to the part with the fewest siblings for its size.
    fn spread_threads(&mut self) {
        for program in 0..self.hands.len() {
            for _ in 0..self.hands[program].threads {
                let parts = (0..self.sizes.len()).filter(|&part| self.room[part] > 0);
                let next = parts.min_by_key(|&part| {
                    // Shifted, so that the integer division keeps a fraction.
                    let siblings = self.dealt[part][program] << 16;
                    (siblings / self.sizes[part].max(1), Reverse(self.room[part]))
                });
                let Some(part) = next else { return };
                self.assign_threads(program, part, 1);
            }
        }
    }
}

/// Divides so many threads in proportion to sizes, by largest remainder.
fn shares(all: usize, sizes: &[usize]) -> Vec<usize> {
    let total: usize = sizes.iter().sum::<usize>().max(1);
    let mut shares: Vec<usize> = sizes.iter().map(|size| all * size / total).collect();
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&part| Reverse(all * sizes[part] % total));
    let rest = all - shares.iter().sum::<usize>();
    for &part in order.iter().take(rest) {
        shares[part] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hands(of: &[(usize, f64)]) -> Vec<ProgramDemand> {
        let hand = |&(threads, demand): &(usize, f64)| ProgramDemand { threads, demand };
        of.iter().map(hand).collect()
    }

    #[test]
    fn programs_stay_together_are_spread_or_balanced() {
        let two = hands(&[(4, 1.0), (4, 1.0)]);
        assert_eq!(
            divide_programs(ProgramDivision::Together, &two, &[2, 2], &[1.0; 2]),
            [[4, 0], [0, 4]]
        );
        assert_eq!(
            divide_programs(ProgramDivision::Spread, &two, &[2, 2], &[1.0; 2]),
            [[2, 2], [2, 2]]
        );
        // Two heavy and two light ones: a heavy one next to a light one.
        let four = hands(&[(1, 9.0), (1, 8.0), (1, 1.0), (1, 2.0)]);
        let dealt = divide_programs(ProgramDivision::Balanced, &four, &[2, 2], &[1.0; 2]);
        assert_eq!(dealt, [[1, 0, 1, 0], [0, 1, 0, 1]]);
    }

    #[test]
    fn heaviest_program_gets_the_largest_cache() {
        let two = hands(&[(2, 1.0), (2, 9.0)]);
        let dealt =
            |caches: &[f64]| divide_programs(ProgramDivision::Balanced, &two, &[2, 2], caches);
        assert_eq!(dealt(&[1.0, 1.0]), [[0, 2], [2, 0]]);
        assert_eq!(dealt(&[0.25, 1.0]), [[2, 0], [0, 2]]);
    }

    proptest! {
        #[test]
        fn every_thread_is_assigned_within_shares(
            of in prop::collection::vec((0usize..9, 0.0f64..5.0), 0..6),
            sizes in prop::collection::vec(1usize..9, 1..5),
        ) {
            let hands = hands(&of);
            let all: usize = of.iter().map(|h| h.0).sum();
            for way in [ProgramDivision::Together, ProgramDivision::Spread, ProgramDivision::Balanced] {
                let dealt = divide_programs(way, &hands, &sizes, &vec![1.0; sizes.len()]);
                for (program, hand) in hands.iter().enumerate() {
                    let sum: usize = dealt.iter().map(|part| part[program]).sum();
                    prop_assert_eq!(sum, hand.threads);
                }
                let total: usize = sizes.iter().sum();
                for (part, size) in dealt.iter().zip(&sizes) {
                    let load: usize = part.iter().sum();
                    prop_assert!(load <= (all * size).div_ceil(total));
                }
            }
        }
    }
}
