//! One software thread: where it is in its work, where it is on the chip, what it has done.

use super::calendar::{NEVER, after};
use super::counts::{LEVELS, ThreadCounts};
use super::draw::{BurstFactor, Io};
use super::lock::{KernelReturns, LockAcquisitions};
use super::thread_caches::CacheRemnants;
use super::warming::CacheWarming;
use super::work::PhaseCycle;
use crate::contention::{Demand, ThreadRates};
use consort_core::{PuSet, ThreadId};
use std::sync::Arc;

/// Status of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadStatus {
    /// Its program has not begun.
    Unborn,
    /// It is on a PU.
    Running,
    /// It waits in a PU's queue.
    Ready,
    /// It is on a PU and spins for its siblings until then, ps.
    Spinning(u64),
    /// It is on a PU, in the kernel until then, ps, and sleeps afterwards: for its siblings, or in
    /// input or output until another instant, ps.
    Calling(u64, Option<u64>),
    /// It sleeps for its siblings.
    Waiting,
    /// It is blocked in input or output until then, ps.
    Io(u64),
    /// It could run, but its program is paused.
    Paused,
    /// It has ended.
    Finished,
}

/// A thread's state.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedThread {
    pub(crate) id: ThreadId,
    pub(crate) name: Arc<str>,
    pub(crate) program: usize,
    pub(crate) status: ThreadStatus,

    pub(crate) cycle: PhaseCycle,
    /// Index into the table of phases.
    pub(crate) phase: usize,
    pub(crate) phase_left: f64,
    pub(crate) step_left: f64,
    /// True if it has done its part of the run and does it again while it waits for its siblings.
    pub(crate) again: bool,
    pub(crate) io: Io,
    /// Locks that it takes by events.
    pub(crate) locks: LockAcquisitions,
    /// Its returns from sleeping for locks that are no events.
    pub(crate) returns: KernelReturns,
    pub(crate) burst: BurstFactor,
    pub(crate) demand: Demand,

    pub(crate) original: Arc<PuSet>,
    pub(crate) allowed: PuSet,
    /// PU that it is on or was on last, as the operating system numbers PUs.
    pub(crate) pu: Option<usize>,
    /// Virtual run time, ps; see [`super::pu`].
    pub(crate) vruntime_ps: i64,
    /// PU of the chip that it ran on last, in whose caches its data is.
    pub(crate) warm_at: Option<usize>,
    /// End of its last turn on a PU, ps; a turn without length is none.
    pub(crate) ran_until: u64,
    /// True if its memory has a home node yet.
    pub(crate) has_home: bool,

    pub(crate) rates: ThreadRates,
    /// Energy of an instruction, J.
    pub(crate) instruction_j: f64,
    /// Its share of its core's static power, W.
    pub(crate) static_w: f64,
    /// Clock of the PU that it is on, Hz.
    pub(crate) hz: f64,
    /// Share of its time on a PU in which it makes progress.
    pub(crate) progress: f64,
    /// End of the time without progress, ps; in the past when there is none.
    pub(crate) debt_until: u64,
    /// Time without progress that it has still to spend when it comes back to a PU, ps.
    pub(crate) debt_ps: u64,
    /// Instant at which it returns to user mode, ps, while it is in the kernel on a PU.
    pub(crate) kernel_until: Option<u64>,
    /// Cost of a wait for a lock that is no event, with the call that ends it, cycles.
    pub(crate) wait_cycles: f64,
    /// Progress in warming the caches where it is.
    pub(crate) warming: CacheWarming,
    /// Data that it left in the caches where it was.
    pub(crate) left_behind: CacheRemnants,
    /// True if its caches were warm when it last left them.
    pub(crate) was_warm: bool,
    /// Lines that it had brought into each level of caches when its turn began.
    pub(crate) turn_lines: [f64; LEVELS],
    /// Instant at which it reaches the next point of its work, ps.
    pub(crate) deadline: u64,
    /// Instant since which its rate has been what it is, ps.
    pub(crate) anchor: u64,
    /// Instructions since then, which `phase_left` and the like do not know of yet.
    pub(crate) passed: f64,
    /// Time that its next turn begins with, for what strangers made it mispredict in earlier ones, s.
    pub(crate) relearn_s: f64,

    /// True if its end has been observed.
    pub(crate) gone: bool,
    /// Since the last sample.
    pub(crate) counts: ThreadCounts,
    /// Before that.
    pub(crate) sampled: ThreadCounts,
}

impl SimulatedThread {
    /// True if it is on a PU.
    pub(crate) fn is_on_pu(&self) -> bool {
        matches!(
            self.status,
            ThreadStatus::Running | ThreadStatus::Spinning(_) | ThreadStatus::Calling(..)
        )
    }

    /// True if it is on a PU and does not spin.
    pub(crate) fn is_running(&self) -> bool {
        self.status == ThreadStatus::Running
    }

    /// True if it waits for its siblings, on a PU or asleep.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(
            self.status,
            ThreadStatus::Spinning(_) | ThreadStatus::Calling(_, None) | ThreadStatus::Waiting
        )
    }

    /// True if it makes progress at an instant, given that nothing changes before.
    pub(crate) fn is_working(&self, now: u64) -> bool {
        self.status == ThreadStatus::Running && self.debt_until <= now
    }

    /// True if it is in kernel mode on a PU.
    pub(crate) fn is_in_kernel(&self) -> bool {
        let calls = matches!(self.status, ThreadStatus::Calling(..));
        calls || self.status == ThreadStatus::Running && self.kernel_until.is_some()
    }

    /// True if the operating system counts it as runnable.
    pub(crate) fn is_runnable(&self) -> bool {
        self.is_on_pu() || self.status == ThreadStatus::Ready
    }

    /// Instructions from the anchor to the next point of its work.
    pub(crate) fn instructions_left(&self) -> f64 {
        let own = self.phase_left.min(self.step_left);
        own.min(self.burst.left)
            .min(self.io.left)
            .min(self.locks.left)
            .min(self.warming.instructions_left())
    }

    /// Cycles per instruction in the kernel for locks whose acquisitions are no events.
    pub(crate) fn kernel_cycles(&self) -> f64 {
        self.returns.rate() * self.wait_cycles
    }

    /// Its rates where it is, with what it misses because its caches there are not warm.
    pub(crate) fn present_rates(&self) -> ThreadRates {
        self.warming.add_to_rates(&self.rates, self.hz)
    }

    /// Returns the bytes of each level that it holds where it is.
    pub(crate) fn held_bytes(&self, line_bytes: f64) -> [f64; LEVELS] {
        let phase = &self.demand.phase;
        // What has passed since the anchor is not in the levels yet.
        self.warming
            .held_bytes(&self.rates, phase, self.passed, line_bytes)
    }

    /// Instructions per second of time on the PU.
    pub(crate) fn ips(&self) -> f64 {
        let more = self.warming.cycles() + self.kernel_cycles();
        if more > 0.0 {
            return self.progress / (1.0 / self.rates.ips + more / self.hz);
        }
        // In this form exact where nothing is missed.
        self.rates.ips * self.progress
    }

    /// Sets the anchor to an instant; the next point is then reached never.
    pub(crate) fn halt(&mut self, now: u64) {
        let passed = std::mem::take(&mut self.passed);
        self.phase_left -= passed;
        self.step_left -= passed;
        self.burst.left -= passed;
        self.io.left -= passed;
        self.locks.left -= passed;
        self.returns.rebase(passed);
        self.warming.note_instructions(passed);
        self.anchor = now;
        self.deadline = NEVER;
    }

    /// Sets the anchor to an instant and, if it works, when the next point is reached.
    pub(crate) fn set_deadline(&mut self, now: u64) {
        self.halt(now);
        if self.is_working(now) {
            self.deadline = after(now, self.instructions_left() / self.ips());
        }
    }

    /// Adds time without progress to what it still owes, from an instant on.
    pub(crate) fn owe(&mut self, now: u64, ps: u64) {
        self.debt_ps += ps;
        self.debt_until = now + self.debt_ps;
        self.halt(now);
    }

    /// True if an observation names it: it has begun and its end has not been observed.
    pub(crate) fn is_reported(&self) -> bool {
        self.status != ThreadStatus::Unborn && !self.gone
    }

    /// Notes that its end, if it has come, is observed now; whether it has.
    pub(crate) fn note_end(&mut self) -> bool {
        self.gone = self.status == ThreadStatus::Finished;
        self.gone
    }

    /// Everything that it has done.
    pub(crate) fn total(&self) -> ThreadCounts {
        let mut total = self.sampled;
        total.add(&self.counts);
        total
    }

    /// Its returns to user mode from futex calls and blocking input and output.
    pub(crate) fn wait_returns(&self) -> u64 {
        let of = |counts: &ThreadCounts| counts.futex_returns + counts.io_returns;
        of(&self.sampled) + of(&self.counts)
    }

    /// Takes the counts of what it has done since the last call.
    pub(crate) fn take_counts(&mut self) -> ThreadCounts {
        let counts = std::mem::take(&mut self.counts);
        self.sampled.add(&counts);
        counts
    }
}
