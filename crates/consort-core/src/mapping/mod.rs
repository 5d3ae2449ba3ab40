//! Static mappings: which threads of which programs share which PU, core and cache domain.
//!
//! Source: Wang, Dey, Mars, Tang, Davidson, Soffa, "Performance Analysis of Thread Mappings with a
//! Holistic View of the Hardware Resources" (ISPASS 2012). It compares four mappings of two
//! programs of four threads on four cores with two L2 domains: the operating system's own, and the
//! three of [`MappingScheme`], which are generalised here to any topology, any number of programs and more
//! threads than PUs, which then take turns.
//!
//! Usage: [`Mapping::from_scheme`] for a scheme, [`ExhaustiveMappings::new`] for every mapping that the topology can
//! tell from the others; [`analysis`] answers from what was counted under each which resource
//! matters. Pitfall: core types are not looked at; on asymmetric chips mappings are told apart by
//! them, but a scheme gives the large core to whoever comes first.

pub mod analysis;
mod deal;
mod domains;
mod exhaustive;
mod iso;
mod scheme;
mod spr;
#[cfg(test)]
mod testing;
mod text;
mod tree;

pub use domains::domains;
pub use exhaustive::{ExhaustiveMappings, TooManyMappings};
pub use scheme::{MappingScheme, UnknownScheme};
pub use text::MalformedMapping;

use crate::ids::PuId;
use crate::topology::Topology;
use std::collections::BTreeMap;

/// The PU of every thread of every program.
#[doc(alias = "thread mapping")]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mapping {
    programs: Vec<Vec<PuId>>,
}

impl Mapping {
    /// The mapping that a scheme gives programs of so many threads each.
    pub fn from_scheme(scheme: MappingScheme, topology: &Topology, threads: &[usize]) -> Self {
        let programs = match scheme {
            MappingScheme::Iso => iso::isolated_mapping(topology, threads),
            MappingScheme::Int => iso::interleaved_mapping(topology, threads),
            MappingScheme::Spr => spr::spread_mapping(topology, threads),
        };
        Self { programs }
    }

    /// One program's threads on these PUs, over and over.
    pub fn on_pus(pus: &[PuId], threads: usize) -> Self {
        Self {
            programs: vec![pus.iter().copied().cycle().take(threads).collect()],
        }
    }

    /// The PU of each thread, program by program.
    pub fn programs(&self) -> &[Vec<PuId>] {
        &self.programs
    }

    /// Number of threads of each PU; those without are left out.
    pub fn loads(&self) -> BTreeMap<PuId, usize> {
        let mut loads = BTreeMap::new();
        for &pu in self.programs.iter().flatten() {
            *loads.entry(pu).or_default() += 1;
        }
        loads
    }
}

/// Threads that a PU has at most when all PUs are used alike: threads by PUs, rounded up.
fn max_threads_per_pu(topology: &Topology, threads: &[usize]) -> usize {
    let all: usize = threads.iter().sum();
    all.div_ceil(topology.pus().len().max(1))
}
