//! The machine for policies that place software threads.

use super::SimMachine;
use crate::engine::{SampleSource, SimulatedThread, ThreadCounts};
use consort_core::{
    EnactmentReport, Observation, Placement, Plan, PuId, PuSet, Reading, Signal, ThreadId,
    ThreadObservation, Tier,
};
use std::sync::Arc;

impl SimMachine {
    /// Takes every thread's sample.
    pub(super) fn collect(&mut self, observation: &mut Observation) {
        let heeds = self.ends_on_activity();
        let shares = self.take_energy_shares();
        let source = self.source.as_mut();
        for thread in self.engine.threads_mut() {
            if !thread.is_reported() {
                continue;
            }
            let counts = thread.take_counts();
            let mut seen = observe_thread(source, thread, &counts, observation.interval_ns);
            if let Some(shares) = &shares {
                shares.note(&counts, observation.interval_ns, &mut seen.sample);
            }
            if heeds {
                note_activity(thread, observation.interval_ns, &mut seen);
            }
            if thread.note_end() {
                observation.exited.push(seen);
            } else {
                observation.threads.push(seen);
            }
        }
    }

    /// Carries out where threads may run.
    pub(super) fn enact_masks(&mut self, plan: &Plan) -> EnactmentReport {
        let mut enacted = EnactmentReport::default();
        for (&id, placement) in &plan.placements {
            self.set_mask(id, placement, &mut enacted);
        }
        self.engine.enforce_masks();
        for (p, id) in self.engine.program_ids() {
            self.engine.set_paused(p, plan.paused.contains(&id));
            if let Some(&threads) = plan.teams.get(&id) {
                self.engine.set_team(p, threads as usize);
            }
        }
        enacted
    }

    /// Sets a thread's mask; notes whether it is another than before.
    fn set_mask(&mut self, id: ThreadId, placement: &Placement, enacted: &mut EnactmentReport) {
        let threads = self.engine.threads();
        let Ok(t) = threads.binary_search_by_key(&id, |thread| thread.id) else {
            return;
        };
        let original = &threads[t].original;
        let mask = match placement {
            Placement::Unrestricted => PuSet::clone(original),
            Placement::Restricted(pus) => original.intersection(pus),
        };
        if mask.is_empty() {
            let warning = format!("thread {id} may not run on any PU of {placement}");
            enacted.warnings.push(warning);
        } else if mask != threads[t].allowed {
            self.engine.restrict(t, mask);
            enacted.moved.push(id);
        }
    }
}

fn observe_thread(
    source: &mut dyn SampleSource,
    thread: &SimulatedThread,
    counts: &ThreadCounts,
    interval_ns: u64,
) -> ThreadObservation {
    ThreadObservation {
        id: thread.id,
        name: Arc::clone(&thread.name),
        original: Arc::clone(&thread.original),
        managed: true,
        last_pu: thread.pu.map(|pu| PuId(pu as u32)),
        sample: source.sample(thread.id, counts, interval_ns),
    }
}

/// Notes what the thread was doing at the end, as an instrumented library tells it.
fn note_activity(thread: &SimulatedThread, interval_ns: u64, seen: &mut ThreadObservation) {
    let states = [
        (Signal::Runnable, thread.is_runnable()),
        (Signal::Waiting, thread.is_waiting()),
    ];
    for (signal, on) in states {
        let reading = Reading::fully_counted(f64::from(u8::from(on)), Tier::Software, interval_ns);
        seen.sample.set(signal, reading);
    }
}
