//! Measurements of a run.

use consort_experiment::{ProgramCounters, RunResult};

/// Measurements of one run.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::studies) struct SymbiosisOutcome {
    pub stp: f64,
    pub antt: f64,
    pub unfairness: f64,
    pub makespan_s: f64,
    /// Slowdown of each program, in the order of the workload.
    pub slowdowns: Vec<f64>,
    /// Threads that came onto another PU, per thread and second.
    pub migration_hz: f64,
    /// Share of its time that a thread is away from the node of its memory, 0 to 1.
    pub away: f64,
    /// All programs together.
    pub counters: ProgramCounters,
    /// Host time of a decision, µs: not the same from run to run.
    pub decision_us: f64,
}

impl SymbiosisOutcome {
    pub(super) fn new(run: &RunResult, away: f64) -> Self {
        let mut counters = ProgramCounters::default();
        run.programs.iter().for_each(|p| counters.add(&p.counters));
        let thread_s = run.simulated_s * run.programs.len() as f64;
        Self {
            stp: run.stp,
            antt: run.antt,
            unfairness: run.unfairness,
            makespan_s: run.makespan_s,
            slowdowns: run.programs.iter().map(|p| p.slowdown).collect(),
            migration_hz: run.migrations as f64 / thread_s,
            away,
            counters,
            decision_us: run.decision_us.mean,
        }
    }

    /// Cycles per instruction of all programs together.
    pub fn cpi(&self) -> f64 {
        self.counters.cycles / self.counters.instructions
    }
}

/// A value of a run.
pub(in crate::studies) type SymbiosisValue = fn(&SymbiosisOutcome) -> f64;
