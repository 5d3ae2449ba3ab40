//! Placements of programs on PUs.

use consort_core::PuId;
use consort_ops::Op;

/// A program's operations, as often as they are asked for.
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
    /// PU that it runs on; one thread per PU.
    pub pu: PuId,
    /// Number of its address space: threads with the same number share memory and code.
    pub space: u32,
    /// Program that it runs.
    pub program: &'a dyn OpSource,
}
