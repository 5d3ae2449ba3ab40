//! A workload on an asymmetric machine, ready to be run.

use super::chips::{Kind, single};
use super::entrant::Entrant;
use super::failed;
use super::observers::Observers;
use super::returns::Tally;
use crate::experiment::{Experiment, RunResult, Work, measure_alone};
use crate::study::StudyError;
use consort_core::stats::mean;
use consort_sim::chip::Chip;
use consort_sim::workload::{Instance, Workload};
use std::sync::Arc;

/// A workload, its machine, and the work of its programs.
pub(in crate::studies) struct Case {
    /// Key of its rows.
    pub key: String,
    /// Workload and machine.
    pub experiment: Experiment,
    /// Work of each program.
    pub work: Vec<Work>,
}

/// What of a run is kept.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::studies) struct Outcome {
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
    /// Share of the accesses to LLCs that large cores make, 0 to 1.
    pub large_accesses: f64,
    /// Share of the instructions that large cores execute, 0 to 1.
    pub large_instructions: f64,
    /// Moves from PU to PU, per second.
    pub migration_hz: f64,
    /// Of each program, in the order of the workload.
    pub slowdowns: Vec<f64>,
    /// Returns from the kernel and what threads' time went to.
    pub tally: Tally,
}

/// A value of a run.
pub(in crate::studies) type Value = fn(&Outcome) -> f64;

impl Case {
    /// Measures what each program does in `alone_s` alone: on a large core where it has one
    /// thread, else on the whole machine.
    ///
    /// # Errors
    /// Programs that make no progress.
    pub fn new(
        key: &str,
        chip: &Arc<Chip>,
        workload: Workload,
        alone_s: f64,
        seed: u64,
    ) -> Result<Self, StudyError> {
        let large = single(chip, Kind::Large)?;
        let mut work: Vec<Work> = Vec::with_capacity(workload.entries.len());
        for (n, entry) in workload.entries.iter().enumerate() {
            let like = |other: &Instance| {
                Arc::ptr_eq(&other.program, &entry.program) && other.threads == entry.threads
            };
            let one = match workload.entries[..n].iter().position(like) {
                Some(same) => work[same],
                None => {
                    let place = if entry.threads == 1 { &large } else { chip };
                    measure_alone(place, entry, alone_s, seed).map_err(failed(key))?
                }
            };
            work.push(one);
        }
        let experiment = Experiment {
            chip: Arc::clone(chip),
            workload,
            alone_s,
            quantum: None,
            free_migration: false,
        };
        Ok(Self {
            key: key.to_owned(),
            experiment,
            work,
        })
    }

    /// The same with moves that cost nothing.
    pub fn with_free_migration(mut self) -> Self {
        self.experiment.free_migration = true;
        self
    }

    /// One run.
    ///
    /// # Errors
    /// Policies that are unknown or of no use here, runs that do not end.
    pub fn run(&self, policy: &str, seed: u64) -> Result<Outcome, StudyError> {
        let part = format!("{} under {policy}", self.key);
        let entrant = Entrant::new(policy).map_err(failed(&part))?;
        let experiment = Experiment {
            quantum: entrant.quantum.or(self.experiment.quantum),
            ..self.experiment.clone()
        };
        let seen = Observers::new(&experiment.chip);
        let told = Some(Box::new(seen.clone()) as _);
        let run = experiment.run(&entrant.contender, &self.work, seed, told);
        Ok(Outcome::new(&run.map_err(failed(&part))?, &seen))
    }
}

impl Outcome {
    fn new(run: &RunResult, seen: &Observers) -> Self {
        let watch = &seen.watch;
        let times: Vec<f64> = run.programs.iter().map(|p| p.together_s).collect();
        let counters = run.programs.iter().map(|p| p.counters.instructions);
        Self {
            stp: run.stp,
            antt: run.antt,
            unfairness: run.unfairness,
            makespan_s: run.makespan_s,
            turnaround_s: mean(&times).unwrap_or(f64::NAN),
            energy_j: run.energy_j,
            instruction_nj: 1e9 * run.energy_j / counters.sum::<f64>(),
            large_accesses: watch.of_accesses(),
            large_instructions: watch.of_instructions(),
            migration_hz: watch.moves() as f64 / run.simulated_s,
            slowdowns: run.programs.iter().map(|p| p.slowdown).collect(),
            tally: seen.returns.tally(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chips::chip;
    use super::super::programs::{copies, find, parallel};
    use super::*;

    #[test]
    fn a_program_alone_on_the_large_core_is_not_slowed_down() {
        let chip = chip("acmp-1+1").unwrap();
        let workload = copies(&find("hmmer").unwrap(), 1);
        let case = Case::new("x", &chip, workload, 0.05, 1).unwrap();
        let run = case.run("tcs", 1).unwrap();
        // Wherever it starts, the large core takes it over at the first quantum.
        assert!(run.slowdowns[0] < 1.05, "{:?}", run.slowdowns);
        assert!(run.large_instructions > 0.95 && run.large_accesses > 0.9);
        assert!(run.energy_j > 0.0 && run.turnaround_s == run.makespan_s);
    }

    #[test]
    fn several_threads_have_the_whole_machine_alone() {
        let chip = chip("acmp-1+3").unwrap();
        let workload = parallel(&find("lu.cont").unwrap(), 4);
        let case = Case::new("x", &chip, workload, 0.05, 1).unwrap();
        let run = case.run("linux", 1).unwrap();
        assert!((run.slowdowns[0] - 1.0).abs() < 0.01, "{:?}", run.slowdowns);
    }

    #[test]
    fn what_fails_is_named_with_case_and_policy() {
        let chip = chip("acmp-1+1").unwrap();
        let workload = copies(&find("hmmer").unwrap(), 1);
        let case = Case::new("hmmer/1", &chip, workload, 0.01, 1).unwrap();
        let error = case.run("hrs", 1).unwrap_err().to_string();
        assert!(
            error.starts_with("hmmer/1 under hrs: unknown policy"),
            "{error}"
        );
    }
}
