//! `linux-acmp`: threads are dealt to cores in turn at the start and kept there; a large core that
//! idles for long helps the others.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), section 5.2.3, the Linux that its policies are set against. Threads are pinned
//! there and rarely reassigned, and no thread comes to the large core "at every scheduling quantum
//! until threads pinned to the large core are all stalled or finished".
//!
//! - Each thread goes to the next core in turn, and wakes up there; threads of a core share it by
//!   time. No core type decides where the turn begins: the thesis's simulator deals from its core 0
//!   on (Sniper, common/scheduler/scheduler_pinned.cc), and which number the large core has is not
//!   known. Runs with consecutive seeds begin at consecutive cores, so that as many runs as there are
//!   cores begin once at each.
//! - A large core looks for work elsewhere only at the end of a scheduling quantum at which all of
//!   its own threads are stalled or finished. It takes a thread that waits on the most crowded small
//!   core; one that runs, only after as many attempts as a kernel's balancer bears, see
//!   [`Attempts`].
//! - That thread goes back at the first end of a quantum at which one of the large core's own can
//!   run.
//!
//! Large are the cores of the largest capacity; where all are alike, as logical cores are, none is.

use super::linux::Attempts;
use super::os_view::least_by_score;
use super::{OsInfo, OsModel, OsView, PlacementReason};
use crate::engine::draw::RandomStream;
use core::cmp::Reverse;

pub(crate) const INFO: OsInfo = OsInfo {
    name: "linux-acmp",
    summary: "deals threads to cores in turn and keeps them there; idle large cores help out",
    build: |draw, seed| {
        Box::new(LinuxAcmp {
            draw,
            next: seed as usize,
            homes: Vec::new(),
            attempts: Attempts::default(),
        })
    },
};

/// Scheduling quantum of the thesis's operating system, ms.
const QUANTUM_MS: u64 = 4;

struct LinuxAcmp {
    draw: RandomStream,
    /// Place in the order of CPUs of the one whose turn it is, modulo their number.
    next: usize,
    /// By thread, the CPU that it was dealt to.
    homes: Vec<Option<usize>>,
    /// Those of idle large cores, by CPU.
    attempts: Attempts,
}

/// CPUs in the order in which they are dealt: one of each core, then the next of each.
fn order(view: &OsView<'_>) -> Vec<usize> {
    let cores = &view.shape.cores;
    let most = cores.iter().map(Vec::len).max().unwrap_or(0);
    let rank = |n| cores.iter().filter_map(move |core| core.get(n).copied());
    (0..most).flat_map(rank).collect()
}

impl LinuxAcmp {
    fn home(&self, thread: usize) -> Option<usize> {
        self.homes.get(thread).copied().flatten()
    }

    /// The next CPU in turn on which a thread may run.
    fn deal_pu(&mut self, view: &OsView<'_>, thread: usize) -> usize {
        let order = order(view);
        let n = order.len();
        let mut turns = (0..n).map(|i| (self.next % n + i) % n);
        // A mask always names a CPU of the machine.
        let turn = turns.find(|&i| view.allows(thread, order[i])).unwrap_or(0);
        self.next = (turn + 1) % n;
        order[turn]
    }

    /// A guest of a large core that must return home, and its home.
    fn guest(&self, view: &OsView<'_>, large: usize) -> Option<(usize, usize)> {
        let state = &view.pus[large];
        let there = || state.current.iter().chain(&state.queue).copied();
        if there().all(|t| self.home(t) != Some(large)) {
            return None;
        }
        let away = |t: usize| self.home(t).filter(|&home| home != large);
        let back = |t: usize| Some((t, away(t).filter(|&home| view.allows(t, home))?));
        there().find_map(back)
    }

    /// A thread of a small core for a large one that idles at the end of a quantum.
    fn thread_for_large(
        &mut self,
        view: &OsView<'_>,
        large: usize,
        is_small: impl Fn(usize) -> bool,
        ms: u64,
    ) -> Option<usize> {
        if view.load(large) > 0 {
            return None;
        }
        let works = |&t: &usize| view.threads[t].is_running() && view.allows(t, large);
        let waiting = |pu: usize| view.first_queued_for(pu, large);
        let of = |pu: usize| waiting(pu).or_else(|| view.pus[pu].current.filter(works));
        let sources = (0..view.shape.len()).filter(|&pu| is_small(pu) && of(pu).is_some());
        let source = least_by_score(&mut self.draw, sources, |pu| Reverse(view.load(pu)))?;
        let mut domains = view.shape.domains.iter();
        let nice_tries = domains
            .find(|d| d.groups.iter().any(|g| g.contains(&large)))?
            .nice_tries;
        let takes = waiting(source).is_some()
            || !self.attempts.has_tried((0, large), ms)
                && self
                    .attempts
                    .count_attempt((0, large), nice_tries, QUANTUM_MS, ms);
        of(source).filter(|_| takes)
    }
}

impl OsModel for LinuxAcmp {
    fn choose_pu(&mut self, view: &OsView<'_>, thread: usize, _: PlacementReason) -> usize {
        let known = [self.home(thread), view.previous_pu(thread)];
        let mut known = known.into_iter().flatten();
        if let Some(pu) = known.find(|&pu| view.allows(thread, pu)) {
            return pu;
        }
        let pu = self.deal_pu(view, thread);
        if self.homes.len() <= thread {
            self.homes.resize(thread + 1, None);
        }
        self.homes[thread].get_or_insert(pu);
        pu
    }

    fn next_balance_ms(&self, _: &OsView<'_>, ms: u64) -> Option<u64> {
        Some((ms / QUANTUM_MS + 1) * QUANTUM_MS)
    }

    fn balance_move(&mut self, view: &OsView<'_>, ms: u64) -> Option<(usize, usize)> {
        let capacity = &view.shape.capacity;
        let most = capacity.iter().copied().max()?;
        let is_small = |pu: usize| capacity[pu] < most;
        let mut large = (0..capacity.len()).filter(|&pu| !is_small(pu));
        large.find_map(|pu| {
            let guest = self.guest(view, pu);
            guest.or_else(|| Some((self.thread_for_large(view, pu, is_small, ms)?, pu)))
        })
    }
}
