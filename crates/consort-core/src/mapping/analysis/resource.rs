//! Resources that programs share.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A part of the hardware whose sharing a mapping decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharedResource {
    /// The L1 data cache; used: misses.
    L1d,
    /// The L1 instruction cache; used: misses.
    L1i,
    /// The cache that domains share, the source's L2; used: misses that were waited for.
    L2,
    /// The prefetchers of that cache; used: lines that they brought.
    Prefetcher,
    /// The path to memory; used: transactions of all kinds.
    MemoryPath,
    /// The branch predictor; used: mispredicted branches.
    BranchPredictor,
    /// The data TLB; used: page walks.
    Tlb,
    /// The unit that lets loads pass stores; used: loads that were replayed.
    Disambiguation,
    /// The cores; used: share of their time.
    Cores,
}

impl SharedResource {
    /// All resources, nearest to the core first.
    pub const ALL: [Self; 9] = [
        Self::L1d,
        Self::L1i,
        Self::L2,
        Self::Prefetcher,
        Self::MemoryPath,
        Self::BranchPredictor,
        Self::Tlb,
        Self::Disambiguation,
        Self::Cores,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::L1d => "l1d",
            Self::L1i => "l1i",
            Self::L2 => "l2",
            Self::Prefetcher => "prefetcher",
            Self::MemoryPath => "memory-path",
            Self::BranchPredictor => "branch-predictor",
            Self::Tlb => "tlb",
            Self::Disambiguation => "disambiguation",
            Self::Cores => "cores",
        }
    }

    /// Returns true where a program is better off with more of it; of the counts of others less is
    /// better, since they are counted per run.
    pub fn more_is_better(self) -> bool {
        self == Self::Cores
    }

    /// The name by which the source's Table V has it: the L2, its prefetchers and the memory path are
    /// one resource there, LM.
    pub fn table_name(self) -> &'static str {
        match self {
            Self::L2 | Self::Prefetcher | Self::MemoryPath => "lm",
            other => other.name(),
        }
    }

    /// Unit in which its use is counted.
    pub fn unit(self) -> &'static str {
        match self {
            Self::L1d | Self::L1i | Self::L2 => "misses",
            Self::Prefetcher => "lines",
            Self::MemoryPath => "transactions",
            Self::BranchPredictor => "mispredictions",
            Self::Tlb => "walks",
            Self::Disambiguation => "replays",
            Self::Cores => "share of the cores' time",
        }
    }
}

impl fmt::Display for SharedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Amount of a resource that a program used, per run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Amount {
    /// Amount in the unit of [`SharedResource::unit`].
    pub used: f64,
    /// Cycles that its threads stalled for it, where something counts them.
    pub stall_cycles: Option<f64>,
}
