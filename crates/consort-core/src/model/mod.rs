//! The interference model of SMT cores: slowdowns of threads that share a core.
//!
//! Purpose: predict cycle stacks of threads that share a core from their stacks alone (forward),
//! and their stacks alone from those seen together (inverse), after Feliu, Eyerman, Sahuquillo and
//! Petit, "Symbiotic Job Scheduling on the IBM POWER8" (HPCA 2016). Usage: read a [`InterferenceModel`] with
//! [`InterferenceModel::parse`] or take [`embedded_model()`] one, check it with [`InterferenceModel::check_fit`], take the [`LevelParameters`]
//! of as many threads as share a core, then [`LevelParameters::invert`] measured stacks, predict the
//! slowdowns of candidate [`LevelParameters::pairs`], and keep [`Corrections`] of what came out differently.
//!
//! Pitfalls: a model holds for the machine and the stack that it was trained
//! on, and for its number of threads per core. Shares are of ST cycles unless
//! said otherwise. Some parameters cannot be inverted; see [`LevelParameters::invert`].

mod correction;
mod embedded;
mod error;
mod file;
mod interference_model;
mod invert;
mod level;
mod matrix;
mod pairs;
mod parameters;
mod provenance;

pub use correction::{CorrectionUpdate, Corrections};
pub use embedded::{embedded_model, embedded_model_names};
pub use error::ModelError;
pub use interference_model::InterferenceModel;
pub use invert::InverseSolution;
pub use level::LevelParameters;
pub use pairs::PairSlowdowns;
pub use parameters::{ComponentParameters, MAX_PARAMETER, MAX_WAYS};
pub use provenance::{Accuracy, Deviation, Provenance};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
