//! One software thread: its status, and the parts that own its work, its place, its time, its caches
//! and its counters.

use super::calendar::{NEVER, PS_PER_MS, after, picoseconds, seconds};
use super::counts::{LEVELS, ThreadCounters};
use super::observer::PuUse;
use super::thread_caches::ThreadCaches;
use super::work::ThreadWork;
use crate::contention::{Demand, ThreadRates};
use consort_core::{PuSet, ThreadId};
use std::sync::Arc;

/// Time between two timer interrupts of a CPU, ps: HZ=250, the kernel's default
/// (kernel/Kconfig.hz).
pub(crate) const TIMER_PS: u64 = 4 * PS_PER_MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadStatus {
    /// Its program has not begun.
    Unborn,
    /// It is on a CPU.
    Running,
    /// It waits in a CPU's queue.
    Ready,
    /// It is on a CPU and spins for its siblings until then, ps.
    Spinning(u64),
    /// It is on a CPU, in the kernel until then, ps, and sleeps afterwards: for its siblings, or in
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

#[derive(Clone, Debug)]
pub(crate) struct SimulatedThread {
    pub(crate) id: ThreadId,
    pub(crate) name: Arc<str>,
    pub(crate) program: usize,
    pub(crate) status: ThreadStatus,
    /// True if its end has been observed.
    pub(crate) gone: bool,
    pub(crate) work: ThreadWork,
    pub(crate) demand: Demand,
    pub(crate) queue: QueueState,
    pub(crate) clock: ThreadClock,
    pub(crate) caches: ThreadCaches,
    pub(crate) rates: ThreadRates,
    /// Energy of an instruction, J.
    pub(crate) instruction_j: f64,
    /// Its share of its core's static power, W.
    pub(crate) static_w: f64,
    pub(crate) counters: ThreadCounters,
}

/// A thread's place among the queues of the operating system.
#[derive(Clone, Debug)]
pub(crate) struct QueueState {
    pub(crate) original: Arc<PuSet>,
    pub(crate) allowed: PuSet,
    /// CPU that it is on or was on last, as the operating system numbers CPUs.
    pub(crate) pu: Option<usize>,
    /// Virtual run time, ps; see [`super::pu`].
    pub(crate) vruntime_ps: i64,
    /// End of its last turn on a CPU, ps; a turn without length is none.
    pub(crate) ran_until: u64,
}

/// A thread's time: when it reaches the next point of its work, and what it owes before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadClock {
    /// Clock of the CPU that it is on, Hz.
    pub(crate) hz: f64,
    /// First timer interrupt of that CPU, ps.
    pub(crate) first_tick: u64,
    /// Share of its time on a CPU in which it makes progress.
    pub(crate) progress: f64,
    /// Instant at which it reaches the next point of its work, ps.
    pub(crate) deadline: u64,
    /// Instant since which its rate has been constant, ps.
    anchor: u64,
    /// Instructions since the anchor, which its work and its caches do not contain yet.
    passed: f64,
    /// End of the time without progress, ps; in the past if there is none.
    pub(crate) debt_until: u64,
    /// Time without progress that it has still to spend when it comes back to a CPU, ps.
    pub(crate) debt_ps: u64,
    /// Instant at which it returns to user mode, ps, while it is in the kernel on a CPU.
    pub(crate) kernel_until: Option<u64>,
    /// Time that its next turn begins with, for what other programs made it mispredict in earlier
    /// ones, s.
    pub(crate) relearn_s: f64,
}

impl ThreadClock {
    pub(crate) fn new(progress: f64) -> Self {
        Self {
            hz: 0.0,
            first_tick: TIMER_PS,
            progress,
            deadline: NEVER,
            anchor: 0,
            passed: 0.0,
            debt_until: 0,
            debt_ps: 0,
            kernel_until: None,
            relearn_s: 0.0,
        }
    }

    /// Timer interrupts of its CPU before an instant.
    fn ticks_before(&self, instant: u64) -> u64 {
        (instant + TIMER_PS - 1).saturating_sub(self.first_tick) / TIMER_PS
    }

    /// Keeps what is left of the debt at an instant for the next turn.
    pub(crate) fn keep_debt(&mut self, now: u64) {
        self.debt_ps = self.debt_until.saturating_sub(now);
    }

    pub(crate) fn cycles_ps(&self, cycles: f64) -> u64 {
        // A thread that was never on a CPU has no clock, and none of its calls costs anything.
        if cycles > 0.0 {
            picoseconds(cycles / self.hz)
        } else {
            0
        }
    }
}

impl SimulatedThread {
    pub(crate) fn is_on_pu(&self) -> bool {
        matches!(
            self.status,
            ThreadStatus::Running | ThreadStatus::Spinning(_) | ThreadStatus::Calling(..)
        )
    }

    /// True if it is on a CPU and neither spins nor calls the kernel to sleep.
    pub(crate) fn is_running(&self) -> bool {
        self.status == ThreadStatus::Running
    }

    pub(crate) fn is_waiting(&self) -> bool {
        matches!(
            self.status,
            ThreadStatus::Spinning(_) | ThreadStatus::Calling(_, None) | ThreadStatus::Waiting
        )
    }

    pub(crate) fn is_in_kernel(&self) -> bool {
        let calls = matches!(self.status, ThreadStatus::Calling(..));
        calls || self.is_running() && self.clock.kernel_until.is_some()
    }

    pub(crate) fn is_runnable(&self) -> bool {
        self.is_on_pu() || self.status == ThreadStatus::Ready
    }

    /// The status that it gets when it leaves its CPU, if it spins or is calling the kernel to
    /// sleep.
    pub(crate) fn sleep_status(&self) -> Option<ThreadStatus> {
        match self.status {
            ThreadStatus::Spinning(_) | ThreadStatus::Calling(_, None) => {
                Some(ThreadStatus::Waiting)
            }
            ThreadStatus::Calling(_, Some(until)) => Some(ThreadStatus::Io(until)),
            _ => None,
        }
    }

    pub(crate) fn pu_use(&self, now: u64) -> PuUse {
        match self.status {
            ThreadStatus::Spinning(_) => PuUse::Spin,
            ThreadStatus::Calling(..) => PuUse::Kernel,
            _ if self.clock.kernel_until.is_some() => PuUse::Kernel,
            _ if self.clock.debt_until > now => PuUse::Overhead,
            _ => PuUse::Work,
        }
    }

    /// Instant of its next event if nothing else happens before, ps.
    pub(crate) fn next_event(&self, now: u64) -> u64 {
        match self.status {
            ThreadStatus::Running => {
                let clock = &self.clock;
                let owes = clock.debt_until > now;
                let own = if owes {
                    clock.debt_until
                } else {
                    clock.deadline
                };
                own.min(clock.kernel_until.unwrap_or(NEVER))
            }
            ThreadStatus::Spinning(until)
            | ThreadStatus::Calling(until, _)
            | ThreadStatus::Io(until) => until,
            ThreadStatus::Unborn
            | ThreadStatus::Ready
            | ThreadStatus::Waiting
            | ThreadStatus::Paused
            | ThreadStatus::Finished => NEVER,
        }
    }

    fn instructions_left(&self) -> f64 {
        let warm = self.caches.warming.instructions_left();
        self.work.instructions_left().min(warm)
    }

    /// Its rates where it is, with what it misses because its caches there are not warm.
    pub(crate) fn present_rates(&self) -> ThreadRates {
        self.caches.warming.add_to_rates(&self.rates, self.clock.hz)
    }

    /// Bytes of each level that it holds where it is.
    pub(crate) fn held_bytes(&self, line_bytes: f64) -> [f64; LEVELS] {
        let phase = &self.demand.phase;
        // What has passed since the anchor is not in the levels yet.
        let passed = self.clock.passed;
        let warming = &self.caches.warming;
        warming.held_bytes(&self.rates, phase, passed, line_bytes)
    }

    /// Instructions per second of time on the CPU.
    fn ips(&self) -> f64 {
        let clock = &self.clock;
        let more = self.caches.warming.cycles() + self.work.kernel_cycles();
        if more > 0.0 {
            return clock.progress / (1.0 / self.rates.ips + more / clock.hz);
        }
        // In this form exact if nothing is missed.
        self.rates.ips * clock.progress
    }

    /// Share of its working time that passes in the kernel for page faults and for locks whose
    /// acquisitions are no events, 0 to 1.
    pub(crate) fn kernel_share(&self) -> f64 {
        match self.work.kernel_cycles() {
            cycles if cycles > 0.0 => self.ips() * cycles / self.clock.hz,
            _ => 0.0,
        }
    }

    /// Sets the anchor to an instant and clears the deadline.
    pub(crate) fn halt(&mut self, now: u64) {
        let passed = std::mem::take(&mut self.clock.passed);
        self.work.note_instructions(passed);
        self.caches.warming.note_instructions(passed);
        self.clock.anchor = now;
        self.clock.deadline = NEVER;
    }

    /// Sets the anchor to an instant and, if it makes progress then, the deadline.
    pub(crate) fn set_deadline(&mut self, now: u64) {
        self.halt(now);
        if self.is_running() && self.clock.debt_until <= now {
            self.clock.deadline = after(now, self.instructions_left() / self.ips());
        }
    }

    /// Adds time without progress to its debt, from an instant on.
    pub(crate) fn owe(&mut self, now: u64, ps: u64) {
        self.clock.debt_ps += ps;
        self.clock.debt_until = now + self.clock.debt_ps;
        self.halt(now);
    }

    /// Adds time in the kernel to what it spends there already, ps.
    pub(crate) fn stay_in_kernel(&mut self, now: u64, ps: u64) {
        let clock = &mut self.clock;
        let debt = clock.debt_until.saturating_sub(now);
        clock.kernel_until = Some(clock.kernel_until.unwrap_or(now).max(now) + ps);
        clock.debt_ps = 0;
        self.owe(now, debt + ps);
    }

    /// Accounts for the span from `now` to `next`, `s` seconds, which contains no event.
    pub(crate) fn spend(&mut self, now: u64, next: u64, s: f64) {
        let counts = &mut self.counters.recent;
        match self.status {
            ThreadStatus::Running | ThreadStatus::Spinning(_) | ThreadStatus::Calling(..) => {
                self.spend_on_pu(now, next, s);
            }
            ThreadStatus::Ready => counts.wait_s += s,
            ThreadStatus::Waiting => {
                counts.blocked_s += s;
                counts.asleep_s += s;
            }
            ThreadStatus::Io(_) => {
                counts.blocked_s += s;
                counts.io_s += s;
            }
            ThreadStatus::Paused => counts.blocked_s += s,
            ThreadStatus::Unborn | ThreadStatus::Finished => {}
        }
    }

    fn spend_on_pu(&mut self, now: u64, next: u64, s: f64) {
        let is_user = self.clock.kernel_until.is_none() && !self.is_in_kernel();
        let counts = &mut self.counters.recent;
        counts.on_pu_s += s;
        counts.cycles += s * self.clock.hz;
        counts.energy_j += s * self.static_w;
        // A tick at the beginning of the span belongs to it, one at its end to the next.
        if is_user {
            counts.user_returns += self.clock.ticks_before(next) - self.clock.ticks_before(now);
        }
        match self.pu_use(now) {
            PuUse::Kernel => self.counters.recent.add_kernel_time(s),
            PuUse::Overhead => self.counters.recent.overhead_s += s,
            PuUse::Spin => self.counters.recent.spin_s += s,
            PuUse::Work => self.execute_span(next, s),
        }
    }

    fn execute_span(&mut self, next: u64, s: f64) {
        let left = self.instructions_left();
        // Counted from the anchor, not from the last step, so that splitting time into other steps
        // changes nothing. At the deadline the work is exact, whatever the rounding of the time.
        let passed = if next >= self.clock.deadline {
            left
        } else {
            (self.ips() * seconds(next - self.clock.anchor)).min(left)
        };
        let done = passed - self.clock.passed;
        let waits = self.work.returns.between(self.clock.passed, passed);
        let faults = self.work.faults.between(self.clock.passed, passed);
        let counts = &mut self.counters.recent;
        // A sleeper is woken by a sibling's call, and among equal threads each makes as many calls.
        counts.futex_returns += 2 * waits;
        counts.user_returns += 2 * waits + faults;
        self.clock.passed = passed;
        let mix = self.demand.phase.spec.mix;
        counts.execute(done, &mix, &self.rates);
        counts.energy_j += done * self.instruction_j;
        if self.caches.warming.is_open() {
            self.caches.warming.count(done, counts);
        }
        counts.spin_s += s * (1.0 - self.clock.progress);
        let kernel_cycles = self.work.kernel_cycles();
        if kernel_cycles > 0.0 {
            counts.add_kernel_time(done * kernel_cycles / self.clock.hz);
        }
    }

    /// True if an observation names it: it has begun and its end has not been observed.
    pub(crate) fn is_reported(&self) -> bool {
        self.status != ThreadStatus::Unborn && !self.gone
    }

    /// Notes that its end is observed now, if it has come. Returns true if it has.
    pub(crate) fn note_end(&mut self) -> bool {
        self.gone = self.status == ThreadStatus::Finished;
        self.gone
    }
}
