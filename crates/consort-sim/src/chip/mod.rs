//! A machine description laid out: every CPU with what it shares, by index.

use crate::contention::core_model::CoreModel;
use crate::machine::{CoreSpec, L2Group, MachineSpec, Quantity};
use consort_core::topology::{CoreType, Pipeline, PuFacts, TopologyError};
use consort_core::{PuId, Topology};
use std::collections::BTreeMap;
use std::sync::Arc;

mod capacity;

/// Bytes per KiB.
pub(crate) const KIB: f64 = 1024.0;

/// Capacity where all cores are alike, as in Linux' `cpu_capacity`.
const ALIKE: u32 = 1024;

/// A machine ready to be simulated: CPU `core·ways + way` is way `way` of core `core`.
#[derive(Clone, Debug, PartialEq)]
pub struct Chip {
    spec: MachineSpec,
    core_types: Vec<CoreSpec>,
    /// Of every core type: with halves that do not bind, and that do.
    models: Vec<[CoreModel; 2]>,
    topology: Topology,
    pus: Vec<PuPlace>,
    domains: Domains,
    /// Capacity of each LLC domain, KiB; 0 if there is no such cache.
    llc_kib: Vec<f64>,
}

/// Place of a CPU: indices that count over the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PuPlace {
    /// Core.
    pub core: usize,
    /// L2 domain.
    pub l2: usize,
    /// LLC domain.
    pub llc: usize,
    /// NUMA node.
    pub node: usize,
    /// Package.
    pub package: usize,
    /// Index into [`Chip::core_types`].
    pub core_type: usize,
}

/// Number of domains of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Domains {
    /// Cores.
    pub cores: usize,
    /// L2 domains.
    pub l2s: usize,
    /// LLC domains.
    pub llcs: usize,
    /// NUMA nodes.
    pub nodes: usize,
    /// Packages.
    pub packages: usize,
}

impl Chip {
    /// Lays a machine out with at most `smt` CPUs per core.
    ///
    /// # Errors
    /// A layout without CPUs.
    pub fn new(spec: &MachineSpec, smt: Option<u32>) -> Result<Self, TopologyError> {
        Self::with_cores(spec, smt, &|_| true)
    }

    /// Lays a machine out with only the cores for which `is_used` returns true, by their numbers on
    /// the whole machine. The others never run anything; their caches and all of the memory stay,
    /// as when the operating system keeps threads off cores.
    ///
    /// # Errors
    /// A layout without CPUs.
    pub fn with_cores(
        spec: &MachineSpec,
        smt: Option<u32>,
        is_used: &dyn Fn(usize) -> bool,
    ) -> Result<Self, TopologyError> {
        let mut layout = ChipBuilder::new(spec, smt.unwrap_or(u32::MAX), is_used);
        layout.add_packages();
        let facts = layout.facts;
        let alike = vec![ALIKE; spec.core_types.len()];
        let chip = Self {
            core_types: spec.core_types.values().cloned().collect(),
            models: spec
                .core_types
                .values()
                .map(CoreModel::joined_and_halved)
                .collect(),
            spec: spec.clone(),
            topology: Topology::new(facts.clone(), core_types(spec, &alike))?,
            pus: layout.pus,
            domains: layout.domains,
            llc_kib: layout.llc_kib,
        };
        chip.with_capacities(facts)
    }

    /// The chip with the capacities of its core types, which take a chip to run programs on.
    fn with_capacities(mut self, facts: Vec<PuFacts>) -> Result<Self, TopologyError> {
        let (llcs, l2s) = self.cache_sizes();
        if self.core_types.len() < 2 {
            self.topology = self.topology.with_cache_sizes(&llcs, &l2s);
            return Ok(self);
        }
        let chip = Arc::new(self);
        let types = core_types(&chip.spec, &capacity::capacities(&chip));
        let mut chip = Arc::unwrap_or_clone(chip);
        chip.topology = Topology::new(facts, types)?.with_cache_sizes(&llcs, &l2s);
        Ok(chip)
    }

    /// Bytes of the last cache of every LLC domain, which is the L2 where there is no LLC, and of
    /// every L2, by their numbers.
    fn cache_sizes(&self) -> (BTreeMap<u32, u64>, BTreeMap<u32, u64>) {
        let bytes = |kib: f64| (kib * KIB) as u64;
        let (mut llcs, mut l2s) = (BTreeMap::new(), BTreeMap::new());
        for &place in &self.pus {
            let l2 = self
                .core_spec(place)
                .l2
                .as_ref()
                .map(|l2| bytes(l2.size_kib));
            l2s.extend(l2.map(|l2| (place.l2 as u32, l2)));
            let llc = match self.llc_kib(place.llc) {
                0.0 => l2,
                kib => Some(bytes(kib)),
            };
            llcs.extend(llc.map(|llc| (place.llc as u32, llc)));
        }
        (llcs, l2s)
    }

    /// The description.
    pub fn spec(&self) -> &MachineSpec {
        &self.spec
    }

    /// The topology that policies see.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Every CPU's place; the index is the CPU's number.
    pub fn places(&self) -> &[PuPlace] {
        &self.pus
    }

    /// Number of each kind of domain.
    pub fn domains(&self) -> Domains {
        self.domains
    }

    /// Capacity of an LLC domain, by [`PuPlace::llc`], KiB; 0 if its cores have no such cache.
    pub fn llc_kib(&self, llc: usize) -> f64 {
        self.llc_kib.get(llc).copied().unwrap_or(0.0)
    }

    /// Core types in the order of their names.
    pub fn core_types(&self) -> &[CoreSpec] {
        &self.core_types
    }

    /// The core type of a place.
    pub fn core_spec(&self, place: PuPlace) -> &CoreSpec {
        &self.core_types[place.core_type]
    }

    /// Returns the model of a place's core with so many threads on it, whichever they are.
    pub(crate) fn core_model(&self, place: PuPlace, threads: usize) -> &CoreModel {
        let [joined, halved] = &self.models[place.core_type];
        let binds = threads >= halved.tables.halves_from as usize;
        if binds { halved } else { joined }
    }

    /// True if its PMU counts what instructions would take in order, which is costly to compute.
    pub(crate) fn counts_in_order(&self) -> bool {
        let mut events = self.spec.pmu.events.iter();
        events.any(|event| event.counts == Quantity::InOrderCycles)
    }

    /// Clock of a place, Hz.
    pub fn frequency_hz(&self, place: PuPlace) -> f64 {
        self.core_spec(place).frequency_ghz * 1e9
    }
}

/// Core types as policies see them.
fn core_types(spec: &MachineSpec, capacities: &[u32]) -> Vec<CoreType> {
    let types = spec.core_types.iter().zip(capacities);
    types
        .map(|((name, core), &capacity)| CoreType {
            name: name.clone(),
            capacity,
            pipeline: Some(Pipeline {
                dispatch_width: core.dispatch_width,
                rob_entries: core.rob_entries,
                frequency_hz: core.frequency_ghz * 1e9,
            }),
        })
        .collect()
}

/// The layout as far as it is done.
struct ChipBuilder<'a> {
    spec: &'a MachineSpec,
    smt: u32,
    is_used: &'a dyn Fn(usize) -> bool,
    /// Cores passed so far, used or not.
    passed: usize,
    facts: Vec<PuFacts>,
    pus: Vec<PuPlace>,
    domains: Domains,
    llc_kib: Vec<f64>,
}

impl<'a> ChipBuilder<'a> {
    fn new(spec: &'a MachineSpec, smt: u32, is_used: &'a dyn Fn(usize) -> bool) -> Self {
        Self {
            spec,
            smt,
            is_used,
            passed: 0,
            facts: Vec::new(),
            pus: Vec::new(),
            domains: Domains::default(),
            llc_kib: Vec::new(),
        }
    }

    fn add_packages(&mut self) {
        let layout = &self.spec.layout;
        for _ in 0..layout.packages {
            for _ in 0..layout.nodes_per_package {
                for (own_kib, groups) in layout.domains() {
                    self.llc_kib.push(own_kib.unwrap_or(self.spec.llc.size_kib));
                    self.add_llc_domain(groups);
                }
                self.domains.nodes += 1;
            }
            self.domains.packages += 1;
        }
    }

    fn add_llc_domain(&mut self, groups: &[L2Group]) {
        for group in groups {
            let names = self.spec.core_types.keys();
            let Some(core_type) = names.clone().position(|n| *n == group.core_type) else {
                continue;
            };
            for _ in 0..group.l2_domains {
                for _ in 0..group.cores_per_l2 {
                    if (self.is_used)(self.passed) {
                        self.add_core(core_type, &group.core_type);
                    }
                    self.passed += 1;
                }
                self.domains.l2s += 1;
            }
        }
        self.domains.llcs += 1;
    }

    fn add_core(&mut self, core_type: usize, name: &str) {
        let core = &self.spec.core_types[name];
        let ways = core.smt.iter().map(|mode| mode.ways).max().unwrap_or(1);
        for _ in 0..ways.min(self.smt) {
            let place = PuPlace {
                core: self.domains.cores,
                l2: self.domains.l2s,
                llc: self.domains.llcs,
                node: self.domains.nodes,
                package: self.domains.packages,
                core_type,
            };
            self.facts.push(PuFacts {
                pu: PuId(self.pus.len() as u32),
                package: place.package as u32,
                node: place.node as u32,
                core: place.core as u32,
                llc: place.llc as u32,
                l2: core.l2.as_ref().map(|_| place.l2 as u32),
                core_type,
            });
            self.pus.push(place);
        }
        self.domains.cores += 1;
    }
}

impl Chip {
    /// The node that holds the memory of a thread that first touches it on `node`.
    ///
    /// A kernel gives a thread memory on the node that it runs on when it first touches it, and if
    /// that node has none, on the nearest that has (Linux, `Documentation/mm/numa.rst`, fallback
    /// zone lists). Nearest here is the same package before others, then the lowest number.
    pub fn memory_node(&self, node: usize) -> usize {
        let with = self.spec().numa.as_ref();
        let Some(with) = with.and_then(|numa| numa.memory_nodes.as_ref()) else {
            return node;
        };
        let package = |node: usize| node / self.spec().layout.nodes_per_package.max(1) as usize;
        let distance = |&there: &usize| (there != node, package(there) != package(node), there);
        let with = with.iter().map(|&there| there as usize);
        with.min_by_key(distance).unwrap_or(node)
    }

    /// Latency of memory on node `home` from a place, behind the LLC and idle, ns.
    pub fn memory_latency_ns(&self, place: PuPlace, home: usize) -> f64 {
        let spec = self.spec();
        let hop = spec.numa.as_ref().map_or(0.0, |numa| {
            let package = home / spec.layout.nodes_per_package.max(1) as usize;
            match (place.node == home, place.package == package) {
                (true, _) => 0.0,
                (false, true) => numa.same_package_ns,
                (false, false) => numa.other_package_ns,
            }
        });
        spec.memory.latency_ns + hop
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::presets;

    /// Two packages of two nodes, with memory on those of `with`.
    fn chip(with: Option<&[u32]>) -> Chip {
        let mut spec = presets::find("power8").unwrap();
        spec.layout.packages = 2;
        let numa = spec.numa.as_mut().unwrap();
        numa.memory_nodes = with.map(<[u32]>::to_vec);
        Chip::new(&spec, Some(1)).unwrap()
    }

    fn homes(with: Option<&[u32]>) -> Vec<usize> {
        let chip = chip(with);
        (0..4).map(|node| chip.memory_node(node)).collect()
    }

    #[test]
    fn memory_comes_from_nearest_node_with_memory() {
        assert_eq!(homes(None), [0, 1, 2, 3]);
        assert_eq!(homes(Some(&[1])), [1, 1, 1, 1]);
        assert_eq!(homes(Some(&[3, 0])), [0, 0, 3, 3]);
        assert_eq!(homes(Some(&[2, 3])), [2, 2, 2, 3]);
    }

    #[test]
    fn latency_grows_with_distance_of_node() {
        let chip = chip(None);
        let first = chip.places()[0];
        let all = (0..4).map(|home| chip.memory_latency_ns(first, home));
        assert_eq!(all.collect::<Vec<_>>(), [82.0, 117.0, 182.0, 182.0]);
    }
}
