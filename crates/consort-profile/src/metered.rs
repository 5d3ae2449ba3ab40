//! One thread with meters of its own.

use consort_ops::Op;

use crate::interval::{Interval, Stretch};
use crate::measure::{Counts, Meters};
use crate::recorder::Stage;

/// Instructions of each thread in each interval of which data flow and use distances are measured
/// where everything is recorded: they vary little and cost much.
const DATAFLOW: u64 = 1 << 16;

/// A thread and what is measured of it.
#[derive(Debug)]
pub(crate) struct Metered {
    /// None any more where it has ended.
    meters: Option<Box<Meters>>,
    stretch: Stretch,
    counting: bool,
    /// Instructions heard of.
    pub(crate) heard: u64,
    /// Instructions heard of in this interval.
    within: u64,
    /// Number of stages before this one.
    pub(crate) stage: u64,
    /// True where its operations may meet those of other threads.
    pub(crate) has_siblings: bool,
}

impl Metered {
    /// A thread of which counts what is heard before any stage, if `counting`. Only the one that
    /// the program started with may be without siblings.
    pub(crate) fn new(counting: bool, is_first: bool) -> Self {
        let mut meters = Box::<Meters>::default();
        meters.count(counting);
        Self {
            meters: Some(meters),
            stretch: Stretch::default(),
            counting,
            heard: 0,
            within: 0,
            stage: 0,
            has_siblings: !is_first,
        }
    }

    pub(crate) const fn is_counting(&self) -> bool {
        self.counting
    }

    /// Takes an operation; all data flow is measured if so told.
    pub(crate) fn op(&mut self, op: &Op, all_dataflow: bool) {
        if op.first {
            self.first(op.address);
        }
        if let Some(meters) = &mut self.meters {
            meters.op(op, all_dataflow || self.within <= DATAFLOW);
        }
    }

    /// Takes the address of an instruction.
    fn first(&mut self, address: u64) {
        self.heard += 1;
        self.within += 1;
        if self.counting {
            self.stretch.instruction(address);
        }
    }

    /// Begins a stage; whether what is before it was not heard.
    pub(crate) fn enter(&mut self, stage: Stage, number: u64) -> bool {
        let follows = self.stage + 1 == number && stage == Stage::Window;
        self.stage = number;
        self.counting = stage == Stage::Window;
        if let Some(meters) = &mut self.meters {
            meters.count(self.counting);
        }
        !follows
    }

    /// Counts since the end before; nothing where there are none.
    pub(crate) fn end_interval(&mut self) -> Option<Interval> {
        self.within = 0;
        self.stretch.end(self.meters.as_ref()?)
    }

    /// Ends the thread behind an interval: what was measured is kept, what measured it is not.
    pub(crate) fn finish(&mut self) {
        self.meters = None;
    }

    /// Instructions by line of code.
    pub(crate) fn all_code(&self) -> &[u64] {
        &self.stretch.all_code
    }

    /// Counts until the last interval ended.
    pub(crate) fn counts(&self) -> &Counts {
        self.stretch.counts()
    }
}
