//! Errors of collecting training runs.

use consort_experiment::{ExperimentError, JobsError};
use thiserror::Error;

/// Reason why training runs cannot be had.
#[derive(Debug, Error)]
pub enum CollectError {
    /// Nothing shares a core.
    #[error(
        "{machine}: its cores have one PU each: there are no co-runners to train on; \
         train on a machine with SMT"
    )]
    NoCoRunners {
        /// The machine.
        machine: String,
    },
    /// More threads than a core takes.
    #[error("{machine}: a core has {pus} PUs, so {ways} threads cannot share it; use 2 to {pus}")]
    Ways {
        /// The machine.
        machine: String,
        /// PUs of its largest core.
        pus: usize,
        /// Threads asked for.
        ways: u32,
    },
    /// The counters do not tell what a model is made of.
    #[error("{machine}: its counters do not tell {missing}, which training needs")]
    NotCounted {
        /// The machine.
        machine: String,
        /// The signals.
        missing: String,
    },
    /// Runs that end before the counters have told everything once.
    #[error("runs of {quanta} quanta are too short; {machine} needs at least {needed}")]
    TooShort {
        /// The machine.
        machine: String,
        /// Quanta given.
        quanta: usize,
        /// Quanta needed.
        needed: usize,
    },
    /// A program did nothing alone.
    #[error("{program} does nothing alone; it cannot be trained on")]
    NoProgress {
        /// The program.
        program: String,
    },
    /// The simulated machine.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// Workers could not be started.
    #[error(transparent)]
    Workers(#[from] JobsError),
}
