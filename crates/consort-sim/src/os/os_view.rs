//! View that a model of the operating system has of the machine, and its search for idle CPUs.

use super::OsTopology;
use crate::engine::draw::RandomStream;
use crate::engine::pu::PuState;
use crate::engine::thread::SimulatedThread;
use consort_core::PuId;

/// The machine's queues at an instant. Threads and CPUs by index.
#[derive(Clone, Copy)]
pub(crate) struct OsView<'a> {
    pub(crate) shape: &'a OsTopology,
    pub(crate) pus: &'a [PuState],
    pub(crate) threads: &'a [SimulatedThread],
    /// By thread, the LLC domain that the model keeps it in; empty if the model keeps no thread.
    pub(crate) homes: &'a [Option<usize>],
    pub(crate) now_ps: u64,
    /// Time since its last turn in which a queued thread is not moved, ps.
    pub(crate) hot_ps: u64,
}

impl OsView<'_> {
    /// Runnable threads on a CPU.
    pub(crate) fn load(&self, pu: usize) -> usize {
        self.pus[pu].load()
    }

    /// Runnable threads on several.
    pub(crate) fn sum(&self, pus: &[usize]) -> usize {
        pus.iter().map(|&pu| self.load(pu)).sum()
    }

    /// True if a thread may run on a CPU.
    pub(crate) fn allows(&self, thread: usize, pu: usize) -> bool {
        let home = self.homes.get(thread).copied().flatten();
        let kept_from = home.is_some_and(|llc| llc != self.shape.llc[pu]);
        !kept_from && self.threads[thread].queue.allowed.contains(PuId(pu as u32))
    }

    /// The CPU where a thread is or was.
    pub(crate) fn previous_pu(&self, thread: usize) -> Option<usize> {
        self.threads[thread].queue.pu
    }

    /// Threads that need a CPU.
    pub(crate) fn runnable_threads(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.threads.len()).filter(|&t| self.threads[t].is_runnable())
    }

    /// True if a queued thread may be moved to another CPU.
    fn may_move(&self, thread: usize, to: usize) -> bool {
        let ran_until = self.threads[thread].queue.ran_until;
        let is_hot = ran_until > 0 && self.now_ps < ran_until + self.hot_ps;
        !is_hot && self.allows(thread, to)
    }

    /// The thread at the end of a CPU's queue that may go to another: it loses the least by going
    /// to the end of that one's.
    pub(crate) fn last_queued_for(&self, from: usize, to: usize) -> Option<usize> {
        let mut queue = self.pus[from].queue.iter().rev().copied();
        queue.find(|&t| self.may_move(t, to))
    }

    /// The longest-queued thread of a CPU that may go to another.
    pub(crate) fn first_queued_for(&self, from: usize, to: usize) -> Option<usize> {
        let mut queue = self.pus[from].queue.iter().copied();
        queue.find(|&t| self.may_move(t, to))
    }
}

/// The allowed CPU of `among` whose core is idlest, and on it the idlest.
pub(crate) fn idlest_pu(
    view: &OsView<'_>,
    draw: &mut RandomStream,
    thread: usize,
    among: &[usize],
) -> Option<usize> {
    let score = |pu: usize| {
        let core = &view.shape.cores[view.shape.core[pu]];
        let crowd = if view.load(pu) == 0 {
            view.sum(core)
        } else {
            usize::MAX
        };
        (crowd, view.load(pu))
    };
    let allowed = among.iter().copied().filter(|&pu| view.allows(thread, pu));
    least_by_score(draw, allowed, score)
}

/// The LLC domain with the fewest runnable threads per CPU among those where a thread may run.
pub(crate) fn idlest_llc(
    view: &OsView<'_>,
    draw: &mut RandomStream,
    thread: usize,
) -> Option<usize> {
    let open = |pus: &[usize]| pus.iter().any(|&pu| view.allows(thread, pu));
    let llcs = (0..view.shape.llcs.len()).filter(|&l| open(&view.shape.llcs[l]));
    // In 1024ths of a thread per CPU: fractions in lowest terms would need cross products.
    least_by_score(draw, llcs, |l| {
        view.sum(&view.shape.llcs[l]) * 1024 / view.shape.llcs[l].len()
    })
}

/// One of those with the least score, each as likely as the others.
pub(crate) fn least_by_score<K: PartialOrd>(
    draw: &mut RandomStream,
    among: impl Iterator<Item = usize>,
    score: impl Fn(usize) -> K,
) -> Option<usize> {
    let mut best: Option<(K, usize)> = None;
    let mut ties = 0;
    for candidate in among {
        let key = score(candidate);
        match &best {
            Some((least, _)) if key > *least => continue,
            Some((least, _)) if key == *least => ties += 1,
            _ => ties = 1,
        }
        if ties == 1 || draw.uniform_below(ties) == 0 {
            best = Some((key, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}
