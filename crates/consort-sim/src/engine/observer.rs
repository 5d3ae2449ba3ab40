//! Telling others what happens, for timelines and explanations.

use crate::contention::{Solution, ThreadRates};
use consort_core::ThreadId;

/// Use that a thread makes of its PU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PuUse {
    /// Its work.
    Work,
    /// Nothing, in the kernel: it is being switched in, or calls to sleep or to wake others.
    Kernel,
    /// Nothing, in user mode: it refills what a switch or a move took from it.
    Overhead,
    /// Spinning for its siblings.
    Spin,
}

/// A thread on a PU between two events.
#[derive(Clone, Copy, Debug)]
pub struct RunSegment<'a> {
    /// The thread.
    pub thread: ThreadId,
    /// Its name.
    pub name: &'a str,
    /// The PU of the chip.
    pub pu: usize,
    /// Beginning, ps since the start of the run.
    pub from_ps: u64,
    /// End, ps since the start of the run.
    pub to_ps: u64,
    /// Use that it makes of it.
    pub doing: PuUse,
    /// Share of the time in the kernel while it does its work, 0 to 1: calls for locks that are too
    /// frequent to be events.
    pub kernel_share: f64,
    /// Rates while it works, with what it misses in caches that are not warm.
    pub rates: &'a ThreadRates,
}

/// Receiver of every segment, in the order of time.
pub trait Observer {
    /// A thread was on a PU.
    fn note_segment(&mut self, segment: &RunSegment<'_>);

    /// Notes the number of times that the thread of the next segment has returned to user mode so
    /// far, from futex waits and from blocking input and output.
    fn note_returns(&mut self, _thread: ThreadId, _so_far: u64) {}

    /// New rates hold from `at_ps` on, as `solution` has them; its threads are in the order in
    /// which it was solved.
    fn note_solution(&mut self, _at_ps: u64, _solution: &Solution) {}
}
