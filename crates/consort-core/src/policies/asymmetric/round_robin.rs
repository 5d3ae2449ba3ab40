//! Turns of logical cores on the large core.

use super::{LogicalCore, LogicalCoreGroup};
use crate::policy::{OptionInfo, PolicyError, PolicyOptions};
use std::collections::VecDeque;

/// Option of the policies that take turns.
pub(in crate::policies) const TURNS: OptionInfo = OptionInfo {
    name: "turns",
    default: "queue",
    meaning: "queue (who is passed over is first next time) or counter (waits for the next round)",
};

/// Reads [`TURNS`].
///
/// # Errors
/// Another word.
pub(in crate::policies) fn turn_order(
    options: &PolicyOptions<'_>,
) -> Result<TurnOrder, PolicyError> {
    let words = [("queue", TurnOrder::Queue), ("counter", TurnOrder::Counter)];
    options.one_of(TURNS.name, &words, "queue or counter")
}

/// Keeper of the order of turns. The two differ once a logical core is passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::policies) enum TurnOrder {
    /// A queue, to which those who leave the large core are appended, as in the algorithm's text
    /// (Markovic, HRRS).
    #[default]
    Queue,
    /// A counter that goes round the logical cores, as the unit is drawn there.
    Counter,
}

/// The order of logical cores on small cores, and those on large ones in the order in which they
/// came.
#[derive(Clone, Debug, Default)]
pub(in crate::policies) struct RoundRobin {
    order: TurnOrder,
    small: VecDeque<usize>,
    large: VecDeque<usize>,
    /// The counter: behind the logical core that was chosen last.
    from: usize,
}

impl RoundRobin {
    pub(in crate::policies) fn new(order: TurnOrder) -> Self {
        Self {
            order,
            ..Self::default()
        }
    }

    /// Follows logical cores that others have exchanged; newcomers go to the end of a queue.
    pub(in crate::policies) fn update_queues(&mut self, group: &LogicalCoreGroup<'_>) {
        align_queue(&mut self.small, &group.small);
        align_queue(&mut self.large, &group.large);
        self.sort_by_counter();
    }

    /// Puts the small ones into the counter's order, if that is kept.
    fn sort_by_counter(&mut self) {
        let from = self.from;
        if self.order == TurnOrder::Counter {
            let small = self.small.make_contiguous();
            small.sort_unstable_by_key(|&l| (l < from, l));
        }
    }

    /// Seats on small cores, those whose turn comes first in front.
    pub(in crate::policies) fn small_cores_by_turn<'g, 'a>(
        &'g self,
        group: &'g LogicalCoreGroup<'a>,
    ) -> impl DoubleEndedIterator<Item = &'g LogicalCore<'a>> {
        let seat = |l: &usize| group.small.iter().find(|seat| seat.logical == *l);
        self.small.iter().filter_map(seat)
    }

    /// The first in the queue that `may` have the large core; others are passed over.
    pub(in crate::policies) fn next_candidate(
        &self,
        group: &LogicalCoreGroup<'_>,
        may: impl Fn(&LogicalCore<'_>) -> bool,
    ) -> Option<usize> {
        let mut able = self.small_cores_by_turn(group).filter(|seat| may(seat));
        able.next().map(|seat| seat.logical)
    }

    /// The large core that has to give way: an idle one, else the one that has been there longest.
    pub(in crate::policies) fn demotion_candidate<'g, 'a>(
        &self,
        group: &'g LogicalCoreGroup<'a>,
    ) -> Option<&'g LogicalCore<'a>> {
        let place = |seat: &&LogicalCore<'_>| self.large.iter().position(|&l| l == seat.logical);
        let key = |seat: &&LogicalCore<'_>| (!seat.is_idle(), place(seat));
        group.large.iter().min_by_key(key)
    }

    /// Notes that two logical cores are exchanged: the one that leaves the large core is appended to
    /// the queue, and the counter goes on behind the one that gets it.
    pub(in crate::policies) fn record_swap(&mut self, small: usize, large: usize) {
        self.small.retain(|&l| l != small);
        self.small.push_back(large);
        self.large.retain(|&l| l != large);
        self.large.push_back(small);
        self.from = small + 1;
        self.sort_by_counter();
    }
}

fn align_queue(queue: &mut VecDeque<usize>, seats: &[LogicalCore<'_>]) {
    queue.retain(|&l| seats.iter().any(|seat| seat.logical == l));
    for seat in seats {
        if !queue.contains(&seat.logical) {
            queue.push_back(seat.logical);
        }
    }
}
