//! `spr`: the threads of each program go round all cores.

use super::deal::fullness;
use super::{domains, per_pu};
use crate::ids::PuId;
use crate::topology::Topology;
use std::collections::BTreeMap;

/// Every thread on the core with the fewest of its siblings, among equals the emptiest, in the
/// cache domain with the fewest siblings; there on the emptiest PU.
pub(super) fn spread(topology: &Topology, threads: &[usize]) -> Vec<Vec<PuId>> {
    let mut seats = Seats::new(topology, per_pu(topology, threads));
    let mut of = |count: usize| {
        seats.begin();
        (0..count).filter_map(|_| seats.next()).collect()
    };
    threads.iter().map(|&count| of(count)).collect()
}

struct Seats<'a> {
    topology: &'a Topology,
    /// Number of the cache domain by core.
    domain: Vec<usize>,
    per_pu: usize,
    /// Threads by PU.
    taken: BTreeMap<PuId, usize>,
    /// Threads of the program that is being placed, by core.
    siblings: Vec<usize>,
}

impl<'a> Seats<'a> {
    fn new(topology: &'a Topology, per_pu: usize) -> Self {
        let domains = domains(topology);
        let of = |pu: PuId| domains.iter().position(|pus| pus.contains(&pu));
        let cores = topology.cores().iter();
        Self {
            topology,
            domain: cores.map(|core| of(core.pus[0]).unwrap_or(0)).collect(),
            per_pu,
            taken: topology.pus().iter().map(|pu| (pu, 0)).collect(),
            siblings: Vec::new(),
        }
    }

    /// The next program.
    fn begin(&mut self) {
        self.siblings = vec![0; self.topology.cores().len()];
    }

    fn next(&mut self) -> Option<PuId> {
        let free = (0..self.siblings.len()).filter(|&core| self.room(core));
        let core = free.min_by_key(|&core| self.order(core))?;
        let pus = self.topology.cores()[core].pus.iter().copied();
        let pu = pus.min_by_key(|pu| (self.taken[pu], *pu))?;
        self.siblings[core] += 1;
        *self.taken.entry(pu).or_default() += 1;
        Some(pu)
    }

    fn load(&self, core: usize) -> usize {
        let pus = self.topology.cores()[core].pus.iter();
        pus.map(|pu| self.taken[pu]).sum()
    }

    fn room(&self, core: usize) -> bool {
        self.load(core) < self.per_pu * self.topology.cores()[core].pus.len()
    }

    /// Smaller is better: siblings, load and siblings in the domain, each for the size.
    fn order(&self, core: usize) -> (usize, usize, usize, usize) {
        let size = self.topology.cores()[core].pus.len();
        let alike = |other: &usize| self.domain[*other] == self.domain[core];
        let near: Vec<usize> = (0..self.siblings.len()).filter(alike).collect();
        let siblings: usize = near.iter().map(|&other| self.siblings[other]).sum();
        (
            fullness(self.siblings[core], size),
            fullness(self.load(core), size),
            fullness(siblings, near.len()),
            core,
        )
    }
}
