//! What a mechanism does for one program.

use super::error::HoldError;
use super::journalled::PauseJournal;
use super::tree::Members;
use std::fmt;

/// One mechanism, holding the processes of one program.
pub(crate) trait Mechanism: fmt::Debug {
    /// Takes in the processes that it does not hold yet, each journalled first, and asks all to
    /// stop; how many were taken in.
    fn hold(
        &mut self,
        journal: &mut dyn PauseJournal,
        members: &Members,
    ) -> Result<usize, HoldError>;

    /// Whether all that it holds have stopped.
    fn is_still(&self) -> bool;

    /// Lets all go on; says why some cannot.
    fn release(&mut self, journal: &mut dyn PauseJournal) -> Result<(), String>;

    /// Lets all go on and puts everything back as it was before the first `hold`; says why not.
    fn leave(&mut self, journal: &mut dyn PauseJournal) -> Result<(), String>;

    /// Number of processes held.
    fn held(&self) -> usize;

    /// Whether children of those that it holds are held from birth.
    fn has_births(&self) -> bool;

    /// Whether it holds a process of this number, or lets it alone on purpose.
    fn knows(&self, pid: u32) -> bool;
}
