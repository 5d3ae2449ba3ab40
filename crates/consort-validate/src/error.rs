//! Errors of carrying out a validation.

use consort_core::topology::TopologyError;
use consort_data::{FigureError, ReportTableError};
use consort_experiment::bench::BenchError;
use consort_experiment::traced::TracedError;
use consort_experiment::{ExperimentError, JobsError};
use consort_lab::StudyError;
use consort_reference::ReferenceError;
use consort_sim::SimError;
use consort_sim::describe::DescribeError;
use consort_sim::pmu::PmuError;
use consort_sim::{machine, program};
use thiserror::Error;

/// Reason why a check cannot be made.
#[derive(Debug, Error)]
pub enum ValidateError {
    /// A file of published figures cannot be read.
    #[error("published figures in {file}: {message}")]
    Data {
        /// The file.
        file: String,
        /// Fault, and its place.
        message: String,
    },
    /// A machine of the presets.
    #[error(transparent)]
    Machine(#[from] machine::presets::MachinePresetError),
    /// A program of the presets.
    #[error(transparent)]
    Program(#[from] program::presets::ProgramPresetError),
    /// A machine or phases of the data.
    #[error(transparent)]
    Describe(#[from] DescribeError),
    /// A layout without PUs.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A run.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// A run whose speed is measured.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// The events to be counted.
    #[error(transparent)]
    Pmu(#[from] PmuError),
    /// The machine refused a plan.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// A traced program.
    #[error(transparent)]
    Traced(#[from] TracedError),
    /// A run of the reference.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// A figure.
    #[error(transparent)]
    Figure(#[from] FigureError),
    /// A table.
    #[error(transparent)]
    Table(#[from] ReportTableError),
    /// A measurement that a study makes as well.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// Workers could not be started.
    #[error(transparent)]
    Workers(#[from] JobsError),
}
