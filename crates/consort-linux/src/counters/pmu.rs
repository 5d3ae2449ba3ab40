//! The PMUs of this host that count core events, and the counters that groups may use.

use crate::events::PmuEvents;
use crate::read;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Folder in which the kernel lists event sources.
const DEVICES: &str = "sys/bus/event_source/devices";

/// One PMU of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    /// Name of the PMU in sysfs.
    pub name: String,
    /// The number in its `type` file, for `perf_event_attr.type`.
    pub kind: u32,
}

/// The core PMUs below an injectable root, by name: `cpu` on x86 and POWER,
/// `cpu_core`, `cpu_atom` and `cpu_lowpower` on Intel hybrids, `armv8_*` on Arm.
/// No listing means no PMU.
pub fn core_pmus(root: &Path) -> Vec<Pmu> {
    let Ok(entries) = std::fs::read_dir(root.join(DEVICES)) else {
        return Vec::new();
    };
    let mut pmus = Vec::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let is_core = matches!(
            name.as_str(),
            "cpu" | "cpu_core" | "cpu_atom" | "cpu_lowpower"
        ) || name.starts_with("armv8_");
        let kind = read::value(&root.join(DEVICES).join(&name).join("type"));
        if let Some(kind) = kind.filter(|_| is_core) {
            pmus.push(Pmu { name, kind });
        }
    }
    pmus.sort_by(|a, b| a.name.cmp(&b.name));
    pmus
}

/// Counters of one PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterBudget {
    /// Programmable counters per PU.
    pub programmable: usize,
    /// Number of these that are left to others.
    pub reserved: usize,
}

impl CounterBudget {
    /// The counters of a PMU, less one when the kernel's hard-lockup watchdog
    /// holds one (Linux Documentation/admin-guide/lockup-watchdogs).
    pub fn from_pmu(pmu: &PmuEvents, nmi_watchdog: bool) -> Self {
        Self {
            programmable: pmu.programmable,
            reserved: usize::from(nmi_watchdog),
        }
    }
}

/// Returns true if the hard-lockup watchdog is on; a missing file means that it is not.
pub fn is_nmi_watchdog_on(root: &Path) -> bool {
    let path = root.join("proc/sys/kernel/nmi_watchdog");
    std::fs::read_to_string(path).is_ok_and(|text| text.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_pmus_are_told_from_others() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(core_pmus(root.path()), []);
        for (name, kind) in [
            ("cpu_core", "4"),
            ("cpu_atom", "10"),
            ("power", "22"),
            ("cpu", "?"),
        ] {
            let folder = root.path().join(DEVICES).join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("type"), format!("{kind}\n")).unwrap();
        }
        let names: Vec<(String, u32)> = core_pmus(root.path())
            .into_iter()
            .map(|p| (p.name, p.kind))
            .collect();
        assert_eq!(
            names,
            [("cpu_atom".to_owned(), 10), ("cpu_core".to_owned(), 4)]
        );
    }

    #[test]
    fn the_watchdog_is_read() {
        let root = tempfile::tempdir().unwrap();
        assert!(!is_nmi_watchdog_on(root.path()));
        let folder = root.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("nmi_watchdog"), "1\n").unwrap();
        assert!(is_nmi_watchdog_on(root.path()));
    }
}
