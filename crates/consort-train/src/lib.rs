//! Training of the interference model, and how well it does.
//!
//! Purpose: from rows of programs seen alone and together (a [`TrainingSet`])
//! to the parameters of one SMT [level](consort_core::model::LevelParameters), after
//! section 3 of Feliu et al., "Symbiotic Job Scheduling on the IBM POWER8"
//! (HPCA 2016). Usage: [`fit()`] gives the parameters, [`cross_validate()`] the
//! errors on programs that the fit has not seen; [`errors()`] tests any level on
//! any set; [`collect`] has simulated runs. Pitfall: errors on the training set flatter; publish those of
//! [`cross_validate()`].

pub mod collect;
mod cross_validate;
mod deviation;
mod errors;
mod fit;
mod least_squares;
mod set;
#[cfg(test)]
mod tests;

pub use cross_validate::cross_validate;
pub use deviation::{ErrorHistogram, ErrorSpread};
pub use errors::{LevelErrors, errors};
pub use fit::{FitError, FittedLevel, MIN_PROGRAMS, fit};
pub use set::{TrainingRow, TrainingSet};
