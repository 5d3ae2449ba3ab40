//! The interference model of SMT cores: slowdowns of threads that share a core.
//!
//! Purpose: predict cycle stacks of threads that share a core from their stacks alone (forward),
//! and their stacks alone from those seen together (inverse), after Feliu, Eyerman, Sahuquillo and
//! Petit, "Symbiotic Job Scheduling on the IBM POWER8" (HPCA 2016). Usage: read a [`Model`] with
//! [`Model::parse`] or take [`embedded()`] one, check it with [`Model::fits`], take the [`Level`]
//! of as many threads as share a core, then [`Level::invert`] measured stacks, predict the
//! slowdowns of candidate [`Level::pairs`], and keep [`Corrections`] of what came out differently.
//!
//! Pitfalls: a model holds for the machine and the stack that it was trained
//! on, and for its number of threads per core. Shares are of ST cycles unless
//! said otherwise. Some parameters cannot be inverted; see [`Level::invert`].

mod correction;
mod embedded;
mod error;
mod file;
mod invert;
mod level;
mod matrix;
mod pairs;
mod parameters;
mod provenance;
mod whole;

pub use correction::{Corrections, Update};
pub use embedded::{embedded, embedded_names};
pub use error::ModelError;
pub use invert::Inverse;
pub use level::Level;
pub use pairs::PairSlowdowns;
pub use parameters::{MAX_PARAMETER, MAX_WAYS, Parameters};
pub use provenance::{Accuracy, Deviation, Provenance};
pub use whole::Model;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
