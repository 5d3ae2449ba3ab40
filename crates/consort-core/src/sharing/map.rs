//! Groups of CPUs that replace the kernel's description of sharing.

use crate::ids::PuId;
use crate::pu_set::PuSet;
use crate::sharing::groups::SharingLevel;
use crate::sharing::infer::Inference;
use crate::topology::{PuFacts, Topology, TopologyError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use thiserror::Error;

/// The CPUs that share cores, level 2 caches and LLC domains. CPUs without a group of a kind keep
/// the kernel's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharingMap {
    /// Origin, in words.
    pub source: String,
    /// The CPUs of each core.
    pub cores: Vec<PuSet>,
    /// The CPUs of each level 2 cache.
    pub l2s: Vec<PuSet>,
    /// The CPUs of each LLC domain.
    pub llcs: Vec<PuSet>,
}

/// Reason why a text is no map, or a map does not fit a machine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SharingError {
    /// The text is not such a file.
    #[error("{origin}, line {line}: {problem}")]
    File {
        /// Name of the text.
        origin: String,
        /// Line of the problem, from 1.
        line: usize,
        /// The problem, and how to correct it.
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
        /// The problem, and how to correct it.
        problem: String,
    },
}

impl SharingMap {
    /// Makes a map of the decided groups; the rest is left to the kernel.
    pub fn from_inference(inference: &Inference, source: String) -> Self {
        let decided = |level: &SharingLevel| level.groups.iter().map(|g| g.pus.clone()).collect();
        Self {
            source,
            cores: decided(&inference.cores),
            l2s: decided(&inference.l2s),
            llcs: decided(&inference.llcs),
        }
    }

    /// Groups by their key in a file.
    pub(super) fn kinds(&self) -> [(&'static str, &[PuSet]); 3] {
        [
            ("cores", &self.cores),
            ("l2s", &self.l2s),
            ("llcs", &self.llcs),
        ]
    }

    /// Checks that the map fits a machine: its CPUs exist, and no core crosses a boundary that a
    /// core cannot cross. `origin` names the map in errors.
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

    /// Reason why these CPUs cannot be a core, in words: they are in several packages, nodes, core
    /// types or caches, by the kernel or by this map; `None` if they can.
    fn core_conflict(&self, core: &PuSet, machine: &Topology) -> Option<String> {
        let facts = machine.facts();
        let facts: Vec<&PuFacts> = facts.iter().filter(|f| core.contains(f.pu)).collect();
        let differs = |key: fn(&PuFacts) -> u32| facts.iter().any(|f| key(f) != key(facts[0]));
        let conflicts = [
            ("packages", differs(|f| f.package)),
            ("NUMA nodes", differs(|f| f.node)),
            ("core types", differs(|f| f.core_type as u32)),
        ];
        if let Some((what, _)) = conflicts.into_iter().find(|(_, differs)| *differs) {
            return Some(format!(
                "these CPUs are in different {what}, and a core lies in one; name CPUs of one"
            ));
        }
        let caches = [("l2s", &self.l2s), ("llcs", &self.llcs)];
        let cut = caches.into_iter().find_map(|(key, groups)| {
            let touches = |cache: &&PuSet| !cache.intersection(core).is_empty();
            let cache = groups.iter().find(touches)?;
            (!core.is_subset(cache)).then_some((key, cache))
        });
        cut.map(|(key, cache)| {
            format!("'{cache}' of {key} has only some of these CPUs; a core lies in one cache")
        })
    }

    /// Returns the machine with this map's groups. CPUs of the map that went offline are ignored.
    ///
    /// # Errors
    /// [`TopologyError`] if a core crosses packages or nodes; [`SharingMap::check`] explains more.
    pub fn apply(&self, machine: &Topology) -> Result<Topology, TopologyError> {
        let mut facts = machine.facts();
        let core = regroup(&facts, &self.cores, |f| Some(f.core));
        let llc = regroup(&facts, &self.llcs, |f| Some(f.llc));
        let l2 = regroup(&facts, &self.l2s, |f| f.l2);
        for fact in &mut facts {
            let first = core[&fact.pu];
            fact.core = first.0;
            // A core has one place, even if its CPUs had several before they were one core.
            fact.llc = llc.get(&first).map_or(fact.llc, |group| group.0);
            fact.l2 = l2.get(&first).map(|group| group.0);
        }
        let built = Topology::new(facts, machine.core_types().to_vec())?;
        // Keys are new numbers, so caches are the same only if their groups are equal.
        Ok(built.with_attributes_of(machine, |new, old| new.pus == old.pus))
    }

    /// Reads a map; `origin` names the text in errors. For example:
    ///
    /// ```toml
    /// source = "consort machine probe: 6 of 6 pairs"
    /// cores = ["0,2", "1,3"]   # the CPUs of each core
    /// l2s = ["0,2", "1,3"]     # of each level 2 cache; optional
    /// llcs = ["0-3"]           # of each LLC domain; optional
    /// ```
    ///
    /// # Errors
    /// The first mistake: no TOML, an unknown or missing key, no list of CPUs, or a CPU in two
    /// groups of a kind.
    pub fn parse(text: &str, origin: &str) -> Result<Self, SharingError> {
        let file: SharingMapFile = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = text.bytes().take(start);
            SharingError::File {
                origin: origin.to_owned(),
                line: 1 + before.filter(|&byte| byte == b'\n').count(),
                problem: { error.message().replace('\n', ", ") }
                    .replace("missing field", "missing key"),
            }
        })?;
        Ok(Self {
            source: file.source,
            cores: parse_groups("cores", &file.cores, origin)?,
            l2s: parse_groups("l2s", &file.l2s, origin)?,
            llcs: parse_groups("llcs", &file.llcs, origin)?,
        })
    }

    /// Writes the map as TOML, which [`SharingMap::parse`] reads.
    pub fn to_toml(&self) -> String {
        let source = toml::Value::String(self.source.clone());
        let mut text = format!("source = {source}\n");
        for (key, groups) in self.kinds() {
            let groups: Vec<String> = groups.iter().map(|pus| format!("\"{pus}\"")).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key} = [{}]", groups.join(", "));
        }
        text
    }
}

fn missing_pu_problem(pus: &PuSet, machine: &Topology) -> Option<String> {
    let pu = pus.difference(machine.pus()).first()?;
    Some(format!(
        "CPU {pu} does not exist here or is offline; online are {}",
        machine.pus()
    ))
}

/// The lowest CPU of each CPU's group: a named group, or the rest of the kernel's.
fn regroup(
    facts: &[PuFacts],
    named: &[PuSet],
    reported: impl Fn(&PuFacts) -> Option<u32>,
) -> BTreeMap<PuId, PuId> {
    let mut first_of: BTreeMap<(bool, u32), PuId> = BTreeMap::new();
    let mut group_of = BTreeMap::new();
    for fact in facts {
        let name = named.iter().position(|pus| pus.contains(fact.pu));
        let group = name.map(|index| (true, index as u32));
        if let Some(group) = group.or_else(|| Some((false, reported(fact)?))) {
            let first = *first_of.entry(group).or_insert(fact.pu);
            group_of.insert(fact.pu, first);
        }
    }
    group_of
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SharingMapFile {
    #[serde(default)]
    source: String,
    cores: Vec<String>,
    #[serde(default)]
    l2s: Vec<String>,
    #[serde(default)]
    llcs: Vec<String>,
}

fn parse_groups(
    key: &'static str,
    texts: &[String],
    origin: &str,
) -> Result<Vec<PuSet>, SharingError> {
    let mut groups: Vec<PuSet> = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let wrong = |problem: String| SharingError::Group {
            origin: origin.to_owned(),
            key,
            index,
            pus: text.clone(),
            problem,
        };
        let pus: PuSet = text.parse().map_err(|error| wrong(format!("{error}")))?;
        if pus.is_empty() {
            return Err(wrong("is empty; name at least one CPU".to_owned()));
        }
        let twice = groups
            .iter()
            .find_map(|other| pus.intersection(other).first());
        if let Some(pu) = twice {
            return Err(wrong(format!(
                "CPU {pu} is in another of {key} already; name every CPU once"
            )));
        }
        groups.push(pus);
    }
    Ok(groups)
}

/// Lists contradictions between measurements and a topology, one sentence per group; empty if they
/// agree.
pub fn differences(inference: &Inference, reported: &Topology) -> Vec<String> {
    let probed: PuSet = probed_pus(&inference.cores);
    let cores = reported
        .cores()
        .iter()
        .map(|core| core.pus.iter().copied().collect());
    let l2s = reported.l2s().iter().map(|domain| domain.pus.clone());
    let llcs = reported.llcs().iter().map(|domain| domain.pus.clone());
    let kinds: [(&str, &SharingLevel, Vec<PuSet>); 3] = [
        ("a core", &inference.cores, cores.collect()),
        ("a level 2 cache", &inference.l2s, l2s.collect()),
        ("an LLC domain", &inference.llcs, llcs.collect()),
    ];
    let kinds = kinds.into_iter();
    kinds
        .flat_map(|(what, level, reported)| kind_differences(what, level, &reported, &probed))
        .collect()
}

fn probed_pus(level: &SharingLevel) -> PuSet {
    let groups = level.groups.iter();
    groups.fold(level.undecided.clone(), |all, group| all.union(&group.pus))
}

fn kind_differences(
    what: &str,
    level: &SharingLevel,
    reported: &[PuSet],
    probed: &PuSet,
) -> Vec<String> {
    let reported: Vec<PuSet> = reported
        .iter()
        .map(|pus| pus.intersection(probed))
        .collect();
    let contradicts = |pus: &&PuSet| {
        reported
            .iter()
            .any(|t| !t.intersection(pus).is_empty() && t != *pus)
    };
    let groups = level.groups.iter().map(|group| &group.pus);
    let sentence = |pus: &PuSet| {
        let theirs = reported.iter().filter(|t| !t.intersection(pus).is_empty());
        let theirs: Vec<String> = theirs.map(|t| format!("{{{t}}}")).collect();
        let ours = match pus.len() {
            1 => format!("CPU {pus} shares {what} with no other"),
            _ => format!("CPUs {pus} share {what}"),
        };
        format!("{ours}; the kernel shows {}", theirs.join(" "))
    };
    groups.filter(contradicts).map(sentence).collect()
}
