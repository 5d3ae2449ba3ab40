//! `spr`: the threads of each program go round all cores.

use super::deal::fullness;
use super::{domains, max_threads_per_pu};
use crate::ids::PuId;
use crate::topology::Topology;
use std::collections::{BTreeMap, BTreeSet};

/// Every thread on the core with the fewest of its siblings, among equals the emptiest, in the
/// cache domain with the fewest siblings; there on the emptiest PU.
pub(super) fn spread_mapping(topology: &Topology, threads: &[usize]) -> Vec<Vec<PuId>> {
    let mut seats = SpreadSeats::new(topology, max_threads_per_pu(topology, threads));
    let mut of = |count: usize| {
        seats.begin();
        (0..count).filter_map(|_| seats.next()).collect()
    };
    threads.iter().map(|&count| of(count)).collect()
}

struct SpreadSeats<'a> {
    topology: &'a Topology,
    /// Number of the cache domain by core.
    domain: Vec<usize>,
    /// Cores by cache domain.
    size: Vec<usize>,
    per_pu: usize,
    /// Threads by PU.
    taken: BTreeMap<PuId, usize>,
    /// Threads by core.
    load: Vec<usize>,
    /// Threads of the program that is being placed, by core and by cache domain.
    siblings: [Vec<usize>; 2],
}

impl<'a> SpreadSeats<'a> {
    fn new(topology: &'a Topology, per_pu: usize) -> Self {
        let domains = domains(topology);
        let mut domain = vec![0; topology.cores().len()];
        let mut size = vec![0; domains.len()];
        for (number, pus) in domains.iter().enumerate() {
            let cores: BTreeSet<usize> = pus.iter().filter_map(|&p| topology.core_of(p)).collect();
            size[number] = cores.len();
            cores.into_iter().for_each(|core| domain[core] = number);
        }
        Self {
            topology,
            load: vec![0; domain.len()],
            domain,
            size,
            per_pu,
            taken: topology.pus().iter().map(|pu| (pu, 0)).collect(),
            siblings: [Vec::new(), Vec::new()],
        }
    }

    /// The next program.
    fn begin(&mut self) {
        self.siblings = [vec![0; self.domain.len()], vec![0; self.size.len()]];
    }

    fn next(&mut self) -> Option<PuId> {
        let free = (0..self.domain.len()).filter(|&core| self.has_room(core));
        let core = free.min_by_key(|&core| self.order(core))?;
        let pus = self.topology.cores()[core].pus.iter().copied();
        let pu = pus.min_by_key(|pu| (self.taken[pu], *pu))?;
        self.load[core] += 1;
        self.siblings[0][core] += 1;
        self.siblings[1][self.domain[core]] += 1;
        *self.taken.entry(pu).or_default() += 1;
        Some(pu)
    }

    fn has_room(&self, core: usize) -> bool {
        self.load[core] < self.per_pu * self.topology.cores()[core].pus.len()
    }

    /// Smaller is better: siblings, load and siblings in the domain, each for the size.
    fn order(&self, core: usize) -> (usize, usize, usize, usize) {
        let (size, domain) = (self.topology.cores()[core].pus.len(), self.domain[core]);
        (
            fullness(self.siblings[0][core], size),
            fullness(self.load[core], size),
            fullness(self.siblings[1][domain], self.size[domain]),
            core,
        )
    }
}
