//! Calls of the kernel by which threads sleep and wake each other, and what they cost.
//!
//! A thread that is about to sleep, for its siblings or in input and output, spends `call_cycles`
//! in the kernel on its PU before it leaves it. One that is let go on meanwhile is switched out and
//! in again at the end of its call: so a longer call never spares it a switch. Who wakes sleepers spends `wake_cycles` in the kernel for each
//! of them, and they can run from the call's beginning on. Calls that frequent locks cause are no
//! events; they lengthen the instructions between them ([`super::lock::frequent`]).
//!
//! One that is taken off its PU in such a call sleeps at once. Where calls cost nothing, there are
//! no instants between waking up and the work that follows.

use super::Engine;
use super::thread::{SimulatedThread, ThreadStatus};
use super::time::{after, picoseconds};

/// Costs of kernel calls on a machine, cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CallCosts {
    call_cycles: f64,
    wake_cycles: f64,
}

impl CallCosts {
    /// The costs that a machine's description has.
    pub(crate) fn new(os: &crate::machine::OsCosts) -> Self {
        Self {
            call_cycles: os.call_cycles,
            wake_cycles: os.wake_cycles,
        }
    }

    /// True if calls take no time.
    fn are_none(self) -> bool {
        self.call_cycles == 0.0 && self.wake_cycles == 0.0
    }

    /// Returns the cost of a wait together with the call that ends it, cycles: among equals each
    /// thread makes as many of the one as of the other.
    pub(crate) fn wait_cycles(self) -> f64 {
        self.call_cycles + self.wake_cycles
    }
}

impl SimulatedThread {
    /// Time that so many cycles take where it is, ps.
    fn cycles_ps(&self, cycles: f64) -> u64 {
        if cycles > 0.0 {
            picoseconds(cycles / self.hz)
        } else {
            0
        }
    }

    /// Returns the status in which it sleeps once it is off its PU, if it is about to sleep.
    pub(crate) fn sleep_status(&self) -> Option<ThreadStatus> {
        match self.status {
            ThreadStatus::Spinning(_) | ThreadStatus::Calling(_, None) => {
                Some(ThreadStatus::Waiting)
            }
            ThreadStatus::Calling(_, Some(until)) => Some(ThreadStatus::Io(until)),
            _ => None,
        }
    }

    /// Spends so long in the kernel, after what it does there already, and returns.
    fn stay_in_kernel(&mut self, now: u64, ps: u64) {
        let debt = self.debt_until.saturating_sub(now);
        self.kernel_until = Some(self.kernel_until.unwrap_or(now).max(now) + ps);
        self.debt_ps = 0;
        self.owe(now, debt + ps);
    }
}

impl Engine {
    /// A thread calls the kernel to sleep for its siblings, or in input and output for
    /// `blocked_s`.
    pub(crate) fn call_to_sleep(&mut self, t: usize, blocked_s: Option<f64>) {
        let thread = &mut self.threads[t];
        let until = self.calendar.now() + thread.cycles_ps(self.calls.call_cycles);
        let io_until = blocked_s.map(|s| after(until, s));
        if self.calls.are_none() {
            self.sleep(t, io_until.map_or(ThreadStatus::Waiting, ThreadStatus::Io));
            return;
        }
        thread.halt(self.calendar.now());
        thread.status = ThreadStatus::Calling(until, io_until);
        self.note_stop(t);
        self.calendar.note_activity();
    }

    /// Lets a thread that spins or calls to sleep do so at once; whether it did.
    pub(crate) fn sleep_at_once(&mut self, t: usize) -> bool {
        let asleep = self.threads[t].sleep_status();
        if let Some(status) = asleep {
            self.sleep(t, status);
        }
        asleep.is_some()
    }

    /// A thread whose siblings let it go on while it calls the kernel to wait for them: the call
    /// returns when it is over, at the cost of a switch.
    pub(crate) fn interrupt_call(&mut self, t: usize, until: u64) {
        let thread = &mut self.threads[t];
        let switch_ps = thread.cycles_ps(self.chip.spec().os.switch_cycles);
        thread.status = ThreadStatus::Running;
        thread.counts.futex_returns += 1;
        thread.kernel_until = None;
        thread.debt_until = self.calendar.now();
        thread.stay_in_kernel(
            self.calendar.now(),
            until.saturating_sub(self.calendar.now()) + switch_ps,
        );
        self.calendar.void_rates();
        self.calendar.note_activity();
    }

    /// A thread has woken so many siblings by a call; nothing when it has woken none.
    pub(crate) fn pay_for_waking(&mut self, t: usize, woken: usize) {
        if woken == 0 {
            return;
        }
        let thread = &mut self.threads[t];
        let ps = woken as u64 * thread.cycles_ps(self.calls.wake_cycles);
        thread.counts.futex_returns += 1;
        match &mut thread.status {
            ThreadStatus::Running if ps > 0 => {
                thread.stay_in_kernel(self.calendar.now(), ps);
                self.calendar.note_activity();
                return;
            }
            // It has no part in what comes next: it wakes the others, then waits.
            ThreadStatus::Calling(until, _) | ThreadStatus::Spinning(until) => *until += ps,
            _ => {}
        }
        thread.counts.user_returns += 1;
    }
}
