//! The programs of a run: which there are, which have begun, and when the run is over.

use super::program::ProgramState;
use super::simulated_program::{InstanceResult, RunMode};
use super::thread::SimulatedThread;
use super::time::NEVER;
use consort_core::ProgramId;
use std::ops::{Deref, DerefMut};

/// All programs, a slice by number.
#[derive(Clone, Debug)]
pub(crate) struct ProgramTable {
    all: Vec<ProgramState>,
    /// Programs in the order in which they arrive.
    arrivals: Vec<usize>,
    mode: RunMode,
}

impl ProgramTable {
    /// None yet of those that arrive in an order.
    pub(crate) fn new(arrivals: Vec<usize>, mode: RunMode) -> Self {
        Self {
            all: Vec::new(),
            arrivals,
            mode,
        }
    }

    /// Adds one.
    pub(crate) fn push(&mut self, program: ProgramState) {
        self.all.push(program);
    }

    /// Returns the start of the next program that has not begun, ps.
    pub(crate) fn next_event(&self) -> u64 {
        let waiting = self.all.iter().filter(|p| !p.begun);
        waiting.map(|p| p.start_ps).fold(NEVER, u64::min)
    }

    /// Begins the next program that has arrived, if one has.
    pub(crate) fn begin_next(&mut self, now: u64) -> Option<usize> {
        let due = |p: &usize| !self.all[*p].begun && self.all[*p].start_ps <= now;
        let p = self.arrivals.iter().copied().find(due)?;
        self.all[p].begun = true;
        self.all[p].run_start_ps = now;
        Some(p)
    }

    /// True if each program runs once.
    pub(crate) fn runs_once(&self) -> bool {
        self.mode == RunMode::Once
    }

    /// True if threads that have done their part of a program do it again.
    pub(crate) fn repeats(&self, p: usize) -> bool {
        self.mode == RunMode::RestartThreadsUntilAllDone && self.all[p].steps.is_last()
    }

    /// True if each has done its work as often as it must.
    pub(crate) fn are_done(&self) -> bool {
        let times = self.mode.required_completions();
        self.all.iter().all(|p| p.has_done(times))
    }

    /// Every program with the id that its threads name.
    pub(crate) fn ids(&self, threads: &[SimulatedThread]) -> Vec<(usize, ProgramId)> {
        let id = |p: &ProgramState| threads[p.members.start].id.program();
        self.all.iter().map(id).enumerate().collect()
    }

    /// Returns the result of each program.
    pub(crate) fn results(&self, threads: &[SimulatedThread]) -> Vec<InstanceResult> {
        self.all.iter().map(|p| p.result(threads)).collect()
    }
}

impl Deref for ProgramTable {
    type Target = [ProgramState];

    fn deref(&self) -> &[ProgramState] {
        &self.all
    }
}

impl DerefMut for ProgramTable {
    fn deref_mut(&mut self) -> &mut [ProgramState] {
        &mut self.all
    }
}
