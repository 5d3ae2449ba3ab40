//! Topology, allowed PUs and identity of the host, from sysfs and procfs.
//!
//! Usage: [`discover()`] once at the start, [`PuLimitWatch::poll`] once per quantum, and [`discover()`]
//! again when that reports a change. Every reader takes the root that `/sys` and `/proc` are below:
//! `/` for the host, another directory in containers and tests.
//!
//! Pitfalls: missing files are normal; each assumption in their place is noted in
//! [`TopologyDiscovery::notes`]. [`TopologyDiscovery::topology`] holds only the PUs that may be used, so a core may
//! show fewer PUs than it has; [`TopologyDiscovery::machine`] has them all. Hypervisors may show a topology
//! that is not the hardware's.

mod allowed;
mod caches;
mod core_types;
mod cores;
mod cpuinfo;
mod discover;
mod draw;
mod groups;
mod hypervisor;
mod identity;
mod nodes;
mod partition;
mod pu_topology;
mod pus;
mod watch;

pub use crate::cgroup::CgroupVersion;
pub use allowed::UsablePus;
pub(crate) use caches::caches;
pub use caches::{CacheKind, DiscoveredCache};
pub use core_types::CoreTypeSource;
pub use discover::{
    DiscoveryError, TopologyDiscovery, core_type_members, discover, discover_with_affinity,
};
pub use draw::draw;
pub use hypervisor::{Hypervisor, hypervisor};
pub use identity::{CpuIdentity, IdentityGroup, identities};
pub use nodes::NumaNode;
pub(crate) use pus::{is_online, online_pus};
pub use watch::{PuLimitWatch, PuLimits};

use consort_core::{PuId, PuSet};
use std::collections::BTreeMap;

/// Collects assumptions; equal ones about several PUs become one line.
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

    /// Adds a sentence about one PU.
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

    /// Every sentence: those about the machine, then those about PUs.
    pub(crate) fn into_lines(self) -> Vec<String> {
        let about = self.about_pus.into_iter();
        let about = about.map(|(what, pus)| format!("PUs {pus}: {what}"));
        self.lines.into_iter().chain(about).collect()
    }
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
        assert_eq!(notes.into_lines(), ["a", "PUs 0-1,3: no cache told"]);
    }
}
