//! Errors of starting a run and of telling it something.

use crate::os::UnknownOs;
use thiserror::Error;

/// Fault of a run.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum EngineError {
    /// There is nothing to run.
    #[error("the workload has no program; give at least one")]
    NoProgram,
    /// A program has no threads.
    #[error("{program} has 0 threads; give at least 1")]
    NoThread {
        /// Name of the program.
        program: String,
    },
    /// A program's work is not a number of instructions.
    #[error("{program} has {instructions} instructions to do; give a positive finite number")]
    Work {
        /// Name of the program.
        program: String,
        /// Number of instructions given.
        instructions: f64,
    },
    /// A program's start is not a time.
    #[error("{program} starts at {start_ms} ms; give a time from 0 on")]
    Start {
        /// Name of the program.
        program: String,
        /// Start given, ms.
        start_ms: f64,
    },
    /// A mapping of logical cores does not name every physical one once.
    #[error("mapping {0:?} is not a permutation of the PUs")]
    Mapping(Vec<usize>),
    /// The operating system's model is unknown.
    #[error(transparent)]
    Os(#[from] UnknownOs),
}
