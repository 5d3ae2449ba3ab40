//! PUs that the kernel keeps threads or its own work off: isolated ones and those without ticks.
//!
//! Sources: Linux `Documentation/admin-guide/kernel-parameters.txt` (`isolcpus`, `nohz_full`),
//! `cgroup-v2.rst` (partitions) and `cgroup-v1/cpusets.rst` (`sched_load_balance`).

use crate::cgroup::CpusetHierarchies;
use crate::read;
use consort_core::PuSet;
use std::path::Path;

const CPU_DIR: &str = "sys/devices/system/cpu";

/// Online PUs that the kernel does not balance: a thread there stays on the PU that it is on, even
/// if another is idle.
pub(crate) fn isolated_pus(root: &Path, online: &PuSet) -> PuSet {
    let by_boot = read::pus(&root.join(CPU_DIR).join("isolated")).unwrap_or_default();
    let by_cpusets = CpusetHierarchies::read(root).unbalanced_pus(online);
    by_boot.intersection(online).union(&by_cpusets)
}

/// Online PUs that the kernel interrupts by no tick while one thread runs there.
pub(crate) fn nohz_full_pus(root: &Path, online: &PuSet) -> PuSet {
    // Without the boot parameter the kernel writes "(null)".
    let pus = read::pus(&root.join(CPU_DIR).join("nohz_full")).unwrap_or_default();
    pus.intersection(online)
}
