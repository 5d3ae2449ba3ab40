//! The machine for hardware schedulers: what they observe and place are logical cores.
//!
//! Nothing of a software thread is seen but what its logical core counts, whether it runs, waits
//! or is in the kernel, and which one it is, since the operating system saves and restores its
//! counters.

use super::SimMachine;
use crate::engine::{SimulatedThread, ThreadCounts};
use consort_core::{
    EnactmentReport, Observation, Placement, Plan, PuId, PuSet, Reading, Sample, Signal, ThreadId,
    ThreadObservation, Tier,
};
use std::sync::Arc;

/// A logical core as a hardware scheduler names it.
pub(super) fn logical_core_id(logical: usize) -> ThreadId {
    ThreadId {
        pid: 0,
        tid: logical as u32,
        start_ticks: 0,
    }
}

impl SimMachine {
    /// Takes every logical core's sample.
    pub(super) fn collect_logical_cores(&mut self, observation: &mut Observation) {
        let n = self.engine.logical_cores();
        let mut counts = vec![ThreadCounts::default(); n];
        for thread in self.engine.threads_mut() {
            if !thread.is_reported() {
                continue;
            }
            // Intervals end when a thread changes its logical core, so all of this was there.
            let own = thread.take_counts();
            thread.note_end();
            if let Some(logical) = thread.pu {
                counts[logical].add(&own);
            }
        }
        let all = Arc::new(self.chip.topology().pus().clone());
        for (logical, counts) in counts.iter().enumerate() {
            let sample =
                self.source
                    .sample(logical_core_id(logical), counts, observation.interval_ns);
            observation.threads.push(ThreadObservation {
                id: logical_core_id(logical),
                name: format!("logical core {logical}").into(),
                original: Arc::clone(&all),
                managed: true,
                last_pu: Some(PuId(self.engine.physical_pu(logical) as u32)),
                sample: self.with_state(logical, sample, counts, observation.interval_ns),
            });
        }
    }

    /// Adds what the logical core and its thread were doing at the end, and whether it came back to
    /// user mode.
    fn with_state(
        &self,
        logical: usize,
        mut sample: Sample,
        counts: &ThreadCounts,
        interval_ns: u64,
    ) -> Sample {
        let occupant = self.engine.occupant(logical);
        sample.occupant = occupant.map(|thread| thread.id);
        let states = [
            (Signal::Runnable, occupant.is_some()),
            (
                Signal::Waiting,
                occupant.is_none_or(SimulatedThread::is_waiting),
            ),
            (Signal::KernelMode, self.engine.is_in_kernel(logical)),
            (Signal::UserReturns, counts.user_returns > 0),
        ];
        for (signal, on) in states {
            let value = f64::from(u8::from(on));
            sample.set(
                signal,
                Reading::fully_counted(value, Tier::Counters, interval_ns),
            );
        }
        sample
    }

    /// Carries out a mapping from logical cores to PUs. A logical core in kernel mode stays, and
    /// with it the whole mapping.
    pub(super) fn enact_mapping(&mut self, plan: &Plan) -> EnactmentReport {
        let mut enacted = EnactmentReport::default();
        let n = self.engine.logical_cores();
        let now: Vec<usize> = (0..n).map(|l| self.engine.physical_pu(l)).collect();
        let next: Vec<usize> = (0..n)
            .map(|l| planned_pu(plan, l).unwrap_or(now[l]))
            .collect();
        let changed: Vec<usize> = (0..n).filter(|&l| next[l] != now[l]).collect();
        if let Some(&l) = changed.iter().find(|&&l| self.engine.is_in_kernel(l)) {
            let warning = format!("logical core {l} is in kernel mode and cannot be moved");
            enacted.warnings.push(warning);
        } else if let Err(error) = self.engine.remap(&next) {
            enacted.warnings.push(error.to_string());
        } else {
            enacted.moved = changed.into_iter().map(logical_core_id).collect();
        }
        enacted
    }
}

/// The PU that a plan gives a logical core, if it gives it exactly one.
fn planned_pu(plan: &Plan, logical: usize) -> Option<usize> {
    match plan.placements.get(&logical_core_id(logical))? {
        Placement::Restricted(pus) => only_pu(pus),
        Placement::Unrestricted => None,
    }
}

fn only_pu(pus: &PuSet) -> Option<usize> {
    let first = pus.first().filter(|_| pus.len() == 1);
    first.map(|pu| pu.0 as usize)
}
