//! Errors of carrying out an experiment.

use consort_core::coscheduling::ExhaustiveError;
use consort_core::policy::PolicyError;
use consort_core::topology::TopologyError;
use consort_sim::SimError;
use consort_sim::engine::EngineError;
use consort_sim::pmu::PmuError;
use thiserror::Error;

/// Reason why there is no result of an experiment.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// The policy, its options, or what it needs.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The run.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The events to be counted.
    #[error(transparent)]
    Pmu(#[from] PmuError),
    /// The machine refused a plan.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The policy runs on live machines only.
    #[error("policy {0} does not run on simulated machines")]
    LiveOnly(&'static str),
    /// A program did nothing when it ran alone.
    #[error("{program} does nothing alone within {seconds} s; give it more time")]
    NoProgress {
        /// The program.
        program: String,
        /// Time that it had, s.
        seconds: f64,
    },
    /// A run did not come to an end.
    #[error(
        "{program} had not done its work after {seconds} s, {times} times what it takes alone; \
         does the workload have more threads than the machine can run?"
    )]
    Endless {
        /// The program.
        program: String,
        /// Simulated time, s.
        seconds: f64,
        /// Multiple of its time alone.
        times: f64,
    },
    /// A program cannot be one of several that a thread runs one after the other.
    #[error("{program} cannot be part of a sequence: {why}")]
    Unfit {
        /// The program.
        program: String,
        /// Reason that keeps it from it.
        why: &'static str,
    },
    /// A chip without some of its parts is none.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A stop was requested; see [`crate::StopRequest`].
    #[error("stopped on request")]
    Stopped,
    /// More than is searched.
    #[error(transparent)]
    Exhaustive(#[from] ExhaustiveError),
    /// Workers could not be started.
    #[error(transparent)]
    Workers(#[from] JobsError),
}

/// Reason why not all jobs of a stage were done.
#[derive(Debug, Error)]
pub enum JobsError {
    /// The threads to run on could not be started.
    #[error("cannot start worker threads: {0}")]
    Workers(String),
    /// A stop was requested.
    #[error("stopped on request")]
    Stopped,
}
