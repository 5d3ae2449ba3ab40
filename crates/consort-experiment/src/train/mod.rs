//! Training of the interference model, and its errors.
//!
//! [`fit()`] turns rows of programs observed alone and together (a [`TrainingSet`]) into the
//! parameters of one SMT [level](consort_core::model::LevelParameters), after section 3 of Feliu et al.,
//! "Symbiotic Job Scheduling on the IBM POWER8" (HPCA 2016). [`cross_validate()`] gives the errors
//! on programs that the fit has not seen, [`errors()`] tests any level on any set, and [`collect`]
//! has simulated runs.
//!
//! Errors on the training set are too small; publish those of [`cross_validate()`].

use std::collections::BTreeSet;

pub mod collect;
mod errors;
mod fit;
mod slowdowns;
#[cfg(test)]
mod tests;

pub use errors::cross_validate;
pub use errors::{ErrorHistogram, ErrorSpread};
pub use errors::{LevelErrors, errors};
pub use fit::{FitError, FittedLevel, MIN_PROGRAMS, fit};
pub use slowdowns::{SlowdownShares, slowdown_shares};

/// All that was measured on one machine at one number of threads per core.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainingSet {
    /// Name of the machine.
    pub machine: String,
    /// Threads per core.
    pub ways: u32,
    /// Components of the cycle stack, in the order of all stacks of the rows.
    pub components: Vec<String>,
    /// True if only the slowdowns of the rows are known, not the stacks together: then `together`
    /// and `measured` are the stack alone, stretched by the slowdown and as it is.
    pub slowdowns_only: bool,
    /// One row per thread and quantum.
    pub rows: Vec<TrainingRow>,
}

/// One thread in one quantum on a core with its co-runners. A stack has one
/// entry per component of the set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainingRow {
    /// Number that the rows of one core in one quantum have in common, and that no other rows of
    /// the set have.
    pub co_run: u64,
    /// The thread's program.
    pub program: String,
    /// The programs of its co-runners.
    pub co_runners: Vec<String>,
    /// ST stack of the instructions of the quantum, in shares of its ST cycles.
    pub own: Vec<f64>,
    /// Sum of the ST stacks of the co-runners.
    pub others: Vec<f64>,
    /// SMT cycles of each component over the ST cycles of the same
    /// instructions; the sum is the slowdown.
    pub together: Vec<f64>,
    /// SMT stack in shares of its SMT cycles, the input of the inverse model.
    pub measured: Vec<f64>,
}

impl TrainingRow {
    /// Time together over time alone.
    pub fn slowdown(&self) -> f64 {
        self.together.iter().sum()
    }

    /// Every program that ran on the core.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        let co_runners = self.co_runners.iter().map(String::as_str);
        std::iter::once(self.program.as_str()).chain(co_runners)
    }
}

impl TrainingSet {
    /// Names of all programs, in the order of the alphabet.
    pub fn programs(&self) -> BTreeSet<&str> {
        self.rows.iter().flat_map(TrainingRow::programs).collect()
    }

    /// Number of co-runs: cores times quanta.
    pub fn co_runs(&self) -> usize {
        let numbers: BTreeSet<u64> = self.rows.iter().map(|row| row.co_run).collect();
        numbers.len()
    }

    pub(super) fn with_rows(&self, rows: Vec<TrainingRow>) -> Self {
        Self {
            machine: self.machine.clone(),
            ways: self.ways,
            components: self.components.clone(),
            slowdowns_only: self.slowdowns_only,
            rows,
        }
    }
}
