//! Errors of pausing and resuming programs.

use super::kind::PauseKind;
use crate::enact::JournalError;
use crate::proc::ProcError;
use consort_core::ProgramId;
use std::fmt;
use thiserror::Error;

/// Reason for which a program was not paused, or not resumed.
#[derive(Debug, Error)]
pub enum PauseError {
    /// The program has ended.
    #[error("program {0} has ended")]
    Gone(ProgramId),
    /// Consort itself is among the program's processes.
    #[error("program {0} cannot be paused: this consort is part of it")]
    Own(ProgramId),
    /// No mechanism works for the program; it runs on.
    #[error("program {program} cannot be paused: {}", ReasonList(reasons))]
    NoWay {
        /// The program.
        program: ProgramId,
        /// The obstacle to each mechanism that was tried, in that order.
        reasons: Vec<(PauseKind, String)>,
    },
    /// The journal cannot be written, so nothing may be paused.
    #[error("program {0} was not paused: {1}")]
    Journal(ProgramId, #[source] JournalError),
    /// There is no guardian and none can be started.
    #[error("program {0} was not paused: there is no guardian to resume it")]
    NoGuardian(ProgramId),
    /// Processes of the program cannot be looked up for the moment; try again later.
    #[error("program {0} was not paused: it cannot be looked up: {1}")]
    Unseen(ProgramId, ProcError),
    /// The kernel refused to let the program go on. It counts as paused until another attempt
    /// succeeds; the guardian and the end of the run try again, too.
    #[error("program {program} could not be resumed: {why}")]
    Stuck {
        /// The program.
        program: ProgramId,
        /// The kernel's answer, with the cgroup or process that it was about.
        why: String,
    },
}

struct ReasonList<'a>(&'a [(PauseKind, String)]);

impl fmt::Display for ReasonList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.0.iter().map(|(kind, why)| format!("{kind}: {why}"));
        f.write_str(&each.collect::<Vec<_>>().join("; "))
    }
}

/// Reason for which a mechanism did not hold a program.
#[derive(Debug)]
pub(crate) enum HoldError {
    /// The mechanism does not work for this program; another one may.
    Unusable(String),
    Journal(JournalError),
    NoGuardian,
    /// Processes cannot be looked up or held for the moment.
    Unseen(ProcError),
}

impl HoldError {
    /// The same as an error for callers, where no other mechanism is tried.
    pub(crate) fn into_pause_error(self, program: ProgramId, kind: PauseKind) -> PauseError {
        match self {
            Self::Unusable(why) => {
                let reasons = vec![(kind, why)];
                PauseError::NoWay { program, reasons }
            }
            Self::Journal(error) => PauseError::Journal(program, error),
            Self::NoGuardian => PauseError::NoGuardian(program),
            Self::Unseen(error) => PauseError::Unseen(program, error),
        }
    }
}
