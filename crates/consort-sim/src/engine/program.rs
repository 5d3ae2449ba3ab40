//! A program's state: its steps, its waiting threads, its completed runs.

use super::draw::RandomStream;
use super::lock::ProgramLock;
use super::lock::wait_time::WaitTime;
use super::simulated_program::{Completion, InstanceResult};
use super::steps::ProgramSteps;
use super::thread::SimulatedThread;
use super::time::seconds;
use std::ops::Range;

/// A program on the machine.
#[derive(Clone, Debug)]
pub(crate) struct ProgramState {
    pub(crate) name: String,
    /// Its threads, by index.
    pub(crate) members: Range<usize>,
    pub(crate) steps: ProgramSteps,
    pub(crate) draw: RandomStream,
    /// Instructions of each thread in this step.
    pub(crate) work: Vec<f64>,
    /// Threads that have done their part of this step.
    pub(crate) arrived: usize,
    /// Time that they have waited for the others.
    pub(crate) waited: WaitTime,
    /// Its locks whose acquisitions are events.
    pub(crate) locks: Vec<ProgramLock>,
    /// Time that waiting threads spin, s.
    pub(crate) spin_s: f64,
    /// True if its threads have the burstiness of the first.
    pub(crate) bursts_together: bool,
    /// Time at which it begins, ps.
    pub(crate) start_ps: u64,
    pub(crate) begun: bool,
    /// True if a run is over without it.
    pub(crate) is_endless: bool,
    /// True if none of its threads may run.
    pub(crate) paused: bool,
    pub(crate) completions: Vec<Completion>,
    /// Start of the run in progress, ps.
    pub(crate) run_start_ps: u64,
    /// Instructions and energy, J, before the run in progress.
    pub(crate) before: (f64, f64),
}

impl ProgramState {
    /// Instructions and energy, J, of all its threads so far.
    fn sums(&self, threads: &[SimulatedThread]) -> (f64, f64) {
        let members = threads[self.members.clone()].iter();
        members.fold((0.0, 0.0), |(instructions, energy), thread| {
            let total = thread.total();
            (instructions + total.instructions, energy + total.energy_j)
        })
    }

    /// Notes that the run in progress has come to its end.
    pub(crate) fn complete(&mut self, threads: &[SimulatedThread], now: u64) {
        let (instructions, energy_j) = self.sums(threads);
        self.completions.push(Completion {
            start_s: seconds(self.run_start_ps),
            end_s: seconds(now),
            instructions: instructions - self.before.0,
            energy_j: energy_j - self.before.1,
        });
        self.before = (instructions, energy_j);
        self.run_start_ps = now;
    }

    /// True if it has done its work so many times, or never will.
    pub(crate) fn has_done(&self, times: usize) -> bool {
        self.is_endless || self.completions.len() >= times
    }

    /// Returns what it has done.
    pub(crate) fn result(&self, threads: &[SimulatedThread]) -> InstanceResult {
        let (instructions, energy_j) = self.sums(threads);
        InstanceResult {
            name: self.name.clone(),
            completions: self.completions.clone(),
            instructions,
            cycles: threads[self.members.clone()]
                .iter()
                .map(|thread| thread.total().cycles)
                .sum(),
            energy_j,
        }
    }
}
