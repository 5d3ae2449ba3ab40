//! Loops with exactly known event counts.
//!
//! # Purpose
//!
//! To check that a PMU's events count what their names say: count an event over
//! [`CountedLoop::run`] for two numbers of iterations; the difference must be
//! the difference of [`CountedLoop::counts`]. The difference drops what lies
//! around the loop (call, register set-up, reading the counters).
//!
//! # Pitfalls
//!
//! - Counts are of architectural instructions as the processor retires them.
//!   Events that count micro-operations, fused pairs or speculation differ.
//! - A PMU that counts the kernel too adds interrupts; count user mode only.
//! - Every loop ends with a backward branch that is taken in all iterations but
//!   the last.
//! - For processors other than x86_64 and aarch64 there are no loops;
//!   [`UNAVAILABLE`] says why.

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod arch;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "unknown.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod arch;

use serde::Serialize;

pub use arch::{LOOPS, UNAVAILABLE};

/// Counts that a loop retires. All are of architectural events in user mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KnownCounts {
    /// All instructions.
    pub instructions: u64,
    /// Floating-point operations: one per lane and instruction; a fused
    /// multiply-add would count two.
    pub fp_ops: u64,
    /// Scalar floating-point arithmetic instructions.
    pub fp_scalar_instructions: u64,
    /// Packed floating-point arithmetic instructions.
    pub fp_packed_instructions: u64,
    /// Instructions that load from memory.
    pub loads: u64,
    /// Instructions that store to memory.
    pub stores: u64,
    /// Branches, all of them conditional.
    pub branches: u64,
    /// Branches that were taken.
    pub taken_branches: u64,
}

impl KnownCounts {
    /// The counts of `iterations` times `self` as one iteration, where the loop
    /// branch falls through in the last.
    const fn times(self, iterations: u64) -> Self {
        let last = if iterations > 0 { 1 } else { 0 };
        Self {
            instructions: self.instructions * iterations,
            fp_ops: self.fp_ops * iterations,
            fp_scalar_instructions: self.fp_scalar_instructions * iterations,
            fp_packed_instructions: self.fp_packed_instructions * iterations,
            loads: self.loads * iterations,
            stores: self.stores * iterations,
            branches: self.branches * iterations,
            taken_branches: self.taken_branches * iterations - last,
        }
    }
}

/// One loop.
#[derive(Clone, Copy, Debug)]
pub struct CountedLoop {
    /// A name that is also part of the loop's symbol.
    pub name: &'static str,
    /// Contents of one iteration.
    pub summary: &'static str,
    /// The counts of one iteration whose loop branch is taken.
    per_iteration: KnownCounts,
    body: fn(u64) -> u64,
    result: fn(u64) -> u64,
}

impl CountedLoop {
    /// Runs the loop; returns a result that [`CountedLoop::result`] knows. Zero
    /// iterations run nothing.
    #[must_use]
    pub fn run(&self, iterations: u64) -> u64 {
        match iterations {
            0 => (self.result)(0),
            n => (self.body)(n),
        }
    }

    /// Value that `run` must return; ties the numbers of operations to arithmetic.
    #[must_use]
    pub fn result(&self, iterations: u64) -> u64 {
        (self.result)(iterations)
    }

    /// Counts that the loop retires in so many iterations.
    #[must_use]
    pub const fn counts(&self, iterations: u64) -> KnownCounts {
        self.per_iteration.times(iterations)
    }
}

/// The loop of that name, if this processor has it.
#[must_use]
pub fn find(name: &str) -> Option<&'static CountedLoop> {
    LOOPS.iter().find(|counted| counted.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn results_are_as_known(iterations in 0_u64..5_000) {
            for counted in LOOPS {
                prop_assert_eq!(
                    counted.run(iterations),
                    counted.result(iterations),
                    "{}", counted.name
                );
            }
        }

        #[test]
        fn differences_of_counts_are_linear(a in 1_u64..1_000_000, b in 1_u64..1_000_000) {
            for counted in LOOPS {
                let one = counted.counts(2).taken_branches - counted.counts(1).taken_branches;
                let both = counted.counts(a + b).taken_branches - counted.counts(a).taken_branches;
                prop_assert_eq!(both, one * b);
            }
        }
    }

    #[test]
    fn loops_exist_or_the_reason_is_given() {
        assert_eq!(LOOPS.is_empty(), UNAVAILABLE.is_some());
        assert!(LOOPS.iter().all(|l| find(l.name).is_some()));
    }
}
