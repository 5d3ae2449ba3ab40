//! The PUs that the process may use: online, in its affinity, in its cpuset.
//!
//! Pitfall: affinity is per thread. `/proc/self/status` shows that of the main thread, which
//! children inherit unless the caller narrowed its own.

use crate::cgroup::{self, CgroupCpuset, CgroupVersion};
use crate::proc::ProcStatus;
use crate::read;
use consort_core::PuSet;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The PUs that the process may use, and the limits that they follow from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsablePus {
    /// PUs that are online, and allowed by affinity and cpuset.
    pub pus: PuSet,
    /// PUs that the affinity allows; all online PUs if it cannot be read.
    pub by_affinity: PuSet,
    /// PUs that the cgroup's cpuset allows, where there is one.
    pub by_cpuset: Option<PuSet>,
    /// Version of cgroups that the cpuset belongs to.
    pub cgroup_version: Option<CgroupVersion>,
}

/// The limits on the process that the kernel enforces, as far as they can be read.
pub(crate) struct EnforcedPuLimits {
    affinity: Option<PuSet>,
    cpuset: Option<CgroupCpuset>,
}

impl EnforcedPuLimits {
    /// Reads the limits. `affinity` takes the place of the process's own.
    pub(crate) fn read(root: &Path, affinity: Option<&PuSet>) -> Self {
        Self {
            affinity: affinity.cloned().or_else(|| own_affinity(root)),
            cpuset: cgroup::cpuset(root),
        }
    }

    /// PUs of the cpuset.
    pub(crate) fn cpuset(&self) -> Option<&PuSet> {
        self.cpuset.as_ref().map(|cpuset| &cpuset.pus)
    }

    /// PUs within both limits; `None` if there is none. Where they have nothing in common, one was
    /// read before a change and the other after it: then the affinity counts, which the kernel keeps
    /// within the cpuset.
    pub(crate) fn pus(&self) -> Option<PuSet> {
        match (&self.affinity, self.cpuset()) {
            (Some(affinity), Some(cpuset)) => {
                let common = affinity.intersection(cpuset);
                Some(if common.is_empty() {
                    affinity.clone()
                } else {
                    common
                })
            }
            (affinity, cpuset) => affinity.as_ref().or(cpuset).cloned(),
        }
    }

    /// The limits on a machine with these online PUs.
    pub(crate) fn into_usable_pus(self, online: &PuSet) -> UsablePus {
        let pus = self.pus().map(|pus| pus.intersection(online));
        UsablePus {
            pus: pus.unwrap_or_else(|| online.clone()),
            by_affinity: self.affinity.unwrap_or_else(|| online.clone()),
            cgroup_version: self.cpuset.as_ref().map(|c| c.version),
            by_cpuset: self.cpuset.map(|c| c.pus),
        }
    }
}

/// Reads `Cpus_allowed_list`, which, unlike `sched_getaffinity`, may have any length and lie below
/// any root; where it is missing, the mask `Cpus_allowed`.
fn own_affinity(root: &Path) -> Option<PuSet> {
    let status = ProcStatus::read(&root.join("proc/self/status")).ok()?;
    let list: Option<PuSet> = status.value("Cpus_allowed_list");
    list.or_else(|| read::mask_in(status.field("Cpus_allowed")?))
        .filter(|set| !set.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn affinity_defaults_to_process_then_everything() {
        let dir = tempfile::tempdir().unwrap();
        let online: PuSet = "0-3".parse().unwrap();
        let bounds = |given: Option<&PuSet>| EnforcedPuLimits::read(dir.path(), given);
        let pus = |given: Option<&PuSet>| bounds(given).into_usable_pus(&online).pus.to_string();
        assert_eq!(pus(None), "0-3");
        fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        fs::write(
            dir.path().join("proc/self/status"),
            "Name:\tx\nCpus_allowed_list:\t2-9\n",
        )
        .unwrap();
        assert_eq!(pus(None), "2-3");
        assert_eq!(pus(Some(&"1,7".parse().unwrap())), "1");
        fs::write(
            dir.path().join("proc/self/status"),
            "Name:\tx\nCpus_allowed:\t00000000,0000000c\n",
        )
        .unwrap();
        assert_eq!(pus(None), "2-3");
    }
}
