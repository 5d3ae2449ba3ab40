//! How well predictions are met: performance alone, and correction factors.

use super::partners::Partners;
use crate::ids::ThreadId;
use crate::model::Corrections;
use crate::policies::grouping::Crew;
use crate::sample::{Sample, ThreadObservation};
use crate::signal::Signal;
use std::collections::BTreeMap;

/// What threads did alone, and by how much predictions must be corrected.
#[derive(Debug, Default)]
pub(super) struct Actual {
    /// Instructions per cycle alone on a core.
    alone_ipc: BTreeMap<ThreadId, f64>,
    corrections: Corrections,
}

impl Actual {
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

    /// Takes what every thread did alone in the quantum that has just ended.
    pub(super) fn note_alone(&mut self, crew: &Crew<'_>) {
        for thread in &crew.members {
            if let Some(ipc) = ipc(&thread.sample) {
                self.alone_ipc.insert(thread.id, ipc);
            }
        }
    }

    /// Compares what each thread did beside its partners with the prediction.
    pub(super) fn correct(&mut self, crew: &Crew<'_>, partners: &Partners) {
        for thread in &crew.members {
            self.correct_one(thread, partners);
        }
    }

    fn correct_one(&mut self, thread: &ThreadObservation, partners: &Partners) {
        let alone = self.alone_ipc.get(&thread.id).copied();
        let now = ipc(&thread.sample);
        let prediction = partners.prediction(thread.id);
        if let (Some(alone), Some(now), Some(predicted)) = (alone, now, prediction) {
            let performance = 1.0 / predicted.slowdown;
            self.corrections
                .update(thread.id, &predicted.co_runners, now / alone, performance);
        }
    }
}

fn ipc(sample: &Sample) -> Option<f64> {
    let cycles = sample.get(Signal::Cycles)?;
    let ipc = sample.get(Signal::Instructions)? / cycles;
    (ipc.is_finite() && ipc > 0.0).then_some(ipc)
}
