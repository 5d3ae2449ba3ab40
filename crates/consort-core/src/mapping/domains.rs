//! Domains in which a mapping isolates programs.

use crate::ids::PuId;
use crate::topology::{Domain, Topology};

/// The parts of the machine that share a cache, each with its PUs core by core: LLC domains where
/// there are several, else level 2 domains of several cores, else cores.
pub fn domains(topology: &Topology) -> Vec<Vec<PuId>> {
    let of = |domains: &[Domain]| {
        domains
            .iter()
            .map(|d| pus_by_core(topology, &d.cores))
            .collect()
    };
    let joins_cores = |d: &Domain| d.cores.len() > 1;
    let (llcs, l2s) = (topology.llcs(), topology.l2s());
    if llcs.len() > 1 {
        of(llcs)
    } else if l2s.len() > 1 && l2s.iter().any(joins_cores) {
        of(l2s)
    } else {
        topology
            .cores()
            .iter()
            .map(|core| core.pus.clone())
            .collect()
    }
}

fn pus_by_core(topology: &Topology, cores: &[usize]) -> Vec<PuId> {
    let cores = cores.iter().map(|&core| &topology.cores()[core]);
    cores.flat_map(|core| core.pus.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::chip;
    use super::*;

    fn shown(topology: &Topology) -> String {
        let domains = domains(topology);
        let one = |pus: &Vec<PuId>| pus.iter().map(|pu| pu.0.to_string()).collect::<Vec<_>>();
        let all: Vec<String> = domains.iter().map(|pus| one(pus).join(",")).collect();
        all.join(" ")
    }

    #[test]
    fn the_largest_shared_cache_of_which_there_are_several_counts() {
        assert_eq!(shown(&chip(2, 2, 1)), "0,1 2,3");
        assert_eq!(shown(&chip(2, 2, 2)), "0,1,2,3 4,5,6,7");
        // One LLC: cores are what is left to isolate in.
        assert_eq!(shown(&Topology::uniform(3, 2).unwrap()), "0,3 1,4 2,5");
    }
}
