//! The simulated machine as a [`Machine`]: one quantum per observation.
//!
//! Usage: make one of a chip, instances and settings; hand it to a
//! [`consort_core::ControlLoop`]; when the loop ends, take it back and ask for
//! [`SimMachine::results`].
//!
//! Pitfall: policies must not get hold of the machine, only of what the control loop shows them;
//! [`SimMachine::oracle`] tells the inner truth.

use crate::chip::Chip;
use crate::engine::{
    Counts, EnergyMeter, Engine, EngineError, Instance, InstanceResult, Observer, Oracle,
    PS_PER_NS, SampleSource, Settings, Thread,
};
use consort_core::{
    Enacted, Machine, Observation, Offers, Placement, Plan, PuId, PuSet, ThreadId,
    ThreadObservation, Topology,
};
use std::sync::Arc;
use thiserror::Error;

/// Why the simulated machine can no longer be told anything.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SimError {
    /// A plan is not newer than the last.
    #[error("plan {given} is not newer than plan {last}, which was enacted")]
    OldPlan {
        /// Generation of the plan.
        given: u64,
        /// Generation of the last plan enacted.
        last: u64,
    },
}

/// A chip with programs on it, under an operating system's model.
pub struct SimMachine {
    chip: Arc<Chip>,
    engine: Engine,
    source: Box<dyn SampleSource>,
    quantum_ns: u64,
    /// Length of the next quantum where the last plan wants another, ns.
    next_ns: Option<u64>,
    generation: u64,
}

impl SimMachine {
    /// A machine on which nothing has happened yet; it is observed every `quantum_ns`.
    ///
    /// # Errors
    /// Instances without threads or work, an operating system that does not exist.
    pub fn new(
        chip: Arc<Chip>,
        instances: &[Instance],
        settings: &Settings,
        quantum_ns: u64,
        meter: Box<dyn EnergyMeter>,
        source: Box<dyn SampleSource>,
    ) -> Result<Self, EngineError> {
        Ok(Self {
            engine: Engine::new(Arc::clone(&chip), instances, settings, meter)?,
            chip,
            source,
            quantum_ns: quantum_ns.max(1),
            next_ns: None,
            generation: 0,
        })
    }

    /// Tells `observer` of everything that happens from now on.
    pub fn set_observer(&mut self, observer: Box<dyn Observer>) {
        self.engine.set_observer(observer);
    }

    /// Gives every logical core the physical PU listed for it, as a hardware scheduler does: each
    /// thread that thereby changes its PU pays for registers, pipeline and caches.
    ///
    /// # Errors
    /// A list that does not name every PU once.
    pub fn remap(&mut self, physical: &[usize]) -> Result<(), EngineError> {
        self.engine.remap(physical)
    }

    /// Whether a logical core is in kernel mode, switching threads; a hardware scheduler must not
    /// move it then.
    pub fn in_kernel(&self, logical: usize) -> bool {
        self.engine.in_kernel(logical)
    }

    /// What each instance has done so far, in the order in which they were given.
    pub fn results(&self) -> Vec<InstanceResult> {
        self.engine.results()
    }

    /// The inner truth; not for policies.
    pub fn oracle(&self) -> Oracle<'_> {
        Oracle::new(&self.engine)
    }

    /// Energy of the whole machine so far, J.
    pub fn energy_j(&self) -> f64 {
        self.engine.energy_j()
    }

    /// Simulated time so far, ns.
    pub fn time_ns(&self) -> u64 {
        self.engine.now_ps() / PS_PER_NS
    }

    fn collect(&mut self, interval_ns: u64) -> Observation {
        let mut observation = Observation {
            time_ns: self.time_ns(),
            interval_ns,
            ..Observation::default()
        };
        let source = self.source.as_mut();
        for thread in self.engine.threads_mut() {
            if !thread.is_reported() {
                continue;
            }
            let counts = thread.take_counts();
            let seen = see(source, thread, &counts, interval_ns);
            if thread.note_end() {
                observation.exited.push(seen);
            } else {
                observation.threads.push(seen);
            }
        }
        if self.chip.spec().os.instrumented_locks {
            observation.bottlenecks = self.engine.take_bottlenecks();
        }
        observation
    }

    /// Sets a thread's mask; whether it is another than before.
    fn mask(&mut self, id: ThreadId, placement: &Placement, enacted: &mut Enacted) {
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

fn see(
    source: &mut dyn SampleSource,
    thread: &Thread,
    counts: &Counts,
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

impl Machine for SimMachine {
    type Error = SimError;

    fn topology(&self) -> &Topology {
        self.chip.topology()
    }

    fn offers(&self) -> &Offers {
        self.source.offers()
    }

    fn observe(&mut self) -> Result<Option<Observation>, SimError> {
        if self.engine.is_done() {
            return Ok(None);
        }
        let begin = self.engine.now_ps();
        self.engine.begin_quantum();
        let length_ns = self.next_ns.take().unwrap_or(self.quantum_ns);
        let end = begin.saturating_add(length_ns.saturating_mul(PS_PER_NS));
        self.engine.run_until(end);
        let interval_ns = (self.engine.now_ps() - begin) / PS_PER_NS;
        Ok(Some(self.collect(interval_ns)))
    }

    fn enact(&mut self, plan: &Plan) -> Result<Enacted, SimError> {
        if plan.generation <= self.generation {
            return Err(SimError::OldPlan {
                given: plan.generation,
                last: self.generation,
            });
        }
        self.generation = plan.generation;
        self.next_ns = plan.quantum_ns.map(|ns| ns.max(1));
        let mut enacted = Enacted::default();
        for (&id, placement) in &plan.placements {
            self.mask(id, placement, &mut enacted);
        }
        self.engine.obey();
        Ok(enacted)
    }
}

#[cfg(test)]
mod tests;
