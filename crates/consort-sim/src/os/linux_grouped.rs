//! `linux-grouped`: as `linux`, but every thread stays in the LLC domain where it was first placed.
//!
//! Source: Markovic (PhD thesis, UPC 2015), KUTHS for many cores: groups of cores have private
//! last-level regions, hardware exchanges threads inside a group only, and the operating system
//! keeps threads in their group.
//!
//! The first placement is that of `linux`. Wake-up, new-idle pull and periodic balancing then look
//! no further than the thread's domain. A thread whose mask leaves it no PU there is placed anew,
//! and stays in the domain that it comes to. On a machine with one LLC domain it is `linux`.

use super::linux::Linux;
use super::{OsInfo, OsModel, OsTopology, OsView, PlacementReason};

pub(crate) const INFO: OsInfo = OsInfo {
    name: "linux-grouped",
    summary: "as linux, but keeps every thread in the LLC domain where it began",
    build: |draw| {
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
    /// Lets a thread that may run nowhere in its domain look for another.
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

    fn next_balance_ms(&self, shape: &OsTopology, ms: u64) -> u64 {
        self.linux.next_balance_ms(shape, ms)
    }

    fn balance_move(&mut self, view: &OsView<'_>, ms: u64) -> Option<(usize, usize)> {
        let homes = &self.homes;
        self.linux.balance_move(&OsView { homes, ..*view }, ms)
    }
}
