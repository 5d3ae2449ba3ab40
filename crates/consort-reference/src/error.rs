//! Errors of starting a run.

use consort_core::PuId;
use thiserror::Error;

/// Reason why the reference cannot run something.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReferenceError {
    /// There is nothing to run.
    #[error("there are no threads; expected at least one placement")]
    Nothing,
    /// The machine has no such PU.
    #[error("there is no PU {pu}; expected 0 to {}", .pus.saturating_sub(1))]
    NoPu {
        /// The PU that was asked for.
        pu: PuId,
        /// Number of PUs that the machine has.
        pus: usize,
    },
    /// Two threads are to run on one PU.
    #[error("PU {pu} has two threads; expected one per PU")]
    Twice {
        /// The PU.
        pu: PuId,
    },
    /// A program has no operations.
    #[error("the program on PU {pu} has no operations; expected at least one")]
    Empty {
        /// Its PU.
        pu: PuId,
    },
    /// A thread has stopped making progress, as its core cannot execute some operation.
    #[error(
        "the program on PU {pu} commits nothing for {cycles} cycles; expected a port for every \
         kind of operation and buffers that hold one of each"
    )]
    Stuck {
        /// Its PU.
        pu: PuId,
        /// For how long.
        cycles: u64,
    },
}
