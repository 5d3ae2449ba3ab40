//! Actual performance against the prediction: performance alone, and correction factors.

use super::partners::Partners;
use crate::ids::ThreadId;
use crate::model::Corrections;
use crate::policies::grouping::GroupedThreads;
use crate::sample::{Sample, ThreadObservation};
use crate::signal::Signal;
use crate::topology::Topology;
use std::collections::BTreeMap;

/// Performance of threads alone, and the corrections of predictions.
#[derive(Debug, Default)]
pub(super) struct MeasuredPerformance {
    /// Instructions per cycle alone on a core, and the core where that is known.
    alone_ipc: BTreeMap<ThreadId, (f64, Option<usize>)>,
    corrections: Corrections,
}

impl MeasuredPerformance {
    pub(super) fn corrections(&self) -> &Corrections {
        &self.corrections
    }

    pub(super) fn retain(&mut self, is_here: impl Fn(ThreadId) -> bool) {
        let gone: Vec<ThreadId> = self
            .alone_ipc
            .keys()
            .copied()
            .filter(|&id| !is_here(id))
            .collect();
        for id in gone {
            self.alone_ipc.remove(&id);
            self.corrections.forget(id);
        }
    }

    /// Takes the performance of every thread alone in the quantum that has just ended.
    #[doc(alias = "isolated IPC")]
    pub(super) fn record_alone(&mut self, topology: &Topology, crew: &GroupedThreads<'_>) {
        for thread in &crew.members {
            if let Some(ipc) = ipc(&thread.sample) {
                let core = core_of(topology, thread);
                self.alone_ipc.insert(thread.id, (ipc, core));
            }
        }
    }

    /// Compares the performance of each thread beside its partners with the prediction; `factor` is
    /// the speed of a thread alone on its present core over that on another.
    pub(super) fn correct_predictions(
        &mut self,
        crew: &GroupedThreads<'_>,
        partners: &Partners,
        factor: impl Fn(&ThreadObservation, usize) -> f64,
    ) {
        for thread in &crew.members {
            let alone = self.alone_ipc.get(&thread.id);
            let here = alone.map(|&(ipc, core)| match core {
                Some(core) => ipc * factor(thread, core),
                None => ipc,
            });
            self.correct_prediction(thread, here, partners);
        }
    }

    fn correct_prediction(
        &mut self,
        thread: &ThreadObservation,
        alone: Option<f64>,
        partners: &Partners,
    ) {
        let now = ipc(&thread.sample);
        let prediction = partners.prediction(thread.id);
        if let (Some(alone), Some(now), Some(predicted)) = (alone, now, prediction) {
            let performance = 1.0 / predicted.slowdown;
            self.corrections
                .update(thread.id, &predicted.co_runners, now / alone, performance);
        }
    }
}

/// The core on which a thread was last seen.
pub(super) fn core_of(topology: &Topology, thread: &ThreadObservation) -> Option<usize> {
    topology.core_of(thread.last_pu?)
}

/// Instructions per cycle.
pub(super) fn ipc(sample: &Sample) -> Option<f64> {
    let cycles = sample.get(Signal::Cycles)?;
    let ipc = sample.get(Signal::Instructions)? / cycles;
    (ipc.is_finite() && ipc > 0.0).then_some(ipc)
}
