//! Sources of core types: PMU devices, and files with a number per PU.

use crate::read;
use consort_core::{PuId, PuSet};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// A source of core types, in descending order of trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoreTypeSource {
    /// PMUs of Intel hybrid chips: the kernel's own partition, without numbers.
    PmuDevices,
    /// `cpu_capacity`: the number that the kernel's scheduler uses.
    CpuCapacity,
    /// `acpi_cppc/highest_perf`, or `nominal_perf` if that is equal everywhere: the firmware's
    /// numbers for performance.
    AcpiCppc,
    /// `cpufreq/cpuinfo_max_freq`: the last hint, used where no other source tells types apart.
    MaxFrequency,
}

impl fmt::Display for CoreTypeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PmuDevices => "PMU devices",
            Self::CpuCapacity => "cpu_capacity",
            Self::AcpiCppc => "acpi_cppc",
            Self::MaxFrequency => "cpuinfo_max_freq",
        })
    }
}

/// PMU devices of hybrid x86 chips with the usual names of their cores, strongest first.
pub(super) const PMU_DEVICES: [(&str, &str); 3] = [
    ("cpu_core", "P"),
    ("cpu_atom", "E"),
    ("cpu_lowpower", "LP-E"),
];

/// For each core its index into [`PMU_DEVICES`]; none unless every core has one.
pub(super) fn pmu_devices(root: &Path, cores: &[PuSet]) -> Option<Vec<usize>> {
    let devices = root.join("sys/bus/event_source/devices");
    let members = PMU_DEVICES.map(|(name, _)| read::pus(&devices.join(name).join("cpus")));
    let device = |core: &PuSet| {
        let holds = |set: &Option<PuSet>| set.as_ref().is_some_and(|set| core.is_subset(set));
        members.iter().position(holds)
    };
    cores.iter().map(device).collect()
}

/// For each core its number in a file; `None` for cores without one, and for 0.
pub(super) fn numbers(root: &Path, cores: &[PuSet], file: &str) -> Vec<Option<u64>> {
    cores
        .iter()
        .map(|core| read_core_number(root, core, file))
        .collect()
}

/// Largest value among a core's PUs; `None` for 0.
fn read_core_number(root: &Path, core: &PuSet, file: &str) -> Option<u64> {
    let of_pu = |pu: PuId| read::value(&read::pu_dir(root, pu).join(file));
    core.iter()
        .filter_map(of_pu)
        .max()
        .filter(|&value| value > 0)
}
