//! Pausing by SIGSTOP and SIGCONT to each process (`signal(7)`).
//!
//! A process that another process stopped before is left alone: it stays stopped when the program
//! continues. A process that forks while it is being stopped may leave a running child behind, so
//! the caller looks for more processes until there are none.
//!
//! Pitfall: a thread that is blocked in the kernel, such as the creator of a `vfork` child that was
//! stopped before its exec, stops only on its way back to user mode. It counts as still, because
//! until then it can run nothing of the program.

use super::{HoldError, PauseJournal, PauseMechanism};
use crate::enact::JournalRecord;
use crate::proc::{
    ProcError, ProcessHandle, ProgramProcesses, RunState, continue_process, read_stat, threads_of,
    unless_gone,
};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One program's processes, stopped by signals.
#[derive(Debug)]
pub(super) struct StopSignalMechanism {
    root: PathBuf,
    /// Processes that were stopped here, each with its start, clock ticks since boot.
    ours: BTreeMap<u32, u64>,
    /// Processes that were already stopped when they were found.
    others: BTreeSet<u32>,
}

impl StopSignalMechanism {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            ours: BTreeMap::new(),
            others: BTreeSet::new(),
        }
    }

    /// States of the threads of a process, without dead ones.
    ///
    /// # Errors
    /// If a thread cannot be read although it may be there.
    fn states(&self, pid: u32) -> Result<Vec<RunState>, ProcError> {
        let mut states = Vec::new();
        for tid in unless_gone(threads_of(&self.root, pid))?.unwrap_or_default() {
            let stat = unless_gone(read_stat(&self.root, pid, tid))?;
            states.extend(stat.map(|stat| stat.state));
        }
        states.retain(|&state| state != RunState::Dead);
        Ok(states)
    }

    /// Returns the processes to be stopped, each with its start; notes the ones that are stopped
    /// already.
    fn find_running(&mut self, members: &ProgramProcesses) -> Result<Vec<(u32, u64)>, ProcError> {
        let mut running = Vec::new();
        for (&pid, stat) in members {
            if self.ours.get(&pid) == Some(&stat.start_ticks) {
                continue;
            }
            let states = self.states(pid)?;
            if states.iter().any(|&state| state != RunState::Stopped) {
                self.others.remove(&pid);
                running.push((pid, stat.start_ticks));
            } else if !states.is_empty() {
                self.others.insert(pid);
            }
        }
        Ok(running)
    }

    fn stop(&self, pid: u32, start_ticks: u64) -> Result<(), HoldError> {
        let process = ProcessHandle::open(&self.root, pid, start_ticks);
        if let Some(process) = process.map_err(HoldError::Unseen)? {
            let sent = process.send(Signal::SIGSTOP);
            sent.map_err(|errno| HoldError::Unusable(refusal(pid, errno)))?;
        }
        Ok(())
    }
}

impl PauseMechanism for StopSignalMechanism {
    fn stop_members(
        &mut self,
        journal: &mut dyn PauseJournal,
        members: &ProgramProcesses,
    ) -> Result<usize, HoldError> {
        let running = self.find_running(members).map_err(HoldError::Unseen)?;
        if running.is_empty() {
            return Ok(0);
        }
        let record = |&(pid, start_ticks): &(u32, u64)| JournalRecord::Paused { pid, start_ticks };
        journal.record_ahead(&running.iter().map(record).collect::<Vec<_>>())?;
        // Before the first signal, so that an error leaves no stopped process unknown.
        self.ours.extend(running.iter().copied());
        for (stopped, &(pid, start_ticks)) in running.iter().enumerate() {
            if let Err(error) = self.stop(pid, start_ticks) {
                // The rest still runs, so it is not held: the next attempt must not skip it.
                let rest = &running[stopped..];
                self.ours
                    .retain(|pid, _| rest.iter().all(|(other, _)| other != pid));
                let undone = rest
                    .iter()
                    .map(|&(pid, start_ticks)| JournalRecord::Resumed { pid, start_ticks });
                journal.record_undone(&undone.collect::<Vec<_>>());
                return Err(error);
            }
        }
        Ok(running.len())
    }

    fn is_still(&self) -> bool {
        let still = |state: &RunState| matches!(state, RunState::Stopped | RunState::Blocked);
        let mut pids = self.ours.keys();
        // A process that cannot be looked up may still run.
        pids.all(|&pid| (self.states(pid)).is_ok_and(|states| states.iter().all(still)))
    }

    fn resume_all(&mut self, journal: &mut dyn PauseJournal) -> Result<(), String> {
        self.others.clear();
        let mut failed = None;
        let mut resumed = Vec::new();
        // A process that cannot be continued stays journalled, so that the next attempt, or the
        // guardian, continues it.
        self.ours.retain(|&pid, &mut start_ticks| {
            let continued = continue_process(&self.root, pid, start_ticks);
            match continued {
                Ok(_) => resumed.push(JournalRecord::Resumed { pid, start_ticks }),
                Err(errno) => failed = Some(refusal(pid, errno)),
            }
            continued.is_err()
        });
        journal.record_undone(&resumed);
        failed.map_or(Ok(()), Err)
    }

    fn process_count(&self) -> usize {
        self.ours.len()
    }

    fn knows(&self, pid: u32) -> bool {
        self.ours.contains_key(&pid) || self.others.contains(&pid)
    }
}

fn refusal(pid: u32, errno: Errno) -> String {
    format!("process {pid} takes no signal: {errno}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::{process, read_processes};

    /// Numbers of the processes that are noted as paused, and the number of notes.
    #[derive(Default)]
    struct Notes(BTreeSet<u32>, usize);

    impl PauseJournal for Notes {
        fn journal_run_id(&self) -> String {
            "run".into()
        }

        fn record_ahead(&mut self, records: &[JournalRecord]) -> Result<(), HoldError> {
            for record in records {
                if let JournalRecord::Paused { pid, .. } = record {
                    self.0.insert(*pid);
                    self.1 += 1;
                }
            }
            Ok(())
        }

        fn record_undone(&mut self, records: &[JournalRecord]) {
            for record in records {
                if let JournalRecord::Resumed { pid, .. } = record {
                    self.0.remove(pid);
                }
            }
        }
    }

    /// A number that no process has.
    const PID: u32 = 4_194_305;

    /// A host with a made-up process of two threads.
    fn host() -> (tempfile::TempDir, ProgramProcesses) {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), PID, 1, &[(PID, "x", 1), (PID + 1, "x", 1)]);
        let members = read_processes(dir.path(), [PID]).unwrap();
        (dir, members)
    }

    /// Makes a thread unreadable, for every user, without ending it.
    fn hide(dir: &tempfile::TempDir, tid: u32) {
        let stat = dir.path().join(format!("proc/{PID}/task/{tid}/stat"));
        std::fs::remove_file(&stat).unwrap();
        std::fs::create_dir(stat).unwrap();
    }

    #[test]
    fn unreadable_process_neither_ends_nor_stands_still() {
        let (dir, members) = host();
        hide(&dir, PID + 1);
        let (mut stopped, mut notes) = (StopSignalMechanism::new(dir.path()), Notes::default());
        let held = stopped.stop_members(&mut notes, &members);
        assert!(matches!(held, Err(HoldError::Unseen(_))), "{held:?}");
        assert_eq!((stopped.process_count(), notes.1), (0, 0));
        stopped.ours.insert(PID, 1);
        assert!(!stopped.is_still());
        std::fs::remove_dir_all(dir.path().join(format!("proc/{PID}"))).unwrap();
        assert!(stopped.is_still());
    }

    #[test]
    fn process_without_stop_signal_is_not_held() {
        // The kernel takes signals through no made-up folder.
        let (dir, members) = host();
        let (mut stopped, mut notes) = (StopSignalMechanism::new(dir.path()), Notes::default());
        let held = stopped.stop_members(&mut notes, &members);
        assert!(matches!(held, Err(HoldError::Unusable(_))), "{held:?}");
        assert_eq!((stopped.process_count(), notes.1), (0, 1));
        assert!(notes.0.is_empty());
    }
}
