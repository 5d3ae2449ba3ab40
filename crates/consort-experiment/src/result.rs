//! Result of one run.

use super::alone::{AloneWork, RunUntil};
use super::contender::Contender;
use super::counters::ProgramCounters;
use consort_core::ThreadId;
use consort_core::metrics::{Slowdowns, energy_delay_js};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::engine::{InstanceResult, Oracle};
use consort_sim::workload::{ProgramInstance, Workload};
use serde::Serialize;

/// Host time per decision, µs. Not the same from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DecisionTime {
    /// Mean.
    pub mean: f64,
    /// Longest.
    pub max: f64,
    /// Decisions.
    pub n: u64,
}

impl DecisionTime {
    pub(super) fn add(&mut self, micros: f64) {
        self.n += 1;
        self.mean += (micros - self.mean) / self.n as f64;
        self.max = self.max.max(micros);
    }
}

/// Results of one program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgramResult {
    /// Its name, with a number if there are several of that name.
    pub name: String,
    /// Time of its work alone, s.
    pub alone_s: f64,
    /// Time of the same work together with the others, s.
    pub together_s: f64,
    /// `together_s / alone_s`.
    pub slowdown: f64,
    /// Instructions of that work, all threads.
    pub instructions: f64,
    /// Instructions per cycle of its threads while they were on CPUs, over the whole run.
    pub ipc: f64,
    /// Energy of that work, J: its instructions and its share of static core power.
    pub energy_j: f64,
    /// Counts of its threads over the whole run.
    pub counters: ProgramCounters,
}

/// Results of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// Name of the machine.
    pub machine: String,
    /// The workload.
    pub workload: String,
    /// The contender.
    pub policy: String,
    /// Model of the operating system.
    pub os: String,
    /// The seed.
    pub seed: u64,
    /// Work of each program, and the end of the run.
    pub until: RunUntil,
    /// Per program.
    pub programs: Vec<ProgramResult>,
    /// System throughput, Σ 1/slowdown.
    pub stp: f64,
    /// Average normalised turnaround time.
    pub antt: f64,
    /// Largest over smallest slowdown.
    pub unfairness: f64,
    /// Time until the last program had done its work once, s.
    pub makespan_s: f64,
    /// Energy of the whole machine over the run, J.
    pub energy_j: f64,
    /// `energy_j · makespan_s`, J·s.
    pub ed: f64,
    /// Masks that the policy changed.
    pub moves: u64,
    /// Times that a thread came onto another CPU, the policy's doing or the system's.
    pub migrations: u64,
    /// Host time per decision, µs.
    pub decision_us: DecisionTime,
    /// Simulated time, s.
    pub simulated_s: f64,
    /// Host time, s.
    pub host_s: f64,
    /// Simulated instructions per second of host time, 10⁶.
    pub simulated_minstr_per_host_s: f64,
}

impl RunResult {
    /// Reads the result of a run from its machine; host time and moves of the policy are still
    /// 0, and the work is equal.
    pub(super) fn gather(
        chip: &Chip,
        workload: &Workload,
        contender: &Contender,
        work: &[AloneWork],
        seed: u64,
        machine: &SimMachine,
    ) -> Self {
        let results = machine.results();
        let oracle = machine.oracle();
        let programs = programs(&workload.entries, work, &results, oracle);
        let slowdowns = programs.iter().map(|p| p.slowdown).collect();
        // Times are positive, so there are slowdowns; without programs there is no run.
        let slowdowns = Slowdowns::new(slowdowns).ok();
        let of = |measure: fn(&Slowdowns) -> f64| slowdowns.as_ref().map_or(f64::NAN, measure);
        let firsts = results.iter().filter_map(|r| r.completions.first());
        let makespan_s = firsts.map(|c| c.end_s).fold(0.0, f64::max);
        let energy_j = machine.energy_j();
        let instructions: f64 = results.iter().map(|r| r.instructions).sum();
        let counts = oracle.threads().filter_map(|id| oracle.counts(id));
        Self {
            machine: chip.spec().name.clone(),
            workload: workload.text.clone(),
            policy: contender.name().to_owned(),
            os: contender.os().to_owned(),
            seed,
            until: RunUntil::default(),
            programs,
            stp: of(Slowdowns::stp),
            antt: of(Slowdowns::antt),
            unfairness: of(Slowdowns::unfairness),
            makespan_s,
            energy_j,
            ed: energy_delay_js(energy_j, makespan_s),
            moves: 0,
            migrations: counts.map(|c| c.migrations).sum(),
            decision_us: DecisionTime::default(),
            simulated_s: machine.time_ns() as f64 / 1e9,
            host_s: 0.0,
            simulated_minstr_per_host_s: instructions / 1e6,
        }
    }
}

fn programs(
    entries: &[ProgramInstance],
    work: &[AloneWork],
    results: &[InstanceResult],
    oracle: Oracle<'_>,
) -> Vec<ProgramResult> {
    // Threads are numbered program by program, in the order of the workload.
    let mut threads = oracle.threads();
    let mut rows = Vec::with_capacity(entries.len());
    for ((entry, work), result) in entries.iter().zip(work).zip(results) {
        let members = threads.by_ref().take(entry.threads as usize);
        let counters = counters(members, oracle);
        rows.extend(program(entry, work, result, counters));
    }
    rows
}

pub(super) fn counters(
    threads: impl Iterator<Item = ThreadId>,
    oracle: Oracle<'_>,
) -> ProgramCounters {
    let mut sum = ProgramCounters::default();
    for counts in threads.filter_map(|id| oracle.counts(id)) {
        sum.add(&ProgramCounters::from(&counts));
    }
    sum
}

/// `None` if the program has not done its work.
fn program(
    entry: &ProgramInstance,
    work: &AloneWork,
    result: &InstanceResult,
    counters: ProgramCounters,
) -> Option<ProgramResult> {
    let first = result.completions.first()?;
    let together_s = first.end_s - first.start_s;
    Some(ProgramResult {
        name: entry.name.clone(),
        alone_s: work.alone_s,
        together_s,
        slowdown: together_s / work.alone_s,
        instructions: first.instructions,
        ipc: result.instructions / result.cycles,
        energy_j: first.energy_j,
        counters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_longest_of_decisions() {
        let mut time = DecisionTime::default();
        for micros in [2.0, 8.0, 5.0] {
            time.add(micros);
        }
        assert_eq!((time.mean, time.max, time.n), (5.0, 8.0, 3));
    }
}
