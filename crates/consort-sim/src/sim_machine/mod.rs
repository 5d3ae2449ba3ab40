//! The simulated machine as a [`Machine`]: one quantum per observation.
//!
//! Usage: make one of a chip, instances and settings; hand it to a [`consort_core::ControlLoop`];
//! when the loop ends, take it back and ask for [`SimMachine::results`].
//!
//! Pitfall: policies must not get hold of the machine, only of what the control loop shows them;
//! [`SimMachine::oracle`] shows the inner truth.

use crate::chip::Chip;
use crate::engine::{
    EnergyMeter, Engine, EngineError, InstanceResult, Observer, Oracle, PS_PER_NS, SampleSource,
    SimulatedProgram, SimulationSettings,
};
use consort_core::policy::{PolicyForm, Wishes};
use consort_core::{
    EnactmentReport, IntervalEnd, Machine, Observation, Plan, SignalOffers, Topology,
};
use std::sync::Arc;
use thiserror::Error;

mod energy_shares;
mod forms;

/// One in so many quanta is a slice longer; prime, so that turns among two, three or four threads
/// of a CPU and turns among two or four CPUs have no common period.
const SKIPS_EVERY: u64 = 11;

/// Reason why the simulated machine refuses a plan.
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
    /// Quanta that have begun.
    quanta: u64,
    /// Length of the next quantum where the last plan wants another, ns.
    next_ns: Option<u64>,
    /// End of the quantum that has begun, ps; in the past when it is over.
    quantum_end: u64,
    /// Time that the last decision took since the observation before it, ps.
    decided_in: u64,
    /// True if a thread stalled or continued meanwhile.
    stirred: bool,
    wishes: Wishes,
    generation: u64,
    /// Energy of the machine up to the last observation, J.
    told_j: f64,
}

impl SimMachine {
    /// A machine on which nothing has happened yet; it is observed every `quantum_ns`.
    ///
    /// # Errors
    /// Instances without threads or work, an operating system that does not exist.
    pub fn new(
        chip: Arc<Chip>,
        instances: &[SimulatedProgram],
        settings: &SimulationSettings,
        quantum_ns: u64,
        meter: Box<dyn EnergyMeter>,
        source: Box<dyn SampleSource>,
    ) -> Result<Self, EngineError> {
        Ok(Self {
            engine: Engine::new(Arc::clone(&chip), instances, settings, meter)?,
            chip,
            source,
            quantum_ns: quantum_ns.max(1),
            quanta: 0,
            next_ns: None,
            quantum_end: 0,
            decided_in: 0,
            stirred: false,
            wishes: Wishes::default(),
            generation: 0,
            told_j: 0.0,
        })
    }

    /// Notifies `observer` of everything that happens from now on.
    pub fn set_observer(&mut self, observer: Box<dyn Observer>) {
        self.engine.set_observer(observer);
    }

    /// Gives every logical core the physical CPU listed for it, as a hardware scheduler does: each
    /// thread that thereby changes its CPU pays for registers, pipeline and caches.
    ///
    /// # Errors
    /// A list that does not name every CPU once.
    pub fn remap(&mut self, physical: &[usize]) -> Result<(), EngineError> {
        self.engine.remap(physical)
    }

    /// Says whether a logical core is in kernel mode, switching to its thread; a hardware scheduler
    /// must not move it then.
    pub fn is_in_kernel(&self, logical: usize) -> bool {
        self.engine.is_in_kernel(logical)
    }

    /// Results of each instance so far, in the order in which they were given.
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

    /// Lets time pass to the end of the quantum, or of its part until something happens.
    fn run_interval(&mut self, begin: u64) {
        if self.quantum_end <= begin {
            self.engine.begin_quantum();
            let length_ns = self.next_ns.take().unwrap_or(self.quantum_ns);
            let length_ns = length_ns.saturating_add(self.extra_slice_ns());
            // A quantum that ended during a decision began the next at its end, not at the
            // decision's.
            let ended = self.quantum_end;
            let begin = if begin - ended < self.latency() {
                ended
            } else {
                begin
            };
            self.quantum_end = begin.saturating_add(length_ns.saturating_mul(PS_PER_NS));
        }
        if !self.ends_on_activity() {
            self.engine.run_until(self.quantum_end);
            return;
        }
        let over = |engine: &Engine, end| engine.is_done() || engine.now_ps() >= end;
        if std::mem::take(&mut self.stirred) {
            return;
        }
        let decided = self.engine.now_ps();
        // An interval without length shows nothing, nor does the time of the decision alone.
        while self.engine.now_ps() / PS_PER_NS == decided / PS_PER_NS
            && !over(&self.engine, self.quantum_end)
        {
            self.engine.run_until_activity(self.quantum_end);
        }
    }

    /// Lets the time pass that the policy takes to decide, while all threads stay in place.
    fn wait_for_decision(&mut self) {
        let begin = self.engine.now_ps();
        self.stirred = self
            .engine
            .run_noting_activity(begin.saturating_add(self.latency()));
        self.decided_in = self.engine.now_ps() - begin;
    }

    /// Time that a decision takes, ps.
    fn latency(&self) -> u64 {
        let latency_ns = self.wishes.latency_ns.min(self.quantum_ns);
        latency_ns.saturating_mul(PS_PER_NS)
    }

    /// By how much the quantum that begins is longer: one in [`SKIPS_EVERY`] by a time slice, where
    /// the operating system's own quantum is as long as a slice. Quanta stay aligned with slices,
    /// but do not beat with them: threads that share a CPU would otherwise take turns in step with
    /// the policy's exchanges, and always the same one would be on when their CPU's turn for a
    /// large core comes.
    fn extra_slice_ns(&mut self) -> u64 {
        let slice_ns = (self.chip.spec().os.slice_ms * 1e6) as u64;
        let in_step = self.wishes.form == PolicyForm::Software && self.quantum_ns == slice_ns;
        self.quanta += 1;
        if in_step && self.quanta.is_multiple_of(SKIPS_EVERY) {
            slice_ns
        } else {
            0
        }
    }

    /// A hardware scheduler sees logical cores, whose threads must not change unnoticed.
    fn ends_on_activity(&self) -> bool {
        self.wishes.on_activity || self.wishes.form == PolicyForm::Hardware
    }
}

impl Machine for SimMachine {
    type Error = SimError;

    fn topology(&self) -> &Topology {
        self.chip.topology()
    }

    fn offers(&self) -> &SignalOffers {
        self.source.offers()
    }

    fn grant_wishes(&mut self, wishes: Wishes) {
        self.wishes = wishes;
    }

    fn observe(&mut self) -> Result<Option<Observation>, SimError> {
        if self.engine.is_done() {
            return Ok(None);
        }
        let begin = self.engine.now_ps() - std::mem::take(&mut self.decided_in);
        self.run_interval(begin);
        let now = self.engine.now_ps();
        let mut observation = Observation {
            time_ns: self.time_ns(),
            interval_ns: (now - begin) / PS_PER_NS,
            ended: if now >= self.quantum_end {
                IntervalEnd::Quantum
            } else {
                IntervalEnd::Activity
            },
            ..Observation::default()
        };
        if self.chip.spec().os.instrumented_locks {
            observation.bottlenecks = self.engine.take_bottlenecks();
        }
        match self.wishes.form {
            PolicyForm::Software => self.collect(&mut observation),
            PolicyForm::Hardware => self.collect_logical_cores(&mut observation),
        }
        Ok(Some(observation))
    }

    fn enact(&mut self, plan: &Plan) -> Result<EnactmentReport, SimError> {
        if plan.generation <= self.generation {
            return Err(SimError::OldPlan {
                given: plan.generation,
                last: self.generation,
            });
        }
        self.generation = plan.generation;
        self.next_ns = plan.quantum_ns.map(|ns| ns.max(1));
        Ok(match self.wishes.form {
            PolicyForm::Software => self.enact_masks(plan),
            PolicyForm::Hardware => {
                self.wait_for_decision();
                self.enact_mapping(plan)
            }
        })
    }
}

#[cfg(test)]
mod logical_tests;
#[cfg(test)]
mod tests;
