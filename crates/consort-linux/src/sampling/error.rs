//! Why sampling could not start.

use crate::discovery::ProcError;
use crate::perf::PerfError;
use thiserror::Error;

/// Why sampling could not start.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SamplerError {
    /// perf refused.
    #[error("cannot sample thread {tid}: {error}")]
    Perf {
        /// The thread.
        tid: u32,
        /// What perf answered.
        #[source]
        error: PerfError,
    },
    /// The set of PUs is empty.
    #[error("no PU to sample on; name at least one online PU")]
    NoPus,
    /// The process cannot be listed.
    #[error("cannot list the threads of process {pid}: {error}")]
    Proc {
        /// The process.
        pid: u32,
        /// What `/proc` answered.
        #[source]
        error: ProcError,
    },
    /// More threads than descriptors.
    #[error("{threads} threads need more than {budget} descriptors; raise the limit on open files")]
    FdBudget {
        /// Threads of the process.
        threads: usize,
        /// Descriptors that the sampler may keep open.
        budget: usize,
    },
}
