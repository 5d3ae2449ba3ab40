//! Errors of running a bench.

use crate::ExperimentError;
use consort_core::topology::TopologyError;
use consort_sim::{machine, program};
use thiserror::Error;

/// Reason why a bench cannot be run.
#[derive(Debug, Error)]
pub enum BenchError {
    /// There is no bench of that name.
    #[error("unknown bench '{name}'; {hint}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// The machine that it runs on.
    #[error(transparent)]
    Machine(#[from] machine::presets::MachinePresetError),
    /// A program that it runs.
    #[error(transparent)]
    Program(#[from] program::presets::ProgramPresetError),
    /// The machine's layout.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// Failure of a program that a bench starts on the live machine.
    #[error("{0}")]
    Live(String),
    /// The run or the policy.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
}
