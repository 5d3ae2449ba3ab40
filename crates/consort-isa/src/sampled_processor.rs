//! Properties of the processor that the estimate needs.

/// The most instructions that retire in one cycle. 8 is the width of AMD Zen
/// ("Software Optimization Guide for AMD Family 17h Models 30h", section 2.9:
/// eight macro ops per cycle) and of Arm Neoverse N1 and V1 (their software
/// optimisation guides). Where it is too large stalls look shorter than they
/// are, where too small longer.
pub const RETIRE_WIDTH: f64 = 8.0;

/// Cycles from a load to its use when it hits the first-level cache: 4 on Arm
/// Neoverse and AMD Zen, 5 on Intel from Sunny Cove on (their optimisation
/// guides). A wait of this length says nothing about memory.
pub const L1_HIT_CYCLES: f64 = 5.0;

/// Sizes and speed of the processor that was sampled; what is not known is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampledProcessor {
    /// Size of a core's first-level data cache, bytes.
    pub l1_bytes: Option<u64>,
    /// Size of a core's second-level cache, bytes; its first level where it has no second.
    pub l2_bytes: Option<u64>,
    /// Core cycles per nanosecond while a thread runs.
    pub cycles_per_ns: Option<f64>,
}
