//! A host whose files under `/proc` and `/sys` say anything.
//!
//! The input is cut into the texts of the files below; what does not reach stays
//! missing. ThreadTracker answers with a topology inside what is allowed, or an error.

#![no_main]

use consort_linux::counters::{is_nmi_watchdog_on, probe};
use consort_linux::discovery::{ThreadTracker, process_tree};
use consort_linux::topology::{CpuIdentity, PuLimitWatch, discover};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const FILES: &[&str] = &[
    "sys/devices/system/cpu/online",
    "proc/cpuinfo",
    "proc/self/status",
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "sys/fs/cgroup/cpuset.cpus.effective",
    "sys/devices/system/cpu/present",
    "sys/devices/system/cpu/cpu0/topology/core_id",
    "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
    "sys/devices/system/cpu/cpu0/topology/physical_package_id",
    "sys/devices/system/cpu/cpu0/cpu_capacity",
    "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
    "sys/devices/system/cpu/cpu0/cache/index0/level",
    "sys/devices/system/cpu/cpu0/cache/index0/type",
    "sys/devices/system/cpu/cpu0/cache/index0/size",
    "sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list",
    "sys/devices/system/node/online",
    "sys/devices/system/node/node0/cpulist",
    "sys/devices/system/node/node0/distance",
    "sys/devices/cpu_core/cpus",
    "sys/bus/event_source/devices/cpu/type",
    "sys/class/dmi/id/sys_vendor",
    "proc/device-tree/hypervisor/compatible",
    "proc/sys/kernel/nmi_watchdog",
    "proc/sys/kernel/perf_event_paranoid",
    "proc/7/stat",
    "proc/7/task/7/stat",
    "proc/7/task/7/status",
];

fn write(root: &Path, input: &[u8]) {
    for (file, text) in FILES.iter().zip(input.split(|&byte| byte == 0)) {
        let path = root.join(file);
        let folder = path.parent().expect("every file is in a folder");
        fs::create_dir_all(folder).expect("the temporary folder is writable");
        fs::write(path, text).expect("the temporary folder is writable");
    }
}

fuzz_target!(|input: &[u8]| {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let root = folder.path();
    write(root, input);
    if let Ok(found) = discover(root) {
        assert!(!found.topology.pus().is_empty());
        assert!(found.topology.pus().is_subset(&found.allowed.pus));
        assert!(found.machine.pus().is_subset(&found.present));
    }
    assert!(PuLimitWatch::new(root).poll().is_none());
    let tiers = probe(root, &CpuIdentity::Unknown);
    assert!(!tiers.status.is_empty());
    let _ = is_nmi_watchdog_on(root);
    let _ = process_tree(root, &BTreeSet::from([7]));
    if let Ok(mut discovery) = ThreadTracker::new(root, &[7]) {
        assert!(discovery.scan().len() <= 1);
    }
});
