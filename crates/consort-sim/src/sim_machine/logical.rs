//! The machine for hardware schedulers: what they observe and place are logical cores.
//!
//! Nothing of a software thread is seen but what its logical core counts, whether it runs, waits
//! or is in the kernel, and which one it is, since the operating system saves and restores its
//! counters.

use super::SimMachine;
use crate::engine::{Counts, Thread};
use consort_core::{
    Enacted, Observation, Placement, Plan, PuId, PuSet, Reading, Sample, Signal, ThreadId,
    ThreadObservation, Tier,
};
use std::sync::Arc;

/// A logical core as a hardware scheduler names it.
pub(super) fn name(logical: usize) -> ThreadId {
    ThreadId {
        pid: 0,
        tid: logical as u32,
        start_ticks: 0,
    }
}

impl SimMachine {
    /// Takes every logical core's sample.
    pub(super) fn collect_logical(&mut self, observation: &mut Observation) {
        let n = self.engine.logical_cores();
        let mut counts = vec![Counts::default(); n];
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
            let sample = self
                .source
                .sample(name(logical), counts, observation.interval_ns);
            observation.threads.push(ThreadObservation {
                id: name(logical),
                name: format!("logical core {logical}").into(),
                original: Arc::clone(&all),
                managed: true,
                last_pu: Some(PuId(self.engine.physical(logical) as u32)),
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
        counts: &Counts,
        interval_ns: u64,
    ) -> Sample {
        let occupant = self.engine.occupant(logical);
        sample.occupant = occupant.map(|thread| thread.id);
        let states = [
            (Signal::Runnable, occupant.is_some()),
            (Signal::Waiting, occupant.is_none_or(Thread::waits)),
            (Signal::KernelMode, self.engine.in_kernel(logical)),
            (Signal::UserReturns, counts.user_returns > 0),
        ];
        for (signal, on) in states {
            let value = f64::from(u8::from(on));
            sample.set(signal, Reading::whole(value, Tier::Counters, interval_ns));
        }
        sample
    }

    /// Carries out a mapping from logical cores to PUs. A logical core in kernel mode stays, and
    /// with it the whole mapping.
    pub(super) fn enact_mapping(&mut self, plan: &Plan) -> Enacted {
        let mut enacted = Enacted::default();
        let n = self.engine.logical_cores();
        let now: Vec<usize> = (0..n).map(|l| self.engine.physical(l)).collect();
        let next: Vec<usize> = (0..n).map(|l| planned(plan, l).unwrap_or(now[l])).collect();
        let changed: Vec<usize> = (0..n).filter(|&l| next[l] != now[l]).collect();
        if let Some(&l) = changed.iter().find(|&&l| self.engine.in_kernel(l)) {
            let warning = format!("logical core {l} is in kernel mode and cannot be moved");
            enacted.warnings.push(warning);
        } else if let Err(error) = self.engine.remap(&next) {
            enacted.warnings.push(error.to_string());
        } else {
            enacted.moved = changed.into_iter().map(name).collect();
        }
        enacted
    }
}

/// The PU that a plan gives a logical core, if it gives it exactly one.
fn planned(plan: &Plan, logical: usize) -> Option<usize> {
    match plan.placements.get(&name(logical))? {
        Placement::Restricted(pus) => only(pus),
        Placement::Unrestricted => None,
    }
}

fn only(pus: &PuSet) -> Option<usize> {
    let first = pus.first().filter(|_| pus.len() == 1);
    first.map(|pu| pu.0 as usize)
}
