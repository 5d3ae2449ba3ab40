//! `linux-itmt`: as `linux`, but the cores of the largest capacity are filled first, as kernels
//! do on chips that tell them (ITMT priorities, `SD_ASYM_PACKING`; Documentation/scheduler/
//! sched-capacity.rst).
//!
//! A thread goes to an idle core of the largest capacity, else to an idle PU of the largest
//! capacity, else to the least loaded PU. At balancing ticks an idle core of larger capacity
//! takes over a thread from a smaller one.

use super::idlest::least_by_score;
use super::linux::Linux;
use super::{OsInfo, OsModel, OsTopology, OsView, PlacementReason};
use crate::engine::draw::RandomStream;
use core::cmp::Reverse;

pub(crate) const INFO: OsInfo = OsInfo {
    name: "linux-itmt",
    summary: "as linux, but fills cores in the order of their capacity",
    build: |draw| {
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
        // A mask always names a PU of the machine.
        least_by_score(&mut self.draw, allowed, rank).unwrap_or(0)
    }

    fn pull_thread(&mut self, view: &OsView<'_>, pu: usize) -> Option<usize> {
        self.linux.pull_thread(view, pu)
    }

    fn next_balance_ms(&self, shape: &OsTopology, ms: u64) -> u64 {
        self.linux.next_balance_ms(shape, ms)
    }

    fn balance_move(&mut self, view: &OsView<'_>, ms: u64) -> Option<(usize, usize)> {
        self.promote(view)
            .or_else(|| self.linux.balance_move(view, ms))
    }
}
