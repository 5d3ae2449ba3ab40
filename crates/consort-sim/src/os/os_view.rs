//! View that a model of the operating system has of the machine.

use super::OsTopology;
use crate::engine::pu::PuState;
use crate::engine::thread::SimulatedThread;
use consort_core::PuId;

/// The machine's queues at an instant. Threads and PUs by index.
#[derive(Clone, Copy)]
pub(crate) struct OsView<'a> {
    pub(crate) shape: &'a OsTopology,
    pub(crate) pus: &'a [PuState],
    pub(crate) threads: &'a [SimulatedThread],
    /// By thread, the LLC domain that the model keeps it in; none for all where it keeps nobody.
    pub(crate) homes: &'a [Option<usize>],
}

impl OsView<'_> {
    /// Runnable threads on a PU.
    pub(crate) fn load(&self, pu: usize) -> usize {
        self.pus[pu].load()
    }

    /// Runnable threads on several.
    pub(crate) fn sum(&self, pus: &[usize]) -> usize {
        pus.iter().map(|&pu| self.load(pu)).sum()
    }

    /// True if a thread may run on a PU.
    pub(crate) fn allows(&self, thread: usize, pu: usize) -> bool {
        let home = self.homes.get(thread).copied().flatten();
        let kept_from = home.is_some_and(|llc| llc != self.shape.llc[pu]);
        !kept_from && self.threads[thread].allowed.contains(PuId(pu as u32))
    }

    /// The PU where a thread is or was.
    pub(crate) fn previous_pu(&self, thread: usize) -> Option<usize> {
        self.threads[thread].pu
    }

    /// Threads that need a PU.
    pub(crate) fn runnable_threads(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.threads.len()).filter(|&t| self.threads[t].is_runnable())
    }

    /// The thread at the end of a PU's queue that may go to another: it loses the least by going to
    /// the end of that one's.
    pub(crate) fn last_queued_for(&self, from: usize, to: usize) -> Option<usize> {
        let mut queue = self.pus[from].queue.iter().rev().copied();
        queue.find(|&t| self.allows(t, to))
    }

    /// The longest-queued thread of a PU that may go to another.
    pub(crate) fn first_queued_for(&self, from: usize, to: usize) -> Option<usize> {
        let mut queue = self.pus[from].queue.iter().copied();
        queue.find(|&t| self.allows(t, to))
    }
}
