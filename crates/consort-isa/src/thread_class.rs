//! One word for what a thread does.

use serde::Serialize;

use crate::Estimate;

/// From this share of its time behind memory on, a thread is a memory thread:
/// the greater half of its time.
const MEMORY_SHARE: f64 = 0.5;

/// From this floating-point share of the mix on, a thread is a floating-point
/// thread.
///
/// Markovic ("Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric
/// CMPs", Table 3.2) counts loads, stores and branches of SPEC CPU2006. What
/// they leave over for arithmetic of any kind in the floating-point programs is
/// at least 0.337 (GemsFDTD; cactusADM 0.337, leslie3d 0.348, bwaves 0.351).
/// At least half of that must be floating-point for the program to be one,
/// since addresses and counters take the rest: 0.337 / 2 = 0.17, less what
/// spreading time over blocks may wash out.
const FP_SHARE: f64 = 0.15;

/// Below this floating-point share a thread is an integer thread.
///
/// Peternier et al. ("Improving Execution Unit Occupancy on SMT-based
/// Processors", Tables 1 and 2) measure at most 0.004 floating-point operations
/// per cycle in the integer programs of SPEC CPU2006 and at least 0.074 in the
/// floating-point ones; on the other processor, where integer SIMD and moves
/// count as well, 0.15 and 0.72. Between 0.004 and 0.074 the bound is put
/// nearer to the upper end, since per instruction the shares are larger than
/// per cycle wherever fewer than one instruction completes per cycle.
const INTEGER_SHARE: f64 = 0.05;

/// What a running thread mainly does. Whether it runs at all (blocked, idle) is
/// told by its processor time, not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadClass {
    /// Floating-point work: at least 15 percent of the mix.
    Fp,
    /// Work with less than 5 percent floating point.
    Int,
    /// At least half of the time stalled behind memory.
    Memory,
    /// Between floating-point and integer work.
    Mixed,
}

impl ThreadClass {
    /// The class that an estimate speaks for.
    pub fn of(estimate: &Estimate) -> Self {
        let fp = estimate.fp_usage();
        if estimate.memory_stall_share >= MEMORY_SHARE {
            Self::Memory
        } else if fp >= FP_SHARE {
            Self::Fp
        } else if fp < INTEGER_SHARE {
            Self::Int
        } else {
            Self::Mixed
        }
    }
}
