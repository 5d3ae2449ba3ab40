//! The PUs that the process may use: online, in its affinity, in its cpuset.
//!
//! Pitfall: affinity is per thread. `/proc/self/status` shows that of the main thread, which
//! children inherit unless the caller narrowed its own.

use crate::cgroup::{self, CgroupVersion};
use crate::proc::Status;
use consort_core::PuSet;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The PUs that the process may use, and the limits that they follow from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowed {
    /// PUs that are online, and allowed by affinity and cpuset.
    pub pus: PuSet,
    /// PUs that the affinity allows; all online PUs where it is not told.
    pub by_affinity: PuSet,
    /// PUs that the cgroup's cpuset allows, where there is one.
    pub by_cpuset: Option<PuSet>,
    /// Version of cgroups that the cpuset belongs to.
    pub cgroup_version: Option<CgroupVersion>,
}

/// Reads the limits of the process. `affinity`, where given, takes the place of the process's own.
pub fn allowed(root: &Path, online: &PuSet, affinity: Option<&PuSet>) -> Allowed {
    let by_affinity = affinity.cloned().or_else(|| own_affinity(root));
    let by_affinity = by_affinity.unwrap_or_else(|| online.clone());
    let cpuset = cgroup::cpuset(root);
    let mut pus = online.intersection(&by_affinity);
    if let Some(cpuset) = &cpuset {
        pus = pus.intersection(&cpuset.pus);
    }
    Allowed {
        pus,
        by_affinity,
        cgroup_version: cpuset.as_ref().map(|c| c.version),
        by_cpuset: cpuset.map(|c| c.pus),
    }
}

/// Reads `Cpus_allowed_list`, which, unlike `sched_getaffinity`, may have any length and lie below
/// any root.
fn own_affinity(root: &Path) -> Option<PuSet> {
    let status = Status::read(&root.join("proc/self/status")).ok()?;
    status
        .value("Cpus_allowed_list")
        .filter(|set: &PuSet| !set.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn affinity_is_the_given_one_else_the_process_own_else_everything() {
        let dir = tempfile::tempdir().unwrap();
        let online: PuSet = "0-3".parse().unwrap();
        let pus = |given: Option<&PuSet>| allowed(dir.path(), &online, given).pus.to_string();
        assert_eq!(pus(None), "0-3");
        fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        fs::write(
            dir.path().join("proc/self/status"),
            "Name:\tx\nCpus_allowed_list:\t2-9\n",
        )
        .unwrap();
        assert_eq!(pus(None), "2-3");
        assert_eq!(pus(Some(&"1,7".parse().unwrap())), "1");
    }
}
