//! Events: what happens when, and what each thread has done until then.
//!
//! Between two events the set of running threads, their places and their demands are constant,
//! so rates are constant: they are solved once ([`crate::contention`]), kept for reuse, and
//! everything advances linearly to the next event. Work is exact: a thread that reaches a point
//! of its work has done exactly the instructions up to it, and a deadline once computed stands
//! until a rate changes, so that splitting time into other quanta changes nothing.
//!
//! Pitfalls:
//! - A thread that pays for a switch or a move occupies its PU and makes no progress, but takes
//!   part in contention as if it ran: it does fetch its data, and one solution serves a whole
//!   placement.
//! - A thread that spins occupies its PU and takes no part in contention.
//! - Several events at one instant are handled in the order of threads' numbers; each of them
//!   uses up work or ends a wait, so an instant has finitely many.

mod advance;
mod barrier;
mod bottlenecks;
mod build;
mod burst;
mod cache_remnants;
mod calendar;
mod calls;
mod canonical;
mod content;
mod counts;
pub(crate) mod draw;
mod energy;
mod error;
mod events;
mod fairness;
mod io;
mod kernel;
mod lock;
mod logical;
mod memo;
mod meter;
mod moving;
mod observer;
mod oracle;
mod pause;
mod phases;
mod program;
mod programs;
pub(crate) mod pu;
mod rates;
mod relearn;
mod repeat;
mod restrict;
mod sample_source;
mod schedule;
mod simulated_program;
mod steps;
mod team;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod thread;
mod time;
mod warming;

pub use counts::ThreadCounts;
pub use error::EngineError;
pub use memo::MemoUse;
pub use meter::EnergyMeter;
pub use observer::{Observer, PuUse, RunSegment};
pub use oracle::Oracle;
pub use sample_source::SampleSource;
pub use simulated_program::{
    Completion, InstanceResult, RunMode, SimulatedProgram, SimulationSettings,
};
pub(crate) use thread::SimulatedThread;
pub(crate) use time::PS_PER_NS;

use crate::chip::Chip;
use calendar::Calendar;
use calls::CallCosts;
use consort_core::{Bottleneck, ProgramId};
use energy::EnergyAccount;
use kernel::SimulatedKernel;
use moving::Moves;
use phases::PhaseTable;
use programs::ProgramTable;
use rates::RateSolver;
use std::sync::Arc;

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
