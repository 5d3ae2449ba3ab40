//! Placements of programs on CPUs, and errors of starting a run.

use consort_core::PuId;
use consort_ops::Op;
use thiserror::Error;

/// A source of a program's operations, which can be started again and again.
///
/// A thread that comes to their end starts again from the beginning, in the state that caches
/// and predictors are in by then.
pub trait OpSource {
    /// The operations from the beginning, in program order.
    fn start(&self) -> Box<dyn Iterator<Item = Op> + '_>;
}

impl OpSource for [Op] {
    fn start(&self) -> Box<dyn Iterator<Item = Op> + '_> {
        Box::new(self.iter().copied())
    }
}

impl OpSource for Vec<Op> {
    fn start(&self) -> Box<dyn Iterator<Item = Op> + '_> {
        self.as_slice().start()
    }
}

impl<F, I> OpSource for F
where
    F: Fn() -> I,
    I: Iterator<Item = Op> + 'static,
{
    fn start(&self) -> Box<dyn Iterator<Item = Op> + '_> {
        Box::new(self())
    }
}

/// A thread and its place.
#[derive(Clone, Copy)]
pub struct TracePlacement<'a> {
    /// CPU that it runs on; one thread per CPU.
    pub pu: PuId,
    /// Number of its address space: threads with the same number share memory and code.
    pub space: u32,
    /// Program that it runs.
    pub program: &'a dyn OpSource,
}

/// Reason why the reference cannot run something.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReferenceError {
    /// There is nothing to run.
    #[error("there are no threads; expected at least one placement")]
    Nothing,
    /// The machine has no such CPU.
    #[error("there is no CPU {pu}; expected 0 to {}", .pus.saturating_sub(1))]
    NoPu {
        /// The CPU that was requested.
        pu: PuId,
        /// Number of CPUs that the machine has.
        pus: usize,
    },
    /// Two threads are to run on one CPU.
    #[error("CPU {pu} has two threads; expected one per CPU")]
    Twice {
        /// The CPU.
        pu: PuId,
    },
    /// A program has no operations.
    #[error("the program on CPU {pu} has no operations; expected at least one")]
    Empty {
        /// Its CPU.
        pu: PuId,
    },
    /// A thread has stopped making progress, as its core cannot execute some operation.
    #[error(
        "the program on CPU {pu} commits nothing for {cycles} cycles; expected a port for every \
         kind of operation and buffers that hold one of each"
    )]
    Stuck {
        /// Its CPU.
        pu: PuId,
        /// For how long.
        cycles: u64,
    },
}
