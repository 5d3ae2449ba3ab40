//! Measurements of a run that go into the frame, and the observers that take them.

use crate::frame::{self, Frame};
use consort_core::ThreadId;
use consort_core::stats::mean;
use consort_experiment::watch::{LargeCoreWatch, ReturnTally, ReturnWatch};
use consort_experiment::{ProgramResult, RunResult};
use consort_sim::chip::Chip;
use consort_sim::engine::{Observer, RunSegment};

/// Watches a run; its clones see the same.
#[derive(Clone)]
pub(crate) struct RunObservers {
    pub(crate) large_cores: LargeCoreWatch,
    pub(crate) returns: ReturnWatch,
}

impl RunObservers {
    pub(crate) fn new(chip: &Chip) -> Self {
        Self {
            large_cores: LargeCoreWatch::new(chip),
            returns: ReturnWatch::new(chip),
        }
    }
}

impl Observer for RunObservers {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        self.large_cores.note_segment(segment);
        self.returns.note_segment(segment);
    }

    fn note_returns(&mut self, thread: ThreadId, so_far: u64) {
        self.returns.note_returns(thread, so_far);
    }
}

/// Measurements of one run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunMeasurements {
    /// System throughput against the programs alone.
    pub stp: f64,
    /// Average normalised turnaround time.
    pub antt: f64,
    /// Largest over smallest slowdown.
    pub unfairness: f64,
    /// Time until the last program had done its work once, s.
    pub makespan_s: f64,
    /// Mean time of the programs' work, s.
    pub turnaround_s: f64,
    /// Energy of the machine from the beginning to the last completion, which is average power
    /// times that time, J.
    pub energy_j: f64,
    /// Energy of the machine per instruction, restarted programs' included, nJ.
    pub instruction_nj: f64,
    /// Accesses to LLCs per 1000 instructions.
    pub accesses_pki: f64,
    /// Share of the accesses to LLCs that large cores make, 0 to 1.
    pub large_accesses: f64,
    /// Share of the instructions that large cores execute, 0 to 1.
    pub large_instructions: f64,
    /// Moves from CPU to CPU, per second.
    pub migration_hz: f64,
    /// Slowdown of each program, in the order of the workload.
    pub slowdowns: Vec<f64>,
    /// Returns from the kernel, and threads' time by use.
    pub tally: ReturnTally,
    /// Decisions of the policy, and the masks that it changed.
    pub decisions: u64,
    pub masks: u64,
}

/// A value of a run.
type RunValue = fn(&RunMeasurements) -> f64;

/// Values of a run by the key of the measure. PDP is the average power of the
/// machine times the mean time in which programs do their work.
const VALUES: &[(&str, RunValue)] = &[
    ("stp", |o| o.stp),
    ("antt", |o| o.antt),
    ("unfairness", |o| o.unfairness),
    ("makespan_s", |o| o.makespan_s),
    ("speed_hz", |o| 1.0 / o.makespan_s),
    ("turnaround_s", |o| o.turnaround_s),
    ("energy_j", |o| o.energy_j),
    ("pdp_j", |o| o.energy_j / o.makespan_s * o.turnaround_s),
    ("power_w", |o| o.energy_j / o.makespan_s),
    ("instruction_nj", |o| o.instruction_nj),
    ("accesses_pki", |o| o.accesses_pki),
    ("large_accesses_percent", |o| 100.0 * o.large_accesses),
    ("large_percent", |o| 100.0 * o.large_instructions),
    ("moves_hz", |o| o.migration_hz),
    ("waits_percent", |o| {
        o.tally.percent(o.tally.spin_ps) + o.tally.off_percent()
    }),
    ("switch_percent", |o| o.tally.percent(o.tally.switch_ps())),
    ("returns", |o| o.tally.returns as f64),
    ("returns_at_once_100", |o| 100.0 * o.tally.at_once as f64),
    ("returns_soon_100", |o| 100.0 * o.tally.soon as f64),
    ("returns_ps_per_ms", |o| 1e9 * o.tally.returns as f64),
    ("thread_ps", |o| o.tally.thread_ps()),
    ("user_100_ps", |o| {
        100.0 * (o.tally.work_ps + o.tally.spin_ps + o.tally.refill_ps) as f64
    }),
    ("kernel_100_ps", |o| 100.0 * o.tally.kernel_ps as f64),
    ("on_pu_ps", |o| {
        o.tally.thread_ps() * (1.0 - o.tally.off_percent() / 100.0)
    }),
    ("off_100_ps", |o| {
        o.tally.off_percent() * o.tally.thread_ps()
    }),
];

/// The frame of runs: by case, then policy, then run.
pub(super) fn measurements_to_frame(
    cases: Vec<frame::Case>,
    policies: &[String],
    runs: usize,
    outcomes: &[RunMeasurements],
) -> Frame {
    let mut frame = Frame::new(cases, policies.to_vec(), runs);
    for (measure, value) in VALUES {
        frame.set_run_values(measure, outcomes.iter().map(value).collect());
    }
    let slowdowns = outcomes.iter().map(|o| o.slowdowns.clone());
    frame.set_program_values("slowdown", slowdowns.collect());
    frame
}

impl RunMeasurements {
    pub(super) fn new(run: &RunResult, seen: &RunObservers) -> Self {
        let large_cores = &seen.large_cores;
        let times: Vec<f64> = run.programs.iter().map(|p| p.together_s).collect();
        let sum = |of: fn(&ProgramResult) -> f64| run.programs.iter().map(of).sum::<f64>();
        let instructions = sum(|p| p.counters.instructions);
        Self {
            stp: run.stp,
            antt: run.antt,
            unfairness: run.unfairness,
            makespan_s: run.makespan_s,
            turnaround_s: mean(&times).unwrap_or(f64::NAN),
            energy_j: run.energy_j,
            instruction_nj: 1e9 * run.energy_j / instructions,
            accesses_pki: 1e3 * sum(|p| p.counters.llc_accesses) / instructions,
            large_accesses: large_cores.access_share(),
            large_instructions: large_cores.instruction_share(),
            migration_hz: large_cores.moves() as f64 / run.simulated_s,
            slowdowns: run.programs.iter().map(|p| p.slowdown).collect(),
            tally: seen.returns.tally(),
            decisions: run.decision_us.n,
            masks: run.moves,
        }
    }

    /// Means of several outcomes, at least one; the division of threads' time is that of all
    /// together.
    pub(super) fn mean(all: &[Self]) -> Self {
        let n = all.len() as f64;
        let mean = |of: RunValue| all.iter().map(of).sum::<f64>() / n;
        let programs = 0..all.first().map_or(0, |one| one.slowdowns.len());
        let slowdown = |p: usize| all.iter().map(|one| one.slowdowns[p]).sum::<f64>() / n;
        let mut tally = ReturnTally::default();
        all.iter().for_each(|one| tally.add(&one.tally));
        Self {
            stp: mean(|o| o.stp),
            antt: mean(|o| o.antt),
            unfairness: mean(|o| o.unfairness),
            makespan_s: mean(|o| o.makespan_s),
            turnaround_s: mean(|o| o.turnaround_s),
            energy_j: mean(|o| o.energy_j),
            instruction_nj: mean(|o| o.instruction_nj),
            accesses_pki: mean(|o| o.accesses_pki),
            large_accesses: mean(|o| o.large_accesses),
            large_instructions: mean(|o| o.large_instructions),
            migration_hz: mean(|o| o.migration_hz),
            slowdowns: programs.map(slowdown).collect(),
            tally,
            decisions: all.iter().map(|one| one.decisions).sum(),
            masks: all.iter().map(|one| one.masks).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_measured_is_a_known_measure() {
        let keys = VALUES.iter().map(|(key, _)| *key).chain(["slowdown"]);
        assert!({ keys }.all(|key| frame::measure(key).is_some()));
    }
}
