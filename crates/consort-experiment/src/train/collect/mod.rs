//! Training runs: counters of a simulated machine, for programs alone and together.
//!
//! Feliu, Eyerman, Sahuquillo, Petit, "Symbiotic Job Scheduling on the IBM POWER8" (HPCA 2016),
//! section 4: every program runs alone on one core, then with co-runners on it, and each quantum
//! together is compared with the same instructions alone.
//!
//! Describe the runs in a [`Training`], pass it to [`collect`], and fit the sets of rows.
//!
//! All counts come from the machine's own PMU: with its events, its turns of counters, which leave
//! parts of a stack a quantum old, and its read noise. The other cores are idle, so a set shows the
//! effect of sharing a core, not that of sharing memory with other cores.
//!
//! The variation that is drawn for a program depends on its slot, as for two inputs of a real
//! program, so a program has one profile per slot. Two copies of one program are a group too.

mod align;
mod run;

use super::{TrainingRow, TrainingSet};
use crate::{ExperimentContext, ExperimentError, JobsError};
use align::CoRunGroup;
use consort_sim::chip::Chip;
use consort_sim::program::ProgramSpec;
use run::TrainingCore;
use std::sync::Arc;
use thiserror::Error;

pub use align::AloneProfile;
pub use align::TrainingQuantum;

/// Runs to train on.
#[derive(Clone, Debug)]
pub struct Training {
    /// The machine.
    pub chip: Arc<Chip>,
    /// The training programs, each run as one thread.
    pub programs: Vec<Arc<ProgramSpec>>,
    /// Numbers of threads on a core to train for, each at least 2.
    pub ways: Vec<u32>,
    /// Length of a quantum, ns.
    pub quantum_ns: u64,
    /// Quanta of every run.
    pub quanta: usize,
    /// Groups that are drawn, if they have more than two programs; all pairs are run.
    pub draws: usize,
}

/// Rows that the runs gave.
#[derive(Clone, Debug)]
pub struct CollectedSets {
    /// One set per requested number of threads.
    pub sets: Vec<TrainingSet>,
    /// Runs of a program alone.
    pub runs_alone: usize,
    /// Runs of programs together.
    pub runs_together: usize,
    /// Components of the machine's stack.
    pub components: Vec<String>,
}

/// Runs every program alone and in groups.
///
/// The result depends on the training and the context's seed, not on the number of workers.
///
/// # Errors
/// Machines without co-runners or without a stack, too few programs, programs that do nothing.
pub fn collect(
    training: &Training,
    context: &ExperimentContext<'_>,
) -> Result<CollectedSets, CollectError> {
    let bench = TrainingCore::new(training, context.seed())?;
    let alone = profile_alone(training, &bench, context)?;
    let mut runs_together = 0;
    let mut sets = Vec::new();
    for &ways in &training.ways {
        let groups = run::groups(
            training.programs.len(),
            ways,
            training.draws,
            context.seed(),
        );
        runs_together += groups.len();
        let numbered: Vec<(usize, &Vec<usize>)> = groups.iter().enumerate().collect();
        let rows = context.map(&numbered, |&(number, group)| {
            collect_group(training, &bench, &alone, number, group)
        })?;
        let rows = rows.into_iter().collect::<Result<Vec<_>, _>>()?;
        sets.push(TrainingSet {
            machine: training.chip.spec().name.clone(),
            ways,
            components: bench.components().to_vec(),
            slowdowns_only: false,
            rows: rows.into_iter().flatten().collect(),
        });
    }
    Ok(CollectedSets {
        sets,
        runs_alone: alone.len(),
        runs_together,
        components: bench.components().to_vec(),
    })
}

/// Profiles by program and slot: program `p` in slot `s` is number `p · slots + s`.
fn profile_alone(
    training: &Training,
    bench: &TrainingCore<'_>,
    context: &ExperimentContext<'_>,
) -> Result<Vec<AloneProfile>, CollectError> {
    // The variation that is drawn depends on the slot, so each slot needs its own profile.
    let slots = bench.slots();
    let jobs: Vec<(usize, usize)> = (0..training.programs.len())
        .flat_map(|program| (0..slots).map(move |slot| (program, slot)))
        .collect();
    let profiles = context.map(&jobs, |&(program, slot)| {
        let quanta = bench.run_alone(&training.programs[program], slot)?;
        AloneProfile::new(&quanta).ok_or_else(|| CollectError::NoProgress {
            program: training.programs[program].name.clone(),
        })
    })?;
    profiles.into_iter().collect()
}

fn collect_group(
    training: &Training,
    bench: &TrainingCore<'_>,
    alone: &[AloneProfile],
    number: usize,
    group: &[usize],
) -> Result<Vec<TrainingRow>, CollectError> {
    let programs: Vec<_> = group.iter().map(|&p| &training.programs[p]).collect();
    let quanta = bench.run_together(&programs)?;
    let slots = bench.slots();
    let profiles = group.iter().enumerate();
    let group = CoRunGroup {
        first_co_run: (number * training.quanta) as u64,
        names: programs.iter().map(|p| p.name.as_str()).collect(),
        alone: profiles
            .map(|(slot, &p)| &alone[p * slots + slot])
            .collect(),
        together: &quanta,
    };
    Ok(group.rows(bench.lead_in()))
}

/// Reason why training runs fail.
#[derive(Debug, Error)]
pub enum CollectError {
    /// Nothing shares a core.
    #[error(
        "{machine}: its cores have one CPU each: there are no co-runners to train on; \
         train on a machine with SMT"
    )]
    NoCoRunners {
        /// The machine.
        machine: String,
    },
    /// More threads than a core has CPUs.
    #[error("{machine}: a core has {pus} CPUs, so {ways} threads cannot share it; use 2 to {pus}")]
    Ways {
        /// The machine.
        machine: String,
        /// CPUs of its largest core.
        pus: usize,
        /// Requested threads.
        ways: u32,
    },
    /// The counters do not measure a part of the model.
    #[error("{machine}: its counters do not measure {missing}, which training needs")]
    NotCounted {
        /// The machine.
        machine: String,
        /// The signals.
        missing: String,
    },
    /// Runs that end before every event has been counted once.
    #[error("runs of {quanta} quanta are too short; {machine} needs at least {needed}")]
    TooShort {
        /// The machine.
        machine: String,
        /// Quanta given.
        quanta: usize,
        /// Quanta needed.
        needed: usize,
    },
    /// A program did nothing alone.
    #[error("{program} does nothing alone; it cannot be trained on")]
    NoProgress {
        /// The program.
        program: String,
    },
    /// The simulated machine.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// Workers could not be started.
    #[error(transparent)]
    Workers(#[from] JobsError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;
    use crate::testing::workers;
    use crate::train::fit;
    use consort_sim::machine::presets;
    use consort_sim::program;

    fn chip(machine: &str, smt: Option<u32>) -> Arc<Chip> {
        let spec = presets::find(machine).unwrap();
        Arc::new(Chip::new(&spec, smt).unwrap())
    }

    fn training(machine: &str, programs: &[&str], ways: &[u32]) -> Training {
        let find = |name: &&str| Arc::new(program::presets::find(name).unwrap());
        Training {
            chip: chip(machine, None),
            programs: programs.iter().map(find).collect(),
            ways: ways.to_vec(),
            quantum_ns: 100_000_000,
            quanta: 8,
            draws: 5,
        }
    }

    fn collected(training: &Training, count: usize) -> Result<CollectedSets, CollectError> {
        collect(
            training,
            &ExperimentContext::new(7, Scale::Quick, workers(count), &|_| ()),
        )
    }

    const FOUR: [&str; 4] = ["hmmer", "mcf", "povray", "gcc"];

    #[test]
    fn rows_do_not_depend_on_worker_count() {
        let training = training("power8", &FOUR, &[2, 4]);
        let one = collected(&training, 1).unwrap();
        let three = collected(&training, 3).unwrap();
        assert_eq!(one.sets, three.sets);
        assert_eq!(one.runs_alone, 4 * 4);
        assert_eq!(one.runs_together, 10 + 5);
    }

    #[test]
    fn stacks_alone_are_normalised_and_co_runners_summed() {
        let collected = collected(&training("power8", &FOUR, &[2, 4]), 2).unwrap();
        for set in &collected.sets {
            assert_eq!(set.components, collected.components);
            assert!(!set.rows.is_empty());
            for row in &set.rows {
                let others = f64::from(set.ways - 1);
                assert_eq!(row.co_runners.len(), set.ways as usize - 1);
                assert!((row.own.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                assert!((row.measured.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                assert!((row.others.iter().sum::<f64>() - others).abs() < 1e-9);
            }
            // Every thread of a core has a row of every co-run that teaches.
            assert_eq!(set.rows.len(), set.co_runs() * set.ways as usize);
        }
    }

    #[test]
    fn more_threads_per_core_cost_more_time() {
        let collected = collected(&training("power8", &["hmmer", "povray"], &[2, 4]), 2).unwrap();
        let mean = |set: &TrainingSet| {
            set.rows.iter().map(TrainingRow::slowdown).sum::<f64>() / set.rows.len() as f64
        };
        let (two, four) = (mean(&collected.sets[0]), mean(&collected.sets[1]));
        assert!(two > 1.05 && four > two, "{two} {four}");
    }

    #[test]
    fn machines_that_teach_nothing_are_refused() {
        let refused = |training: &Training| collected(training, 1).unwrap_err().to_string();
        let mut single = training("power8", &FOUR, &[2]);
        single.chip = chip("power8", Some(1));
        assert!(refused(&single).contains("one CPU each"));
        let wide = training("power8", &FOUR, &[16]);
        assert_eq!(
            refused(&wide),
            "power8: a core has 8 CPUs, so 16 threads cannot share it; use 2 to 8"
        );
        let mut short = training("power8", &FOUR, &[2]);
        short.quanta = 2;
        assert!(refused(&short).contains("at least"));
    }

    #[test]
    fn waiting_for_co_runners_has_alpha_only() {
        // Two threads have a group of slots each, so that none waits for the other; four share them.
        let computing = ["calculix", "sphinx3", "gromacs", "wrf"];
        let collected = collected(&training("power8", &computing, &[4]), 2).unwrap();
        let set = &collected.sets[0];
        let waiting = set
            .components
            .iter()
            .position(|c| c.ends_with("THRD"))
            .unwrap();
        assert!(set.rows.iter().all(|row| row.own[waiting] < 1e-9));
        let level = fit(set).unwrap().level;
        let parameters = level.parameters()[waiting];
        assert!(parameters.alpha > 0.0);
        assert!(parameters.is_never_alone() && !parameters.is_absent());
        let core: Vec<&[f64]> = set.rows[..4]
            .iter()
            .map(|row| row.measured.as_slice())
            .collect();
        let alone = level.invert(&core).unwrap();
        assert!((0..4).all(|thread| alone.st_stack(thread)[waiting] == 0.0));
        assert!(!alone.unsolved_components().contains(&waiting));
    }
}
