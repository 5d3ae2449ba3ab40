//! Share of their time that threads spend away from the node that holds their memory.

use consort_core::ThreadId;
use consort_sim::chip::{Chip, PuPlace};
use consort_sim::engine::{Observer, RunSegment};
use std::cell::RefCell;
use std::rc::Rc;

/// Watches a run; its clones see the same.
#[derive(Clone)]
pub struct RemoteMemoryWatch(Rc<RefCell<RemoteMemoryMeter>>);

struct RemoteMemoryMeter {
    /// Node of each PU, and the node of the memory that is first touched there.
    node_of: Vec<(usize, usize)>,
    /// Node of each thread's memory, by thread: the first that the thread was on, or the nearest to
    /// it with memory.
    home: Vec<(ThreadId, usize)>,
    /// Place of the thread that the next segment is likely to be of: they come in the order of the
    /// threads.
    next: usize,
    away_ps: u64,
    all_ps: u64,
}

impl RemoteMemoryWatch {
    /// Watches a run on this machine from its beginning.
    pub fn new(chip: &Chip) -> Self {
        let nodes = |place: &PuPlace| (place.node, chip.memory_node(place.node));
        Self(Rc::new(RefCell::new(RemoteMemoryMeter {
            node_of: chip.places().iter().map(nodes).collect(),
            home: Vec::new(),
            next: 0,
            away_ps: 0,
            all_ps: 0,
        })))
    }

    /// Share of the time that threads were on PUs, 0 to 1.
    pub fn share(&self) -> f64 {
        let meter = self.0.borrow();
        meter.away_ps as f64 / (meter.all_ps as f64).max(1.0)
    }
}

impl RemoteMemoryMeter {
    /// The node of a thread's memory; `node`, that of the memory that it touches now, if it was
    /// nowhere before.
    fn home_of(&mut self, thread: ThreadId, node: usize) -> usize {
        let is_next = { self.home.get(self.next) }.is_some_and(|(id, _)| *id == thread);
        if !is_next {
            let found = self.home.binary_search_by_key(&thread, |(id, _)| *id);
            self.next = found.unwrap_or_else(|place| {
                self.home.insert(place, (thread, node));
                place
            });
        }
        let home = self.home[self.next].1;
        self.next = (self.next + 1) % self.home.len();
        home
    }
}

impl Observer for RemoteMemoryWatch {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        let mut meter = self.0.borrow_mut();
        let (node, touched) = meter.node_of[segment.pu];
        let home = meter.home_of(segment.thread, touched);
        let time = segment.to_ps - segment.from_ps;
        meter.all_ps += time;
        meter.away_ps += if node == home { 0 } else { time };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chip, segment};
    use consort_sim::contention::ThreadRates;

    #[test]
    fn home_is_where_a_thread_was_first() {
        let chip = chip("power8:smt=2");
        let places = chip.places();
        let far = { places.iter() }.position(|place| place.node != places[0].node);
        let far = far.expect("there are two nodes");
        let mut watch = RemoteMemoryWatch::new(&chip);
        let rates = ThreadRates::default();
        for (tid, pu, from_ps, to_ps) in [
            (1, 0, 0, 10),
            (2, far + 2, 0, 10),
            (1, far + 1, 10, 40),
            (2, far, 10, 40),
        ] {
            watch.note_segment(&segment(tid, pu, [from_ps, to_ps], &rates));
        }
        assert_eq!(watch.share(), 30.0 / 80.0);
    }
}
