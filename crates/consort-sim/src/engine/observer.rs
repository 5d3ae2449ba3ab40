//! Interfaces of the engine to observers, sample sources and energy models.

use super::ThreadCounts;
use crate::contention::{InstructionActivity, Solution, ThreadRates};
use crate::program::MixSpec;
use consort_core::{ProgramId, Sample, SignalOffers, ThreadId};

/// Use that a thread makes of its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PuUse {
    /// Its work.
    Work,
    /// No progress, in the kernel: it is being switched in, or calls to sleep or to wake others.
    Kernel,
    /// No progress, in user mode: it relearns what other programs overwrote, or its registers are
    /// exchanged.
    Overhead,
    /// Spinning for its siblings.
    Spin,
}

/// A thread on a CPU between two events.
#[derive(Clone, Copy, Debug)]
pub struct RunSegment<'a> {
    /// The thread.
    pub thread: ThreadId,
    /// Its name.
    pub name: &'a str,
    /// The CPU of the chip.
    pub pu: usize,
    /// Beginning, ps since the start of the run.
    pub from_ps: u64,
    /// End, ps since the start of the run.
    pub to_ps: u64,
    /// Use that it makes of the CPU.
    pub doing: PuUse,
    /// Number of its program's phase, from 0, and the number of phases that its program has.
    pub phase: (usize, usize),
    /// Share of the time in the kernel while it does its work, 0 to 1: calls for locks that are too
    /// frequent to be events.
    pub kernel_share: f64,
    /// Rates while it works, with what it misses in caches that are not warm.
    pub rates: &'a ThreadRates,
}

/// Receiver of every segment, in the order of time.
pub trait Observer {
    /// Notes that a thread was on a CPU.
    fn note_segment(&mut self, segment: &RunSegment<'_>);

    /// Notes that a program has done its work.
    fn note_completion(&mut self, _program: ProgramId, _at_ps: u64) {}

    /// Notes the number of times that the thread of the next segment has returned to user mode so
    /// far, from futex waits and from blocking input and output.
    fn note_returns(&mut self, _thread: ThreadId, _so_far: u64) {}

    /// Notes that new rates hold from `at_ps` on; the threads of `solution` are in the order in
    /// which it was solved.
    fn note_solution(&mut self, _at_ps: u64, _solution: &Solution) {}
}

/// Makes samples of counts: the simulated PMU, with its limits and its noise.
pub trait SampleSource {
    /// The signals that samples have, each with its tier.
    fn offers(&self) -> &SignalOffers;

    /// The sample of what a thread did in an interval of `interval_ns`. Called once per thread and
    /// quantum, in ascending order of thread ids.
    fn sample(&mut self, thread: ThreadId, counts: &ThreadCounts, interval_ns: u64) -> Sample;
}

/// Power and energy of a chip's parts.
pub trait EnergyMeter {
    /// Energy of one instruction with its accesses on a core, J.
    fn instruction_j(&self, core: usize, mix: &MixSpec, flow: &InstructionActivity) -> f64;

    /// Static power of a core, W: `busy` when any of its CPUs runs something.
    fn core_w(&self, core: usize, busy: bool) -> f64;

    /// Power of what is not a core, W.
    fn uncore_w(&self) -> f64;
}
