//! `linux-grouped` and `linux-itmt`: `linux` with another first placement.
//!
//! `linux-grouped` keeps every thread in the LLC domain where it was first placed. Source: Markovic
//! (PhD thesis, UPC 2015), KUTHS for many cores: groups of cores have private last-level regions,
//! hardware exchanges threads inside a group only, and the operating system keeps threads in their
//! group. The first placement is that of `linux`. Wake-up, new-idle pull and periodic balancing
//! then look no further than the thread's domain. A thread whose mask leaves it no CPU there is
//! placed anew, and stays in the domain that it comes to. On a machine with one LLC domain it is
//! `linux`.
//!
//! `linux-itmt` fills the cores of the largest capacity first, as kernels do on chips that report
//! priorities (ITMT, `SD_ASYM_PACKING`; Documentation/scheduler/sched-capacity.rst). A thread goes
//! to an idle core of the largest capacity, else to an idle CPU of the largest capacity, else to
//! the least loaded CPU. At balancing ticks an idle core of larger capacity takes over a thread
//! from a smaller one.

use super::linux::{Linux, next_idle_balance_ms};
use super::os_view::least_by_score;
use super::{OsInfo, OsModel, OsView, PlacementReason};
use crate::engine::draw::RandomStream;
use core::cmp::Reverse;

pub(crate) const GROUPED: OsInfo = OsInfo {
    name: "linux-grouped",
    summary: "as linux, but keeps every thread in the LLC domain where it began",
    build: |draw, _| {
        Box::new(LinuxGrouped {
            linux: Linux::new(draw),
            homes: Vec::new(),
        })
    },
};

struct LinuxGrouped {
    linux: Linux,
    /// By thread, the LLC domain that it stays in.
    homes: Vec<Option<usize>>,
}

impl LinuxGrouped {
    /// Lets a thread that may run nowhere in its domain look for another domain.
    fn release_home(&mut self, view: &OsView<'_>, thread: usize) {
        if self.homes.len() <= thread {
            self.homes.resize(thread + 1, None);
        }
        let kept = OsView {
            homes: &self.homes,
            ..*view
        };
        if !(0..view.shape.len()).any(|pu| kept.allows(thread, pu)) {
            self.homes[thread] = None;
        }
    }
}

impl OsModel for LinuxGrouped {
    fn choose_pu(&mut self, view: &OsView<'_>, thread: usize, why: PlacementReason) -> usize {
        self.release_home(view, thread);
        let homes = &self.homes;
        let pu = self
            .linux
            .choose_pu(&OsView { homes, ..*view }, thread, why);
        self.homes[thread] = Some(view.shape.llc[pu]);
        pu
    }

    fn pull_thread(&mut self, view: &OsView<'_>, pu: usize) -> Option<usize> {
        let homes = &self.homes;
        self.linux.pull_thread(&OsView { homes, ..*view }, pu)
    }

    fn next_balance_ms(&self, view: &OsView<'_>, ms: u64) -> Option<u64> {
        self.linux.next_balance_ms(view, ms)
    }

    fn balance_move(&mut self, view: &OsView<'_>, ms: u64) -> Option<(usize, usize)> {
        let homes = &self.homes;
        self.linux.balance_move(&OsView { homes, ..*view }, ms)
    }
}

pub(crate) const ITMT: OsInfo = OsInfo {
    name: "linux-itmt",
    summary: "as linux, but fills cores in the order of their capacity",
    build: |draw, _| {
        Box::new(LinuxItmt {
            linux: Linux::new(draw.clone()),
            draw,
        })
    },
};

struct LinuxItmt {
    linux: Linux,
    draw: RandomStream,
}

fn core_load(view: &OsView<'_>, pu: usize) -> usize {
    view.sum(&view.shape.cores[view.shape.core[pu]])
}

impl LinuxItmt {
    /// An idle core of larger capacity than one with a thread that may go there.
    fn promote(&mut self, view: &OsView<'_>) -> Option<(usize, usize)> {
        let capacity = &view.shape.capacity;
        let idle = (0..view.shape.len()).filter(|&pu| core_load(view, pu) == 0);
        let target = least_by_score(&mut self.draw, idle, |pu| Reverse(capacity[pu]))?;
        let running = (0..view.shape.len()).filter(|&pu| {
            let current = view.pus[pu].current;
            capacity[pu] < capacity[target] && current.is_some_and(|t| view.allows(t, target))
        });
        let source = least_by_score(&mut self.draw, running, |pu| capacity[pu])?;
        Some((view.pus[source].current?, target))
    }
}

impl OsModel for LinuxItmt {
    fn choose_pu(&mut self, view: &OsView<'_>, thread: usize, _: PlacementReason) -> usize {
        let previous = view.previous_pu(thread);
        let allowed = (0..view.shape.len()).filter(|&pu| view.allows(thread, pu));
        let rank = |pu: usize| {
            let load = view.load(pu);
            let class = match (load, core_load(view, pu)) {
                (0, 0) => 0,
                (0, _) => 1,
                _ => 1 + load,
            };
            let elsewhere = previous != Some(pu);
            (class, Reverse(view.shape.capacity[pu]), elsewhere)
        };
        // A mask always names a CPU of the machine.
        least_by_score(&mut self.draw, allowed, rank).unwrap_or(0)
    }

    fn pull_thread(&mut self, view: &OsView<'_>, pu: usize) -> Option<usize> {
        self.linux.pull_thread(view, pu)
    }

    fn next_balance_ms(&self, view: &OsView<'_>, ms: u64) -> Option<u64> {
        Some(next_idle_balance_ms(view.shape, ms))
    }

    fn balance_move(&mut self, view: &OsView<'_>, ms: u64) -> Option<(usize, usize)> {
        self.promote(view)
            .or_else(|| self.linux.balance_move(view, ms))
    }
}
