//! The paused programs, each with the mechanism that holds it.

use super::freezer_mechanism::FreezerMechanism;
use super::signals::StopSignalMechanism;
use super::{HoldError, PauseError, PauseJournal, PauseKind, PauseMechanism, mechanisms};
use crate::cgroup::CgroupVersion;
use crate::enact::Enactor;
use crate::proc::{ProcError, ProgramProcesses, read_process_tree, read_processes};
use consort_core::ProgramId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Most searches for processes that were born while the program was being paused.
const MOST_LOOKS: u32 = 64;
/// Shortest time between two readings of the whole table of processes, for a mechanism that holds
/// all children from birth.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Longest wait until a program stands still; after that the outcome reports it as unsettled,
/// because a thread that waits in the kernel for a disk or a server can take any time.
const LIMIT: Duration = Duration::from_millis(200);
/// The limit for a program that has exceeded it before, so that not every pause waits in vain.
const SHORT_LIMIT: Duration = Duration::from_millis(10);
const FIRST_WAIT: Duration = Duration::from_micros(20);
const LONGEST_WAIT: Duration = Duration::from_millis(5);

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

/// A constructor of mechanisms, of the host's root, the kind, the program and the run's id.
pub(super) type MechanismConstructor =
    Box<dyn Fn(&Path, PauseKind, ProgramId, &str) -> Box<dyn PauseMechanism> + Send>;

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
    /// Time of the last reading of the whole table of processes; `None` if it found processes that
    /// the mechanism does not know.
    looked: Option<Instant>,
}

impl Pauser {
    /// Creates a pauser with the mechanisms that the host below `root` has.
    pub fn new(root: &Path) -> Self {
        let available = mechanisms(root).into_iter().filter(|m| m.available);
        Self::with_kinds(root, available.map(|m| m.kind).collect())
    }

    /// Creates a pauser with these mechanisms, best first.
    pub fn with_kinds(root: &Path, kinds: Vec<PauseKind>) -> Self {
        Self::with_constructor(root, kinds, Box::new(make_mechanism))
    }

    pub(super) fn with_constructor(
        root: &Path,
        kinds: Vec<PauseKind>,
        make: MechanismConstructor,
    ) -> Self {
        Self {
            root: root.to_owned(),
            kinds,
            make,
            programs: BTreeMap::new(),
        }
    }

    /// Pauses a program: these processes and all below them in the tree of parents. If the program
    /// is paused already, adds the processes that were born or found since.
    ///
    /// # Errors
    /// If nothing of the program is paused: it has ended, no mechanism works, or nothing could be
    /// journalled. A program that was paused before stays so.
    pub fn pause(
        &mut self,
        enactor: &mut Enactor,
        program: ProgramId,
        pids: &BTreeSet<u32>,
    ) -> Result<PauseOutcome, PauseError> {
        self.pause_in_journal(enactor, program, pids)
    }

    /// Lets a program continue; returns false if it was not paused.
    ///
    /// # Errors
    /// If some of its processes cannot continue.
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
    /// If some of its processes cannot continue.
    pub fn forget(&mut self, enactor: &mut Enactor, program: ProgramId) -> Result<(), PauseError> {
        self.undo(enactor, program)
    }

    /// Returns the programs that were paused at some time and not forgotten since.
    pub fn known_programs(&self) -> impl Iterator<Item = ProgramId> + '_ {
        self.programs.keys().copied()
    }

    /// Returns the programs that are paused now.
    pub fn paused_programs(&self) -> impl Iterator<Item = ProgramId> + '_ {
        let paused = self.programs.iter().filter(|(_, program)| program.paused);
        paused.map(|(&id, _)| id)
    }

    /// Returns true if a program is paused.
    pub fn is_paused(&self, program: ProgramId) -> bool {
        self.programs.get(&program).is_some_and(|held| held.paused)
    }

    /// Returns the mechanism that paused a program last; `None` if none did.
    pub fn kind_of(&self, program: ProgramId) -> Option<PauseKind> {
        self.programs.get(&program).map(|held| held.kind)
    }

    /// Returns the mechanisms that are tried, best first.
    pub fn kinds(&self) -> &[PauseKind] {
        &self.kinds
    }

    pub(super) fn pause_in_journal(
        &mut self,
        journal: &mut dyn PauseJournal,
        program: ProgramId,
        pids: &BTreeSet<u32>,
    ) -> Result<PauseOutcome, PauseError> {
        let Some(held) = self.programs.get_mut(&program) else {
            return self.pause_first(journal, program, pids);
        };
        match held.pause(&self.root, journal, pids) {
            Ok(outcome) => Ok(outcome),
            Err(error) => {
                let kind = held.kind;
                // A program that was not paused before must not stay half paused.
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
        let members = read_process_tree(&self.root, pids);
        let members = members.map_err(|error| PauseError::Unseen(program, error))?;
        if members.is_empty() {
            return Err(PauseError::Gone(program));
        }
        if members.contains_key(&std::process::id()) {
            return Err(PauseError::Own(program));
        }
        let mut reasons = Vec::new();
        for kind in self.kinds.clone() {
            let mut held = PausedProgram {
                kind,
                mechanism: (self.make)(&self.root, kind, program, &journal.journal_run_id()),
                paused: false,
                patient: true,
                looked: None,
            };
            // Kept even after an error, so that what was done so far can be undone.
            let outcome = held.pause(&self.root, journal, pids);
            self.programs.insert(program, held);
            match outcome {
                Ok(outcome) => return Ok(outcome),
                Err(error) => {
                    // The next mechanism begins with a program that runs as a whole.
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

    pub(super) fn undo(
        &mut self,
        journal: &mut dyn PauseJournal,
        program: ProgramId,
    ) -> Result<(), PauseError> {
        let Some(held) = self.programs.get_mut(&program) else {
            return Ok(());
        };
        if let Err(why) = held.mechanism.resume_all(journal) {
            // If it were forgotten, it would stay stopped until the end of the run.
            held.paused = true;
            return Err(PauseError::Stuck { program, why });
        }
        let restored = held.mechanism.restore_processes(journal);
        self.programs.remove(&program);
        restored.map_err(|why| PauseError::Stuck { program, why })
    }

    pub(super) fn resume_in_journal(
        &mut self,
        journal: &mut dyn PauseJournal,
        program: ProgramId,
    ) -> Result<bool, PauseError> {
        let Some(held) = self.programs.get_mut(&program).filter(|held| held.paused) else {
            return Ok(false);
        };
        let resumed = held.mechanism.resume_all(journal);
        resumed.map_err(|why| PauseError::Stuck { program, why })?;
        held.paused = false;
        Ok(true)
    }
}

impl PausedProgram {
    /// Requests all processes to stop, waits, and looks if others have appeared meanwhile.
    fn pause(
        &mut self,
        root: &Path,
        journal: &mut dyn PauseJournal,
        pids: &BTreeSet<u32>,
    ) -> Result<PauseOutcome, HoldError> {
        let mut unsettled = Some("it starts processes without end");
        for _ in 0..MOST_LOOKS {
            let members = self.members(root, pids).map_err(HoldError::Unseen)?;
            let added = self.mechanism.stop_members(journal, &members)?;
            self.patient = self.wait_until_still();
            if added == 0 {
                unsettled =
                    (!self.patient).then_some("some of it waits in the kernel or for a CPU");
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

    /// Waits until all held processes stand still; returns false if the limit passes first.
    fn wait_until_still(&self) -> bool {
        let begun = Instant::now();
        let limit = if self.patient { LIMIT } else { SHORT_LIMIT };
        let mut wait = FIRST_WAIT;
        // Polled with growing waits: neither mechanism reports the standstill by itself.
        while !self.mechanism.is_still() {
            if begun.elapsed() >= limit {
                return false;
            }
            std::thread::sleep(wait);
            wait = LONGEST_WAIT.min(wait * 2);
        }
        true
    }

    /// Reads the processes to look at: the whole tree, unless children are held from birth and the
    /// tree was read lately; then only those of `pids` that the mechanism does not know.
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
        // If the tree has processes that are new, the next look must read it again.
        let members = read_process_tree(root, pids)?;
        let all_known = members.keys().all(|&pid| self.mechanism.knows(pid));
        self.looked = all_known.then(Instant::now);
        Ok(members)
    }
}

fn make_mechanism(
    root: &Path,
    kind: PauseKind,
    program: ProgramId,
    run: &str,
) -> Box<dyn PauseMechanism> {
    let version = match kind {
        PauseKind::FreezerV2 => CgroupVersion::V2,
        PauseKind::FreezerV1 => CgroupVersion::V1,
        PauseKind::Signals => return Box::new(StopSignalMechanism::new(root)),
    };
    Box::new(FreezerMechanism::new(root, version, program, run))
}
