//! Letting time pass: between two events everything is linear.

use super::Engine;
use super::lock::frequent::returns_per_instr;
use super::observer::{Observer, PuUse, RunSegment};
use super::thread::{SimulatedThread, ThreadStatus};
use super::time::{PS_PER_MS, seconds};

/// Time between two timer interrupts, which come to all PUs at once, ps: HZ=250, the kernel's
/// default (kernel/Kconfig.hz).
const TIMER_PS: u64 = 4 * PS_PER_MS;

impl SimulatedThread {
    /// Spends a span without an event in it: from `now` to `next`, which are `s` seconds apart.
    fn spend(&mut self, now: u64, next: u64, s: f64) {
        match self.status {
            ThreadStatus::Running | ThreadStatus::Spinning(_) | ThreadStatus::Calling(..) => {
                self.spend_on_pu(now, next, s);
            }
            ThreadStatus::Ready => self.counts.wait_s += s,
            ThreadStatus::Waiting => self.counts.add_sleep_time(s),
            ThreadStatus::Io(_) => self.counts.add_io_time(s),
            ThreadStatus::Paused => self.counts.blocked_s += s,
            ThreadStatus::Unborn | ThreadStatus::Finished => {}
        }
    }

    fn spend_on_pu(&mut self, now: u64, next: u64, s: f64) {
        self.counts.on_pu_s += s;
        self.counts.cycles += s * self.hz;
        self.counts.energy_j += s * self.static_w;
        self.count_ticks(now, next);
        match self.pu_use(now) {
            PuUse::Kernel => self.counts.add_kernel_time(s),
            PuUse::Overhead => self.counts.overhead_s += s,
            PuUse::Spin => self.counts.spin_s += s,
            PuUse::Work => self.execute_span(next, s),
        }
    }

    fn execute_span(&mut self, next: u64, s: f64) {
        let left = self.instructions_left();
        // From the anchor, not from the last step: the same whatever steps time is split into.
        // The point that it reaches is reached exactly, whatever the rounding of the time.
        let passed = if next >= self.deadline {
            left
        } else {
            (self.ips() * seconds(next - self.anchor)).min(left)
        };
        let done = passed - self.passed;
        let waits = self.returns.between(self.passed, passed);
        // Who sleeps is woken by a sibling's call, and among equals each makes as many.
        self.counts.futex_returns += 2 * waits;
        self.counts.user_returns += 2 * waits;
        self.passed = passed;
        let mix = self.demand.phase.spec.mix;
        self.counts.execute(done, &mix, &self.rates);
        self.counts.energy_j += done * self.instruction_j;
        if self.warming.is_open() {
            self.warming.count(done, &mut self.counts);
        }
        self.counts.spin_s += s * (1.0 - self.progress);
        let kernel_cycles = self.kernel_cycles();
        if kernel_cycles > 0.0 {
            self.counts.add_kernel_time(done * kernel_cycles / self.hz);
        }
    }

    /// Counts the timer ticks of a span, its beginning included, that interrupt it in user mode.
    fn count_ticks(&mut self, now: u64, next: u64) {
        if self.kernel_until.is_none() && !self.is_in_kernel() {
            self.counts.user_returns += (next - 1) / TIMER_PS - now.saturating_sub(1) / TIMER_PS;
        }
    }

    /// Share of the time in which it does its work that passes in the kernel, for locks whose
    /// acquisitions are no events.
    fn kernel_share(&self) -> f64 {
        match self.kernel_cycles() {
            cycles if cycles > 0.0 => self.ips() * cycles / self.hz,
            _ => 0.0,
        }
    }

    /// Returns the use that it makes of its PU from an instant on.
    pub(crate) fn pu_use(&self, now: u64) -> PuUse {
        match self.status {
            ThreadStatus::Spinning(_) => PuUse::Spin,
            ThreadStatus::Calling(..) => PuUse::Kernel,
            _ if self.kernel_until.is_some() => PuUse::Kernel,
            _ if self.debt_until > now => PuUse::Overhead,
            _ => PuUse::Work,
        }
    }
}

impl Engine {
    /// Lets time pass until an instant before or at the next event.
    pub(crate) fn advance(&mut self, next: u64) {
        let now = self.calendar.now();
        if next == now {
            return;
        }
        let s = seconds(next - now);
        if let Some(mut observer) = self.observer.take() {
            self.notify_observer(observer.as_mut(), next);
            self.observer = Some(observer);
        }
        let mut energy_j = 0.0;
        for thread in &mut self.threads {
            let before = thread.counts.energy_j;
            thread.spend(now, next, s);
            energy_j += thread.counts.energy_j - before;
        }
        self.account.add(s, energy_j);
        self.calendar.go_to(next);
    }

    /// Solves again if anything has changed that rates depend on.
    pub(crate) fn refresh_rates(&mut self) {
        let now = self.calendar.now();
        if !self.calendar.renew_rates() {
            self.account
                .refresh_if_stopped(&self.kernel, &mut self.threads);
            return;
        }
        let (running, solution) = self.rates.solve(&self.kernel, &self.threads);
        if let Some(observer) = &mut self.observer {
            observer.note_solution(now, solution);
        }
        for (slot, rates) in running.iter().zip(&solution.threads) {
            let thread = &mut self.threads[slot.thread];
            let spin_s = self.programs[thread.program].spin_s;
            let returns = returns_per_instr(&thread.demand, rates.lock, spin_s);
            thread.take_rates((slot.pu, rates, returns), &self.account, now);
        }
        self.account.refresh(&self.kernel, &mut self.threads);
    }

    fn notify_observer(&self, observer: &mut dyn Observer, next: u64) {
        let now = self.calendar.now();
        for thread in self.threads.iter().filter(|t| t.is_on_pu()) {
            let Some(logical) = thread.pu else {
                continue;
            };
            observer.note_returns(thread.id, thread.wait_returns());
            let rates = thread.present_rates();
            observer.note_segment(&RunSegment {
                thread: thread.id,
                name: &thread.name,
                pu: self.kernel.physical_pu(logical),
                from_ps: now,
                to_ps: next,
                doing: thread.pu_use(now),
                kernel_share: thread.kernel_share(),
                rates: &rates,
            });
        }
    }
}
