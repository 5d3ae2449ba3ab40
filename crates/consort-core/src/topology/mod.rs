//! The chip as a policy sees it: packages, nodes, cache domains, cores, CPUs.
//!
//! Nothing here assumes two CPUs per core or two core types. A topology is built from one
//! [`PuFacts`] per online CPU, whatever the source (sysfs, a machine file, a recording), and is
//! immutable afterwards.

mod emulated;

use crate::ids::PuId;
use crate::pu_set::PuSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// Facts about one online CPU. Keys need only distinguish groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PuFacts {
    /// The CPU.
    pub pu: PuId,
    /// Physical package (socket).
    pub package: u32,
    /// NUMA node.
    pub node: u32,
    /// Core, unique over the whole machine.
    pub core: u32,
    /// Last-level cache domain, unique over the whole machine.
    pub llc: u32,
    /// Level 2 domain, unique over the whole machine; `None` if there is no L2 or the source does
    /// not show it.
    pub l2: Option<u32>,
    /// Index into the core types given to [`Topology::new`].
    pub core_type: usize,
}

/// A kind of core, for example P-cores and E-cores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoreType {
    /// Name; `uniform` if all cores are alike.
    pub name: String,
    /// Relative capacity; the largest type has 1024, as in Linux' `cpu_capacity`.
    pub capacity: u32,
    /// Its pipeline; `None` if the source does not describe it, as on live machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Pipeline>,
}

/// Pipeline of a kind of core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pipeline {
    /// Most instructions dispatched per cycle.
    pub dispatch_width: f64,
    /// Instructions in the reorder buffer; `None` for in-order cores.
    pub rob_entries: Option<u32>,
    /// Clock, Hz.
    pub frequency_hz: f64,
}

/// The CPUs that share execution units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Core {
    /// Members in ascending order; the position is the SMT way.
    pub pus: Vec<PuId>,
    /// Index into [`Topology::packages`].
    pub package: usize,
    /// Index into [`Topology::nodes`].
    pub node: usize,
    /// Index into [`Topology::llcs`].
    pub llc: usize,
    /// Index into [`Topology::core_types`].
    pub core_type: usize,
}

/// A group of CPUs: a package, a node, or the sharers of a cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// Number of the group in the source.
    pub key: u32,
    /// Its CPUs.
    pub pus: PuSet,
    /// Its cores, as indices into [`Topology::cores`].
    pub cores: Vec<usize>,
    /// Capacity of the cache that the group shares, bytes. `None` for packages and nodes, and if
    /// the source does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}

/// A machine's online and allowed CPUs and how they share hardware.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    cores: Vec<Core>,
    core_types: Vec<CoreType>,
    packages: Vec<Domain>,
    nodes: Vec<Domain>,
    llcs: Vec<Domain>,
    l2s: Vec<Domain>,
    pus: PuSet,
    /// CPUs among which the operating system moves no threads, for example Linux's isolated CPUs.
    #[serde(default, skip_serializing_if = "PuSet::is_empty")]
    unbalanced: PuSet,
    core_of: BTreeMap<PuId, usize>,
}

/// Reason why a set of facts is not a topology.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// There is no CPU to place anything on.
    #[error("no CPU is online and allowed")]
    NoPu,
    /// A CPU is described twice.
    #[error("CPU {0} is described twice")]
    Twice(PuId),
    /// A CPU names a core type that does not exist.
    #[error("CPU {pu} has core type {index}, but there are only {types}")]
    CoreType {
        /// The CPU.
        pu: PuId,
        /// The index that it names.
        index: usize,
        /// Number of types.
        types: usize,
    },
    /// CPUs of one core disagree about the core's place.
    #[error("CPUs {a} and {b} share a core but differ in {what}")]
    Torn {
        /// First CPU of the core.
        a: PuId,
        /// The CPU that differs.
        b: PuId,
        /// The property that differs.
        what: &'static str,
    },
    /// Unusable CPUs are named as large.
    #[error("CPUs {pus} cannot be used here; large can be some of {usable}")]
    NotThere {
        /// The CPUs that cannot be used.
        pus: PuSet,
        /// The ones that can be used.
        usable: PuSet,
    },
    /// All CPUs, or none, are named as large.
    #[error(
        "{which} would be large, so that there is nothing to exchange; name some of {usable}, not all"
    )]
    OneKind {
        /// "all CPUs" or "no CPU".
        which: &'static str,
        /// The CPUs that can be used.
        usable: PuSet,
    },
    /// Some CPUs of a core are named as large and others are not.
    #[error(
        "CPUs {core} are one core, which is large or small as a whole; name all of them or none"
    )]
    Divided {
        /// The CPUs of the core.
        core: PuSet,
    },
}

impl Topology {
    /// Builds a topology from the facts of all CPUs.
    ///
    /// # Errors
    /// If facts contradict each other, or there are none.
    pub fn new(mut facts: Vec<PuFacts>, core_types: Vec<CoreType>) -> Result<Self, TopologyError> {
        facts.sort_by_key(|f| f.pu);
        validate(&facts, core_types.len())?;
        let packages = KeyedPuGroups::new(&facts, |f| Some(f.package));
        let nodes = KeyedPuGroups::new(&facts, |f| Some(f.node));
        let llcs = KeyedPuGroups::new(&facts, |f| Some(f.llc));
        let l2s = KeyedPuGroups::new(&facts, |f| f.l2);
        let cores = build_cores(&facts, &packages, &nodes, &llcs)?;
        let core_of = core_index(&cores);
        Ok(Self {
            packages: packages.domains(&core_of),
            nodes: nodes.domains(&core_of),
            llcs: llcs.domains(&core_of),
            l2s: l2s.domains(&core_of),
            pus: facts.iter().map(|f| f.pu).collect(),
            unbalanced: PuSet::new(),
            cores,
            core_types,
            core_of,
        })
    }

    /// Sets the capacities of caches, bytes, by the keys of last-level and level 2 domains.
    #[must_use]
    pub fn with_cache_sizes(mut self, llcs: &BTreeMap<u32, u64>, l2s: &BTreeMap<u32, u64>) -> Self {
        for (domains, sizes) in [(&mut self.llcs, llcs), (&mut self.l2s, l2s)] {
            for domain in domains {
                domain.size_bytes = sizes.get(&domain.key).copied();
            }
        }
        self
    }

    /// Marks CPUs among which the operating system moves no threads, such as Linux's isolated CPUs.
    /// A thread stays on the CPU on which it was put, so a place of two such CPUs is worth one.
    #[must_use]
    pub fn with_unbalanced(mut self, pus: &PuSet) -> Self {
        self.unbalanced = pus.intersection(&self.pus);
        self
    }

    /// Returns the machine with fewer CPUs, for example the ones that a cpuset allows.
    ///
    /// # Errors
    /// [`TopologyError::NoPu`] if none is left.
    pub fn restrict_to(&self, allowed: &PuSet) -> Result<Self, TopologyError> {
        let kept = self
            .facts()
            .into_iter()
            .filter(|f| allowed.contains(f.pu))
            .collect();
        self.rebuild(kept, self.core_types.clone())
    }

    /// Builds a topology from other facts about the same machine. Caches with equal keys keep their
    /// size, and CPUs stay unbalanced.
    fn rebuild(
        &self,
        facts: Vec<PuFacts>,
        core_types: Vec<CoreType>,
    ) -> Result<Self, TopologyError> {
        let built = Self::new(facts, core_types)?;
        Ok(built.with_attributes_of(self, |new, old| new.key == old.key))
    }

    /// Copies the sizes of equal caches, and the unbalanced CPUs, from another description of this
    /// machine.
    pub(crate) fn with_attributes_of(
        self,
        other: &Self,
        is_same: impl Fn(&Domain, &Domain) -> bool,
    ) -> Self {
        let mut built = self.with_unbalanced(&other.unbalanced);
        for (old, new) in [(&other.llcs, &mut built.llcs), (&other.l2s, &mut built.l2s)] {
            for domain in new {
                let was = old.iter().find(|was| is_same(domain, was));
                domain.size_bytes = was.and_then(|was| was.size_bytes);
            }
        }
        built
    }

    /// Returns a machine of identical cores in one package, node and LLC domain. CPU `w·cores + c`
    /// is way `w` of core `c`, as x86 firmware usually numbers them.
    ///
    /// # Errors
    /// [`TopologyError::NoPu`] if `cores` or `ways` is 0.
    pub fn uniform(cores: u32, ways: u32) -> Result<Self, TopologyError> {
        let facts = (0..cores * ways).map(|pu| PuFacts {
            pu: PuId(pu),
            package: 0,
            node: 0,
            core: pu % cores,
            llc: 0,
            l2: Some(pu % cores),
            core_type: 0,
        });
        Self::new(facts.collect(), vec![CoreType::uniform()])
    }

    /// Cores in ascending order of their first CPU.
    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    /// Core types; at least one.
    pub fn core_types(&self) -> &[CoreType] {
        &self.core_types
    }

    /// Packages, by key.
    pub fn packages(&self) -> &[Domain] {
        &self.packages
    }

    /// NUMA nodes that have CPUs, by key.
    pub fn nodes(&self) -> &[Domain] {
        &self.nodes
    }

    /// Last-level cache domains, by key.
    pub fn llcs(&self) -> &[Domain] {
        &self.llcs
    }

    /// Level 2 cache domains, by key; empty if the source does not show them.
    pub fn l2s(&self) -> &[Domain] {
        &self.l2s
    }

    /// Every CPU.
    pub fn pus(&self) -> &PuSet {
        &self.pus
    }

    /// CPUs among which the operating system moves no threads, for example Linux's isolated CPUs.
    pub fn unbalanced_pus(&self) -> &PuSet {
        &self.unbalanced
    }

    /// Index of the core that a CPU belongs to.
    pub fn core_of(&self, pu: PuId) -> Option<usize> {
        self.core_of.get(&pu).copied()
    }

    /// The largest number of CPUs on one core: 1 without SMT.
    pub fn smt(&self) -> usize {
        self.cores.iter().map(|c| c.pus.len()).max().unwrap_or(1)
    }

    /// The facts that this topology was built from, one per CPU in ascending order.
    pub fn facts(&self) -> Vec<PuFacts> {
        self.pus.iter().filter_map(|pu| self.facts_of(pu)).collect()
    }

    fn facts_of(&self, pu: PuId) -> Option<PuFacts> {
        let core_index = self.core_of(pu)?;
        let core = self.cores.get(core_index)?;
        let l2 = self.l2s.iter().find(|d| d.pus.contains(pu));
        Some(PuFacts {
            pu,
            package: self.packages.get(core.package)?.key,
            node: self.nodes.get(core.node)?.key,
            core: core_index as u32,
            llc: self.llcs.get(core.llc)?.key,
            l2: l2.map(|d| d.key),
            core_type: core.core_type,
        })
    }
}

impl CoreType {
    /// The one type of a machine whose cores are alike.
    pub fn uniform() -> Self {
        Self {
            name: "uniform".to_owned(),
            capacity: 1024,
            pipeline: None,
        }
    }
}

fn validate(facts: &[PuFacts], types: usize) -> Result<(), TopologyError> {
    if facts.is_empty() {
        return Err(TopologyError::NoPu);
    }
    if let Some(pair) = facts.windows(2).find(|pair| pair[0].pu == pair[1].pu) {
        return Err(TopologyError::Twice(pair[0].pu));
    }
    match facts.iter().find(|f| f.core_type >= types) {
        Some(f) => Err(TopologyError::CoreType {
            pu: f.pu,
            index: f.core_type,
            types,
        }),
        None => Ok(()),
    }
}

/// CPUs grouped by a key, keys in ascending order.
struct KeyedPuGroups(BTreeMap<u32, PuSet>);

impl KeyedPuGroups {
    fn new(facts: &[PuFacts], key: impl Fn(&PuFacts) -> Option<u32>) -> Self {
        let mut groups: BTreeMap<u32, PuSet> = BTreeMap::new();
        for f in facts {
            if let Some(key) = key(f) {
                groups.entry(key).or_default().insert(f.pu);
            }
        }
        Self(groups)
    }

    fn index(&self, key: u32) -> usize {
        self.0.range(..key).count()
    }

    fn domains(&self, core_of: &BTreeMap<PuId, usize>) -> Vec<Domain> {
        let domain = |(&key, pus): (&u32, &PuSet)| {
            let mut cores: Vec<usize> = pus
                .iter()
                .filter_map(|p| core_of.get(&p).copied())
                .collect();
            cores.sort_unstable();
            cores.dedup();
            Domain {
                key,
                pus: pus.clone(),
                cores,
                size_bytes: None,
            }
        };
        self.0.iter().map(domain).collect()
    }
}

fn build_cores(
    facts: &[PuFacts],
    packages: &KeyedPuGroups,
    nodes: &KeyedPuGroups,
    llcs: &KeyedPuGroups,
) -> Result<Vec<Core>, TopologyError> {
    let mut by_core: BTreeMap<u32, Vec<&PuFacts>> = BTreeMap::new();
    for f in facts {
        by_core.entry(f.core).or_default().push(f);
    }
    let mut cores = Vec::with_capacity(by_core.len());
    for members in by_core.values() {
        let first = common_facts(members)?;
        cores.push(Core {
            pus: members.iter().map(|f| f.pu).collect(),
            package: packages.index(first.package),
            node: nodes.index(first.node),
            llc: llcs.index(first.llc),
            core_type: first.core_type,
        });
    }
    cores.sort_by_key(|core| core.pus.first().copied());
    Ok(cores)
}

/// Facts that all CPUs of a core share, as those of its first CPU.
fn common_facts<'a>(members: &[&'a PuFacts]) -> Result<&'a PuFacts, TopologyError> {
    let Some((first, rest)) = members.split_first() else {
        return Err(TopologyError::NoPu);
    };
    for other in rest {
        let differences = [
            ("package", first.package != other.package),
            ("node", first.node != other.node),
            ("LLC domain", first.llc != other.llc),
            ("core type", first.core_type != other.core_type),
        ];
        if let Some((what, _)) = differences.into_iter().find(|(_, differs)| *differs) {
            return Err(TopologyError::Torn {
                a: first.pu,
                b: other.pu,
                what,
            });
        }
    }
    Ok(first)
}

fn core_index(cores: &[Core]) -> BTreeMap<PuId, usize> {
    let pairs = cores.iter().enumerate();
    pairs
        .flat_map(|(i, core)| core.pus.iter().map(move |&pu| (pu, i)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_machine_has_the_given_shape() {
        let t = Topology::uniform(4, 2).unwrap();
        assert_eq!((t.cores().len(), t.smt(), t.pus().len()), (4, 2, 8));
        assert_eq!(t.cores()[1].pus, [PuId(1), PuId(5)]);
        assert_eq!(t.core_of(PuId(6)), Some(2));
        assert_eq!(t.core_of(PuId(8)), None);
        assert_eq!(t.llcs()[0].cores, [0, 1, 2, 3]);
    }

    #[test]
    fn facts_rebuild_the_same_topology() {
        let t = Topology::uniform(3, 4).unwrap();
        let again = Topology::new(t.facts(), t.core_types().to_vec()).unwrap();
        assert_eq!(t, again);
    }

    #[test]
    fn restricted_machine_keeps_allowed_pus() {
        let t = Topology::uniform(4, 2).unwrap();
        let r = t.restrict_to(&"1,5,6".parse().unwrap()).unwrap();
        assert_eq!(r.pus().to_string(), "1,5-6");
        assert_eq!(r.cores().len(), 2);
        assert_eq!(r.smt(), 2);
        assert_eq!(
            t.restrict_to(&"99".parse().unwrap()),
            Err(TopologyError::NoPu)
        );
    }

    #[test]
    fn cache_sizes_stay_with_their_domains() {
        let t = Topology::uniform(4, 2).unwrap();
        let sizes = |pairs: &[(u32, u64)]| pairs.iter().copied().collect();
        let t = t.with_cache_sizes(&sizes(&[(0, 96)]), &sizes(&[(1, 2), (2, 4)]));
        let shown = |t: &Topology| {
            let domains = t.llcs().iter().chain(t.l2s());
            domains.map(|d| d.size_bytes).collect::<Vec<_>>()
        };
        assert_eq!(shown(&t), [Some(96), None, Some(2), Some(4), None]);
        let fewer = t.restrict_to(&"1,2".parse().unwrap()).unwrap();
        assert_eq!(shown(&fewer), [Some(96), Some(2), Some(4)]);
        let large = t.with_large_cores(&"0,4".parse().unwrap()).unwrap();
        assert_eq!(shown(&large), shown(&t));
    }

    #[test]
    fn restriction_keeps_unbalanced_pus() {
        let t = Topology::uniform(4, 2).unwrap();
        let t = t.with_unbalanced(&"2-3,9".parse().unwrap());
        assert_eq!(t.unbalanced_pus().to_string(), "2-3");
        let fewer = t.restrict_to(&"0-2".parse().unwrap()).unwrap();
        assert_eq!(fewer.unbalanced_pus().to_string(), "2");
    }

    #[test]
    fn contradictions_are_named() {
        let fact = |pu, node| PuFacts {
            pu: PuId(pu),
            package: 0,
            node,
            core: 0,
            llc: 0,
            l2: None,
            core_type: 0,
        };
        let build = |facts| Topology::new(facts, vec![CoreType::uniform()]).unwrap_err();
        assert_eq!(
            build(vec![fact(3, 0), fact(3, 0)]),
            TopologyError::Twice(PuId(3))
        );
        let torn = build(vec![fact(0, 0), fact(1, 1)]);
        assert_eq!(
            torn.to_string(),
            "CPUs 0 and 1 share a core but differ in node"
        );
    }
}
