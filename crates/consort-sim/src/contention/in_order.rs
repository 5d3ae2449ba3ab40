//! One thread's waits for operands on a core that issues in order.
//!
//! Dispatch goes at the rate of width and ports; an instruction stops at an operand that is not
//! there. Distances from values to their first uses are as measured, else distributed
//! exponentially.

use super::core_model::{CLASSES, CoreModel, UnitClassUse, unit_class};
use super::limits::CoreLimits;
use super::types::Demand;
use crate::machine::{CoreSpec, PipelineSpec};
use crate::math::exp;
use crate::program::PhaseSpec;

/// A thread's operations and the distances to their uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InOrderModel<'a> {
    phase: &'a PhaseSpec,
    units: [UnitClassUse; CLASSES],
    /// Kinds that the core distinguishes, each with the class of the units that execute it.
    kinds: [(usize, UnitClassUse); 7],
    load_cycles: f64,
    /// Mean distance from a value to its first use, instructions.
    pub(crate) use_distance: f64,
    /// Instructions per cycle that dispatch and ports sustain.
    ports: f64,
    /// [`InOrderModel::dependences`] while no co-runner uses the units; 0 on an out-of-order core
    /// whose chip does not count it.
    undisturbed: f64,
    /// Cycles per instruction in order if all data were in the L1 and all branches predicted; 0
    /// if the chip does not count them.
    pub(crate) counted_cycles: f64,
}

impl<'a> InOrderModel<'a> {
    pub(super) fn new(
        demand: &'a Demand,
        (core, model): (&CoreSpec, &CoreModel),
        mut units: [UnitClassUse; CLASSES],
        limits: &CoreLimits,
        is_counted: bool,
    ) -> Self {
        let phase = &demand.phase.spec;
        let kinds = phase.code.kinds.works().map(|(work, _, operations)| {
            let class = unit_class(core, work);
            let operations = operations.min(units[class].operations);
            units[class].operations -= operations;
            let latency = f64::from(model.tables.times[work.index()].latency_cycles);
            let unit = UnitClassUse {
                operations,
                latency,
            };
            (class, unit)
        });
        let model = Self {
            phase,
            units,
            kinds,
            load_cycles: core.l1d.latency_cycles,
            use_distance: phase.ilp.use_distance / demand.intensity,
            ports: limits.ports,
            undisturbed: 0.0,
            counted_cycles: 0.0,
        };
        // Newton's method for every set of running threads would be wasted where nothing reads it.
        let undisturbed = if core.pipeline == PipelineSpec::InOrder || is_counted {
            model.dependences(&[0.0; CLASSES], 1.0 / limits.ports)
        } else {
            0.0
        };
        let counted_cycles = if is_counted {
            (1.0 / limits.ports + undisturbed).max(1.0 / limits.all)
        } else {
            0.0
        };
        Self {
            undisturbed,
            counted_cycles,
            ..model
        }
    }

    /// Cycles per instruction that an in-order pipe waits for results of units and L1, if
    /// co-runners delay the operations of each unit class by so many cycles.
    pub(super) fn wait(&self, unit_wait: &[f64; CLASSES]) -> f64 {
        if *unit_wait == [0.0; CLASSES] {
            self.undisturbed
        } else {
            self.dependences(unit_wait, 1.0 / self.ports)
        }
    }

    /// While a result is on its way, what lies between it and its use is dispatched, and waits in
    /// turn: with τ cycles per instruction in all, `τ = 1/D + Σ m·(L − dτ(1 − e^(−L/(dτ))))` over
    /// the classes' shares m and latencies L. The right side falls and is convex in τ, so
    /// Newton's method climbs from 1/D to the root.
    fn dependences(&self, queues: &[f64; CLASSES], dispatch: f64) -> f64 {
        const STEPS: u32 = 20;
        let mut time = dispatch;
        for _ in 0..STEPS {
            let (wait, slope) = self.use_wait(queues, time);
            let step = (dispatch + wait - time) / (1.0 + slope);
            time += step;
            if step <= time * 1e-9 {
                break;
            }
        }
        time - dispatch
    }

    /// Waiting per instruction at τ cycles per instruction, and how fast it falls with τ.
    fn use_wait(&self, queues: &[f64; CLASSES], time: f64) -> (f64, f64) {
        const LOAD_STORE: usize = 2;
        let ilp = &self.phase.ilp;
        let mut sum = (0.0, 0.0);
        let units = self.units.iter().enumerate();
        let kinds = self.kinds.iter().map(|(class, unit)| (*class, unit));
        let used = units.chain(kinds).filter(|(_, unit)| unit.operations > 0.0);
        for (class, unit) in used {
            let queue = queues[class];
            let (share, latency, uses) = match class {
                LOAD_STORE => (self.phase.mix.load, self.load_cycles, &ilp.load_uses),
                _ => (unit.operations, unit.latency, &ilp.uses),
            };
            // The next instruction would be issued this much later anyway.
            let late = (latency + queue - 1.0 / self.ports).max(0.0);
            let (wait, slope) = match uses {
                Some(uses) => measured_wait(uses, late, time),
                None => exponential_wait(self.use_distance, late, time),
            };
            sum.0 += share * wait;
            sum.1 += share * slope;
        }
        sum
    }
}

/// Mean wait for a value that is `late` cycles late and used first at a distance that is
/// distributed exponentially around `distance` instructions of `time` cycles; and its slope.
fn exponential_wait(distance: f64, late: f64, time: f64) -> (f64, f64) {
    let hidden = distance * time;
    let gone = exp(-late / hidden);
    let slope = distance * (1.0 - gone - late / hidden * gone);
    (late - hidden * (1.0 - gone), slope)
}

/// The same with the shares of values that are used first 1, 2, ... instructions later.
fn measured_wait(uses: &[f64], late: f64, time: f64) -> (f64, f64) {
    let mut sum = (0.0, 0.0);
    for (share, distance) in uses.iter().zip(1..) {
        // At distance 1 the very next instruction waits all of it.
        let between = f64::from(distance - 1);
        let wait = late - between * time;
        if wait > 0.0 {
            sum.0 += share * wait;
            sum.1 += share * between;
        }
    }
    sum
}
