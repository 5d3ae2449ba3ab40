//! Whose turn it is.

use super::{Group, Seat};
use std::collections::VecDeque;

/// The queue of logical cores on small cores (Markovic, HRRS), and those on large ones in the
/// order in which they came.
#[derive(Clone, Debug, Default)]
pub(in crate::policies) struct RoundRobin {
    small: VecDeque<usize>,
    large: VecDeque<usize>,
}

impl RoundRobin {
    /// Follows logical cores that others have exchanged; newcomers go to the end.
    pub(in crate::policies) fn follow(&mut self, group: &Group<'_>) {
        align(&mut self.small, &group.small);
        align(&mut self.large, &group.large);
    }

    /// Those on small cores, those whose turn comes first in front.
    pub(in crate::policies) fn in_turn<'g, 'a>(
        &'g self,
        group: &'g Group<'a>,
    ) -> impl DoubleEndedIterator<Item = &'g Seat<'a>> {
        let seat = |l: &usize| group.small.iter().find(|seat| seat.logical == *l);
        self.small.iter().filter_map(seat)
    }

    /// The first in the queue that `may` have the large core; others are passed over.
    pub(in crate::policies) fn next(
        &self,
        group: &Group<'_>,
        may: impl Fn(&Seat<'_>) -> bool,
    ) -> Option<usize> {
        let mut able = self.in_turn(group).filter(|seat| may(seat));
        able.next().map(|seat| seat.logical)
    }

    /// The large core that has to give way: an idle one, else the one that has been there longest.
    pub(in crate::policies) fn leaver<'g, 'a>(&self, group: &'g Group<'a>) -> Option<&'g Seat<'a>> {
        let place = |seat: &&Seat<'_>| self.large.iter().position(|&l| l == seat.logical);
        let key = |seat: &&Seat<'_>| (!seat.is_idle(), place(seat));
        group.large.iter().min_by_key(key)
    }

    /// Notes that two logical cores are exchanged: the one that leaves the large core is appended.
    pub(in crate::policies) fn exchanged(&mut self, small: usize, large: usize) {
        self.small.retain(|&l| l != small);
        self.small.push_back(large);
        self.large.retain(|&l| l != large);
        self.large.push_back(small);
    }
}

fn align(queue: &mut VecDeque<usize>, seats: &[Seat<'_>]) {
    queue.retain(|&l| seats.iter().any(|seat| seat.logical == l));
    for seat in seats {
        if !queue.contains(&seat.logical) {
            queue.push_back(seat.logical);
        }
    }
}
