//! Which program a process belongs to: whatever a command starts is part of it.

use super::Live;
use consort_core::ProgramId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Live {
    /// The program that a process belongs to.
    pub(super) fn program_of(&self, pid: u32) -> ProgramId {
        ProgramId(self.trees.root_of(pid).unwrap_or(pid))
    }

    /// Processes with threads here, or with threads that have exited since the last observation,
    /// that are part of another program than that of their own pid.
    pub(super) fn programs(&self) -> BTreeMap<ProgramId, ProgramId> {
        let pids = self.threads.keys().map(|id| id.pid);
        let there = pids.map(|pid| (ProgramId(pid), self.program_of(pid)));
        let parted = self.exited.iter().map(|p| (p.id.program(), p.program));
        let programs = parted.chain(there);
        programs.filter(|(own, of)| own != of).collect()
    }

    /// Policies that programs were given.
    pub(super) fn assigned(&self) -> BTreeMap<ProgramId, Arc<str>> {
        let policies = self.trees.policies();
        policies
            .map(|(root, policy)| (ProgramId(root), policy))
            .collect()
    }

    /// The processes of a program that have threads here.
    pub(super) fn processes_of(&self, program: ProgramId) -> BTreeSet<u32> {
        let pids = self.threads.keys().map(|id| id.pid);
        pids.filter(|&pid| self.program_of(pid) == program)
            .collect()
    }
}
