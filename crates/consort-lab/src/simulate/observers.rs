//! All observers of a run.

use consort_core::ThreadId;
use consort_experiment::watch::{LargeCores, Returns};
use consort_sim::chip::Chip;
use consort_sim::engine::{Observer, Segment};

/// Watches a run; its clones see the same.
#[derive(Clone)]
pub(crate) struct Observers {
    pub(crate) large_cores: LargeCores,
    pub(crate) returns: Returns,
}

impl Observers {
    pub(crate) fn new(chip: &Chip) -> Self {
        Self {
            large_cores: LargeCores::new(chip),
            returns: Returns::new(chip),
        }
    }
}

impl Observer for Observers {
    fn segment(&mut self, segment: &Segment<'_>) {
        self.large_cores.segment(segment);
        self.returns.segment(segment);
    }

    fn returns(&mut self, thread: ThreadId, so_far: u64) {
        self.returns.returns(thread, so_far);
    }
}
