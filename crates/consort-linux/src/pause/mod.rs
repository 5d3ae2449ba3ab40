//! Pausing programs: no thread of a process tree runs until it is resumed.
//!
//! Gangs and co-schedules need some programs out of the way while others run. Three mechanisms can
//! do that, best first: the freezer of cgroup version 2, the freezer of version 1, and SIGSTOP with
//! SIGCONT. The first mechanism that works for a program pauses it from then on.
//!
//! [`mechanisms`] lists the mechanisms of a host, and [`Pauser::new`] uses the ones that are available.
//! [`Pauser::pause`] and [`Pauser::resume`] carry plans out, and [`Pauser::forget`] follows a
//! program's end. Every action is journalled before it is taken, so that the guardian of the
//! [`Enactor`] and its [`close`](Enactor::close) leave nothing paused, whatever happens.
//!
//! The states of a program:
//!
//! | from | event | to |
//! |---|---|---|
//! | unknown | `pause`: the first mechanism that works takes its processes in | paused |
//! | unknown | `pause` when none works, or without guardian or journal: undone | unknown |
//! | paused | `pause`: processes that were born or found since are taken in | paused |
//! | paused | `resume` | running |
//! | running | `pause` | paused |
//! | any | `forget`, or the end of the run: every process is where it was | unknown |
//!
//! Pitfalls: a signal that must be handled reaches a paused program only when it is resumed, so
//! resume a program before you pass a signal on. SIGKILL is the exception, but the freezer of
//! version 1 holds even that back. With SIGSTOP, a program that another process stops while it is
//! paused continues when it is resumed, because the kernel knows only one stop; and parents that
//! watch for stopped children see it.

mod detect;
mod freezer;
mod freezer_mechanism;
mod pauser;
mod signals;

pub use detect::{PauseSupport, mechanisms};
pub(crate) use freezer::FreezerCgroup;
pub use pauser::{PauseOutcome, Pauser};

use crate::enact::{Enactor, GuardianHealth, JournalError, JournalRecord};
use crate::proc::{ProcError, ProgramProcesses};
use consort_core::ProgramId;
use serde::Serialize;
use std::fmt;
use thiserror::Error;

/// A mechanism by which programs are paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PauseKind {
    /// The freezer of cgroup version 2 (`cgroup.freeze`, since Linux 5.2).
    FreezerV2,
    /// The freezer controller of cgroup version 1 (`freezer.state`).
    FreezerV1,
    /// SIGSTOP and SIGCONT to each process.
    Signals,
}

impl PauseKind {
    /// All mechanisms, best first.
    pub const ALL: [Self; 3] = [Self::FreezerV2, Self::FreezerV1, Self::Signals];

    /// Returns the name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::FreezerV2 => "freezer-v2",
            Self::FreezerV1 => "freezer-v1",
            Self::Signals => "signals",
        }
    }
}

impl fmt::Display for PauseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One mechanism that holds the processes of one program.
pub(crate) trait PauseMechanism: fmt::Debug {
    /// Journals each process that the mechanism does not hold yet, then requests all processes to stop.
    /// Returns the number of new processes.
    fn stop_members(
        &mut self,
        journal: &mut dyn PauseJournal,
        members: &ProgramProcesses,
    ) -> Result<usize, HoldError>;

    fn is_still(&self) -> bool;

    /// Lets all processes continue; an error names a process or cgroup that cannot.
    fn resume_all(&mut self, journal: &mut dyn PauseJournal) -> Result<(), String>;

    /// Lets all processes continue and puts everything back as it was before the first
    /// `stop_members`; an error names a process or cgroup that could not be put back.
    fn restore_processes(&mut self, journal: &mut dyn PauseJournal) -> Result<(), String> {
        self.resume_all(journal)
    }

    fn process_count(&self) -> usize;

    /// Returns true if children of held processes are held from birth.
    fn holds_children(&self) -> bool {
        false
    }

    /// Returns true if the mechanism holds the process, or leaves it alone on purpose.
    fn knows(&self, pid: u32) -> bool;
}

/// The journal, in which an action is recorded before it is taken.
pub(crate) trait PauseJournal {
    fn journal_run_id(&self) -> String;

    /// Records an action that follows; if this fails, the action must not be taken.
    fn record_ahead(&mut self, records: &[JournalRecord]) -> Result<(), HoldError>;

    /// Records that actions were undone.
    fn record_undone(&mut self, records: &[JournalRecord]);
}

impl PauseJournal for Enactor {
    fn journal_run_id(&self) -> String {
        self.run_id().to_owned()
    }

    fn record_ahead(&mut self, records: &[JournalRecord]) -> Result<(), HoldError> {
        // Only the guardian resumes the program if this process is killed.
        if matches!(self.ensure_guardian(), GuardianHealth::Missing(_)) {
            return Err(HoldError::NoGuardian);
        }
        self.rewrite_if_grown();
        self.record(records).map_err(HoldError::Journal)
    }

    fn record_undone(&mut self, records: &[JournalRecord]) {
        if let Err(error) = self.record(records) {
            // Harmless: at the end the processes get one SIGCONT too many, or the guardian looks
            // for cgroups that are gone.
            tracing::warn!(%error, "resumed programs may be resumed once more");
        }
    }
}

/// Reason for which a program was not paused, or not resumed.
#[derive(Debug, Error)]
pub enum PauseError {
    /// The program has ended.
    #[error("program {0} has ended")]
    Gone(ProgramId),
    /// Consort itself is among the program's processes.
    #[error("program {0} cannot be paused: this consort is part of it")]
    Own(ProgramId),
    /// No mechanism works for the program, which therefore still runs.
    #[error("program {program} cannot be paused: {}", list_reasons(reasons))]
    NoWay {
        /// The program.
        program: ProgramId,
        /// The obstacle to each mechanism that was tried, in that order.
        reasons: Vec<(PauseKind, String)>,
    },
    /// The journal cannot be written, so nothing may be paused.
    #[error("program {0} was not paused: {1}")]
    Journal(ProgramId, #[source] JournalError),
    /// There is no guardian, and none can be started.
    #[error("program {0} was not paused: there is no guardian to resume it")]
    NoGuardian(ProgramId),
    /// Processes of the program cannot be looked up at the moment; try again later.
    #[error("program {0} was not paused: it cannot be looked up: {1}")]
    Unseen(ProgramId, ProcError),
    /// The kernel refused to let the program continue. It counts as paused until another attempt
    /// succeeds; the guardian and the end of the run try again, too.
    #[error("program {program} could not be resumed: {why}")]
    Stuck {
        /// The program.
        program: ProgramId,
        /// The kernel's answer, with the cgroup or process that it was about.
        why: String,
    },
}

fn list_reasons(reasons: &[(PauseKind, String)]) -> String {
    let each = reasons.iter().map(|(kind, why)| format!("{kind}: {why}"));
    each.collect::<Vec<_>>().join("; ")
}

/// Reason for which a mechanism did not hold a program.
#[derive(Debug)]
pub(crate) enum HoldError {
    /// The mechanism does not work for this program; another one may.
    Unusable(String),
    Journal(JournalError),
    NoGuardian,
    /// Processes cannot be looked up or held at the moment.
    Unseen(ProcError),
}

impl HoldError {
    /// Converts the error for callers if no other mechanism is tried.
    fn into_pause_error(self, program: ProgramId, kind: PauseKind) -> PauseError {
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
