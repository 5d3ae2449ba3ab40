//! Events: what happens when, and what each thread has done until then.
//!
//! Between two events the set of running threads, their places and their demands are constant, so
//! rates are constant: they are solved once ([`crate::contention`]), kept for reuse, and everything
//! advances linearly to the next event. Work is exact: a thread that reaches a point of its work
//! has done exactly the instructions up to it, and a deadline once computed stands until a rate
//! changes, so that splitting time into other quanta changes nothing.
//!
//! Pitfalls:
//! - A thread that pays for a switch or a move occupies its CPU and makes no progress, but takes
//!   part in contention as if it ran: it does fetch its data, and one solution serves a whole
//!   placement.
//! - A thread that spins occupies its CPU and takes no part in contention.
//! - Several events at one instant are handled in the order of threads' numbers; each of them uses
//!   up work or ends a wait, so an instant has finitely many.

use crate::chip::Chip;
use crate::contention::Demand;
use crate::os::PlacementReason;
pub use build::FIRST_PID;
use cache_contents::Moves;
pub(crate) use calendar::PS_PER_NS;
use calendar::{Calendar, NEVER, seconds};
use consort_core::{Bottleneck, ProgramId, ThreadId};
pub use counts::ThreadCounts;
use energy::EnergyAccount;
use kernel::SimulatedKernel;
use lock::returns_per_instr;
pub use observer::{EnergyMeter, Observer, PuUse, RunSegment, SampleSource};
use programs::ProgramTable;
pub use rates::MemoUse;
use rates::{RateSolver, apply_rates};
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

    /// Lets time pass until a thread stalls or continues, at most until an instant, ps. Free CPUs
    /// then have their next threads.
    pub(crate) fn run_until_activity(&mut self, end: u64) {
        self.fill_free_pus();
        self.calendar.clear_activity();
        while !self.calendar.has_activity() && self.is_due(end) {
            self.step(end);
            self.fill_free_pus();
        }
    }

    /// Lets time pass until an instant, ps, or until the run is over. Returns true if a thread
    /// stalled or continued meanwhile.
    pub(crate) fn run_noting_activity(&mut self, end: u64) -> bool {
        self.fill_free_pus();
        self.calendar.clear_activity();
        self.run_until(end);
        self.calendar.has_activity()
    }

    /// True if there is time left. What is due at the end is handled, but rates are not solved for
    /// it, because a plan may come first.
    fn is_due(&self, end: u64) -> bool {
        !self.is_done() && (self.now_ps() < end || self.next_event() <= end)
    }

    /// Advances to the next event, at most until an instant, and handles it.
    fn step(&mut self, end: u64) {
        self.fill_free_pus();
        if self.kernel.take_load_change() && !self.calendar.expects_tick() {
            self.expect_tick();
        }
        self.refresh_rates();
        // A slice that ended in the past is due now.
        let next = self.next_event().max(self.now_ps()).min(end);
        self.advance(next);
        self.handle_due();
    }

    pub(crate) fn is_done(&self) -> bool {
        self.calendar.is_done()
    }

    pub(crate) fn now_ps(&self) -> u64 {
        self.calendar.now()
    }

    pub(crate) fn threads(&self) -> &[SimulatedThread] {
        &self.threads
    }

    pub(crate) fn threads_mut(&mut self) -> &mut [SimulatedThread] {
        &mut self.threads
    }

    pub(crate) fn program_ids(&self) -> Vec<(usize, ProgramId)> {
        self.programs.ids(&self.threads)
    }

    /// The locks and barriers that matter, as [`ProgramTable::take_bottlenecks`] has them.
    pub(crate) fn take_bottlenecks(&mut self) -> Vec<Bottleneck> {
        let now = self.calendar.now();
        self.programs.take_bottlenecks(&self.threads, now)
    }

    pub(crate) fn energy_j(&self) -> f64 {
        self.account.total_j()
    }

    pub(crate) fn memo_use(&self) -> MemoUse {
        self.rates.memo_use()
    }

    pub(crate) fn results(&self) -> Vec<InstanceResult> {
        self.programs.results(&self.threads)
    }

    /// Notifies `observer` of every segment from now on.
    pub(crate) fn set_observer(&mut self, observer: Box<dyn Observer>) {
        self.observer = Some(observer);
    }
}

#[cfg(test)]
mod tests;

impl Engine {
    /// Instant of the next event, ps.
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

    pub(crate) fn handle_due(&mut self) {
        while let Some(p) = self.programs.begin_next(self.calendar.now()) {
            self.begin_next_step(p);
        }
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

    fn handle_thread(&mut self, t: usize) {
        self.leave_kernel(t);
        let thread = &mut self.threads[t];
        match thread.status {
            ThreadStatus::Running if thread.clock.deadline <= self.calendar.now() => {
                self.reach_work_point(t);
            }
            ThreadStatus::Running if thread.clock.debt_until == self.calendar.now() => {
                thread.clock.debt_ps = 0;
                if thread.clock.deadline == NEVER {
                    thread.set_deadline(self.calendar.now());
                }
            }
            ThreadStatus::Spinning(until) if until <= self.calendar.now() => {
                self.call_to_sleep(t, None);
            }
            ThreadStatus::Calling(until, io) if until <= self.calendar.now() => {
                self.sleep(t, io.map_or(ThreadStatus::Waiting, ThreadStatus::Io));
            }
            ThreadStatus::Io(until) if until <= self.calendar.now() => {
                thread.counters.recent.io_returns += 1;
                self.place(t, PlacementReason::Wake);
            }
            _ => {}
        }
    }

    /// Returns a thread whose time in the kernel is over to user mode.
    fn leave_kernel(&mut self, t: usize) {
        let thread = &mut self.threads[t];
        if thread
            .clock
            .kernel_until
            .is_some_and(|until| until <= self.calendar.now())
        {
            thread.clock.kernel_until = None;
            thread.counters.recent.user_returns += 1;
            self.calendar.note_activity();
        }
    }

    /// Handles a thread that has reached a point of its work: an age of its caches, a draw, the end
    /// of a phase or step, a lock, or input and output.
    fn reach_work_point(&mut self, t: usize) {
        self.threads[t].halt(self.calendar.now());
        let thread = &mut self.threads[t];
        if let Some(pu) = thread
            .caches
            .warm_at
            .filter(|_| thread.caches.warming.instructions_left() <= 0.0)
        {
            self.account
                .update_warming(thread, pu, CacheWarming::begin_age);
        }
        if thread.work.burst.left <= 0.0 {
            thread.work.burst.redraw();
            self.calendar.expect_burst();
        }
        if thread.work.phase_left <= 0.0 {
            self.enter_next_phase(t);
        }
        if self.threads[t].work.step_left <= 0.0 {
            self.arrive(t);
        } else if self.threads[t].work.locks.left <= 0.0 {
            self.reach_lock(t);
        } else if self.threads[t].work.io.left <= 0.0 {
            let blocked_s = self.threads[t].work.io.begin_operation();
            self.call_to_sleep(t, Some(blocked_s));
        }
        self.threads[t].set_deadline(self.calendar.now());
    }

    fn enter_next_phase(&mut self, t: usize) {
        let thread = &self.threads[t];
        let cycle = thread.work.cycle;
        let next = cycle.first + (thread.work.phase - cycle.first + 1) % cycle.len;
        let left = self.phases.entries[next].instructions;
        self.enter_phase(t, next, left / thread.work.pace);
    }

    /// Puts a thread in a phase that ends after so many of its instructions.
    fn enter_phase(&mut self, t: usize, phase: usize, left: f64) {
        let thread = &mut self.threads[t];
        thread.work.phase_left = left;
        if phase != thread.work.phase {
            thread.work.phase = phase;
            thread
                .demand
                .phase
                .clone_from(&self.phases.entries[phase].phase);
            self.calendar.void_rates();
        }
    }

    fn apply_bursts(&mut self) {
        for program in self.programs.iter() {
            for t in program.members.clone() {
                let Some(mean) = self.threads[t].work.burst.take_mean() else {
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

    /// Lets time pass until an instant, which must not be after the next event.
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
            let before = thread.counters.recent.energy_j;
            thread.spend(now, next, s);
            energy_j += thread.counters.recent.energy_j - before;
        }
        self.account.add(s, energy_j);
        self.calendar.go_to(next);
    }

    /// Solves rates again if anything that they depend on has changed.
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
            apply_rates(thread, (slot.pu, rates, returns), &self.account, now);
        }
        self.account.refresh(&self.kernel, &mut self.threads);
    }

    fn notify_observer(&self, observer: &mut dyn Observer, next: u64) {
        let now = self.calendar.now();
        for thread in self.threads.iter().filter(|t| t.is_on_pu()) {
            let Some(logical) = thread.queue.pu else {
                continue;
            };
            observer.note_returns(thread.id, thread.counters.wait_returns());
            let rates = thread.present_rates();
            observer.note_segment(&RunSegment {
                thread: thread.id,
                name: &thread.name,
                pu: self.kernel.physical_pu(logical),
                from_ps: now,
                to_ps: next,
                doing: thread.pu_use(now),
                phase: (
                    thread.work.phase - thread.work.cycle.first,
                    thread.work.cycle.len,
                ),
                kernel_share: thread.kernel_share(),
                rates: &rates,
            });
        }
    }
}

/// The inner truth of the simulation, for the oracle scheduler, explanations and tests: rates,
/// solutions, exact counts.
///
/// Only the owner of the simulated machine can have this view: policies get topology and
/// observations from the control loop and never the machine, so they cannot reach it.
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

    /// Every thread, the ones that have ended included.
    pub fn threads(&self) -> impl Iterator<Item = ThreadId> + 'a {
        self.engine.threads().iter().map(|t| t.id)
    }

    /// Demand of a thread on a CPU now.
    pub fn demand(&self, id: ThreadId) -> Option<&'a Demand> {
        self.thread(id).map(|t| &t.demand)
    }

    /// Counts of a thread since its start.
    pub fn counts(&self, id: ThreadId) -> Option<ThreadCounts> {
        self.thread(id).map(|t| t.counters.total())
    }

    /// Number of times that solutions were reused.
    pub fn memo_use(&self) -> MemoUse {
        self.engine.memo_use()
    }
}
