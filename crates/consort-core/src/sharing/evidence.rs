//! Measurements of a pair of CPUs, and verdicts from them.

use crate::ids::PuId;
use crate::stats::{ConfidenceInterval, RatioInterval};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Part of the processor that a kernel loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stress {
    /// Integer units, all of them.
    Int,
    /// Floating-point units, all of them.
    Fp,
    /// More than half of a level 1 data cache.
    L1,
    /// More than half of a level 2 cache.
    L2,
    /// Memory, or the LLC if it is larger than the kernel's data.
    Memory,
}

impl Stress {
    /// All kinds, the nearest to the core first.
    pub const ALL: [Self; 5] = [Self::Int, Self::Fp, Self::L1, Self::L2, Self::Memory];
}

impl fmt::Display for Stress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Int => "int",
            Self::Fp => "fp",
            Self::L1 => "l1",
            Self::L2 => "l2",
            Self::Memory => "memory",
        })
    }
}

/// Slowdown that two copies of a kernel cause each other on a pair of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StressEffect {
    /// Part of the machine that the kernel loads.
    pub stress: Stress,
    /// Time for the same work together over that alone, over runs.
    pub slowdown: RatioInterval,
}

/// All measurements of two CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairEvidence {
    /// One CPU.
    pub a: PuId,
    /// The other.
    pub b: PuId,
    /// Slowdowns, at most one for each stress.
    pub effects: Vec<StressEffect>,
    /// Time for a cache line to travel to the other CPU and back, ns, over runs.
    pub round_trip_ns: Option<ConfidenceInterval>,
}

impl PairEvidence {
    /// The slowdown under a stress, if it was measured.
    pub(super) fn slowdown(&self, stress: Stress) -> Option<&RatioInterval> {
        let found = self.effects.iter().find(|effect| effect.stress == stress);
        found.map(|effect| &effect.slowdown)
    }
}

/// Relation of two CPUs to one kind of part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SharingAnswer {
    /// They share it.
    Shared,
    /// They do not share it.
    Apart,
    /// The measurements do not decide.
    Unclear,
}

/// Verdict of the measurements on one kind of sharing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharingVerdict {
    /// Shared, not shared, or not known.
    pub sharing: SharingAnswer,
    /// Probability that the deciding measurement is on its side of the threshold, 0 to 1; `None` if
    /// nothing was decided.
    pub confidence: Option<f64>,
    /// Deciding numbers, or the reason why none decided.
    pub why: String,
}

impl SharingVerdict {
    pub(super) fn unclear(why: impl Into<String>) -> Self {
        Self {
            sharing: SharingAnswer::Unclear,
            confidence: None,
            why: why.into(),
        }
    }
}

/// Verdicts of the measurements on a pair.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairVerdict {
    /// One CPU.
    pub a: PuId,
    /// The other.
    pub b: PuId,
    /// Verdict on a common core.
    pub core: SharingVerdict,
    /// Verdict on a common level 2 cache.
    pub l2: SharingVerdict,
    /// Verdict on a common LLC domain.
    pub llc: SharingVerdict,
}
