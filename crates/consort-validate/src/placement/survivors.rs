//! Those that remain when half of the processes end: the model of Linux beside a real kernel.

use super::measurement::{SurvivorCase, SurvivorSnapshot};
use super::model::{SPINNER, placement_class};
use super::{DISTANCE, GroupInputs};
use crate::alone::{instance, run_once_settings};
use crate::check::{PublishedFigure, ValidationCheck};
use crate::error::ValidateError;
use crate::statistics::{ClassCounts, distance, noise_distance, total};
use consort_core::{Machine, Observation};
use consort_experiment::{NullSampleSource, build_machine};
use consort_sim::chip::Chip;
use consort_sim::engine::SimulatedProgram;
use consort_sim::machine::{MachineSpec, SmtMode};
use consort_sim::program::presets;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::ops::Range;
use std::sync::Arc;

/// Time between two looks, ns: the shortest that the kernel was asked for.
const LOOK_NS: u64 = 4_000_000;
/// Work of those that end, instructions: so long that ends fall anywhere between two attempts to
/// even out.
const SHORT: Range<f64> = 2e7..2e8;
/// Work of the others, instructions: hours of it, but part of the run, unlike [`SimulatedProgram::ENDLESS`].
const LONG: f64 = 1e15;

/// Counts of both sides at one moment.
pub(super) struct SurvivorComparison {
    pub(super) id: String,
    what: String,
    pub(super) kernel: ClassCounts,
    pub(super) model: ClassCounts,
}

impl SurvivorComparison {
    fn new(ends: &SurvivorCase, moment: &SurvivorSnapshot, model: ClassCounts) -> Self {
        let (started, ways) = (ends.started, ends.ways);
        Self {
            id: ends.id(moment),
            what: format!(
                "placements on 4 cores x {ways}, {} ms after half of {started} processes have ended",
                moment.after_ms
            ),
            kernel: moment.counts.clone(),
            model,
        }
    }

    pub(super) fn check(&self, seed: u64) -> ValidationCheck {
        let allowed = PublishedFigure::AtMost(noise_distance(&self.kernel, &self.model, seed));
        let far = distance(&self.kernel, &self.model);
        let note = format!(
            "{} repetitions, {} of the kernel, whose delays under emulation are an order of \
             magnitude",
            total(&self.model),
            total(&self.kernel)
        );
        let check = DISTANCE.check(self.id.clone(), self.what.clone(), allowed, far);
        check.with_note(note)
    }
}

/// Runs the model for every measurement and moment.
pub(super) fn compare_survivors(
    inputs: &GroupInputs<'_>,
    spec: &MachineSpec,
    all: &[SurvivorCase],
) -> Result<Vec<SurvivorComparison>, ValidateError> {
    let repetitions = inputs.context.by_scale(50, 400);
    let counts = inputs.context.map(all, |ends| {
        let chip = Arc::new(Chip::new(&with_ways(spec, ends.ways), None)?);
        count_survivor_placements(&chip, ends, repetitions, inputs.context.seed())
    })?;
    let mut pairs = Vec::new();
    for (ends, counts) in all.iter().zip(counts) {
        let moments = ends.looks.iter().zip(counts?);
        pairs.extend(moments.map(|(moment, model)| SurvivorComparison::new(ends, moment, model)));
    }
    Ok(pairs)
}

/// The machine with another number of PUs per core.
fn with_ways(spec: &MachineSpec, ways: u32) -> MachineSpec {
    let mut spec = spec.clone();
    for core in spec.core_types.values_mut() {
        core.smt.retain(|mode| mode.ways < ways);
        core.smt.push(SmtMode {
            ways,
            thread_dispatch_width: core.dispatch_width,
        });
    }
    spec
}

/// Number of times that each placement came out, at each moment.
fn count_survivor_placements(
    chip: &Arc<Chip>,
    ends: &SurvivorCase,
    repetitions: u64,
    seed: u64,
) -> Result<Vec<ClassCounts>, ValidateError> {
    let mut counts = vec![ClassCounts::new(); ends.looks.len()];
    for repetition in 0..repetitions {
        let seed = seed.wrapping_add(repetition);
        let classes = run_repetition(chip, ends, seed)?;
        for (counts, class) in counts.iter_mut().zip(classes) {
            *counts.entry(class).or_default() += 1;
        }
    }
    Ok(counts)
}

/// One repetition: the placement at each moment.
fn run_repetition(
    chip: &Arc<Chip>,
    ends: &SurvivorCase,
    seed: u64,
) -> Result<Vec<String>, ValidateError> {
    let work = draw_processes(ends.started as usize, seed)?;
    let settings = run_once_settings(seed, "linux");
    let mut machine = build_machine(
        chip,
        &work,
        &settings,
        LOOK_NS,
        Box::<NullSampleSource>::default(),
    )?;
    let (mut since_ns, mut classes) = (None, Vec::new());
    while let Some(due) = ends.looks.get(classes.len()) {
        let Some(seen) = machine.observe()? else {
            break;
        };
        if 2 * seen.threads.len() <= work.len() {
            let since_ns = *since_ns.get_or_insert(seen.time_ns);
            if seen.time_ns - since_ns >= due.after_ms * 1_000_000 {
                classes.push(observed_class(chip, &seen));
            }
        }
    }
    Ok(classes)
}

fn observed_class(chip: &Chip, seen: &Observation) -> String {
    let pus = seen.threads.iter().filter_map(|t| t.last_pu);
    placement_class(chip, &pus.map(|pu| pu.0 as usize).collect::<Vec<_>>())
}

/// Processes of which a random half has little work.
fn draw_processes(started: usize, seed: u64) -> Result<Vec<SimulatedProgram>, ValidateError> {
    let program = Arc::new(presets::find(SPINNER)?);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let short = random.random_range(SHORT);
    let mut work: Vec<f64> = (0..started)
        .map(|i| if i < started / 2 { short } else { LONG })
        .collect();
    work.shuffle(&mut random);
    let instance = |instructions| instance(&program, 1, instructions);
    Ok(work.into_iter().map(instance).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PublishedData;
    use crate::placement::measurement::PlacementMeasurement;

    /// In the end every repetition is what nearly all of the kernel's are: as even as can be.
    #[test]
    fn the_model_ends_where_the_kernel_does() {
        let data = PublishedData::embedded();
        let spec = data.parse_machine("forms-machine.toml").unwrap();
        for ends in PlacementMeasurement::read(&data).unwrap().ends {
            let chip = Arc::new(Chip::new(&with_ways(&spec, ends.ways), None).unwrap());
            let model = count_survivor_placements(&chip, &ends, 20, 1).unwrap();
            let count = |counts: &ClassCounts| counts.values().sum::<u64>();
            assert!(model.iter().all(|counts| count(counts) == 20));
            let last = |counts: &ClassCounts| counts.keys().next().cloned();
            let kernel = &ends.looks.last().unwrap().counts;
            assert_eq!(last(model.last().unwrap()), last(kernel));
            assert_eq!(model.last().unwrap().len(), 1);
            // Half of a full machine that ends at random seldom leaves it even.
            assert!(model[0].len() > 1);
        }
    }
}
