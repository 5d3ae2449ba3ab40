//! Groups of PUs that replace what the kernel tells of sharing.

use super::groups::SharingLevel;
use super::infer::Inference;
use crate::ids::PuId;
use crate::pu_set::PuSet;
use crate::topology::{PuFacts, Topology, TopologyError};
use std::collections::BTreeMap;
use thiserror::Error;

/// The PUs that share cores, level 2 caches and LLC domains. PUs that no group of a kind names keep
/// what the kernel tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharingMap {
    /// Origin, in words.
    pub source: String,
    /// The PUs of each core.
    pub cores: Vec<PuSet>,
    /// The PUs of each level 2 cache.
    pub l2s: Vec<PuSet>,
    /// The PUs of each LLC domain.
    pub llcs: Vec<PuSet>,
}

/// Reason why a map cannot be used on a machine, or is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SharingError {
    /// The text is not such a file.
    #[error("{origin}, line {line}: {problem}")]
    File {
        /// Name of the text.
        origin: String,
        /// Line of the problem, from 1.
        line: usize,
        /// The problem, and what would be right.
        problem: String,
    },
    /// A group does not fit.
    #[error("{origin}: {key}[{index}] = \"{pus}\": {problem}")]
    Group {
        /// Name of the text.
        origin: String,
        /// `cores`, `l2s` or `llcs`.
        key: &'static str,
        /// Index of the group, from 0.
        index: usize,
        /// The group as written.
        pus: String,
        /// The problem, and what would be right.
        problem: String,
    },
}

impl SharingMap {
    /// Map of the groups that were decided; the rest is left to the kernel.
    pub fn from_inference(inference: &Inference, source: String) -> Self {
        let decided = |level: &SharingLevel| level.groups.iter().map(|g| g.pus.clone()).collect();
        Self {
            source,
            cores: decided(&inference.cores),
            l2s: decided(&inference.l2s),
            llcs: decided(&inference.llcs),
        }
    }

    /// The kinds of groups by the key that a file has for them.
    pub(super) fn kinds(&self) -> [(&'static str, &[PuSet]); 3] {
        [
            ("cores", &self.cores),
            ("l2s", &self.l2s),
            ("llcs", &self.llcs),
        ]
    }

    /// Checks that the map fits a machine: its PUs are there, and no core lies across what a core
    /// cannot lie across. `origin` names the map in errors.
    ///
    /// # Errors
    /// [`SharingError::Group`], the first group that does not fit.
    pub fn check(&self, machine: &Topology, origin: &str) -> Result<(), SharingError> {
        for (key, groups) in self.kinds() {
            for (index, pus) in groups.iter().enumerate() {
                let problem = missing_pu_problem(pus, machine).or_else(|| match key {
                    "cores" => self.core_conflict(pus, machine),
                    _ => None,
                });
                if let Some(problem) = problem {
                    return Err(SharingError::Group {
                        origin: origin.to_owned(),
                        key,
                        index,
                        pus: pus.to_string(),
                        problem,
                    });
                }
            }
        }
        Ok(())
    }

    /// Reason why these PUs cannot be a core, in words: they are in several packages, nodes, core
    /// types or caches, be it told by the kernel or by this map; none where they can.
    fn core_conflict(&self, core: &PuSet, machine: &Topology) -> Option<String> {
        let facts = machine.facts();
        let facts: Vec<&PuFacts> = facts.iter().filter(|f| core.contains(f.pu)).collect();
        let differs = |key: fn(&PuFacts) -> u32| facts.iter().any(|f| key(f) != key(facts[0]));
        let told = [
            ("packages", differs(|f| f.package)),
            ("NUMA nodes", differs(|f| f.node)),
            ("core types", differs(|f| f.core_type as u32)),
        ];
        let told = told.into_iter().find(|(_, differs)| *differs);
        if let Some((what, _)) = told {
            return Some(format!(
                "these PUs are in different {what}, and a core lies in one; name PUs of one"
            ));
        }
        let caches = [("l2s", &self.l2s), ("llcs", &self.llcs)];
        let cut = caches.into_iter().find_map(|(key, groups)| {
            let touches = |cache: &&PuSet| !cache.intersection(core).is_empty();
            let cache = groups.iter().find(touches)?;
            (!core.is_subset(cache)).then_some((key, cache))
        });
        cut.map(|(key, cache)| {
            format!("'{cache}' of {key} has only some of these PUs; a core lies in one cache")
        })
    }

    /// The machine with this map's groups. PUs of the map that are not there, because they went
    /// offline, are done without.
    ///
    /// # Errors
    /// [`TopologyError`] where a core lies across packages or nodes; [`SharingMap::check`] says
    /// more.
    pub fn apply(&self, machine: &Topology) -> Result<Topology, TopologyError> {
        let mut facts = machine.facts();
        let core = regroup(&facts, &self.cores, |f| Some(f.core));
        let llc = regroup(&facts, &self.llcs, |f| Some(f.llc));
        let l2 = regroup(&facts, &self.l2s, |f| f.l2);
        for fact in &mut facts {
            let first = core[&fact.pu];
            fact.core = first.0;
            // A core has one place, whatever was told of its PUs before they were one.
            fact.llc = llc.get(&first).map_or(fact.llc, |group| group.0);
            fact.l2 = l2.get(&first).map(|group| group.0);
        }
        let built = Topology::new(facts, machine.core_types().to_vec())?;
        // Keys are numbered anew, so only equal groups are the same caches.
        Ok(built.with_attributes_of(machine, |new, old| new.pus == old.pus))
    }
}

fn missing_pu_problem(pus: &PuSet, machine: &Topology) -> Option<String> {
    let pu = pus.difference(machine.pus()).first()?;
    Some(format!(
        "PU {pu} does not exist here or is offline; online are {}",
        machine.pus()
    ))
}

/// The lowest PU of each PU's group: a named one, or what is left of the one that the kernel tells.
fn regroup(
    facts: &[PuFacts],
    named: &[PuSet],
    told: impl Fn(&PuFacts) -> Option<u32>,
) -> BTreeMap<PuId, PuId> {
    let mut first_of: BTreeMap<(bool, u32), PuId> = BTreeMap::new();
    let mut group_of = BTreeMap::new();
    for fact in facts {
        let name = named.iter().position(|pus| pus.contains(fact.pu));
        let group = name.map(|index| (true, index as u32));
        if let Some(group) = group.or_else(|| Some((false, told(fact)?))) {
            let first = *first_of.entry(group).or_insert(fact.pu);
            group_of.insert(fact.pu, first);
        }
    }
    group_of
}
