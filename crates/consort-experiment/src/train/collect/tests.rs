//! Tests of what the collection of training rows promises.

use super::*;
use crate::Scale;
use crate::train::fit;
use consort_sim::machine::presets;
use consort_sim::program;
use std::num::NonZeroUsize;

fn workers(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

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
    assert!(refused(&single).contains("one PU each"));
    let wide = training("power8", &FOUR, &[16]);
    assert_eq!(
        refused(&wide),
        "power8: a core has 8 PUs, so 16 threads cannot share it; use 2 to 8"
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
