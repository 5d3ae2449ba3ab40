//! A workload on an asymmetric machine, ready to be run.

use super::chips::{Kind, single};
use super::entrant::Entrant;
use super::failed;
use super::observers::Observers;
use super::returns::Tally;
use super::{BASE, OS};
use crate::experiment::{Experiment, ProgramResult, RunResult, Work, measure_alone};
use crate::study::StudyError;
use consort_core::stats::mean;
use consort_sim::chip::Chip;
use consort_sim::workload::{Instance, Workload};
use std::sync::Arc;

/// Threads dealt to cores in turn and left there.
pub(in crate::studies) const PINNED: &str = "pinned";
/// By so much the others begin after the one that is to be dealt to the first core, which is large,
/// ms.
const LATER_MS: f64 = 1e-3;

/// A workload, its machine, and the work of its programs.
#[derive(Clone)]
pub(in crate::studies) struct Case {
    /// Key of its rows.
    pub key: String,
    /// Workload and machine.
    pub experiment: Experiment,
    /// Work of each program.
    pub work: Vec<Work>,
    /// The operating system beneath policies that name none.
    beneath: &'static str,
    /// Whether threads that are done before their siblings start again.
    restarts: bool,
    /// Whether `pinned` is the mean over all programs that it may give the large core.
    all_assignments: bool,
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
    /// Accesses to LLCs per 1000 instructions.
    pub accesses_pki: f64,
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
            beneath: OS,
            restarts: false,
            all_assignments: false,
        })
    }

    /// The same as the source runs its experiments: [`BASE`] beneath every policy, and threads that
    /// are done before their siblings start again.
    pub fn like_source(mut self) -> Self {
        self.beneath = BASE;
        self.restarts = true;
        self
    }

    /// The same with [`PINNED`] as the mean over all programs that it may give the large core.
    pub fn with_all_assignments(mut self) -> Self {
        self.all_assignments = true;
        self
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
        if policy != PINNED || !self.all_assignments {
            return self.run_once(policy, seed, None);
        }
        let programs = 0..self.work.len();
        let all: Result<Vec<_>, _> = programs
            .map(|first| self.run_once(policy, seed, Some(first)))
            .collect();
        Ok(Outcome::mean(&all?))
    }

    /// One run, in which a program may begin before all others.
    fn run_once(
        &self,
        policy: &str,
        seed: u64,
        first: Option<usize>,
    ) -> Result<Outcome, StudyError> {
        let part = format!("{} under {policy}", self.key);
        let entrant = Entrant::new(policy, self.beneath).map_err(failed(&part))?;
        let mut experiment = Experiment {
            quantum: entrant.quantum.or(self.experiment.quantum),
            ..self.experiment.clone()
        };
        if let Some(first) = first {
            let entries = experiment.workload.entries.iter_mut().enumerate();
            let others = entries.filter(|(n, _)| *n != first);
            others.for_each(|(_, entry)| entry.start_ms += LATER_MS);
        }
        let seen = Observers::new(&experiment.chip);
        let told = Some(Box::new(seen.clone()) as _);
        let run = match self.restarts {
            true => experiment.run_constant(&entrant.contender, &self.work, seed, told),
            false => experiment.run(&entrant.contender, &self.work, seed, told),
        };
        Ok(Outcome::new(&run.map_err(failed(&part))?, &seen))
    }
}

impl Outcome {
    fn new(run: &RunResult, seen: &Observers) -> Self {
        let watch = &seen.watch;
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
            large_accesses: watch.of_accesses(),
            large_instructions: watch.of_instructions(),
            migration_hz: watch.moves() as f64 / run.simulated_s,
            slowdowns: run.programs.iter().map(|p| p.slowdown).collect(),
            tally: seen.returns.tally(),
        }
    }

    /// Means of several, at least one; what threads' time went to is of all together.
    fn mean(all: &[Self]) -> Self {
        let n = all.len() as f64;
        let mean = |of: Value| all.iter().map(of).sum::<f64>() / n;
        let programs = 0..all.first().map_or(0, |one| one.slowdowns.len());
        let slowdown = |p: usize| all.iter().map(|one| one.slowdowns[p]).sum::<f64>() / n;
        let mut tally = Tally::default();
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chips::chip;
    use super::super::mixes::mixes;
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
    fn pinned_is_the_mean_over_all_programs_on_the_large_core() {
        let chip = chip("acmp-1+1").unwrap();
        let workload = mixes(3, "spec2006", 2, 1, 1).unwrap().remove(0);
        let case = Case::new("x", &chip, workload, 0.02, 1).unwrap();
        let each = [0, 1].map(|first| case.run_once(PINNED, 1, Some(first)).unwrap());
        // Whoever begins first has the large core to itself.
        for first in [0, 1] {
            let [there, elsewhere] = [first, 1 - first].map(|run| each[run].slowdowns[first]);
            assert!(there < 1.2 && elsewhere > 1.2, "{there} {elsewhere}");
        }
        let mean = case.with_all_assignments().run(PINNED, 1).unwrap();
        assert_eq!(mean.stp, (each[0].stp + each[1].stp) / 2.0);
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
