//! How many cycles a pile of samples is worth per execution of its block.
//!
//! Samples count time in an unknown unit; the instructions that wait for nothing
//! make it known. At most [`RETIRE_WIDTH`] instructions retire per cycle, so m
//! instructions beside a pile take at least m / width cycles per execution. If
//! they hold R samples together and the pile holds c, the pile takes at least
//! (c / R) (m / width) cycles. This needs m to exceed the width: fewer
//! instructions may retire in the same cycle as the pile and hold no samples at
//! all, whatever the pile is worth.

use super::histogram::{Histogram, Pile};
use crate::Suspicion;

/// The most instructions that retire in one cycle. 8 is the width of AMD Zen
/// ("Software Optimization Guide for AMD Family 17h Models 30h", section 2.9:
/// eight macro ops per cycle) and of Arm Neoverse N1 and V1 (their software
/// optimisation guides), and at most one more than Intel's from Ice Lake on. Too
/// large a value makes stalls look shorter, never longer.
pub const RETIRE_WIDTH: f64 = 8.0;

/// What a pile is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Worth {
    /// Cycles per execution of the block, at least; of no meaning by itself
    /// unless `calibrated`.
    pub(super) cycles: f64,
    /// Whether the rest of the block is large enough to tell.
    pub(super) calibrated: bool,
}

/// The time of one block beside a pile.
#[derive(Clone, Copy, Debug)]
struct Rest {
    weight: f64,
    instructions: usize,
}

impl Rest {
    fn is_large(self) -> bool {
        as_f64(self.instructions) > RETIRE_WIDTH
    }

    /// One sample is added to the rest: it may have been missed by chance.
    fn worth_of(self, pile: Pile, one_sample: f64) -> f64 {
        let least_cycles = as_f64(self.instructions) / RETIRE_WIDTH;
        pile.cautious_weight() / (self.weight + one_sample) * least_cycles
    }
}

/// The calibration of one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calibration {
    total: Pile,
    instructions: usize,
    unsuspected: Rest,
}

impl Calibration {
    pub(super) fn of(histogram: &Histogram) -> Self {
        let mut unsuspected = Rest {
            weight: 0.0,
            instructions: 0,
        };
        for (pile, suspicion) in histogram.piles() {
            if suspicion == Suspicion::None {
                unsuspected.weight += pile.weight;
                unsuspected.instructions += 1;
            }
        }
        Self {
            total: histogram.total(),
            instructions: histogram.len(),
            unsuspected,
        }
    }

    /// Both the instructions without suspicion and all others beside the pile
    /// give a lower bound; the greater one of those that hold is taken.
    pub(super) fn worth(&self, pile: Pile) -> Worth {
        let others = Rest {
            weight: self.total.weight - pile.weight,
            instructions: self.instructions.saturating_sub(1),
        };
        let calibrated = others.is_large();
        let cycles = [self.unsuspected, others]
            .into_iter()
            .filter(|rest| rest.is_large() || !calibrated)
            .map(|rest| rest.worth_of(pile, self.total.mean_weight()))
            .fold(0.0, f64::max);
        Worth { cycles, calibrated }
    }
}

pub(super) fn as_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
