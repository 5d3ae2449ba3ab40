//! The journal as pausing uses it.

use super::error::HoldError;
use crate::enact::{Enactor, GuardianHealth, JournalRecord};

/// A journal in which processes are noted before they are paused.
pub(crate) trait PauseJournal {
    /// The run's id.
    fn journal_run_id(&self) -> String;

    /// Notes records of an action that is to follow; unless this succeeds, the action must not be
    /// taken.
    fn record_ahead(&mut self, records: &[JournalRecord]) -> Result<(), HoldError>;

    /// Notes records of actions that were undone.
    fn record_undone(&mut self, records: &[JournalRecord]);
}

impl PauseJournal for Enactor {
    fn journal_run_id(&self) -> String {
        self.run_id().to_owned()
    }

    fn record_ahead(&mut self, records: &[JournalRecord]) -> Result<(), HoldError> {
        if matches!(self.ensure_guardian(), GuardianHealth::Missing(_)) {
            return Err(HoldError::NoGuardian);
        }
        self.rewrite_if_grown();
        self.record(records).map_err(HoldError::Journal)
    }

    fn record_undone(&mut self, records: &[JournalRecord]) {
        if let Err(error) = self.record(records) {
            // At the end they get one SIGCONT too many, or their cgroups are looked for in vain.
            tracing::warn!(%error, "resumed programs may be resumed once more");
        }
    }
}
