//! The paused programs, each with the mechanism that holds it.

use super::confirm::wait_until_still;
use super::detect::{PauseSupport, mechanisms};
use super::error::{HoldError, PauseError};
use super::freezer_mechanism::FreezerMechanism;
use super::kind::PauseKind;
use super::mechanism::PauseMechanism;
use super::pause_journal::PauseJournal;
use super::signals::StopSignalMechanism;
use super::tree::{ProgramProcesses, read_processes, tree};
use crate::cgroup::CgroupVersion;
use crate::enact::Enactor;
use crate::proc::ProcError;
use consort_core::ProgramId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Most looks for processes that were born while the program was being paused.
const MOST_LOOKS: u32 = 64;
/// Shortest time between two readings of the whole table of processes, for a mechanism that holds
/// all children from birth.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Outcome of pausing a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseOutcome {
    /// The mechanism that holds the program.
    pub kind: PauseKind,
    /// Number of processes that are held.
    pub processes: usize,
    /// Reason for which the program does not stand still yet, if it does not; each part stops as
    /// soon as it can.
    pub unsettled: Option<&'static str>,
}

/// A constructor of mechanisms: the kind, the program and the run's id.
type MechanismConstructor =
    Box<dyn Fn(PauseKind, ProgramId, &str) -> Box<dyn PauseMechanism> + Send>;

/// Pauses programs and resumes them.
pub struct Pauser {
    root: PathBuf,
    kinds: Vec<PauseKind>,
    make: MechanismConstructor,
    programs: BTreeMap<ProgramId, PausedProgram>,
}

/// A program that was paused at some time.
#[derive(Debug)]
struct PausedProgram {
    kind: PauseKind,
    mechanism: Box<dyn PauseMechanism>,
    paused: bool,
    /// True unless the program failed to stand still within the limit the last time.
    patient: bool,
    /// Time of the last reading of the whole table of processes; none while it found processes that
    /// the mechanism does not know.
    looked: Option<Instant>,
}

impl Pauser {
    /// A pauser with those mechanisms that the host below `root` has.
    pub fn new(root: &Path) -> Self {
        let there = mechanisms(root).into_iter();
        let there = there.filter(|m: &PauseSupport| m.available);
        Self::with_kinds(root, there.map(|m| m.kind).collect())
    }

    /// A pauser with these mechanisms, best first.
    pub fn with_kinds(root: &Path, kinds: Vec<PauseKind>) -> Self {
        let host = root.to_owned();
        Self::with_constructor(
            root,
            kinds,
            Box::new(move |kind, program, run| match kind {
                PauseKind::FreezerV2 => Box::new(FreezerMechanism::new(
                    &host,
                    CgroupVersion::V2,
                    program,
                    run,
                )),
                PauseKind::FreezerV1 => Box::new(FreezerMechanism::new(
                    &host,
                    CgroupVersion::V1,
                    program,
                    run,
                )),
                PauseKind::Signals => Box::new(StopSignalMechanism::new(&host)),
            }),
        )
    }

    fn with_constructor(root: &Path, kinds: Vec<PauseKind>, make: MechanismConstructor) -> Self {
        Self {
            root: root.to_owned(),
            kinds,
            make,
            programs: BTreeMap::new(),
        }
    }

    /// Pauses a program: these processes and all below them in the tree of parents. Of a program
    /// that is paused already, it takes in processes that were born or found since.
    ///
    /// # Errors
    /// When nothing of the program is paused: it has ended, no mechanism works, or nothing could be
    /// journalled. A program that was paused before stays so.
    pub fn pause(
        &mut self,
        enactor: &mut Enactor,
        program: ProgramId,
        pids: &BTreeSet<u32>,
    ) -> Result<PauseOutcome, PauseError> {
        self.pause_in_journal(enactor, program, pids)
    }

    /// Lets a program go on; returns false if it was not paused.
    ///
    /// # Errors
    /// When some of its processes cannot go on.
    pub fn resume(
        &mut self,
        enactor: &mut Enactor,
        program: ProgramId,
    ) -> Result<bool, PauseError> {
        self.resume_in_journal(enactor, program)
    }

    /// Puts everything of a program back as it was before it was first paused.
    ///
    /// # Errors
    /// When some of its processes cannot go on.
    pub fn forget(&mut self, enactor: &mut Enactor, program: ProgramId) -> Result<(), PauseError> {
        self.undo(enactor, program)
    }

    /// The programs that were paused at some time and not forgotten since.
    pub fn known_programs(&self) -> impl Iterator<Item = ProgramId> + '_ {
        self.programs.keys().copied()
    }

    /// The programs that are paused.
    pub fn paused_programs(&self) -> impl Iterator<Item = ProgramId> + '_ {
        let paused = self.programs.iter().filter(|(_, held)| held.paused);
        paused.map(|(&program, _)| program)
    }

    /// Returns true if a program is paused.
    pub fn is_paused(&self, program: ProgramId) -> bool {
        self.programs.get(&program).is_some_and(|held| held.paused)
    }

    /// The mechanism that a program was paused by last.
    pub fn kind_of(&self, program: ProgramId) -> Option<PauseKind> {
        self.programs.get(&program).map(|held| held.kind)
    }

    /// The mechanisms that are tried, best first.
    pub fn kinds(&self) -> &[PauseKind] {
        &self.kinds
    }

    fn pause_in_journal(
        &mut self,
        journal: &mut dyn PauseJournal,
        program: ProgramId,
        pids: &BTreeSet<u32>,
    ) -> Result<PauseOutcome, PauseError> {
        let Some(held) = self.programs.get_mut(&program) else {
            return self.pause_first(journal, program, pids);
        };
        match held.pause(&self.root, journal, pids) {
            Ok(pause) => Ok(pause),
            Err(error) => {
                // What was not paused before must not stay half paused.
                let kind = held.kind;
                if !held.paused {
                    self.undo(journal, program)?;
                }
                Err(error.into_pause_error(program, kind))
            }
        }
    }

    /// Tries one mechanism after the other.
    fn pause_first(
        &mut self,
        journal: &mut dyn PauseJournal,
        program: ProgramId,
        pids: &BTreeSet<u32>,
    ) -> Result<PauseOutcome, PauseError> {
        let members = tree(&self.root, pids);
        let members = members.map_err(|error| PauseError::Unseen(program, error))?;
        if members.is_empty() {
            return Err(PauseError::Gone(program));
        }
        if members.contains_key(&std::process::id()) {
            return Err(PauseError::Own(program));
        }
        let mut reasons = Vec::new();
        for kind in self.kinds.clone() {
            let mechanism = (self.make)(kind, program, &journal.journal_run_id());
            let mut held = PausedProgram {
                kind,
                mechanism,
                paused: false,
                patient: true,
                looked: None,
            };
            let paused = held.pause(&self.root, journal, pids);
            self.programs.insert(program, held);
            match paused {
                Ok(pause) => return Ok(pause),
                Err(error) => {
                    self.undo(journal, program)?;
                    match error {
                        HoldError::Unusable(why) => reasons.push((kind, why)),
                        other => return Err(other.into_pause_error(program, kind)),
                    }
                }
            }
        }
        Err(PauseError::NoWay { program, reasons })
    }

    fn undo(
        &mut self,
        journal: &mut dyn PauseJournal,
        program: ProgramId,
    ) -> Result<(), PauseError> {
        let Some(held) = self.programs.get_mut(&program) else {
            return Ok(());
        };
        if let Err(why) = held.mechanism.resume_all(journal) {
            // Forgotten, it would stay stopped until the end of the run.
            held.paused = true;
            return Err(PauseError::Stuck { program, why });
        }
        let left = held.mechanism.restore_processes(journal);
        self.programs.remove(&program);
        left.map_err(|why| PauseError::Stuck { program, why })
    }

    fn resume_in_journal(
        &mut self,
        journal: &mut dyn PauseJournal,
        program: ProgramId,
    ) -> Result<bool, PauseError> {
        let Some(held) = self.programs.get_mut(&program).filter(|held| held.paused) else {
            return Ok(false);
        };
        let released = held.mechanism.resume_all(journal);
        released.map_err(|why| PauseError::Stuck { program, why })?;
        held.paused = false;
        Ok(true)
    }
}

impl PausedProgram {
    /// Asks all to stop, waits, and looks whether more have come meanwhile.
    fn pause(
        &mut self,
        root: &Path,
        journal: &mut dyn PauseJournal,
        pids: &BTreeSet<u32>,
    ) -> Result<PauseOutcome, HoldError> {
        let mut unsettled = Some("it starts processes without end");
        for _ in 0..MOST_LOOKS {
            let members = self.members(root, pids).map_err(HoldError::Unseen)?;
            let taken = self.mechanism.stop_members(journal, &members)?;
            self.patient = wait_until_still(self.mechanism.as_ref(), self.patient);
            if taken == 0 {
                unsettled = (!self.patient).then_some("some of it waits in the kernel or for a PU");
                break;
            }
        }
        self.paused = true;
        Ok(PauseOutcome {
            kind: self.kind,
            processes: self.mechanism.process_count(),
            unsettled,
        })
    }

    /// The processes to look at: the whole tree, unless children are held from birth and the tree
    /// was read lately; then only those of `pids` that the mechanism does not know.
    fn members(
        &mut self,
        root: &Path,
        pids: &BTreeSet<u32>,
    ) -> Result<ProgramProcesses, ProcError> {
        let is_recent = self.looked.is_some_and(|at| at.elapsed() < LOOK_AGAIN);
        if self.mechanism.holds_children() && is_recent {
            let unknown = pids.iter().filter(|&&pid| !self.mechanism.knows(pid));
            return read_processes(root, unknown.copied());
        }
        // A look that finds more is followed by another one.
        let members = tree(root, pids)?;
        let all_known = members.keys().all(|&pid| self.mechanism.knows(pid));
        self.looked = all_known.then(Instant::now);
        Ok(members)
    }
}

#[cfg(test)]
#[path = "pauser/tests.rs"]
mod tests;
