//! Package, node, core and cache domains of each PU, as numbers that a topology takes.
//!
//! Pitfall: call [`PuGroups::repair_cores`] before [`PuGroups::facts`]; a topology refuses cores whose PUs lie
//! in different places, which some hypervisors show.

use super::DiscoveryNotes;
use super::caches::{self, DiscoveredCache};
use super::cores;
use super::nodes::{self, NumaNode};
use super::partition::partition;
use super::pu_topology;
use consort_core::topology::PuFacts;
use consort_core::{PuId, PuSet};
use std::collections::BTreeMap;
use std::path::Path;

/// Groups of the online PUs: for each kind of group, the number of every PU's group.
pub(crate) struct PuGroups {
    package: BTreeMap<PuId, u32>,
    node: BTreeMap<PuId, u32>,
    core: BTreeMap<PuId, u32>,
    llc: BTreeMap<PuId, u32>,
    l2: BTreeMap<PuId, u32>,
}

impl PuGroups {
    /// Reads every group; `is_virtual` if there is a hypervisor.
    pub(crate) fn new(
        root: &Path,
        online: &PuSet,
        caches: &[DiscoveredCache],
        nodes: &[NumaNode],
        is_virtual: bool,
        notes: &mut DiscoveryNotes,
    ) -> Self {
        let mut places = pu_topology::read_packages_and_siblings(root, online, notes);
        let shows_sharers = |pu| caches::shows_sharers(root, pu);
        cores::split(
            &mut places.siblings,
            caches,
            is_virtual,
            shows_sharers,
            notes,
        );
        caches::note_crossings(caches, notes);
        let llc = caches::last_level_sharers(caches, &places.packages, notes);
        Self {
            node: nodes::nodes_by_pu(nodes, online, notes),
            core: number_groups(&places.siblings, "core siblings", notes),
            llc: number_groups(&llc, "sharers of the last-level cache", notes),
            l2: number_groups(
                &caches::level_2_sharers(caches),
                "sharers of the level 2 cache",
                notes,
            ),
            package: places.packages,
        }
    }

    /// Gives all PUs of a core the place of its first PU; some hypervisors spread siblings over
    /// packages or nodes.
    pub(crate) fn repair_cores(&mut self, notes: &mut DiscoveryNotes) {
        let cores = self.cores();
        let maps = [
            (&mut self.package, "package"),
            (&mut self.node, "NUMA node"),
            (&mut self.llc, "LLC domain"),
        ];
        for (map, what) in maps {
            for core in &cores {
                let Some(&first) = core.first().and_then(|pu| map.get(&pu)) else {
                    continue;
                };
                for pu in core.iter() {
                    if map.insert(pu, first) != Some(first) {
                        let note = format!(
                            "shown in another {what} than its core's first PU; took that one's"
                        );
                        notes.add_about_pu(pu, note);
                    }
                }
            }
        }
    }

    /// The PUs of each core, in the order of the core numbers.
    pub(crate) fn cores(&self) -> Vec<PuSet> {
        let mut cores: BTreeMap<u32, PuSet> = BTreeMap::new();
        for (&pu, &core) in &self.core {
            cores.entry(core).or_default().insert(pu);
        }
        cores.into_values().collect()
    }

    /// The facts of every PU, given the type of each core.
    pub(crate) fn facts(&self, type_of_core: &[usize]) -> Vec<PuFacts> {
        let of = |map: &BTreeMap<PuId, u32>, pu| map.get(&pu).copied().unwrap_or(0);
        let fact = |(&pu, &core): (&PuId, &u32)| PuFacts {
            pu,
            package: of(&self.package, pu),
            node: of(&self.node, pu),
            core,
            llc: of(&self.llc, pu),
            l2: self.l2.get(&pu).copied(),
            core_type: type_of_core.get(core as usize).copied().unwrap_or(0),
        };
        self.core.iter().map(fact).collect()
    }
}

fn number_groups(
    claims: &BTreeMap<PuId, PuSet>,
    what: &str,
    notes: &mut DiscoveryNotes,
) -> BTreeMap<PuId, u32> {
    let found = partition(claims);
    for pu in found.torn.iter() {
        notes.add_about_pu(pu, format!("others do not agree with its {what}"));
    }
    found.group_of
}
