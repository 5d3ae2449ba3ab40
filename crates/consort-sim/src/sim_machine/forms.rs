//! Observations and plans in the two forms of policies.
//!
//! Policies in software place threads. Hardware schedulers observe and place logical cores: of a
//! software thread they see what its logical core counts, whether it runs, waits or is in the
//! kernel, and which one it is, since the operating system saves and restores its counters.

use super::SimMachine;
use crate::engine::{SampleSource, SimulatedThread, ThreadCounts};
use consort_core::{
    EnactmentReport, Observation, Placement, Plan, PuId, PuSet, Reading, Sample, Signal, ThreadId,
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
            let counts = thread.counters.take();
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

    /// Enacts masks, pauses and teams.
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
        let original = &threads[t].queue.original;
        let mask = match placement {
            Placement::Unrestricted => PuSet::clone(original),
            Placement::Restricted(pus) => original.intersection(pus),
        };
        if mask.is_empty() {
            let warning = format!("thread {id} may not run on any CPU of {placement}");
            enacted.warnings.push(warning);
        } else if mask != threads[t].queue.allowed {
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
        original: Arc::clone(&thread.queue.original),
        managed: true,
        last_pu: thread.queue.pu.map(|pu| PuId(pu as u32)),
        sample: source.sample(thread.id, counts, interval_ns),
    }
}

/// Notes what the thread was doing at the end, as an instrumented library reports it.
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
            let own = thread.counters.take();
            thread.note_end();
            if let Some(logical) = thread.queue.pu {
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

    /// Carries out a mapping from logical cores to CPUs. A logical core in kernel mode stays, and
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

/// The CPU that a plan gives a logical core, if it gives it exactly one.
fn planned_pu(plan: &Plan, logical: usize) -> Option<usize> {
    match plan.placements.get(&logical_core_id(logical))? {
        Placement::Restricted(pus) if pus.len() == 1 => pus.first().map(|pu| pu.0 as usize),
        Placement::Restricted(_) | Placement::Unrestricted => None,
    }
}
