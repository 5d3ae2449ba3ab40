//! Distances from values to their first uses.

use consort_ops::{Op, OpKind, Register};

use super::PartialTally;

/// Distances from writing a register to reading it first, instructions.
#[derive(Debug, Clone)]
pub struct Distances {
    instruction: u64,
    written: [Option<(u64, bool)>; Register::COUNT],
    counts: DistanceCounts,
}

/// Sums of distances, and their number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DistanceCounts {
    values: [u64; 2],
    loaded: [u64; 2],
    /// Values used first after 1, 2, ... [`NEAR`] instructions, and all that were written: computed
    /// ones, and loaded ones.
    near: [[u64; NEAR + 1]; 2],
}

/// Largest distance that has a count of its own, instructions.
pub const NEAR: usize = 8;

impl PartialTally for DistanceCounts {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        self.values.merge(&other.values, with);
        self.loaded.merge(&other.loaded, with);
        self.near.merge(&other.near, with);
    }
}

impl DistanceCounts {
    /// Mean distance of all values that are used, instructions.
    #[must_use]
    pub fn mean(&self) -> f64 {
        mean(self.values)
    }

    /// Shares of the values that are used first after 1, 2, ... [`NEAR`] instructions: of all
    /// computed ones, and of all loaded ones.
    #[must_use]
    pub fn near_shares(&self) -> [[f64; NEAR]; 2] {
        self.near.map(|counts| {
            let all = counts[NEAR].max(1) as f64;
            std::array::from_fn(|at| counts[at] as f64 / all)
        })
    }

    /// Mean distance of values that were loaded, instructions.
    #[must_use]
    pub fn mean_of_loads(&self) -> f64 {
        mean(self.loaded)
    }
}

fn mean([sum, count]: [u64; 2]) -> f64 {
    sum as f64 / count.max(1) as f64
}

impl Default for Distances {
    fn default() -> Self {
        Self {
            instruction: 0,
            written: [None; Register::COUNT],
            counts: DistanceCounts::default(),
        }
    }
}

impl Distances {
    /// Longest distance that is distinguished, because a later use does not delay any pipeline.
    const MOST: u64 = 1000;

    /// Adds an operation.
    pub fn add_op(&mut self, op: &Op) {
        self.instruction += u64::from(op.first);
        for register in op.sources.into_iter().flatten() {
            if let Some((at, is_loaded)) = self.written[register.index()].take() {
                self.count_use((self.instruction - at).min(Self::MOST), is_loaded);
            }
        }
        let is_load = op.kind == OpKind::Load;
        for register in op.targets.into_iter().flatten() {
            self.written[register.index()] = Some((self.instruction, is_load));
            self.counts.near[usize::from(is_load)][NEAR] += 1;
        }
    }

    fn count_use(&mut self, distance: u64, is_loaded: bool) {
        // A value that is made and used within one instruction delays no other; it counts as used
        // in the next one.
        let distance = distance.max(1);
        if distance <= NEAR as u64 {
            self.counts.near[usize::from(is_loaded)][distance as usize - 1] += 1;
        }
        self.counts.values.add(&[distance, 1]);
        if is_loaded {
            self.counts.loaded.add(&[distance, 1]);
        }
    }

    /// Counts so far.
    #[must_use]
    pub const fn counts(&self) -> &DistanceCounts {
        &self.counts
    }
}
