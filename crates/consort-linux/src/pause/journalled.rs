//! The journal as pausing uses it.

use super::error::HoldError;
use crate::enact::{Enactor, Health, Record};

/// A journal in which processes are noted before they are paused.
pub(crate) trait PauseJournal {
    /// The run's id.
    fn run(&self) -> String;

    /// Notes records of an action that is to follow; unless this succeeds, the action must not be
    /// taken.
    fn before(&mut self, records: &[Record]) -> Result<(), HoldError>;

    /// Notes records of actions that were undone.
    fn after(&mut self, records: &[Record]);
}

impl PauseJournal for Enactor {
    fn run(&self) -> String {
        self.run_id().to_owned()
    }

    fn before(&mut self, records: &[Record]) -> Result<(), HoldError> {
        if matches!(self.ensure_guardian(), Health::Missing(_)) {
            return Err(HoldError::NoGuardian);
        }
        self.rewrite_if_grown();
        self.record(records).map_err(HoldError::Journal)
    }

    fn after(&mut self, records: &[Record]) {
        if let Err(error) = self.record(records) {
            // At the end they get one SIGCONT too many, or their cgroups are looked for in vain.
            tracing::warn!(%error, "resumed programs may be resumed once more");
        }
    }
}
