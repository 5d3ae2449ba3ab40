//! Estimates from what threads counted in their last quantum.

use super::{ActiveThread, PieCounts, PieModel};
use crate::ids::ThreadId;
use std::collections::BTreeMap;

/// An estimate per thread, renewed with each quantum in which it ran.
#[derive(Debug)]
pub(in crate::policies) struct PieEstimates {
    impact: PieModel,
    /// Counts of each thread since the quantum began; true where they are from a large core.
    now: BTreeMap<ThreadId, (bool, PieCounts)>,
    last: BTreeMap<ThreadId, f64>,
}

impl PieEstimates {
    pub(in crate::policies) fn new(impact: PieModel) -> Self {
        Self {
            impact,
            now: BTreeMap::new(),
            last: BTreeMap::new(),
        }
    }

    /// Adds an interval's counts. Those of a thread that has changed its kind of core within the
    /// quantum begin anew.
    pub(in crate::policies) fn add_counts(&mut self, ran: &ActiveThread<'_>, on_large: bool) {
        let fresh = || (on_large, PieCounts::default());
        let entry = self.now.entry(ran.thread).or_insert_with(fresh);
        if entry.0 != on_large {
            *entry = fresh();
        }
        entry.1.add(ran.sample);
    }

    /// Renews the estimates at the end of a quantum, by `estimate`, which is given the counts and
    /// true where they are from a large core.
    pub(in crate::policies) fn end_quantum(
        &mut self,
        estimate: impl Fn(&PieModel, &PieCounts, bool) -> Option<f64>,
    ) {
        for (thread, (on_large, counted)) in std::mem::take(&mut self.now) {
            if let Some(value) = estimate(&self.impact, &counted, on_large) {
                self.last.insert(thread, value);
            }
        }
    }

    /// Forgets threads that are gone.
    pub(in crate::policies) fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        self.now.retain(|&id, _| !is_gone(id));
        self.last.retain(|&id, _| !is_gone(id));
    }

    /// The last estimate.
    pub(in crate::policies) fn last_estimate(&self, thread: ThreadId) -> Option<f64> {
        self.last.get(&thread).copied()
    }
}
