//! The samples that a thread is judged by.
//!
//! Policies look every 200 ms to 1 s. A thread that ran all the time has 100 to 500 samples by
//! then; one that mostly sleeps has five, whose shares would jump about. So the window holds the
//! samples of the interval, and when they are fewer than [`WINDOW_SAMPLES`], the latest ones before
//! it too: a busy thread is judged by the interval alone, and a change of phase shows within one or
//! two tenths of a second of CPU time; an idle one keeps the shares of its last activity. The
//! standard error of a share is then at most 0.5 / sqrt(200) = 3.5 percent.

use consort_isa::{BlockFacts, Estimate, Estimator, SamplePoint, SampledProcessor};
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of samples for which a window reaches back beyond the interval.
pub(super) const WINDOW_SAMPLES: usize = 200;
/// Most samples that a window holds; the latest stand for the others.
const MAX_SAMPLES: usize = 4_096;

/// One sample, and its block if that could be decoded. Weights are in ns.
#[derive(Clone, Debug)]
struct WindowSample {
    block: Option<Arc<BlockFacts>>,
    at: SamplePoint,
}

/// The latest samples of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct SampleWindow {
    points: VecDeque<WindowSample>,
    /// Number of points of this interval.
    fresh: usize,
}

impl SampleWindow {
    pub(super) fn add(&mut self, block: Option<Arc<BlockFacts>>, at: SamplePoint) {
        let point = WindowSample { block, at };
        self.points.push_back(point);
        self.fresh = (self.fresh + 1).min(MAX_SAMPLES);
        self.shrink_to(WINDOW_SAMPLES.max(self.fresh));
    }

    /// Begins a new interval.
    pub(super) fn next_interval(&mut self) {
        self.fresh = 0;
        self.shrink_to(WINDOW_SAMPLES);
    }

    /// Forgets everything: the thread executes another program.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    /// Estimate from the samples; `None` when none could be decoded.
    pub(super) fn estimate(&self, host: SampledProcessor) -> Option<Estimate> {
        let mut estimator = Estimator::for_processor(host);
        for point in &self.points {
            match &point.block {
                Some(block) => {
                    estimator.add_at(block, point.at);
                }
                None => estimator.add_undecoded(point.at.weight),
            }
        }
        estimator.finish()
    }

    fn shrink_to(&mut self, len: usize) {
        let surplus = self.points.len().saturating_sub(len);
        self.points.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AT: SamplePoint = SamplePoint {
        address: 0,
        accessed: None,
        pu: 0,
        time_ns: 0,
        weight: 1.0,
    };

    proptest! {
        #[test]
        fn it_holds_the_interval_and_reaches_back_for_the_rest(
            intervals in prop::collection::vec(0usize..900, 1..12)
        ) {
            let mut window = SampleWindow::default();
            let mut seen = 0;
            for (at, &samples) in intervals.iter().enumerate() {
                if at > 0 {
                    window.next_interval();
                }
                (0..samples).for_each(|_| window.add(None, AT));
                seen += samples;
                prop_assert_eq!(window.len(), seen.min(samples.max(WINDOW_SAMPLES)));
            }
        }
    }

    #[test]
    fn it_is_bounded() {
        let mut window = SampleWindow::default();
        (0..3 * MAX_SAMPLES).for_each(|_| window.add(None, AT));
        assert_eq!(window.len(), MAX_SAMPLES);
    }
}
