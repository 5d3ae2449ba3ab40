//! One thread's cycles per instruction on a core that issues in order.
//!
//! Dispatch at the rate of width and ports; an instruction stops at an operand that is not there.
//! Distances from values to their first uses are as measured, else distributed exponentially.

use super::core_model::CLASSES;
use super::pipeline::CycleTerms;
use super::thread_setting::{ResourceShares, ThreadSetting};
use crate::math::exp;

impl ThreadSetting<'_> {
    pub(super) fn fill_in_order_terms(&self, held: &ResourceShares, terms: &mut CycleTerms) {
        let (dispatch, ports) = (1.0 / self.limits.dispatch, 1.0 / self.limits.ports);
        let dependences = if held.unit_wait == [0.0; CLASSES] {
            self.undisturbed
        } else {
            self.dependences(&held.unit_wait, ports)
        };
        terms.base = dispatch + dependences;
        terms.units = ports - dispatch;
        // While an instruction waits for an operand, fetch goes on.
        terms.fetch = (1.0 / self.limits.all - ports - dependences).max(0.0);
        terms.active = ports + terms.fetch;
        (terms.in_window, terms.full) = (terms.active, 1.0);
        (terms.l2, terms.llc) = self.hits(&terms.misses, 1.0 / terms.mlp);
        terms.stall += dependences + terms.l2 + terms.llc;
        terms.branch = terms.misses.branch * self.core.pipeline_depth_cycles;
    }

    /// Cycles per instruction that an in-order pipe waits for results of units and L1.
    ///
    /// While a result is on its way, what lies between it and its use is dispatched, and waits in
    /// turn: with τ cycles per instruction in all, `τ = 1/D + Σ m·(L − dτ(1 − e^(−L/(dτ))))` over
    /// the classes' shares m and latencies L. The right side falls and is convex in τ, so
    /// Newton's method climbs from 1/D to the root.
    pub(super) fn dependences(&self, queues: &[f64; CLASSES], dispatch: f64) -> f64 {
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
        let ilp = &self.demand.phase.spec.ilp;
        let mut sum = (0.0, 0.0);
        for (class, (unit, queue)) in self.units.iter().zip(queues).enumerate() {
            let (share, latency, uses) = match class {
                LOAD_STORE => (
                    self.mix().load,
                    self.core.l1d.latency_cycles,
                    &ilp.load_uses,
                ),
                _ => (unit.operations, unit.latency, &ilp.uses),
            };
            // Whoever comes next would be issued this much later anyway.
            let late = (latency + queue - 1.0 / self.limits.ports).max(0.0);
            let (wait, slope) = match uses {
                Some(uses) => measured_wait(uses, late, time),
                None => exponential_wait(self.use_distance(), late, time),
            };
            sum.0 += share * wait;
            sum.1 += share * slope;
        }
        sum
    }

    /// Mean distance from a value to its first use, instructions.
    pub(super) fn use_distance(&self) -> f64 {
        self.demand.phase.spec.ilp.use_distance / self.demand.intensity
    }

    /// Cycles per instruction in order, were all data in the L1 and all branches predicted; 0 where
    /// the chip does not count them.
    pub(super) fn in_order_cycles(&self) -> f64 {
        if self.counts_in_order {
            (1.0 / self.limits.ports + self.undisturbed).max(1.0 / self.limits.all)
        } else {
            0.0
        }
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
