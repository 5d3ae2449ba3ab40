//! Instruction mix by time.

use serde::{Deserialize, Serialize};

/// Shares of instruction classes in the code that a thread runs, weighted by the time spent in that
/// code. A mix sums to 1 unless all shares are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// Floating-point arithmetic, scalar or packed.
    pub fp: f64,
    /// Integer SIMD, and SIMD moves, shuffles and logic.
    pub vector: f64,
    /// Integer arithmetic and logic, address computation.
    pub int: f64,
    /// Reads of memory.
    pub load: f64,
    /// Writes to memory.
    pub store: f64,
    /// Jumps, calls and returns.
    pub branch: f64,
    /// System instructions, fences, no-ops, and what could not be decoded.
    pub other: f64,
}

impl Mix {
    /// Class names in the order of [`Mix::to_array`].
    pub const NAMES: [&'static str; 7] =
        ["fp", "vector", "int", "load", "store", "branch", "other"];

    /// The shares in the order of [`Mix::NAMES`].
    pub fn to_array(self) -> [f64; 7] {
        [
            self.fp,
            self.vector,
            self.int,
            self.load,
            self.store,
            self.branch,
            self.other,
        ]
    }

    /// The mix with these shares, in the order of [`Mix::NAMES`].
    pub fn from_array(shares: [f64; 7]) -> Self {
        let [fp, vector, int, load, store, branch, other] = shares;
        Self {
            fp,
            vector,
            int,
            load,
            store,
            branch,
            other,
        }
    }

    /// The sum of all shares: 1, or 0 for an empty mix.
    pub fn total(self) -> f64 {
        self.to_array().iter().sum()
    }

    /// Adds another mix with a weight; [`Mix::normalised`] turns the sum into shares.
    #[must_use]
    pub fn plus(self, other: Self, weight: f64) -> Self {
        let pairs = self.to_array().into_iter().zip(other.to_array());
        let mut sum = [0.0; 7];
        for (slot, (mine, theirs)) in sum.iter_mut().zip(pairs) {
            *slot = mine + weight * theirs;
        }
        Self::from_array(sum)
    }

    /// The same proportions with sum 1; all zero stays all zero.
    #[must_use]
    pub fn normalised(self) -> Self {
        let total = self.total();
        if total > 0.0 {
            Self::from_array(self.to_array().map(|share| share / total))
        } else {
            Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn normalised_mixes_sum_to_one(shares in prop::array::uniform7(0.0f64..1e9)) {
            let mix = Mix::from_array(shares).normalised();
            let total = mix.total();
            prop_assert!(total == 0.0 || (total - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn weighting_is_linear() {
        let fp = Mix {
            fp: 1.0,
            ..Mix::default()
        };
        let int = Mix {
            int: 1.0,
            ..Mix::default()
        };
        let mix = Mix::default().plus(fp, 3.0).plus(int, 1.0).normalised();
        assert_eq!((mix.fp, mix.int), (0.75, 0.25));
    }
}
