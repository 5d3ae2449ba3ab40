//! What the threads of a program did in a whole run: what studies explain their outcomes with.

use consort_sim::contention::Stack;
use consort_sim::engine::Counts;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Exact totals over a whole run, of all threads of a program or of several programs; what was
/// done after the program had finished its work and started again is in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counters {
    /// Instructions completed.
    pub instructions: f64,
    /// Core cycles while on PUs.
    pub cycles: f64,
    /// Data misses of the L2; of the L1D where there is no L2.
    pub l2_misses: f64,
    /// Misses of the LLC that were waited for.
    pub llc_misses: f64,
    /// Cycles in which a floating-point operation of the thread was in the FPU.
    pub fpu_busy_cycles: f64,
    /// Cycles by cause, in the order of [`Stack::NAMES`]; together the cycles with progress.
    #[serde(serialize_with = "by_cause")]
    pub stack_cycles: [f64; 12],
}

impl Counters {
    /// Adds what others did.
    pub fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.cycles += other.cycles;
        self.l2_misses += other.l2_misses;
        self.llc_misses += other.llc_misses;
        self.fpu_busy_cycles += other.fpu_busy_cycles;
        for (sum, cycles) in self.stack_cycles.iter_mut().zip(other.stack_cycles) {
            *sum += cycles;
        }
    }

    /// L2 misses per 1000 instructions.
    pub fn l2_mpki(&self) -> f64 {
        1000.0 * self.l2_misses / self.instructions
    }

    /// Share of the cycles in which an operation of the thread was in the FPU, 0 to 1.
    pub fn fpu_busy(&self) -> f64 {
        self.fpu_busy_cycles / self.cycles
    }

    /// Cycles per instruction by cause, in the order of [`Stack::NAMES`].
    pub fn stack(&self) -> [f64; 12] {
        self.stack_cycles.map(|cycles| cycles / self.instructions)
    }
}

impl From<&Counts> for Counters {
    fn from(counts: &Counts) -> Self {
        Self {
            instructions: counts.instructions,
            cycles: counts.cycles,
            l2_misses: counts.flow.l2_misses,
            llc_misses: counts.flow.llc_misses,
            fpu_busy_cycles: counts.flow.fpu_busy_cycles,
            stack_cycles: counts.stack.to_array(),
        }
    }
}

fn by_cause<S: Serializer>(cycles: &[f64; 12], serializer: S) -> Result<S::Ok, S::Error> {
    let named: BTreeMap<&str, &f64> = Stack::NAMES.into_iter().zip(cycles).collect();
    named.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counters(scale: f64) -> Counters {
        let mut counts = Counts {
            instructions: 2000.0 * scale,
            cycles: 4000.0 * scale,
            ..Counts::default()
        };
        counts.flow.l2_misses = 6.0 * scale;
        counts.flow.fpu_busy_cycles = 1000.0 * scale;
        counts.stack.base = 1000.0 * scale;
        counts.stack.memory = 3000.0 * scale;
        Counters::from(&counts)
    }

    #[test]
    fn rates_are_per_instruction_and_cycle() {
        let one = counters(1.0);
        assert_eq!((one.l2_mpki(), one.fpu_busy()), (3.0, 0.25));
        let stack: f64 = one.stack().iter().sum();
        assert_eq!(stack, 2.0);
    }

    #[test]
    fn causes_are_named_in_json() {
        let json = serde_json::to_value(counters(1.0)).unwrap();
        assert_eq!(json["stack_cycles"]["memory"], 3000.0);
        assert_eq!(json["stack_cycles"].as_object().unwrap().len(), 12);
    }

    proptest! {
        #[test]
        fn rates_of_a_sum_lie_between_those_of_its_parts(a in 0.1f64..10.0, b in 0.1f64..10.0) {
            let mut sum = counters(a);
            sum.add(&Counters { l2_misses: 0.0, ..counters(b) });
            prop_assert!(sum.l2_mpki() > 0.0 && sum.l2_mpki() < 3.0);
            prop_assert!((sum.fpu_busy() - 0.25).abs() < 1e-12);
            prop_assert!((sum.stack().iter().sum::<f64>() - 2.0).abs() < 1e-12);
        }
    }
}
