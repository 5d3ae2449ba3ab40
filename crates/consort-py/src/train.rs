//! Interference models from simulated training runs.

use crate::failure::Failure;
use crate::machine::MachineArgument;
use crate::run::{interruptible, workers};
use crate::studies::scale;
use crate::table::{Table, pick};
use consort_core::model::{self, Provenance};
use consort_experiment::train::collect::{CollectError, Training, collect};
use consort_experiment::train::{LevelErrors, TrainingSet, cross_validate, fit};
use consort_experiment::{ExperimentContext, ExperimentError, JobsError};
use consort_lab::Descriptions;
use consort_sim::chip::Chip;
use consort_sim::program::ProgramSpec;
use consort_sim::workload::{ProgramSource, Workload};
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

/// The suite that is trained on where no programs are named.
const SUITE: &str = "spec2006";
/// Length of a quantum, ms (Feliu et al., section 4.2).
const QUANTUM_MS: u64 = 100;
/// Threads per core where none are named, as far as the core takes them.
const WAYS: [u32; 2] = [2, 4];
/// Length of a run, s, and groups drawn per level of more than two threads: quick, and full.
const SIZES: [(f64, usize); 2] = [(3.0, 100), (10.0, 400)];

/// An interference model: which programs slow which down on a core, and why.
#[pyclass(frozen, module = "consort")]
pub(crate) struct Model {
    model: model::InterferenceModel,
    held_out: Vec<LevelErrors>,
}

#[pymethods]
impl Model {
    /// Name of the machine that it was trained on.
    #[getter]
    fn machine(&self) -> &str {
        &self.model.machine
    }

    /// Components of the cycle stack that it predicts.
    #[getter]
    fn components(&self) -> Vec<String> {
        self.model.components.clone()
    }

    /// The table "accuracy": errors on programs that were held out, by threads per core: mean size
    /// of the error of predicted slowdowns, in percent of the measured ones, and cycles that are put
    /// under a wrong cause, in percent of all.
    #[pyo3(signature = (name = "accuracy"))]
    fn table(&self, name: &str) -> PyResult<Table> {
        pick(name, &[("accuracy", &|| accuracy(&self.held_out))])
    }

    /// The model as the file that the policy ``symbiotic`` takes: ``symbiotic:model=FILE.toml``.
    fn to_toml(&self) -> String {
        self.model.to_toml()
    }

    /// Writes the model to a file.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        let reported = |error| Failure::input(format!("{}: {error}", path.display()));
        std::fs::write(&path, self.to_toml()).map_err(reported)?;
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("<consort.Model of {}>", self.model.machine)
    }
}

fn accuracy(held_out: &[LevelErrors]) -> consort_data::Table {
    let all = || held_out.iter().map(LevelErrors::accuracy);
    consort_data::Table::default()
        .with_counts("ways", all().map(|a| u64::from(a.ways)))
        .with_numbers(
            "slowdown_error_percent",
            Some("%"),
            all().map(|a| Some(a.forward.mean_absolute_percent)),
        )
        .with_numbers(
            "stack_error_percent",
            Some("%"),
            all().map(|a| Some(a.inverse.mean_absolute_percent)),
        )
}

/// Trains a model from simulated runs of programs alone and together on a core.
///
/// :param machine: a Machine with SMT, or its name :param programs: training programs of one
/// thread; all of spec2006 if None :param ways: threads per core to train for; 2 and, where a core
/// takes as many, 4 if None :param folds: parts into which the programs are divided, each held out
/// once to test on :param seed: seed of all randomness :param quick: shorter and fewer runs :param
/// jobs: worker threads; all CPUs if None :raises InputError: what the machine or the programs
/// cannot give
#[pyfunction]
#[pyo3(signature = (machine, programs = None, *, ways = None, folds = 5, seed = 1, quick = false,
    jobs = None))]
#[expect(clippy::too_many_arguments, reason = "Python has them by name")]
pub(crate) fn train(
    py: Python<'_>,
    machine: MachineArgument<'_>,
    programs: Option<Vec<String>>,
    ways: Option<Vec<u32>>,
    folds: usize,
    seed: u64,
    quick: bool,
    jobs: Option<NonZeroUsize>,
) -> PyResult<Model> {
    let training = training(machine.get()?.chip(), programs, ways, quick)?;
    let date = py
        .import("consort._policy")?
        .call_method0("today")?
        .extract()?;
    let model = interruptible(py, move |_| {
        let context = ExperimentContext::new(seed, scale(quick), workers(jobs), &|_| ());
        train_model(&training, folds, date, &context)
    })?;
    Ok(model)
}

fn training(
    chip: Arc<Chip>,
    programs: Option<Vec<String>>,
    ways: Option<Vec<u32>>,
    quick: bool,
) -> Result<Training, Failure> {
    let (seconds, draws) = SIZES[usize::from(!quick)];
    let smt = chip.topology().smt();
    let fitting = || WAYS.into_iter().filter(|&ways| ways as usize <= smt);
    // A core of one CPU is refused for what it is.
    let usual = || {
        if smt < 2 {
            vec![WAYS[0]]
        } else {
            fitting().collect()
        }
    };
    let ways: BTreeSet<u32> = ways.unwrap_or_else(usual).into_iter().collect();
    Ok(Training {
        ways: ways.into_iter().collect(),
        programs: training_programs(programs)?,
        chip,
        quantum_ns: QUANTUM_MS * 1_000_000,
        quanta: (seconds * 1000.0) as usize / QUANTUM_MS as usize,
        draws,
    })
}

/// The programs that were named, each once; all of the suite when none was.
fn training_programs(names: Option<Vec<String>>) -> Result<Vec<Arc<ProgramSpec>>, Failure> {
    let Some(names) = names else {
        return Descriptions.suite(SUITE).map_err(Failure::input);
    };
    let workload = Workload::resolve(&names.join("+"), &Descriptions).map_err(Failure::input)?;
    let mut programs: Vec<Arc<ProgramSpec>> = Vec::new();
    for entry in workload.entries {
        if entry.threads > 1 {
            let (name, threads) = (&entry.program.name, entry.threads);
            let message =
                format!("program {name} has {threads} threads; training programs have one");
            return Err(Failure::Input(message));
        }
        if programs
            .iter()
            .all(|known| known.name != entry.program.name)
        {
            programs.push(entry.program);
        }
    }
    Ok(programs)
}

fn train_model(
    training: &Training,
    folds: usize,
    date: String,
    context: &ExperimentContext<'_>,
) -> Result<Model, Failure> {
    let collected = collect(training, context).map_err(failed)?;
    let sets = &collected.sets;
    let held_out = sets.iter().map(|set| cross_validate(set, folds));
    let held_out: Vec<LevelErrors> = held_out.collect::<Result<_, _>>().map_err(Failure::input)?;
    let fits = sets.iter().map(|set| fit(set).map(|fit| fit.level));
    let programs: BTreeSet<&str> = sets.iter().flat_map(TrainingSet::programs).collect();
    let (alone, together) = (collected.runs_alone, collected.runs_together);
    let (quanta, seed) = (training.quanta, context.seed());
    let model = model::InterferenceModel {
        name: training.chip.spec().name.clone(),
        machine: training.chip.spec().name.clone(),
        components: sets
            .first()
            .map(|set| set.components.clone())
            .unwrap_or_default(),
        levels: fits.collect::<Result<_, _>>().map_err(Failure::input)?,
        provenance: Provenance {
            source: format!(
                "consort train, simulated: {alone} runs alone and {together} together, \
                 {quanta} quanta of {QUANTUM_MS} ms each, seed {seed}"
            ),
            date,
            programs: programs.into_iter().map(str::to_owned).collect(),
            quanta: sets.iter().map(|set| set.co_runs() as u64).sum(),
            accuracy: held_out.iter().map(LevelErrors::accuracy).collect(),
        },
    };
    Ok(Model { model, held_out })
}

fn failed(error: CollectError) -> Failure {
    match error {
        CollectError::Workers(JobsError::Stopped)
        | CollectError::Experiment(ExperimentError::Stopped) => Failure::Stopped,
        CollectError::Workers(_) | CollectError::Experiment(_) => Failure::run(error),
        other => Failure::input(other),
    }
}
