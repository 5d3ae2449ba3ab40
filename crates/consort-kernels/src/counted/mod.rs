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
//!   [`UNAVAILABLE`] has the reason.

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod arch;

use serde::Serialize;

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
    /// The instructions of one iteration, in words.
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

/// The loops of this processor. Both architectures have the same ones, and each loop ends with a
/// subtraction and a branch.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub const LOOPS: &[CountedLoop] = {
    use arch::{flag_test, loop_end};
    const END: KnownCounts = KnownCounts {
        instructions: 2,
        fp_ops: 0,
        fp_scalar_instructions: 0,
        fp_packed_instructions: 0,
        loads: 0,
        stores: 0,
        branches: 1,
        taken_branches: 1,
    };
    &[
        CountedLoop {
            name: "int_add_loop",
            summary: concat!("8 integer additions, ", loop_end!()),
            per_iteration: KnownCounts {
                instructions: 10,
                ..END
            },
            body: arch::int_add_loop,
            result: |iterations| 8 * iterations,
        },
        CountedLoop {
            name: "fp_add_loop",
            summary: concat!("8 independent scalar double additions, ", loop_end!()),
            per_iteration: KnownCounts {
                instructions: 10,
                fp_ops: 8,
                fp_scalar_instructions: 8,
                ..END
            },
            body: arch::fp_add_loop,
            result: |iterations| 8 * iterations,
        },
        CountedLoop {
            name: "fp_mul_loop",
            summary: concat!(
                "4 scalar double multiplications, 4 scalar double additions, ",
                loop_end!()
            ),
            per_iteration: KnownCounts {
                instructions: 10,
                fp_ops: 8,
                fp_scalar_instructions: 8,
                ..END
            },
            body: arch::fp_mul_loop,
            result: |iterations| 4 * iterations,
        },
        CountedLoop {
            name: "fp_packed_loop",
            summary: concat!("4 packed additions of two doubles each, ", loop_end!()),
            per_iteration: KnownCounts {
                instructions: 6,
                fp_ops: 8,
                fp_packed_instructions: 4,
                ..END
            },
            body: arch::fp_packed_loop,
            result: |iterations| 8 * iterations,
        },
        CountedLoop {
            name: "load_loop",
            summary: concat!("8 loads of one line, ", loop_end!()),
            per_iteration: KnownCounts {
                instructions: 10,
                loads: 8,
                ..END
            },
            body: arch::load_loop,
            // The sum of the line, which holds 1 to 8.
            result: |_| 36,
        },
        CountedLoop {
            name: "store_loop",
            summary: concat!("8 stores to one line, ", loop_end!()),
            per_iteration: KnownCounts {
                instructions: 10,
                stores: 8,
                ..END
            },
            body: arch::store_loop,
            result: |iterations| if iterations == 0 { 0 } else { 8 },
        },
        CountedLoop {
            name: "branch_loop",
            summary: concat!(
                flag_test!(),
                ", 4 branches not taken, 4 taken over a nop that is never run, ",
                loop_end!()
            ),
            per_iteration: KnownCounts {
                instructions: 11,
                branches: 9,
                taken_branches: 5,
                ..END
            },
            body: arch::branch_loop,
            result: |_| 0,
        },
    ]
};

/// The loops of this processor: none.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub const LOOPS: &[CountedLoop] = &[];

/// Reason why there are no loops, if there are none.
pub const UNAVAILABLE: Option<&str> = if LOOPS.is_empty() {
    Some("counted loops are written in assembly, for x86_64 and aarch64 only")
} else {
    None
};

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
        fn results_match_the_arithmetic(iterations in 0_u64..5_000) {
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
