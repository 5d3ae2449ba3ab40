//! `pinned`: threads are dealt to PUs in turn and stay there; several on one share it by time.

use super::{OsInfo, OsModel, OsView, PlacementReason};

pub(crate) const INFO: OsInfo = OsInfo {
    name: "pinned",
    summary: "deals threads to PUs in turn and leaves them there",
    build: |_| Box::new(PinnedModel { next: 0 }),
};

struct PinnedModel {
    next: usize,
}

impl OsModel for PinnedModel {
    fn choose_pu(&mut self, view: &OsView<'_>, thread: usize, _: PlacementReason) -> usize {
        let stays = view
            .previous_pu(thread)
            .filter(|&pu| view.allows(thread, pu));
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
