//! From what threads did to what is seen of it.

use super::ThreadCounts;
use consort_core::{Sample, SignalOffers, ThreadId};

/// Makes samples of counts: the simulated PMU, with its limits and its noise.
pub trait SampleSource {
    /// The signals that samples have, each with its tier.
    fn offers(&self) -> &SignalOffers;

    /// The sample of what a thread did in an interval of `interval_ns`. Asked once per thread and
    /// quantum, threads in ascending order of their ids.
    fn sample(&mut self, thread: ThreadId, counts: &ThreadCounts, interval_ns: u64) -> Sample;
}
