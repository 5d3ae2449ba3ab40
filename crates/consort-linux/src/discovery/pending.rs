//! Threads that were announced but not yet looked up in `/proc`.
//!
//! Looking a thread up costs some microseconds, so threads that have ended again before the ring is
//! read are never looked up, and of the others only a bounded number per round: a fork bomb must
//! not keep discovery busy for ever.

use super::manage::{CallerCredentials, ThreadOwner, UnmanageableReason};
use crate::proc::{ProcError, ProcStatus, read_stat, thread_dir};
use consort_core::ThreadId;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// A thread as it was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnnouncedThread {
    pub(crate) pid: u32,
    /// Kernel thread id of the parent, if a record had it.
    pub(crate) parent: Option<u32>,
}

/// A thread as `/proc` describes it at first sight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundThread {
    pub(crate) id: ThreadId,
    pub(crate) name: String,
    pub(crate) unmanageable: Option<UnmanageableReason>,
}

/// Announced threads by tid, and recent ends.
#[derive(Debug, Default)]
pub(crate) struct PendingThreads {
    announced: BTreeMap<u32, AnnouncedThread>,
    /// Time of the end by tid: rings of different PUs are read one after another,
    /// so an end may arrive one round before a beginning or a sample.
    ends: HashMap<u32, u64>,
    older_ends: HashMap<u32, u64>,
}

impl PendingThreads {
    /// Announces a thread that began at `time_ns`; returns false when its end is known already.
    pub(crate) fn announce(&mut self, tid: u32, thread: AnnouncedThread, time_ns: u64) -> bool {
        let end = self.ends.remove(&tid);
        let end = end.or_else(|| self.older_ends.remove(&tid));
        let alive = end.is_none_or(|end_ns| end_ns < time_ns);
        if alive {
            self.announced.insert(tid, thread);
        }
        alive
    }

    /// Takes out a thread that has ended; returns false when no record had announced it. Records
    /// that come late may name a thread again that was looked up in vain and counted.
    pub(crate) fn remove_ended(&mut self, tid: u32) -> bool {
        let announced = self.announced.remove(&tid);
        announced.is_some_and(|thread| thread.parent.is_some())
    }

    pub(crate) fn remember_end(&mut self, tid: u32, time_ns: u64) {
        self.ends.insert(tid, time_ns);
    }

    /// Returns true if the thread waits to be looked up, or has ended lately.
    pub(crate) fn contains(&self, tid: u32) -> bool {
        let ends = [&self.ends, &self.older_ends];
        self.announced.contains_key(&tid) || ends.iter().any(|e| e.contains_key(&tid))
    }

    /// Drops all announced threads of a process but its leader; returns their number.
    pub(crate) fn drop_other_threads(&mut self, pid: u32) -> u64 {
        let before = self.announced.len();
        self.announced
            .retain(|&tid, thread| thread.pid != pid || tid == pid);
        (before - self.announced.len()) as u64
    }

    /// Takes up to `max` threads out, lowest tid first.
    pub(crate) fn take_lowest(&mut self, max: usize) -> Vec<(u32, AnnouncedThread)> {
        let take = max.min(self.announced.len());
        (0..take)
            .filter_map(|_| self.announced.pop_first())
            .collect()
    }

    /// Forgets ends that are two rounds old.
    pub(crate) fn next_round(&mut self) {
        self.older_ends = std::mem::take(&mut self.ends);
    }
}

/// Looks a thread up in `/proc`.
pub(crate) fn look_up(
    root: &Path,
    me: CallerCredentials,
    pid: u32,
    tid: u32,
) -> Result<FoundThread, ProcError> {
    let stat = read_stat(root, pid, tid)?;
    if !stat.is_alive() {
        // It waits for its parent to take note; there is nothing left to manage.
        return Err(ProcError::Gone);
    }
    let owner = || {
        let status = ProcStatus::read(&thread_dir(root, pid, tid).join("status"))?;
        Ok(ThreadOwner::from_status(&status))
    };
    Ok(FoundThread {
        id: ThreadId {
            pid,
            tid,
            start_ticks: stat.start_ticks,
        },
        unmanageable: me.unmanageable_reason(&stat, owner)?,
        name: stat.comm,
    })
}
