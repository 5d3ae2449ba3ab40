//! Errors of reading and using a model.

use super::parameters::{MAX_PARAMETER, MAX_WAYS};
use thiserror::Error;

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
        /// The mistake, and what would be right.
        problem: String,
    },
    /// A level for so many threads per core is impossible.
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
