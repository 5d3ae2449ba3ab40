//! The number of counters that groups may be planned with.

use crate::events::PmuEvents;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Counters of one PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterBudget {
    /// Programmable counters per PU.
    pub programmable: usize,
    /// Number of those that are left to others.
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
    fn the_watchdog_is_read() {
        let root = tempfile::tempdir().unwrap();
        assert!(!is_nmi_watchdog_on(root.path()));
        let folder = root.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("nmi_watchdog"), "1\n").unwrap();
        assert!(is_nmi_watchdog_on(root.path()));
    }
}
