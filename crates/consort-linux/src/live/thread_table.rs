//! The threads of the managed programs, the last reading of each, and the program that each process
//! belongs to.

use super::observers::ObservedState;
use super::program_trees::ProgramTrees;
use crate::proc::ThreadUsers;
use consort_core::{ProgramId, PuId, PuSet, Sample, ThreadId, ThreadObservation};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of threads whose cpuset is read again at a time: this takes about a quarter of a
/// millisecond.
const AT_A_TIME: usize = 32;

/// Time between two such readings: together they take a quarter of a thousandth of a CPU.
const RECHECK_EVERY: Duration = Duration::from_secs(1);

/// A thread id before that of every thread.
const BEFORE_ALL: ThreadId = ThreadId {
    pid: 0,
    tid: 0,
    start_ticks: 0,
};

#[derive(Clone, Debug)]
pub(super) struct ThreadEntry {
    name: Arc<str>,
    /// CPUs that the thread may run on without Consort.
    original: Arc<PuSet>,
    managed: bool,
    /// True if the thread is left alone only because of its affinity, so that it may be paused.
    self_placed: bool,
    /// True if the thread is left alone because of its control groups, so that it may not be paused
    /// either.
    kept_out: bool,
    /// Reason for which it is left alone; `None` for one that may be placed.
    reason: Option<Arc<str>>,
    seen: ObservedState,
}

impl ThreadEntry {
    /// An observation of the thread; on no CPU once it has exited.
    pub(super) fn to_observation(
        &self,
        id: ThreadId,
        sample: Sample,
        last_pu: Option<PuId>,
    ) -> ThreadObservation {
        ThreadObservation {
            id,
            name: self.name.clone(),
            original: self.original.clone(),
            managed: self.managed,
            last_pu,
            sample,
        }
    }
}

/// One thread that has exited since the last observation.
#[derive(Clone, Debug)]
pub(super) struct ExitedThread {
    pub(super) id: ThreadId,
    pub(super) thread: ThreadEntry,
    pub(super) program: ProgramId,
    /// Counts of the thread since the last observation.
    pub(super) sample: Sample,
}

pub(super) struct ThreadTable {
    pub(super) trees: ProgramTrees,
    threads: BTreeMap<ThreadId, ThreadEntry>,
    /// Users of the programs that are there.
    owners: BTreeMap<ProgramId, u32>,
    /// Threads that have exited since the last observation.
    exited: Vec<ExitedThread>,
    /// Time of the next reading of threads' cpusets.
    next_recheck: Instant,
    /// Thread after which that reading continues.
    rechecked: ThreadId,
}

impl ThreadTable {
    pub(super) fn new(trees: ProgramTrees, now: Instant) -> Self {
        Self {
            trees,
            threads: BTreeMap::new(),
            owners: BTreeMap::new(),
            exited: Vec::new(),
            next_recheck: now + RECHECK_EVERY,
            rechecked: BEFORE_ALL,
        }
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = ThreadId> + '_ {
        self.threads.keys().copied()
    }

    pub(super) fn process_threads(&self, pids: &BTreeSet<u32>) -> Vec<ThreadId> {
        self.ids().filter(|id| pids.contains(&id.pid)).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    pub(super) fn has_process(&self, pid: u32) -> bool {
        self.ids().any(|id| id.pid == pid)
    }

    pub(super) fn get(&self, id: ThreadId) -> Option<&ThreadEntry> {
        self.threads.get(&id)
    }

    /// State of a thread when it was last looked at; `None` if it is gone.
    pub(super) fn observed_state(&self, id: ThreadId) -> Option<&ObservedState> {
        self.threads.get(&id).map(|thread| &thread.seen)
    }

    pub(super) fn observed_state_mut(&mut self, id: ThreadId) -> Option<&mut ObservedState> {
        self.threads.get_mut(&id).map(|thread| &mut thread.seen)
    }

    pub(super) fn rename(&mut self, id: ThreadId, name: Arc<str>) {
        if let Some(thread) = self.threads.get_mut(&id) {
            thread.name = name;
        }
    }

    pub(super) fn may_place(&self, id: ThreadId) -> bool {
        self.get(id).is_some_and(|thread| thread.managed)
    }

    /// CPUs that some managed thread may run on without Consort.
    pub(super) fn usable_pus(&self) -> PuSet {
        let mut usable = PuSet::new();
        for thread in self.threads.values().filter(|thread| thread.managed) {
            // Most threads have the same mask, and a union allocates.
            if !thread.original.is_subset(&usable) {
                usable = usable.union(&thread.original);
            }
        }
        usable
    }

    /// The name of a thread; `?` if it is gone.
    pub(super) fn name(&self, id: ThreadId) -> &str {
        self.get(id).map_or("?", |thread| &thread.name)
    }

    pub(super) fn enter(&mut self, id: ThreadId, name: Arc<str>, original: PuSet, managed: bool) {
        let thread = ThreadEntry {
            name,
            original: Arc::new(original),
            managed,
            self_placed: false,
            kept_out: false,
            reason: None,
            seen: ObservedState::default(),
        };
        self.threads.insert(id, thread);
    }

    /// Forgets a thread that has exited, except for its last sample.
    pub(super) fn retire_thread(&mut self, id: ThreadId, sample: Sample) {
        // The program now, because the tree may forget the process below.
        if let Some(thread) = self.threads.remove(&id) {
            let program = self.program_of(id.pid);
            self.exited.push(ExitedThread {
                id,
                thread,
                program,
                sample,
            });
        }
        if !self.has_process(id.pid) {
            self.trees.forget(id.pid);
        }
    }

    /// Threads that have exited since the last call.
    pub(super) fn take_exited(&mut self) -> Vec<ExitedThread> {
        std::mem::take(&mut self.exited)
    }

    /// Sets the CPUs that a thread may run on without Consort.
    pub(super) fn set_original(&mut self, id: ThreadId, pus: PuSet) {
        let thread = self.threads.get_mut(&id);
        if let Some(thread) = thread.filter(|thread| *thread.original != pus) {
            thread.original = Arc::new(pus);
        }
    }

    /// Notes that a thread is no longer managed, because another program has set its affinity; returns
    /// its name, `?` if it is gone.
    pub(super) fn mark_released(&mut self, id: ThreadId) -> Arc<str> {
        let Some(thread) = self.threads.get_mut(&id) else {
            return "?".into();
        };
        thread.managed = false;
        thread.self_placed = true;
        thread.reason = Some("its affinity was changed meanwhile".into());
        thread.name.clone()
    }

    /// Notes that a thread is left alone because of its control groups.
    pub(super) fn mark_excluded(&mut self, id: ThreadId, why: &str) {
        if let Some(thread) = self.threads.get_mut(&id) {
            thread.managed = false;
            thread.kept_out = true;
            thread.reason = Some(why.into());
        }
    }

    /// Returns true if a thread of a program is left alone because of its control groups.
    pub(super) fn has_excluded(&self, program: ProgramId) -> bool {
        let mut kept_out = self.threads.iter().filter(|(_, thread)| thread.kept_out);
        kept_out.any(|(id, _)| self.program_of(id.pid) == program)
    }

    /// Notes the reason for which a thread is left alone.
    pub(super) fn note_reason(&mut self, id: ThreadId, why: &str) {
        if let Some(thread) = self.threads.get_mut(&id) {
            thread.reason = Some(why.into());
        }
    }

    /// Reasons for which threads are left alone.
    pub(super) fn reasons(&self) -> impl Iterator<Item = (ThreadId, Arc<str>)> {
        let threads = self.threads.iter();
        threads.filter_map(|(&id, thread)| Some((id, thread.reason.clone()?)))
    }

    /// The name of the program that a process belongs to.
    pub(super) fn program_name(&self, pid: u32) -> &str {
        self.trees.name(self.program_of(pid).0)
    }

    /// Notes that a thread is left alone only because of its affinity.
    pub(super) fn mark_self_placed(&mut self, id: ThreadId) {
        if let Some(thread) = self.threads.get_mut(&id) {
            thread.self_placed = true;
        }
    }

    /// Threads that may be paused, but not placed.
    pub(super) fn self_placed(&self) -> BTreeSet<ThreadId> {
        let placed = self.threads.iter().filter(|(_, thread)| thread.self_placed);
        placed.map(|(&id, _)| id).collect()
    }

    /// Returns true if a thread is the first of a process that has others.
    pub(super) fn leads_others(&self, id: ThreadId) -> bool {
        let mut next = self.threads.range(id..).skip(1);
        id.tid == id.pid && next.next().is_some_and(|(other, _)| other.pid == id.pid)
    }

    /// The first thread of a process, if it is known.
    pub(super) fn leader_of(&self, pid: u32) -> Option<ThreadId> {
        let first = ThreadId {
            pid,
            tid: pid,
            start_ticks: 0,
        };
        let (&leader, _) = self.threads.range(first..).next()?;
        (leader.tid == pid).then_some(leader)
    }

    /// The managed thread that started this one; if that has exited, any of its process or of the
    /// one at the root of its program.
    pub(super) fn parent_of(&self, id: ThreadId, parent: Option<u32>) -> Option<ThreadId> {
        let of_process = |pid: u32| self.ids().find(|t| t.pid == pid);
        let found = parent.and_then(|tid| self.by_tid(tid));
        let found = found.or_else(|| of_process(id.pid));
        let root = self.trees.root_of(id.pid);
        found.or_else(|| root.and_then(of_process))
    }

    pub(super) fn by_tid(&self, tid: u32) -> Option<ThreadId> {
        self.ids().find(|id| id.tid == tid)
    }

    /// The next managed threads whose cpusets are to be read, when it is time to; after the last
    /// one, from the first again.
    pub(super) fn take_recheck(&mut self, now: Instant) -> Option<Vec<ThreadId>> {
        if now < self.next_recheck {
            return None;
        }
        self.next_recheck = now + RECHECK_EVERY;
        let after = (Bound::Excluded(self.rechecked), Bound::Unbounded);
        let managed = self.threads.range(after).filter(|(_, t)| t.managed);
        let next: Vec<ThreadId> = managed.map(|(&id, _)| id).take(AT_A_TIME).collect();
        self.rechecked = next.last().copied().unwrap_or(BEFORE_ALL);
        Some(next)
    }

    pub(super) fn program_of(&self, pid: u32) -> ProgramId {
        ProgramId(self.trees.root_of(pid).unwrap_or(pid))
    }

    /// Returns true if the process belongs to a managed program.
    pub(super) fn is_managed(&self, pid: u32) -> bool {
        let root = self.trees.root_of(pid);
        root.is_some_and(|root| self.trees.is_managed(root))
    }

    /// Processes with threads here, or with threads that have exited since the last observation,
    /// that are part of another program than that of their own pid.
    pub(super) fn programs(&self) -> BTreeMap<ProgramId, ProgramId> {
        let there = self
            .ids()
            .map(|id| (ProgramId(id.pid), self.program_of(id.pid)));
        let parted = self.exited.iter().map(|p| (p.id.program(), p.program));
        let programs = parted.chain(there);
        programs.filter(|(own, of)| own != of).collect()
    }

    /// Users of the programs that are there: that of the process at a program's root, or else, if
    /// that has exited, of some process of it.
    pub(super) fn owners(&mut self, root: &Path) -> BTreeMap<ProgramId, u32> {
        let processes = self.ids().map(|id| (self.program_of(id.pid), id.pid));
        let programs: BTreeMap<ProgramId, u32> = processes.collect();
        self.owners
            .retain(|program, _| programs.contains_key(program));
        for (program, pid) in programs {
            // Read once per program, because it costs a file.
            if !self.owners.contains_key(&program) {
                let users = ThreadUsers::from_process(root, program.0)
                    .or_else(|_| ThreadUsers::from_process(root, pid));
                self.owners
                    .extend(users.ok().map(|users| (program, users.real_uid())));
            }
        }
        self.owners.clone()
    }

    /// Policies of the programs that were given one of their own.
    pub(super) fn assigned_policies(&self) -> BTreeMap<ProgramId, Arc<str>> {
        let policies = self.trees.policies();
        policies
            .map(|(root, policy)| (ProgramId(root), policy))
            .collect()
    }

    pub(super) fn processes(&self) -> BTreeSet<u32> {
        self.ids().map(|id| id.pid).collect()
    }

    /// The processes of a program that have threads here.
    pub(super) fn processes_of(&self, program: ProgramId) -> BTreeSet<u32> {
        let pids = self.ids().map(|id| id.pid);
        pids.filter(|&pid| self.program_of(pid) == program)
            .collect()
    }
}
