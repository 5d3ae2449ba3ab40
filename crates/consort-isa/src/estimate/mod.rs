//! From samples to shares of time.

mod accesses;
mod estimator;
mod histogram;
mod split;

use serde::Serialize;

use crate::{ClassMix, MemoryAccess};

pub use estimator::Estimator;
pub use estimator::Footprint;

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplePoint {
    /// The sampled address.
    pub address: u64,
    /// The memory access that the code there works on, if known
    /// ([`crate::BlockFacts::memory_access_at`]).
    pub accessed: Option<MemoryAccess>,
    /// The number of the CPU.
    pub pu: u32,
    /// The time, ns since any one moment; all 0 if speeds do not matter.
    pub time_ns: u64,
    /// The CPU time that it stands for, ns, or in any one unit if speeds do not matter.
    pub weight: f64,
}

/// The least and the most that a share may be by the rule of the estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ShareBounds {
    /// With every ambiguous pile taken for a hit.
    pub low: f64,
    /// With every ambiguous pile taken for a stall.
    pub high: f64,
}

/// Shares of time by cause; they sum to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct EstimatedStack {
    /// Ordinary progress.
    pub base: f64,
    /// Waiting for execution units of long latency.
    pub unit: f64,
    /// Waiting for memory.
    pub memory: f64,
    /// Waiting for instructions.
    pub front_end: f64,
}

/// Estimate from the samples of one thread over one interval.
///
/// Everything here is estimated; shares are of the time whose code could be
/// decoded, unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The instruction mix by time: the time of each block spread evenly over its instructions.
    pub mix: ClassMix,
    /// The classes of the instructions at the sampled addresses. It has the skid
    /// of sampling in it; compare it with `mix`, do not use it.
    pub mix_at_address: ClassMix,
    /// The estimated cycle stack.
    pub stack: EstimatedStack,
    /// Share of time stalled behind memory; `stack.memory` by its own name.
    pub memory_stall_share: f64,
    /// The part of `memory_stall_share` in loops that go through memory in steps: limited by
    /// bandwidth, or by how far ahead data are fetched; the rest waits for single accesses.
    pub bandwidth_share: f64,
    /// Range of `memory_stall_share`, from the meanings that piles behind accesses to memory can
    /// have. The sampling error comes in addition. Stalls whose samples stand elsewhere (a
    /// saturated memory path under many overlapping accesses) are not covered.
    pub memory_bounds: ShareBounds,
    /// Number of samples, decoded or not.
    pub samples: u64,
    /// Share of the weight of all samples whose code could be decoded.
    pub decoded_share: f64,
    /// Amount of code that the thread ran.
    pub footprint: Footprint,
}

impl Estimate {
    /// The floating-point share of the mix: what the `workover` policy calls FPU
    /// usage on this tier.
    pub const fn fp_usage(&self) -> f64 {
        self.mix.fp
    }
}
