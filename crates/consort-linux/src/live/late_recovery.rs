//! Recovery from runs that were killed with their guardians while this run was already at work.
//!
//! A run that begins in the moment between the two kills, or before the kernel has ended both, finds
//! the journal in use. So the look at the beginning is repeated.

use super::LiveMachine;
use super::launch::recoveries;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Time between two looks at the folders for journals.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl LiveMachine {
    /// Restores from abandoned journals, when it is time to look for some.
    pub(super) fn recover_if_due(&mut self) {
        let now = Instant::now();
        if now < self.next_recovery {
            return;
        }
        self.next_recovery = now + LOOK_EVERY;
        let report = self.actuators.recover();
        self.warnings.extend(recoveries(&report));
        if !report.restored.is_empty() {
            self.retry_unmanaged();
        }
    }

    /// Announces threads that are left alone once more: that run may have been the reason.
    fn retry_unmanaged(&mut self) {
        let unmanaged = self.table.ids().filter(|id| !self.table.may_place(*id));
        let pids: BTreeSet<u32> = unmanaged.map(|id| id.pid).collect();
        if !pids.is_empty() {
            self.scan.find_again(&pids);
        }
    }
}
