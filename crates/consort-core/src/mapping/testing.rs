//! Chips for the tests of mappings.

use crate::ids::PuId;
use crate::topology::{CoreType, PuFacts, Topology};

/// A chip with this number of LLC domains, cores in each, and CPUs in each core, numbered in that
/// order.
pub(super) fn chip(domains: u32, cores: u32, ways: u32) -> Topology {
    let facts = (0..domains * cores * ways).map(|pu| PuFacts {
        pu: PuId(pu),
        package: 0,
        node: 0,
        core: pu / ways,
        llc: pu / (ways * cores),
        l2: Some(pu / ways),
        core_type: 0,
    });
    Topology::new(facts.collect(), vec![CoreType::uniform()]).unwrap()
}

/// A chip of LLC domains with unlike numbers of cores, of one CPU each.
pub(super) fn uneven(cores: &[u32]) -> Topology {
    let domains = cores.iter().enumerate();
    let llcs = domains.flat_map(|(llc, &n)| (0..n).map(move |_| llc as u32));
    let facts = llcs.enumerate().map(|(pu, llc)| PuFacts {
        pu: PuId(pu as u32),
        package: 0,
        node: 0,
        core: pu as u32,
        llc,
        l2: None,
        core_type: 0,
    });
    Topology::new(facts.collect(), vec![CoreType::uniform()]).unwrap()
}
