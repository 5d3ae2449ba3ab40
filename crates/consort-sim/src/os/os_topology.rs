//! The machine as the operating system knows it: scheduling domains and capacities.
//!
//! The levels are those of Linux (Documentation/scheduler/sched-domains.rst): each level is made
//! of domains and each domain of groups between which it evens out load: CPUs of a core, cores of
//! an LLC domain, LLC domains of a node, nodes.

use crate::chip::{Chip, PuPlace};

/// CPUs among which load is balanced, by group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchedulingDomain {
    pub(crate) groups: Vec<Vec<usize>>,
    /// CPUs in all.
    pub(crate) weight: usize,
    /// Failed attempts that the kernel bears to spare caches (`cache_nice_tries`; `sd_init`,
    /// kernel/sched/topology.c).
    pub(crate) nice_tries: u32,
}

/// The machine as far as the operating system knows it.
#[derive(Clone, Debug)]
pub(crate) struct OsTopology {
    /// Per CPU.
    pub(crate) core: Vec<usize>,
    /// Per CPU.
    pub(crate) llc: Vec<usize>,
    /// Per CPU; larger is faster.
    pub(crate) capacity: Vec<u32>,
    /// CPUs of each core.
    pub(crate) cores: Vec<Vec<usize>>,
    /// CPUs of each LLC domain.
    pub(crate) llcs: Vec<Vec<usize>>,
    /// Domains of every level, smallest first; those of a single group are left out.
    pub(crate) domains: Vec<SchedulingDomain>,
}

impl OsTopology {
    /// A chip without a hardware scheduler.
    pub(crate) fn from_chip(chip: &Chip) -> Self {
        let capacity = |p: &PuPlace| chip.topology().core_types()[p.core_type].capacity;
        let capacities = chip.places().iter().map(capacity).collect();
        Self::new(chip.places(), capacities)
    }

    /// As many logical cores as the chip has CPUs, all alike: neither types nor SMT are known, but
    /// caches and nodes are, since no hardware scheduler hides where data is.
    pub(crate) fn from_logical_cores(chip: &Chip) -> Self {
        let alike = |(core, place): (usize, &PuPlace)| PuPlace {
            core,
            l2: core,
            core_type: 0,
            ..*place
        };
        let places: Vec<PuPlace> = chip.places().iter().enumerate().map(alike).collect();
        let n = places.len();
        Self::new(&places, vec![1024; n])
    }

    fn new(places: &[PuPlace], capacity: Vec<u32>) -> Self {
        let by = |key: fn(&PuPlace) -> usize| -> Vec<usize> { places.iter().map(key).collect() };
        let pus: Vec<usize> = (0..places.len()).collect();
        let levels = [pus, by(|p| p.core), by(|p| p.llc), by(|p| p.node)];
        let mut domains = Vec::new();
        for (pair, nice_tries) in levels.windows(2).zip([0, 1, 1]) {
            domains.extend(level_domains(&pair[0], &pair[1], nice_tries));
        }
        domains.extend(level_domains(&levels[3], &vec![0; places.len()], 2));
        Self {
            cores: members(&levels[1]),
            llcs: members(&levels[2]),
            core: levels[1].clone(),
            llc: levels[2].clone(),
            capacity,
            domains,
        }
    }

    /// Number of CPUs.
    pub(crate) fn len(&self) -> usize {
        self.core.len()
    }
}

/// CPUs by the number of what they belong to.
fn members(of: &[usize]) -> Vec<Vec<usize>> {
    let mut sets = vec![Vec::new(); of.iter().max().map_or(0, |most| most + 1)];
    for (pu, &set) in of.iter().enumerate() {
        sets[set].push(pu);
    }
    sets
}

/// The domains of one level, given each CPU's group and domain.
fn level_domains(group: &[usize], domain: &[usize], nice_tries: u32) -> Vec<SchedulingDomain> {
    let groups = members(group);
    let count = domain.iter().max().map_or(0, |most| most + 1);
    let mut sets: Vec<Vec<Vec<usize>>> = vec![Vec::new(); count];
    for pus in groups.into_iter().filter(|pus| !pus.is_empty()) {
        sets[domain[pus[0]]].push(pus);
    }
    let several = sets.into_iter().filter(|groups| groups.len() > 1);
    several
        .map(|groups| SchedulingDomain {
            weight: groups.iter().map(Vec::len).sum(),
            groups,
            nice_tries,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::chip;

    #[test]
    fn levels_nest_and_single_groups_are_left_out() {
        let shape = OsTopology::from_chip(&chip(2));
        let weights: Vec<usize> = shape.domains.iter().map(|d| d.weight).collect();
        // Eight cores, two LLC domains, no level between LLC domain and node, two nodes.
        assert_eq!(weights, [2, 2, 2, 2, 2, 2, 2, 2, 8, 8, 16]);
        assert_eq!(shape.llcs[1], (8..16).collect::<Vec<_>>());
    }

    #[test]
    fn logical_cores_are_all_alike() {
        let shape = OsTopology::from_logical_cores(&chip(2));
        // Two LLC domains of eight logical cores, and the nodes above them.
        assert_eq!((shape.domains.len(), shape.cores.len()), (3, 16));
        assert!(shape.capacity.iter().all(|&c| c == 1024));
    }
}
