//! `linux-acmp`: threads are dealt to cores in turn at the start and kept there; a large core that
//! would idle helps the others.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), the Linux that its policies are set against.
//!
//! - The n-th thread goes to the n-th core, in turn, and wakes up there; threads of a core share it
//!   by time.
//! - A large core takes a thread from elsewhere only while all of its own are stalled or finished:
//!   one that waits on the most crowded small core, or runs on it where none waits. It goes back as
//!   soon as one of the large core's own can run.
//!
//! Large are the cores of the largest capacity; where all are alike, as logical cores are, none is.

use super::os_view::least_by_score;
use super::{OsInfo, OsModel, OsView, PlacementReason};
use crate::engine::draw::RandomStream;
use core::cmp::Reverse;

pub(crate) const INFO: OsInfo = OsInfo {
    name: "linux-acmp",
    summary: "deals threads to cores in turn and keeps them there; idle large cores help out",
    build: |draw| {
        Box::new(LinuxAcmp {
            draw,
            next: 0,
            homes: Vec::new(),
        })
    },
};

struct LinuxAcmp {
    draw: RandomStream,
    /// Place in the order of PUs of the one whose turn it is.
    next: usize,
    /// By thread, the PU that it was dealt to.
    homes: Vec<Option<usize>>,
}

/// PUs in the order in which they are dealt: one of each core, then the next of each.
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

    /// The next PU in turn on which a thread may run.
    fn deal_pu(&mut self, view: &OsView<'_>, thread: usize) -> usize {
        let order = order(view);
        let n = order.len();
        let mut turns = (0..n).map(|i| (self.next + i) % n);
        // A mask always names a PU of the machine.
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

    /// A thread of a small core for a large one that would idle.
    fn thread_for_large(
        &mut self,
        view: &OsView<'_>,
        large: usize,
        is_small: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        if view.load(large) > 0 {
            return None;
        }
        let works = |&t: &usize| view.threads[t].is_running() && view.allows(t, large);
        let of = |pu: usize| {
            let running = || view.pus[pu].current.filter(works);
            view.first_queued_for(pu, large).or_else(running)
        };
        let sources = (0..view.shape.len()).filter(|&pu| is_small(pu) && of(pu).is_some());
        let source = least_by_score(&mut self.draw, sources, |pu| Reverse(view.load(pu)))?;
        of(source)
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

    fn urgent_move(&mut self, view: &OsView<'_>) -> Option<(usize, usize)> {
        let capacity = &view.shape.capacity;
        let most = capacity.iter().copied().max()?;
        let is_small = |pu: usize| capacity[pu] < most;
        if !(0..capacity.len()).any(is_small) {
            return None;
        }
        let mut large = (0..capacity.len()).filter(|&pu| !is_small(pu));
        large.find_map(|pu| {
            let guest = self.guest(view, pu);
            guest.or_else(|| Some((self.thread_for_large(view, pu, is_small)?, pu)))
        })
    }
}
