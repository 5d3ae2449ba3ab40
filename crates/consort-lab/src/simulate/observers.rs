//! All observers of a run.

use consort_core::ThreadId;
use consort_experiment::watch::{LargeCoreWatch, ReturnWatch};
use consort_sim::chip::Chip;
use consort_sim::engine::{Observer, RunSegment};

/// Watches a run; its clones see the same.
#[derive(Clone)]
pub(crate) struct RunObservers {
    pub(crate) large_cores: LargeCoreWatch,
    pub(crate) returns: ReturnWatch,
}

impl RunObservers {
    pub(crate) fn new(chip: &Chip) -> Self {
        Self {
            large_cores: LargeCoreWatch::new(chip),
            returns: ReturnWatch::new(chip),
        }
    }
}

impl Observer for RunObservers {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        self.large_cores.note_segment(segment);
        self.returns.note_segment(segment);
    }

    fn note_returns(&mut self, thread: ThreadId, so_far: u64) {
        self.returns.note_returns(thread, so_far);
    }
}
