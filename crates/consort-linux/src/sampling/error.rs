//! Errors of the sampler's start.

use crate::discovery::ProcError;
use crate::perf::PerfError;
use thiserror::Error;

/// Reason for which sampling could not start.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SamplerError {
    /// perf refused an event.
    #[error("cannot sample thread {tid}: {error}")]
    Perf {
        /// Kernel thread id.
        tid: u32,
        /// The kernel's answer.
        #[source]
        error: PerfError,
    },
    /// The set of PUs is empty.
    #[error("no PU to sample on; name at least one online PU")]
    NoPus,
    /// The process cannot be listed.
    #[error("cannot list the threads of process {pid}: {error}")]
    Proc {
        /// Process id.
        pid: u32,
        /// The failure to read `/proc`.
        #[source]
        error: ProcError,
    },
    /// There are more threads than descriptors.
    #[error("{threads} threads need more than {budget} descriptors; raise the limit on open files")]
    FdBudget {
        /// Number of threads of the process.
        threads: usize,
        /// Most descriptors that the sampler may keep open.
        budget: usize,
    },
}
