//! Training of the interference model, and its errors.
//!
//! [`fit()`] turns rows of programs observed alone and together (a [`TrainingSet`]) into the
//! parameters of one SMT [level](consort_core::model::LevelParameters), after section 3 of Feliu et al.,
//! "Symbiotic Job Scheduling on the IBM POWER8" (HPCA 2016). [`cross_validate()`] gives the errors
//! on programs that the fit has not seen, [`errors()`] tests any level on any set, and [`collect`]
//! has simulated runs.
//!
//! Errors on the training set are too small; publish those of [`cross_validate()`].

pub mod collect;
mod errors;
mod fit;
mod set;
#[cfg(test)]
mod tests;

pub use errors::cross_validate;
pub use errors::{ErrorHistogram, ErrorSpread};
pub use errors::{LevelErrors, errors};
pub use fit::{FitError, FittedLevel, MIN_PROGRAMS, fit};
pub use set::{TrainingRow, TrainingSet};
