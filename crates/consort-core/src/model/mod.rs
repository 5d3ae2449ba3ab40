//! The interference model of SMT cores, which predicts slowdowns of threads that share a core.
//!
//! It predicts cycle stacks of threads that share a core from their stacks alone (forward), and
//! their stacks alone from measured stacks together (inverse), after Feliu, Eyerman, Sahuquillo and
//! Petit, "Symbiotic Job Scheduling on the IBM POWER8" (HPCA 2016). Read an [`InterferenceModel`]
//! with [`InterferenceModel::parse`] or take an [`embedded_model`], check it with
//! [`InterferenceModel::check_fit`], and take the [`LevelParameters`] of as many threads as share a
//! core. Then [`LevelParameters::invert`] measured stacks, predict the slowdowns of candidate
//! [`LevelParameters::pairs`], and keep [`Corrections`] of differences.
//!
//! A model holds for the machine and the stack on which it was trained, and for its number of
//! threads per core. Shares are of ST cycles unless stated otherwise. Some parameters cannot be
//! inverted; see [`LevelParameters::invert`].

mod correction;
mod file;
mod invert;
mod level;
mod pairs;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use correction::{CorrectionUpdate, Corrections};
pub use invert::InverseSolution;
pub use level::{ComponentParameters, LevelParameters, MAX_PARAMETER, MAX_WAYS};
pub use pairs::PairSlowdowns;

use crate::stack::CycleStack;
use thiserror::Error;

/// An interference model for one machine and one kind of cycle stack.
#[doc(alias = "interference model")]
#[derive(Clone, Debug, PartialEq)]
pub struct InterferenceModel {
    /// Name of the model.
    pub name: String,
    /// Name of the machine that it was trained on.
    pub machine: String,
    /// Components of the cycle stack, in the order of all parameters.
    pub components: Vec<String>,
    /// One level per number of threads per core, ascending.
    pub levels: Vec<LevelParameters>,
    /// Origin of the model.
    pub provenance: Provenance,
}

impl InterferenceModel {
    /// Parameters for `ways` threads per core, if the model has them.
    pub fn level(&self, ways: u32) -> Option<&LevelParameters> {
        self.levels.iter().find(|level| level.ways() == ways)
    }

    /// Checks that the model holds for this machine and this cycle stack. The order of the
    /// components does not matter; [`InterferenceModel::shares`] sorts them. A component `stall/data`
    /// is a part of `stall`, and counts as `stall` for a model without it.
    ///
    /// # Errors
    /// If the machine differs, or components are missing or additional.
    pub fn check_fit<S: AsRef<str>>(
        &self,
        machine: &str,
        components: &[S],
    ) -> Result<(), ModelError> {
        if machine != self.machine {
            return Err(ModelError::Machine {
                model: self.name.clone(),
                trained: self.machine.clone(),
                machine: machine.to_owned(),
            });
        }
        self.check_stack(components)
    }

    fn check_stack<S: AsRef<str>>(&self, components: &[S]) -> Result<(), ModelError> {
        let offers = |needed: &String| components.iter().any(|c| c.as_ref() == needed);
        let mut offered = components.iter().map(AsRef::as_ref);
        if self.components.iter().all(offers) && offered.all(|name| self.home(name).is_some()) {
            return Ok(());
        }
        Err(ModelError::Stack {
            model: self.name.clone(),
            needed: self.components.clone(),
            offered: components.iter().map(|c| c.as_ref().to_owned()).collect(),
        })
    }

    /// Index of the component that a component of a stack belongs to: its own, or else the one that
    /// it is a part of.
    fn home(&self, name: &str) -> Option<usize> {
        let at = |name: &str| self.components.iter().position(|c| c == name);
        at(name).or_else(|| at(name.rsplit_once('/')?.0))
    }

    /// The shares of a stack in the order of the model's components.
    ///
    /// # Errors
    /// If the stack has other components.
    pub fn shares(&self, stack: &CycleStack) -> Result<Vec<f64>, ModelError> {
        let offered = stack.components();
        let names: Vec<&str> = offered.iter().map(|c| c.name.as_ref()).collect();
        self.check_stack(&names)?;
        let mut shares = vec![0.0; self.components.len()];
        for component in offered {
            if let Some(at) = self.home(&component.name) {
                shares[at] += component.share;
            }
        }
        Ok(shares)
    }
}

/// Name and text of every embedded model.
///
/// `power8-simulated` is the output of `consort train --machine power8 --ways 2,4 --out
/// power8-simulated.toml`. Repeat it if the simulation changes.
const EMBEDDED: &[(&str, &str)] = &[
    (
        "power8-paper",
        include_str!("../../models/power8-paper.toml"),
    ),
    (
        "power8-simulated",
        include_str!("../../models/power8-simulated.toml"),
    ),
];

/// Text of an embedded model, for [`InterferenceModel::parse`].
pub fn embedded_model(name: &str) -> Option<&'static str> {
    let found = EMBEDDED.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// The names of the embedded models.
pub fn embedded_model_names() -> impl Iterator<Item = &'static str> + Clone {
    EMBEDDED.iter().map(|(name, _)| *name)
}

/// Origin of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Provenance {
    /// Source of the parameters: a paper, or the method of their training.
    pub source: String,
    /// Date of the training, in the source's format.
    pub date: String,
    /// Training programs; empty if the source does not name them.
    pub programs: Vec<String>,
    /// Quanta of the training, summed over all co-runs; 0 if the source does not state them.
    pub quanta: u64,
    /// Errors with whole programs held out, one per tested level.
    pub accuracy: Vec<Accuracy>,
}

/// Errors of one level.
#[derive(Clone, Debug, PartialEq)]
pub struct Accuracy {
    /// Threads per core.
    pub ways: u32,
    /// Slowdown predicted against measured, in percent of the measured one.
    pub forward: Deviation,
    /// ST cycles that the inverse model attributes to a wrong cause, in percent of the ST cycles.
    pub inverse: Deviation,
}

/// Sizes of errors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Deviation {
    /// Mean of the magnitudes, in percent.
    pub mean_absolute_percent: f64,
    /// 95 percent of the magnitudes are at most this, in percent.
    pub p95_percent: f64,
}

/// Reason why a model cannot be read or used.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ModelError {
    /// The text of a model is wrong at one place.
    #[error("{origin}:{line}: {}{problem}", prefix(key))]
    File {
        /// Name of the text's source.
        origin: String,
        /// Line, from 1.
        line: usize,
        /// Path of the key; empty when the text is no TOML.
        key: String,
        /// The mistake, and how to correct it.
        problem: String,
    },
    /// No level can have this number of threads per core.
    #[error("a level for {ways} threads per core; from 2 to {MAX_WAYS} are possible")]
    Ways {
        /// Threads per core.
        ways: u32,
    },
    /// A level without components.
    #[error("a level without components; it needs parameters for at least one")]
    NoComponents,
    /// A coefficient is out of range.
    #[error(
        "{name} of component number {component} is {value}; it must lie between -{MAX_PARAMETER} and {MAX_PARAMETER}"
    )]
    Parameter {
        /// Index of the component, from 0.
        component: usize,
        /// Name of the coefficient.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// The model is for another machine.
    #[error(
        "model '{model}' was trained on machine '{trained}' and does not hold for machine '{machine}'; train one with 'consort train'"
    )]
    Machine {
        /// Name of the model.
        model: String,
        /// The machine of its training.
        trained: String,
        /// The machine that it was to be used on.
        machine: String,
    },
    /// The model is for another cycle stack.
    #[error(
        "model '{model}' needs the cycle stack [{}], and the machine offers [{}]", needed.join(", "), offered.join(", ")
    )]
    Stack {
        /// Name of the model.
        model: String,
        /// Components of the model.
        needed: Vec<String>,
        /// Components that the machine offers.
        offered: Vec<String>,
    },
    /// Stacks to invert are not those of one core of this level.
    #[error("stacks of {threads} threads to invert at a level for {ways} threads per core")]
    Threads {
        /// Number of stacks.
        threads: usize,
        /// Threads per core of the level.
        ways: u32,
    },
    /// A stack has another number of components than the level.
    #[error("a stack of {found} components where the model has {expected}")]
    Components {
        /// Components of the stack.
        found: usize,
        /// Components of the level.
        expected: usize,
    },
}

fn prefix(key: &str) -> String {
    if key.is_empty() {
        return String::new();
    }
    format!("{key}: ")
}
