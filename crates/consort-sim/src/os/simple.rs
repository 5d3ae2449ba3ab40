//! `pinned` and `random`: placements that no real kernel makes, as bounds for comparison.

use super::os_view::least_by_score;
use super::{OsInfo, OsModel, OsView, PlacementReason};
use crate::engine::draw::RandomStream;

pub(crate) const PINNED: OsInfo = OsInfo {
    name: "pinned",
    summary: "deals threads to CPUs in turn and leaves them there",
    build: |_, _| Box::new(PinnedModel { next: 0 }),
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
        // A mask always names a CPU of the machine.
        let pu = turns.find(|&pu| view.allows(thread, pu)).unwrap_or(0);
        self.next = (pu + 1) % n;
        pu
    }
}

pub(crate) const RANDOM: OsInfo = OsInfo {
    name: "random",
    summary: "deals threads to CPUs anew each quantum, evenly and at random",
    build: |draw, _| Box::new(RandomModel { draw }),
};

struct RandomModel {
    draw: RandomStream,
}

impl OsModel for RandomModel {
    fn choose_pu(&mut self, view: &OsView<'_>, thread: usize, _: PlacementReason) -> usize {
        let allowed = (0..view.shape.len()).filter(|&pu| view.allows(thread, pu));
        // A mask always names a CPU of the machine.
        least_by_score(&mut self.draw, allowed, |pu| view.load(pu)).unwrap_or(0)
    }

    fn deal_threads(&mut self, view: &OsView<'_>) -> Vec<(usize, usize)> {
        let runnable: Vec<usize> = view.runnable_threads().collect();
        let mut load = vec![0usize; view.shape.len()];
        let mut moves = Vec::with_capacity(runnable.len());
        for i in self.draw.order(runnable.len()) {
            let thread = runnable[i];
            let allowed = (0..load.len()).filter(|&pu| view.allows(thread, pu));
            if let Some(pu) = least_by_score(&mut self.draw, allowed, |pu| load[pu]) {
                load[pu] += 1;
                moves.push((thread, pu));
            }
        }
        moves
    }
}
