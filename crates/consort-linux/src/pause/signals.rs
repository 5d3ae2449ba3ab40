//! Pausing by SIGSTOP and SIGCONT to each process (`signal(7)`).
//!
//! A process that was stopped before, by anybody, is left alone: it stays stopped when the program
//! goes on. A process that forks while it is being stopped may leave a running child behind; so the
//! caller looks for more until there are none.
//!
//! Pitfall: a thread that is blocked in the kernel, such as the creator of a `vfork` child that was
//! stopped before its exec, stops only on its way back to user mode. It counts as still, as it can
//! run nothing of the program before.

use super::error::HoldError;
use super::journalled::PauseJournal;
use super::mechanism::Mechanism;
use super::tree::Members;
use crate::enact::Record;
use crate::proc::{ProcessHandle, RunState, continue_process, read_stat, threads_of};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One program's processes, stopped by signals.
#[derive(Debug)]
pub(super) struct Stopped {
    root: PathBuf,
    /// Processes that were stopped here, each with its start, clock ticks since boot.
    ours: BTreeMap<u32, u64>,
    /// Processes that somebody else had stopped before.
    others: BTreeSet<u32>,
}

impl Stopped {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            ours: BTreeMap::new(),
            others: BTreeSet::new(),
        }
    }

    /// States of the threads of a process, without dead ones.
    fn states(&self, pid: u32) -> Vec<RunState> {
        let tids = threads_of(&self.root, pid).unwrap_or_default();
        let state = |tid| Some(read_stat(&self.root, pid, tid).ok()?.state);
        let states = tids.into_iter().filter_map(state);
        states.filter(|&state| state != RunState::Dead).collect()
    }

    /// Processes to be stopped, each with its start; notes those that somebody else has stopped.
    fn running_among(&mut self, members: &Members) -> BTreeMap<u32, u64> {
        let mut wanted = BTreeMap::new();
        for (&pid, stat) in members {
            if self.ours.get(&pid) == Some(&stat.start_ticks) {
                continue;
            }
            let states = self.states(pid);
            if states.iter().any(|&state| state != RunState::Stopped) {
                self.others.remove(&pid);
                wanted.insert(pid, stat.start_ticks);
            } else if !states.is_empty() {
                self.others.insert(pid);
            }
        }
        wanted
    }
}

impl Mechanism for Stopped {
    fn hold(
        &mut self,
        journal: &mut dyn PauseJournal,
        members: &Members,
    ) -> Result<usize, HoldError> {
        let wanted = self.running_among(members);
        if wanted.is_empty() {
            return Ok(0);
        }
        let record = |(&pid, &start_ticks): (&u32, &u64)| Record::Paused { pid, start_ticks };
        journal.before(&wanted.iter().map(record).collect::<Vec<_>>())?;
        let taken = wanted.len();
        self.ours.extend(&wanted);
        for (pid, start_ticks) in wanted {
            let process = ProcessHandle::open(&self.root, pid, start_ticks);
            let sent = process.map_or(Ok(false), |process| process.send(Signal::SIGSTOP));
            sent.map_err(|errno| HoldError::Unusable(refusal(pid, errno)))?;
        }
        Ok(taken)
    }

    fn is_still(&self) -> bool {
        let still = |state: &RunState| matches!(state, RunState::Stopped | RunState::Blocked);
        let mut pids = self.ours.keys();
        pids.all(|&pid| self.states(pid).iter().all(still))
    }

    fn release(&mut self, journal: &mut dyn PauseJournal) -> Result<(), String> {
        let ours = std::mem::take(&mut self.ours);
        self.others.clear();
        let mut failed = None;
        for (&pid, &start_ticks) in &ours {
            if let Err(errno) = continue_process(&self.root, pid, start_ticks) {
                failed = Some(refusal(pid, errno));
            }
        }
        let record = |(pid, start_ticks)| Record::Resumed { pid, start_ticks };
        journal.after(&ours.into_iter().map(record).collect::<Vec<_>>());
        failed.map_or(Ok(()), Err)
    }

    fn leave(&mut self, journal: &mut dyn PauseJournal) -> Result<(), String> {
        self.release(journal)
    }

    fn held(&self) -> usize {
        self.ours.len()
    }

    fn has_births(&self) -> bool {
        false
    }

    fn knows(&self, pid: u32) -> bool {
        self.ours.contains_key(&pid) || self.others.contains(&pid)
    }
}

fn refusal(pid: u32, errno: Errno) -> String {
    format!("process {pid} takes no signal: {errno}")
}
