//! The programs of a run: their steps, locks and completed runs, and when the run is over.
//!
//! In [`RunMode::RestartThreadsUntilAllDone`], a thread that has done its part of a run's last step
//! repeats it, locks and input and output included, until the last of its siblings has done its
//! own: then the run is over and the next begins with what each has to do there (Markovic,
//! "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs", PhD thesis, UPC 2015:
//! threads that finish first are restarted). At barriers within a run threads wait.

use super::calendar::{NEVER, seconds};
use super::draw::RandomStream;
use super::lock::{LockState, ProgramLock, WaitTime};
use super::simulated_program::{Completion, InstanceResult, RunMode};
use super::steps::ProgramSteps;
use super::thread::SimulatedThread;
use crate::program::ProgramSpec;
use consort_core::{Bottleneck, BottleneckKind, ProgramId, ThreadId};
use std::ops::{Deref, DerefMut, Range};

/// All programs, a slice by number.
#[derive(Clone, Debug)]
pub(crate) struct ProgramTable {
    all: Vec<ProgramState>,
    /// Programs in the order in which they arrive.
    arrivals: Vec<usize>,
    mode: RunMode,
}

impl ProgramTable {
    pub(crate) fn new(arrivals: Vec<usize>, mode: RunMode) -> Self {
        Self {
            all: Vec::new(),
            arrivals,
            mode,
        }
    }

    pub(crate) fn push(&mut self, program: ProgramState) {
        self.all.push(program);
    }

    pub(crate) fn next_event(&self) -> u64 {
        let waiting = self.all.iter().filter(|p| !p.begun);
        waiting.map(|p| p.start_ps).fold(NEVER, u64::min)
    }

    pub(crate) fn begin_next(&mut self, now: u64) -> Option<usize> {
        let due = |p: &usize| !self.all[*p].begun && self.all[*p].start_ps <= now;
        let p = self.arrivals.iter().copied().find(due)?;
        self.all[p].begun = true;
        self.all[p].run_start_ps = now;
        Some(p)
    }

    pub(crate) fn runs_once(&self) -> bool {
        matches!(self.mode, RunMode::Once | RunMode::OnceByProcesses)
    }

    /// Number of processes that share the work of a program.
    pub(crate) fn processes(&self, program: &ProgramSpec) -> u32 {
        match self.mode {
            RunMode::OnceByProcesses => program.processes.unwrap_or(1),
            _ => 1,
        }
    }

    /// True if threads of a program that have done their part of this step repeat it.
    pub(crate) fn repeats(&self, p: usize) -> bool {
        self.mode == RunMode::RestartThreadsUntilAllDone && self.all[p].steps.is_last()
    }

    pub(crate) fn are_done(&self) -> bool {
        let times = self.mode.required_completions();
        self.all.iter().all(|p| p.has_done(times))
    }

    pub(crate) fn ids(&self, threads: &[SimulatedThread]) -> Vec<(usize, ProgramId)> {
        let id = |p: &ProgramState| threads[p.members.start].id.program();
        self.all.iter().map(id).enumerate().collect()
    }

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

#[derive(Clone, Debug)]
pub(crate) struct ProgramState {
    pub(crate) name: String,
    pub(crate) members: Range<usize>,
    pub(crate) steps: ProgramSteps,
    pub(crate) draw: RandomStream,
    /// Instructions of each thread in this step.
    pub(crate) work: Vec<f64>,
    /// Instructions of its phases up to the next step; `None` if each thread passes through the
    /// phases by itself.
    pub(crate) position: Option<f64>,
    /// Instructions of its phases that pass with one of all its threads.
    pub(crate) phase_instr: f64,
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
    /// True if the run ends without it.
    pub(crate) is_endless: bool,
    /// True if none of its threads may run.
    pub(crate) paused: bool,
    /// Processes that have yet to start after the one that runs.
    pub(crate) processes_left: u32,
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
            let total = thread.counters.total();
            (instructions + total.instructions, energy + total.energy_j)
        })
    }

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

    /// True if it has done its work so many times, or is endless.
    pub(crate) fn has_done(&self, times: usize) -> bool {
        self.is_endless || self.completions.len() >= times
    }

    pub(crate) fn result(&self, threads: &[SimulatedThread]) -> InstanceResult {
        let (instructions, energy_j) = self.sums(threads);
        InstanceResult {
            name: self.name.clone(),
            completions: self.completions.clone(),
            instructions,
            cycles: threads[self.members.clone()]
                .iter()
                .map(|thread| thread.counters.total().cycles)
                .sum(),
            energy_j,
        }
    }
}

/// First id of a program's objects, per program number: its barrier, then its locks.
const PER_PROGRAM: u64 = 1 << 32;

impl ProgramTable {
    /// Locks that are held, and locks and barriers with waiters now or since the last call, by id.
    pub(crate) fn take_bottlenecks(
        &mut self,
        threads: &[SimulatedThread],
        now: u64,
    ) -> Vec<Bottleneck> {
        let mut all = Vec::new();
        for (p, program) in self.iter_mut().enumerate() {
            let first = p as u64 * PER_PROGRAM;
            let reported = program.waited.take_ns(now);
            all.extend(active_bottleneck(barrier_bottleneck(
                program, threads, first, reported,
            )));
            for (number, lock) in program.locks.iter_mut().enumerate() {
                let reported = lock.waited.take_ns(now);
                let id = first + 1 + number as u64;
                all.extend(active_bottleneck(lock_bottleneck(
                    lock, threads, id, reported,
                )));
            }
        }
        all
    }
}

fn active_bottleneck(one: Bottleneck) -> Option<Bottleneck> {
    let held = one.kind == BottleneckKind::Lock && !one.executers.is_empty();
    (held || one.waited_ns > 0 || !one.waiters.is_empty()).then_some(one)
}

fn lock_bottleneck(
    lock: &ProgramLock,
    threads: &[SimulatedThread],
    id: u64,
    waited_ns: u64,
) -> Bottleneck {
    let names = |some: &mut dyn Iterator<Item = &usize>| some.map(|&t| threads[t].id).collect();
    Bottleneck {
        id,
        kind: BottleneckKind::Lock,
        executers: names(&mut lock.holder.iter()),
        waiters: names(&mut lock.queue.iter()),
        waited_ns,
    }
}

fn barrier_bottleneck(
    program: &ProgramState,
    threads: &[SimulatedThread],
    id: u64,
    waited_ns: u64,
) -> Bottleneck {
    let members = &threads[program.members.clone()];
    let those = |is: fn(&SimulatedThread) -> bool| -> Vec<ThreadId> {
        members.iter().filter(|t| is(t)).map(|t| t.id).collect()
    };
    Bottleneck {
        id,
        kind: BottleneckKind::Barrier,
        executers: those(|t| !waits_at_barrier(t) && t.work.step_left > 0.0 && !t.work.again),
        waiters: those(waits_at_barrier),
        waited_ns,
    }
}

fn waits_at_barrier(thread: &SimulatedThread) -> bool {
    thread.is_waiting() && !matches!(thread.work.locks.place, LockState::Waiting(_))
}

impl ProgramState {
    pub(super) fn begin_again(&self, thread: &mut SimulatedThread, t: usize) {
        thread.work.again = true;
        thread.work.step_left = self.work[t - self.members.start];
    }

    /// Ends the repetitions when the run is over: threads then hold no locks and wait for none.
    pub(super) fn end_repeats(&mut self, threads: &mut [SimulatedThread], now: u64) {
        for lock in &mut self.locks {
            lock.holder = None;
            lock.queue.clear();
            lock.waited.set(now, 0);
        }
        for thread in &mut threads[self.members.clone()] {
            thread.work.again = false;
            thread.halt(now);
            thread.work.locks.give_up();
        }
    }
}
