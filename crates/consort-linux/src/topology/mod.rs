//! Topology, allowed CPUs and identity of the host, from sysfs and procfs.
//!
//! Usage: [`discover()`] once at the start, [`PuLimitWatch::poll`] once per quantum, and [`discover()`]
//! again when that reports a change. Every reader takes the root that `/sys` and `/proc` are below:
//! `/` for the host, another directory in containers and tests.
//!
//! Pitfalls: missing files are normal; each assumption in their place is noted in
//! [`TopologyDiscovery::notes`]. [`TopologyDiscovery::topology`] holds only the CPUs that may be
//! used, so a core may show fewer CPUs than it has; [`TopologyDiscovery::machine`] has them all.
//! Hypervisors may show a topology that is not the hardware's.

mod caches;
mod core_types;
mod draw;
mod groups;
mod hypervisor;
mod identity;
mod pu_topology;
mod pus;

pub use crate::cgroup::CgroupVersion;
pub(crate) use caches::caches;
pub use caches::{CacheKind, DiscoveredCache};
pub use core_types::CoreTypeSource;
pub use draw::draw;
pub use groups::NumaNode;
pub use hypervisor::{Hypervisor, hypervisor};
pub use identity::{CpuIdentity, IdentityGroup, identities};
pub use pus::{PuLimitWatch, PuLimits, UsablePus};
pub(crate) use pus::{is_online, online_pus};

use consort_core::sharing::SharingMap;
use consort_core::topology::{self, CoreType, Domain, Topology};
use consort_core::{PuId, PuSet};
use core_types::core_types;
use groups::{PuGroups, nodes};
use pus::EnforcedPuLimits;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Collects assumptions; equal ones about several CPUs become one line.
#[derive(Debug, Default)]
pub(crate) struct DiscoveryNotes {
    lines: Vec<String>,
    about_pus: BTreeMap<String, PuSet>,
}

impl DiscoveryNotes {
    /// Adds a sentence about the machine.
    pub(crate) fn add(&mut self, line: impl Into<String>) {
        let line = line.into();
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }

    /// Adds a sentence about one CPU.
    pub(crate) fn add_about_pu(&mut self, pu: PuId, what: impl Into<String>) {
        self.about_pus.entry(what.into()).or_default().insert(pu);
    }

    /// Adds all sentences of other notes.
    pub(crate) fn extend(&mut self, other: Self) {
        other.lines.into_iter().for_each(|line| self.add(line));
        for (what, pus) in other.about_pus {
            let known = self.about_pus.entry(what).or_default();
            *known = known.union(&pus);
        }
    }

    /// Every sentence: those about the machine, then those about CPUs.
    pub(crate) fn into_lines(self) -> Vec<String> {
        let about = self.about_pus.into_iter();
        let about = about.map(|(what, pus)| format!("CPUs {pus}: {what}"));
        self.lines.into_iter().chain(about).collect()
    }
}

/// The description of a machine, as far as it could be found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopologyDiscovery {
    /// Topology of every online CPU, allowed or not.
    pub machine: Topology,
    /// Topology of the CPUs that may be used.
    pub topology: Topology,
    /// The limits on the CPUs that may be used.
    pub allowed: UsablePus,
    /// CPUs that are plugged in, online or not.
    pub present: PuSet,
    /// Every cache of the online CPUs.
    pub caches: Vec<DiscoveredCache>,
    /// NUMA nodes, those without CPUs included.
    pub nodes: Vec<NumaNode>,
    /// Sources that distinguish the core types, most trusted first; empty if all cores are alike.
    pub core_type_sources: Vec<CoreTypeSource>,
    /// Microarchitectures of the online CPUs.
    pub identities: Vec<IdentityGroup>,
    /// The hypervisor below the kernel; `None` on bare metal.
    pub hypervisor: Option<Hypervisor>,
    /// True if a hypervisor shows every CPU as a core of its own, so that siblings may be hidden.
    pub hidden_topology: bool,
    /// Online CPUs that the kernel does not balance: isolated at boot or by cpusets.
    pub isolated: PuSet,
    /// Online CPUs that the kernel interrupts by no tick while one thread runs there.
    pub nohz_full: PuSet,
    /// Assumptions that had to be made, and other remarks for people, a sentence each.
    pub notes: Vec<String>,
}

/// Reason for which there is no topology.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DiscoveryError {
    /// No source lists any CPU.
    #[error(
        "no online CPU is listed below {root}: sys/devices/system/cpu and proc/cpuinfo are missing or empty; are /sys and /proc mounted there?"
    )]
    NoPu {
        /// The root that was searched.
        root: PathBuf,
    },
    /// The facts contradict each other in a way that was not repaired.
    #[error("the kernel's description of the processor contradicts itself")]
    Contradiction(#[from] topology::TopologyError),
}

/// Discovers the machine below `root`, `/` for the host, limited to the process's own affinity.
///
/// # Errors
/// When nothing below another root than `/` lists a CPU. Missing files are no error; see
/// [`TopologyDiscovery::notes`].
pub fn discover(root: &Path) -> Result<TopologyDiscovery, DiscoveryError> {
    discover_with_affinity(root, None)
}

/// [`discover`] with an affinity other than the process's own.
///
/// # Errors
/// Those of [`discover`].
pub fn discover_with_affinity(
    root: &Path,
    affinity: Option<&PuSet>,
) -> Result<TopologyDiscovery, DiscoveryError> {
    let mut notes = DiscoveryNotes::default();
    let bounds = EnforcedPuLimits::read(root, affinity);
    let online = match pus::detect_online_pus(root, &bounds, &mut notes) {
        Some(online) => online,
        // Without files that list CPUs, programs can be run and watched all the same.
        None if root == Path::new("/") => {
            let count = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
            notes.add(
                "/sys and /proc list no CPUs; assumed as many as this process may use, from 0 on",
            );
            (0..count).map(PuId).collect()
        }
        None => {
            return Err(DiscoveryError::NoPu {
                root: root.to_owned(),
            });
        }
    };
    let allowed = bounds.into_usable_pus(&online);
    let caches = caches(root, &online);
    let nodes = nodes(root, &online);
    let hypervisor = hypervisor(root);
    let is_virtual = hypervisor.is_some();
    let mut groups = PuGroups::new(root, &online, &caches, &nodes, is_virtual, &mut notes);
    groups.repair_cores(&mut notes);
    let found = core_types(root, &groups.cores(), &caches, &mut notes);
    let machine = Topology::new(groups.facts(&found.of_core), found.types)?;
    let isolated = pus::isolated_pus(root, &online);
    let machine = with_cache_sizes(machine, &caches).with_unbalanced(&isolated);
    let looks_flat = machine.smt() == 1 && machine.pus().len() > 1;
    let hidden_topology = hypervisor.is_some() && looks_flat;
    if let Some(hypervisor) = hypervisor.as_ref().filter(|_| looks_flat) {
        notes.add(format!(
            "the hypervisor ({}) shows every CPU as a core of its own; CPUs may share cores in truth",
            hypervisor.name
        ));
    }
    Ok(TopologyDiscovery {
        topology: machine.restrict_to(&allowed.pus)?,
        present: pus::present_pus(root, &online),
        identities: identities(root, &online),
        core_type_sources: found.sources,
        nohz_full: pus::nohz_full_pus(root, &online),
        notes: notes.into_lines(),
        isolated,
        machine,
        allowed,
        caches,
        nodes,
        hypervisor,
        hidden_topology,
    })
}

impl TopologyDiscovery {
    /// Returns the same machine with every online CPU usable.
    pub(crate) fn allow_all_pus(mut self) -> Self {
        self.topology = self.machine.clone();
        self.allowed.pus = self.machine.pus().clone();
        self
    }

    /// Returns the same machine with sharing from a file instead of the kernel's.
    ///
    /// # Errors
    /// [`DiscoveryError::Contradiction`] for a map that [`SharingMap::check`] refuses.
    pub fn with_sharing(mut self, map: &SharingMap) -> Result<Self, DiscoveryError> {
        self.machine = map.apply(&self.machine)?;
        self.topology = self.machine.restrict_to(&self.allowed.pus)?;
        self.hidden_topology &= self.machine.smt() == 1;
        Ok(self)
    }
}

fn with_cache_sizes(machine: Topology, caches: &[DiscoveredCache]) -> Topology {
    let sizes = |domains: &[Domain], level: Option<u32>| {
        let size = |d: &Domain| Some((d.key, caches::shared_size(caches, &d.pus, level)?));
        domains.iter().filter_map(size).collect()
    };
    let (llcs, l2s) = (sizes(machine.llcs(), None), sizes(machine.l2s(), Some(2)));
    machine.with_cache_sizes(&llcs, &l2s)
}

/// The core types and the CPUs of each.
pub fn core_type_members(topology: &Topology) -> Vec<(&CoreType, PuSet)> {
    let members = |index: usize| {
        let cores = topology.cores().iter().filter(|c| c.core_type == index);
        cores.flat_map(|c| c.pus.iter().copied()).collect()
    };
    let types = topology.core_types().iter().enumerate();
    types
        .map(|(i, core_type)| (core_type, members(i)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_notes_are_one_line() {
        let mut notes = DiscoveryNotes::default();
        notes.add("a");
        notes.add("a");
        for pu in [1, 0, 3] {
            notes.add_about_pu(PuId(pu), "no cache told");
        }
        assert_eq!(notes.into_lines(), ["a", "CPUs 0-1,3: no cache told"]);
    }
}

#[cfg(test)]
mod discover_tests {
    use super::*;
    use std::fs;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        dir
    }

    #[test]
    fn empty_root_is_an_error_that_names_it() {
        let dir = tree(&[]);
        let error = discover(dir.path()).unwrap_err().to_string();
        assert!(error.contains(&dir.path().display().to_string()), "{error}");
    }

    #[test]
    fn siblings_in_different_nodes_are_mended() {
        let dir = tree(&[
            ("sys/devices/system/cpu/online", "0-1"),
            ("sys/devices/system/cpu/cpu0/topology/core_cpus_list", "0-1"),
            ("sys/devices/system/cpu/cpu1/topology/core_cpus_list", "0-1"),
            ("sys/devices/system/node/node0/cpulist", "0"),
            ("sys/devices/system/node/node1/cpulist", "1"),
        ]);
        let found = discover(dir.path()).unwrap();
        assert_eq!(found.machine.nodes().len(), 1);
        assert_eq!(found.machine.cores().len(), 1);
        let reported =
            "CPUs 1: shown in another NUMA node than its core's first CPU; took that one's";
        assert!(
            found.notes.contains(&reported.to_owned()),
            "{:?}",
            found.notes
        );
    }

    #[test]
    fn sharing_file_replaces_the_kernels_sharing() {
        let dir = tree(&[("sys/devices/system/cpu/online", "0-3")]);
        let found = discover_with_affinity(dir.path(), Some(&"0-2".parse().unwrap())).unwrap();
        assert_eq!(found.topology.smt(), 1);
        let map = SharingMap::parse("cores = [\"0,2\", \"1,3\"]", "m.toml").unwrap();
        let found = found.with_sharing(&map).unwrap();
        assert_eq!((found.machine.smt(), found.machine.cores().len()), (2, 2));
        assert_eq!(found.topology.pus().to_string(), "0-2");
        assert_eq!(
            found.topology.core_of(PuId(0)),
            found.topology.core_of(PuId(2))
        );
    }

    #[test]
    fn machine_keeps_pus_that_are_not_allowed() {
        let dir = tree(&[("sys/devices/system/cpu/online", "0-3")]);
        let found = discover_with_affinity(dir.path(), Some(&"1-2".parse().unwrap())).unwrap();
        assert_eq!(found.machine.pus().len(), 4);
        assert_eq!(found.topology.pus().to_string(), "1-2");
    }
}
