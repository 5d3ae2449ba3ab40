//! Programs to run, settings of a run, its results, and errors of starting it.

use crate::os::UnknownOs;
use crate::program::ProgramSpec;
use std::sync::Arc;
use thiserror::Error;

/// One program of a workload.
#[derive(Clone, Debug)]
pub struct SimulatedProgram {
    /// The profile.
    pub program: Arc<ProgramSpec>,
    /// Its threads.
    pub threads: u32,
    /// Instructions of one run: of all threads together if the program divides its work, else of
    /// each thread.
    pub instructions: f64,
    /// Time at which it begins, ms after the start.
    pub start_ms: f64,
}

impl SimulatedProgram {
    /// Number of instructions from which a program counts as endless background load: the run ends
    /// without it.
    pub const ENDLESS: f64 = 1e18;
}

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMode {
    /// Each program runs once.
    Once,
    /// Each program runs once, as its description's number of processes one after the other; the
    /// operating system places each where it would place a new one.
    OnceByProcesses,
    /// A program that has done its work starts again at once, as the same threads in the same
    /// places, until every program has done its work once, so that the load stays constant.
    RestartUntilAllDone,
    /// The same until every program has done its work so many times.
    RestartUntilAllDoneTimes(u32),
    /// As `RestartUntilAllDone`, and a thread that has done its part of a program's work before its
    /// siblings does it again until they have theirs, so that the number of running threads stays
    /// constant.
    #[doc(alias = "restarted threads")]
    RestartThreadsUntilAllDone,
}

impl RunMode {
    /// Number of times that every program has done its work at the end.
    pub(super) fn required_completions(self) -> usize {
        match self {
            Self::Once
            | Self::OnceByProcesses
            | Self::RestartUntilAllDone
            | Self::RestartThreadsUntilAllDone => 1,
            Self::RestartUntilAllDoneTimes(times) => times as usize,
        }
    }
}

/// Settings of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationSettings {
    /// Seed of all pseudo-random numbers of the run.
    pub seed: u64,
    /// Condition for its end.
    pub mode: RunMode,
    /// Name of the operating system's model.
    pub os: String,
    /// True if a hardware scheduler sits below: the operating system then sees logical cores that
    /// are all alike.
    pub logical_cores: bool,
    /// True if moves from CPU to CPU cost nothing, for comparison with closed forms.
    pub free_migration: bool,
}

/// A run of a program from its beginning to the end of its work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Completion {
    /// Time at which it began, s.
    pub start_s: f64,
    /// Time at which it ended, s.
    pub end_s: f64,
    /// Instructions of all threads.
    pub instructions: f64,
    /// Energy of its instructions, and its share of the static power of the cores that it ran on,
    /// J; idle cores and the uncore are charged to no program.
    pub energy_j: f64,
}

/// Work of an instance in a whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceResult {
    /// Name of the program.
    pub name: String,
    /// Completed runs, in order.
    pub completions: Vec<Completion>,
    /// Instructions of all threads, the unfinished last run included.
    pub instructions: f64,
    /// Cycles of all threads while on CPUs.
    pub cycles: f64,
    /// Energy as in [`Completion::energy_j`], the unfinished last run included, J.
    pub energy_j: f64,
}

/// Reason why a run cannot start or a mapping is refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum EngineError {
    /// There is nothing to run.
    #[error("the workload has no program; give at least one")]
    NoProgram,
    /// A program has no threads.
    #[error("{program} has 0 threads; give at least 1")]
    NoThread {
        /// Name of the program.
        program: String,
    },
    /// A program's work is not a number of instructions.
    #[error("{program} has {instructions} instructions to do; give a positive finite number")]
    Work {
        /// Name of the program.
        program: String,
        /// Number of instructions given.
        instructions: f64,
    },
    /// A program's start is not a time.
    #[error("{program} starts at {start_ms} ms; give a time from 0 on")]
    Start {
        /// Name of the program.
        program: String,
        /// Start given, ms.
        start_ms: f64,
    },
    /// A mapping of logical cores does not name every physical one once.
    #[error("mapping {0:?} is not a permutation of the CPUs")]
    Mapping(Vec<usize>),
    /// The operating system's model is unknown.
    #[error(transparent)]
    Os(#[from] UnknownOs),
}
