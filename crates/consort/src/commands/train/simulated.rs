//! Training runs on a simulated machine.

use super::{TrainArgs, TrainingData, check_folds};
use crate::descriptions::{self, Programs};
use crate::failure::bad_input;
use anyhow::Result;
use consort_experiment::train::collect::{CollectError, CollectedSets, Training, collect};
use consort_sim::chip::Chip;
use consort_sim::program::ProgramSpec;
use consort_sim::workload::{ProgramSource, Workload};
use std::sync::Arc;
use std::time::Duration;

/// The suite to train on if no programs are named.
const SUITE: &str = "spec2006";

/// Length of a quantum (Feliu et al., section 4.2).
const QUANTUM: Duration = Duration::from_millis(100);

/// Threads per core if none are named, as far as the core takes them.
const WAYS: [u32; 2] = [2, 4];

/// Length of a run, and groups drawn per level of more than two threads.
const FULL: (Duration, usize) = (Duration::from_secs(10), 400);

const QUICK: (Duration, usize) = (Duration::from_secs(3), 100);

pub(super) fn train_simulated(args: &TrainArgs) -> Result<TrainingData> {
    if !args.as_siblings.is_empty() {
        return Err(bad_input(
            "--as-siblings is for the live machine; descriptions name the units that simulated cores share",
        ));
    }
    if !args.command.is_empty() {
        return Err(bad_input(
            "--command is for the live machine; name described programs with --programs",
        ));
    }
    let training = training(args)?;
    check_folds(training.programs.len(), args.folds)?;
    let collected = args
        .jobs
        .run_experiment("runs", args.seed, args.quick, |context| {
            collect(&training, context)
        });
    // The machine or the programs can be wrong; the rest are failed runs.
    let collected = collected.map_err(|error| match error {
        CollectError::Workers(_) | CollectError::Experiment(_) => error.into(),
        _ => bad_input(error),
    })?;
    Ok(TrainingData {
        machine: training.chip.spec().name.clone(),
        source: source(&training, &collected, args.seed),
        sets: collected.sets,
        notes: Vec::new(),
    })
}

fn training(args: &TrainArgs) -> Result<Training> {
    let chip = descriptions::chip(&args.machine)?;
    let (run, draws) = if args.quick { QUICK } else { FULL };
    let run = args.duration.unwrap_or(run);
    Ok(Training {
        ways: ways(args, &chip),
        programs: programs(&args.programs())?,
        chip,
        quantum_ns: QUANTUM.as_nanos() as u64,
        quanta: (run.as_nanos() / QUANTUM.as_nanos()) as usize,
        draws,
    })
}

fn ways(args: &TrainArgs, chip: &Chip) -> Vec<u32> {
    let smt = chip.topology().smt();
    let fitting = || WAYS.into_iter().filter(|&ways| ways as usize <= smt);
    let mut ways = args.ways.clone();
    if ways.is_empty() {
        ways.extend(fitting());
    }
    // A core of one CPU is refused later, with an error about that core.
    if ways.is_empty() {
        ways.push(WAYS[0]);
    }
    ways.sort_unstable();
    ways.dedup();
    ways
}

/// The named programs, each once; all of the suite if none is named.
fn programs(names: &[&str]) -> Result<Vec<Arc<ProgramSpec>>> {
    if names.is_empty() {
        return Programs.suite(SUITE).map_err(bad_input);
    }
    let mut entries = Vec::new();
    for name in names {
        entries.extend(
            Workload::resolve(name, &Programs)
                .map_err(bad_input)?
                .entries,
        );
    }
    let mut programs: Vec<Arc<ProgramSpec>> = Vec::new();
    for entry in entries {
        if entry.threads > 1 {
            let name = &entry.program.name;
            return Err(bad_input(format!(
                "program {name} has {} threads; training programs have one: write {name}@1 if it can run so",
                entry.threads
            )));
        }
        if programs.iter().all(|p| p.name != entry.program.name) {
            programs.push(entry.program);
        }
    }
    Ok(programs)
}

fn source(training: &Training, collected: &CollectedSets, seed: u64) -> String {
    format!(
        "consort train, simulated: {} runs alone and {} together, {} quanta of {} ms each, seed {seed}",
        collected.runs_alone,
        collected.runs_together,
        training.quanta,
        training.quantum_ns / 1_000_000,
    )
}
