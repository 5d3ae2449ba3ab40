//! `pinned`: threads are dealt to PUs in turn and stay there; several on one share it by time.

use super::{Arrival, OsInfo, OsModel, View};

pub(crate) const INFO: OsInfo = OsInfo {
    name: "pinned",
    summary: "deals threads to PUs in turn and leaves them there",
    build: |_| Box::new(Pinned { next: 0 }),
};

struct Pinned {
    next: usize,
}

impl OsModel for Pinned {
    fn place(&mut self, view: &View<'_>, thread: usize, _: Arrival) -> usize {
        let stays = view.previous(thread).filter(|&pu| view.allows(thread, pu));
        if let Some(pu) = stays {
            return pu;
        }
        let n = view.shape.len();
        let mut turns = (0..n).map(|i| (self.next + i) % n);
        // A mask always names a PU of the machine.
        let pu = turns.find(|&pu| view.allows(thread, pu)).unwrap_or(0);
        self.next = (pu + 1) % n;
        pu
    }
}
