//! `random`: a new random placement every quantum of the policy, as even as masks allow.

use super::idlest::least;
use super::{Arrival, OsInfo, OsModel, View};
use crate::engine::draw::Draw;

pub(crate) const INFO: OsInfo = OsInfo {
    name: "random",
    summary: "deals threads to PUs anew each quantum, evenly and at random",
    build: |draw| Box::new(Random { draw }),
};

struct Random {
    draw: Draw,
}

impl OsModel for Random {
    fn place(&mut self, view: &View<'_>, thread: usize, _: Arrival) -> usize {
        let allowed = (0..view.shape.len()).filter(|&pu| view.allows(thread, pu));
        // A mask always names a PU of the machine.
        least(&mut self.draw, allowed, |pu| view.load(pu)).unwrap_or(0)
    }

    fn deal(&mut self, view: &View<'_>) -> Vec<(usize, usize)> {
        let runnable: Vec<usize> = view.runnable().collect();
        let mut load = vec![0usize; view.shape.len()];
        let mut moves = Vec::with_capacity(runnable.len());
        for i in self.draw.order(runnable.len()) {
            let thread = runnable[i];
            let allowed = (0..load.len()).filter(|&pu| view.allows(thread, pu));
            if let Some(pu) = least(&mut self.draw, allowed, |pu| load[pu]) {
                load[pu] += 1;
                moves.push((thread, pu));
            }
        }
        moves
    }
}
