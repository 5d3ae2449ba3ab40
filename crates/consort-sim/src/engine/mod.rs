//! Events: what happens when, and what each thread has done until then.
//!
//! Between two events the set of running threads, their places and their demands are constant, so
//! rates are constant: they are solved once ([`crate::contention`]), kept for reuse, and everything
//! advances linearly to the next event. Work is exact: a thread that reaches a point of its work
//! has done exactly the instructions up to it, and a deadline once computed stands until a rate
//! changes, so that splitting time into other quanta changes nothing.
//!
//! Pitfalls:
//! - A thread that pays for a switch or a move occupies its PU and makes no progress, but takes
//!   part in contention as if it ran: it does fetch its data, and one solution serves a whole
//!   placement.
//! - A thread that spins occupies its PU and takes no part in contention.
//! - Several events at one instant are handled in the order of threads' numbers; each of them uses
//!   up work or ends a wait, so an instant has finitely many.

use crate::chip::Chip;
use crate::contention::Demand;
use crate::os::PlacementReason;
use cache_contents::Moves;
pub(crate) use calendar::PS_PER_NS;
use calendar::{Calendar, NEVER, PS_PER_MS, seconds};
use consort_core::{Bottleneck, ProgramId, ThreadId};
pub use counts::ThreadCounts;
use energy::EnergyAccount;
use kernel::SimulatedKernel;
use lock::returns_per_instr;
pub use observer::{EnergyMeter, Observer, PuUse, RunSegment, SampleSource};
use programs::ProgramTable;
pub use rates::MemoUse;
use rates::RateSolver;
pub use simulated_program::{
    Completion, EngineError, InstanceResult, RunMode, SimulatedProgram, SimulationSettings,
};
use std::sync::Arc;
use sync::CallCosts;
pub(crate) use thread::SimulatedThread;
use thread::ThreadStatus;
use warming::CacheWarming;
use work::PhaseTable;

mod build;
mod cache_contents;
mod calendar;
mod counts;
pub(crate) mod draw;
mod energy;
mod kernel;
mod lock;
mod logical;
mod observer;
mod programs;
pub(crate) mod pu;
mod rates;
mod relearn;
mod schedule;
mod simulated_program;
mod steps;
mod sync;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod thread;
mod thread_caches;
mod warming;
mod work;

/// A machine with programs on it, at an instant.
///
/// Each part changes only what it owns and is given the others to look at; what happens to several
/// of them at once is here.
pub(crate) struct Engine {
    chip: Arc<Chip>,
    calls: CallCosts,
    phases: PhaseTable,
    observer: Option<Box<dyn Observer>>,
    calendar: Calendar,
    threads: Vec<SimulatedThread>,
    programs: ProgramTable,
    kernel: SimulatedKernel,
    moves: Moves,
    rates: RateSolver,
    account: EnergyAccount,
}

impl Engine {
    /// Lets time pass until an instant, ps, or until the run is over.
    pub(crate) fn run_until(&mut self, end: u64) {
        while self.is_due(end) {
            self.step(end);
        }
    }

    /// Lets time pass until some thread stalls or goes on, at most until an instant, ps. Free PUs
    /// have then been given their next threads.
    pub(crate) fn run_until_activity(&mut self, end: u64) {
        self.fill_free_pus();
        self.calendar.clear_activity();
        while !self.calendar.has_activity() && self.is_due(end) {
            self.step(end);
            self.fill_free_pus();
        }
    }

    /// Lets time pass until an instant, ps, or until the run is over. Whether a thread stalled or
    /// went on meanwhile.
    pub(crate) fn run_noting_activity(&mut self, end: u64) -> bool {
        self.fill_free_pus();
        self.calendar.clear_activity();
        self.run_until(end);
        self.calendar.has_activity()
    }

    /// True if there is time left. What is due at the end is handled, but not solved for: a plan
    /// may come first.
    fn is_due(&self, end: u64) -> bool {
        !self.is_done() && (self.now_ps() < end || self.next_event() <= end)
    }

    /// Goes on to the next event, at most until an instant, and handles what is due.
    fn step(&mut self, end: u64) {
        self.fill_free_pus();
        self.refresh_rates();
        // A slice that ended in the past is due now.
        let next = self.next_event().max(self.now_ps()).min(end);
        self.advance(next);
        self.handle_due();
    }

    /// True if the run is over.
    pub(crate) fn is_done(&self) -> bool {
        self.calendar.is_done()
    }

    /// Now, ps since the start.
    pub(crate) fn now_ps(&self) -> u64 {
        self.calendar.now()
    }

    /// The threads.
    pub(crate) fn threads(&self) -> &[SimulatedThread] {
        &self.threads
    }

    /// The threads, for taking their counts.
    pub(crate) fn threads_mut(&mut self) -> &mut [SimulatedThread] {
        &mut self.threads
    }

    /// Every program with the id that its threads name.
    pub(crate) fn program_ids(&self) -> Vec<(usize, ProgramId)> {
        self.programs.ids(&self.threads)
    }

    /// The locks and barriers that matter, as [`ProgramTable::take_bottlenecks`] has them.
    pub(crate) fn take_bottlenecks(&mut self) -> Vec<Bottleneck> {
        let now = self.calendar.now();
        self.programs.take_bottlenecks(&self.threads, now)
    }

    /// Energy of everything so far, J.
    pub(crate) fn energy_j(&self) -> f64 {
        self.account.total_j()
    }

    /// Returns the numbers of solutions that were reused and that were solved anew.
    pub(crate) fn memo_use(&self) -> MemoUse {
        self.rates.memo_use()
    }

    /// Returns the result of each instance.
    pub(crate) fn results(&self) -> Vec<InstanceResult> {
        self.programs.results(&self.threads)
    }

    /// Tells `observer` of every segment from now on.
    pub(crate) fn set_observer(&mut self, observer: Box<dyn Observer>) {
        self.observer = Some(observer);
    }
}

#[cfg(test)]
mod tests;

impl SimulatedThread {
    /// Returns the instant of its next event, ps, if nothing else happens before.
    fn next_event(&self, now: u64) -> u64 {
        match self.status {
            ThreadStatus::Running => {
                let owes = self.debt_until > now;
                let own = if owes { self.debt_until } else { self.deadline };
                own.min(self.kernel_until.unwrap_or(NEVER))
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
}

impl Engine {
    /// Returns the instant of the next event, ps.
    pub(crate) fn next_event(&self) -> u64 {
        let threads = self
            .threads
            .iter()
            .map(|t| t.next_event(self.calendar.now()));
        let others = [
            self.kernel.next_event(),
            self.programs.next_event(),
            self.calendar.next_due(),
        ];
        threads.chain(others).fold(NEVER, u64::min)
    }

    /// Handles what is due now.
    pub(crate) fn handle_due(&mut self) {
        self.begin_programs();
        for t in 0..self.threads.len() {
            self.handle_thread(t);
            if self.calendar.is_done() {
                return;
            }
        }
        self.end_slices();
        if self.calendar.take_burst() {
            self.apply_bursts();
        }
        self.calendar.expire_rates();
        if self.calendar.is_tick() {
            self.fill_free_pus();
            self.balance();
            self.expect_tick();
        }
    }

    fn begin_programs(&mut self) {
        while let Some(p) = self.programs.begin_next(self.calendar.now()) {
            self.begin_next_step(p);
        }
    }

    fn handle_thread(&mut self, t: usize) {
        self.leave_kernel(t);
        let thread = &mut self.threads[t];
        match thread.status {
            ThreadStatus::Running if thread.deadline <= self.calendar.now() => {
                self.reach_work_point(t)
            }
            ThreadStatus::Running if thread.debt_until == self.calendar.now() => {
                thread.debt_ps = 0;
                if thread.deadline == NEVER {
                    thread.set_deadline(self.calendar.now());
                }
            }
            ThreadStatus::Spinning(until) if until <= self.calendar.now() => {
                self.call_to_sleep(t, None)
            }
            ThreadStatus::Calling(until, io) if until <= self.calendar.now() => {
                self.sleep(t, io.map_or(ThreadStatus::Waiting, ThreadStatus::Io));
            }
            ThreadStatus::Io(until) if until <= self.calendar.now() => {
                thread.counts.io_returns += 1;
                self.place(t, PlacementReason::Wake);
            }
            _ => {}
        }
    }

    /// Lets a thread whose time in the kernel is over return to user mode.
    fn leave_kernel(&mut self, t: usize) {
        let thread = &mut self.threads[t];
        if thread
            .kernel_until
            .is_some_and(|until| until <= self.calendar.now())
        {
            thread.kernel_until = None;
            thread.counts.user_returns += 1;
            self.calendar.note_activity();
        }
    }

    /// A thread has reached a point of its work.
    fn reach_work_point(&mut self, t: usize) {
        self.threads[t].halt(self.calendar.now());
        let thread = &mut self.threads[t];
        if let Some(pu) = thread
            .warm_at
            .filter(|_| thread.warming.instructions_left() <= 0.0)
        {
            self.account
                .update_warming(thread, pu, CacheWarming::begin_age);
        }
        if thread.burst.left <= 0.0 {
            thread.burst.redraw();
            self.calendar.expect_burst();
        }
        if thread.phase_left <= 0.0 {
            self.enter_next_phase(t);
        }
        if self.threads[t].step_left <= 0.0 {
            self.arrive(t);
        } else if self.threads[t].locks.left <= 0.0 {
            self.reach_lock(t);
        } else if self.threads[t].io.left <= 0.0 {
            let blocked_s = self.threads[t].io.begin_operation();
            self.call_to_sleep(t, Some(blocked_s));
        }
        self.threads[t].set_deadline(self.calendar.now());
    }

    fn enter_next_phase(&mut self, t: usize) {
        let thread = &mut self.threads[t];
        let cycle = thread.cycle;
        let next = cycle.first + (thread.phase - cycle.first + 1) % cycle.len;
        let entry = &self.phases.entries[next];
        thread.phase_left = entry.instructions;
        if next != thread.phase {
            thread.phase = next;
            thread.demand.phase.clone_from(&entry.phase);
            self.calendar.void_rates();
        }
    }

    /// Puts the drawn variations into effect.
    fn apply_bursts(&mut self) {
        for program in self.programs.iter() {
            for t in program.members.clone() {
                let Some(mean) = self.threads[t].burst.take_mean() else {
                    continue;
                };
                let whose = match program.bursts_together {
                    true => program.members.clone(),
                    false => t..t + 1,
                };
                for thread in &mut self.threads[whose] {
                    thread.demand.intensity = mean;
                    if thread.is_running() {
                        self.calendar.void_rates();
                    }
                }
            }
        }
    }
}

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

/// A look at the inner truth, for the oracle scheduler, explanations and tests.
#[derive(Clone, Copy)]
pub struct Oracle<'a> {
    engine: &'a Engine,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(engine: &'a Engine) -> Self {
        Self { engine }
    }

    fn thread(&self, id: ThreadId) -> Option<&'a SimulatedThread> {
        self.engine.threads().iter().find(|t| t.id == id)
    }

    /// Every thread, those that have ended included.
    pub fn threads(&self) -> impl Iterator<Item = ThreadId> + 'a {
        self.engine.threads().iter().map(|t| t.id)
    }

    /// Demand of a thread on a PU now.
    pub fn demand(&self, id: ThreadId) -> Option<&'a Demand> {
        self.thread(id).map(|t| &t.demand)
    }

    /// Counts of a thread since its start.
    pub fn counts(&self, id: ThreadId) -> Option<ThreadCounts> {
        self.thread(id).map(SimulatedThread::total)
    }

    /// Number of times that solutions were reused.
    pub fn memo_use(&self) -> MemoUse {
        self.engine.memo_use()
    }
}
