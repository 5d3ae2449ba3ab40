//! How far it is from a value to its first use.

use consort_ops::{Kind, Op, Register};

/// Distances from writing a register to reading it first, instructions.
#[derive(Debug, Clone)]
pub struct Distances {
    instruction: u64,
    written: [Option<(u64, bool)>; Register::COUNT],
    values: (u64, u64),
    loaded: (u64, u64),
}

impl Default for Distances {
    fn default() -> Self {
        Self {
            instruction: 0,
            written: [None; Register::COUNT],
            values: (0, 0),
            loaded: (0, 0),
        }
    }
}

impl Distances {
    /// Longest distance that counts as such; what is used later is no hindrance to any pipeline.
    const MOST: u64 = 1000;

    /// Takes an operation.
    pub fn op(&mut self, op: &Op) {
        self.instruction += u64::from(op.first);
        for register in op.sources.into_iter().flatten() {
            if let Some((at, is_loaded)) = self.written[register.index()].take() {
                self.used((self.instruction - at).min(Self::MOST), is_loaded);
            }
        }
        for register in op.targets.into_iter().flatten() {
            self.written[register.index()] = Some((self.instruction, op.kind == Kind::Load));
        }
    }

    fn used(&mut self, distance: u64, is_loaded: bool) {
        // A value that is made and used within one instruction is never waited for elsewhere.
        let distance = distance.max(1);
        self.values = (self.values.0 + distance, self.values.1 + 1);
        if is_loaded {
            self.loaded = (self.loaded.0 + distance, self.loaded.1 + 1);
        }
    }

    /// Mean distance of all values that are used, instructions.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.values.0 as f64 / self.values.1.max(1) as f64
    }

    /// Mean distance of values that were loaded, instructions.
    #[must_use]
    pub fn mean_of_loads(&self) -> f64 {
        self.loaded.0 as f64 / self.loaded.1.max(1) as f64
    }
}
