//! The large cores' share of a run, and moves between cores.

use super::CoreKind;
use consort_core::ThreadId;
use consort_sim::chip::Chip;
use consort_sim::engine::{Observer, PuUse, RunSegment};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Watches a run; its clones see the same.
#[derive(Clone)]
pub struct LargeCoreWatch(Rc<RefCell<LargeCoreMeter>>);

struct LargeCoreMeter {
    is_large: Vec<bool>,
    /// Accesses by large cores and by all.
    accesses: [f64; 2],
    /// Instructions on large cores and on all.
    instructions: [f64; 2],
    /// Last PU of each thread.
    last: BTreeMap<ThreadId, usize>,
    moves: u64,
}

impl LargeCoreWatch {
    /// Watches a run on this machine from its beginning.
    pub fn new(chip: &Chip) -> Self {
        Self(Rc::new(RefCell::new(LargeCoreMeter {
            is_large: CoreKind::large_pus(chip),
            accesses: [0.0; 2],
            instructions: [0.0; 2],
            last: BTreeMap::new(),
            moves: 0,
        })))
    }

    /// Times that a thread came onto another PU of the chip, by whatever cause.
    pub fn moves(&self) -> u64 {
        self.0.borrow().moves
    }

    /// Share of the accesses to LLCs that large cores make, 0 to 1; not a number without any.
    pub fn access_share(&self) -> f64 {
        let [large, all] = self.0.borrow().accesses;
        large / all
    }

    /// Share of the instructions that large cores execute, 0 to 1.
    pub fn instruction_share(&self) -> f64 {
        let [large, all] = self.0.borrow().instructions;
        large / all
    }
}

impl Observer for LargeCoreWatch {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        let mut meter = self.0.borrow_mut();
        let before = meter.last.insert(segment.thread, segment.pu);
        meter.moves += u64::from(before.is_some_and(|pu| pu != segment.pu));
        if segment.doing != PuUse::Work {
            return;
        }
        let time_s = (segment.to_ps - segment.from_ps) as f64 * 1e-12;
        let instructions = segment.rates.ips * time_s;
        let accesses = instructions * segment.rates.flow.llc_accesses;
        let sides = if meter.is_large[segment.pu] { 0 } else { 1 };
        for side in sides..2 {
            meter.accesses[side] += accesses;
            meter.instructions[side] += instructions;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chip, segment};
    use consort_sim::contention::ThreadRates;

    #[test]
    fn what_large_cores_do_is_a_share_of_all() {
        let mut watch = LargeCoreWatch::new(&chip("acmp-1+3"));
        let mut rates = ThreadRates {
            ips: 1e9,
            ..ThreadRates::default()
        };
        for (pu, llc_accesses, doing) in [
            (0, 0.02, PuUse::Work),
            (1, 0.01, PuUse::Work),
            (3, 0.01, PuUse::Work),
            (2, 0.5, PuUse::Spin),
        ] {
            rates.flow.llc_accesses = llc_accesses;
            watch.note_segment(&RunSegment {
                doing,
                ..segment(1, pu, [0, 1000], &rates)
            });
        }
        assert!((watch.access_share() - 0.5).abs() < 1e-12);
        assert!((watch.instruction_share() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(watch.moves(), 3);
    }
}
