//! The interface that freezers and stop signals share.

use super::error::HoldError;
use super::pause_journal::PauseJournal;
use super::tree::ProgramProcesses;
use std::fmt;

/// One mechanism, holding the processes of one program.
pub(crate) trait PauseMechanism: fmt::Debug {
    /// Takes in the processes that it does not hold yet, each journalled first, and asks all to
    /// stop. Returns the number of processes that were taken in.
    fn stop_members(
        &mut self,
        journal: &mut dyn PauseJournal,
        members: &ProgramProcesses,
    ) -> Result<usize, HoldError>;

    /// Returns true if all processes that it holds have stopped.
    fn is_still(&self) -> bool;

    /// Lets all go on; an error names a process or cgroup that cannot.
    fn resume_all(&mut self, journal: &mut dyn PauseJournal) -> Result<(), String>;

    /// Lets all go on and puts everything back as it was before the first `hold`; an error names a
    /// process or cgroup that could not be put back.
    fn restore_processes(&mut self, journal: &mut dyn PauseJournal) -> Result<(), String>;

    /// Number of processes held.
    fn process_count(&self) -> usize;

    /// Returns true if children of held processes are held from birth.
    fn holds_children(&self) -> bool;

    /// Returns true if it holds a process of this number, or leaves it alone on purpose.
    fn knows(&self, pid: u32) -> bool;
}
