//! Those that remain when half of the processes end: the model of Linux beside a real kernel.

use super::measured::{Ends, Moment};
use super::model::{SPINNER, class};
use super::{DISTANCE, Inputs};
use crate::alone::{instance, once};
use crate::check::{Check, Published};
use crate::error::ValidateError;
use crate::statistics::{Counts, distance, noise, total};
use consort_core::{Machine, Observation};
use consort_experiment::{Quiet, machine};
use consort_sim::chip::Chip;
use consort_sim::engine::Instance;
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
/// Work of the others, instructions: hours of it, but part of the run, unlike [`Instance::ENDLESS`].
const LONG: f64 = 1e15;

/// Counts of both sides at one moment.
pub(super) struct Pair {
    pub(super) id: String,
    what: String,
    pub(super) kernel: Counts,
    pub(super) model: Counts,
}

impl Pair {
    fn new(ends: &Ends, moment: &Moment, model: Counts) -> Self {
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

    pub(super) fn check(&self, seed: u64) -> Check {
        let allowed = Published::AtMost(noise(&self.kernel, &self.model, seed));
        let far = distance(&self.kernel, &self.model);
        let note = format!(
            "{} repetitions, {} of the kernel, whose delays under emulation are an order of \
             magnitude",
            total(&self.model),
            total(&self.kernel)
        );
        let check = DISTANCE.check(self.id.clone(), self.what.clone(), allowed, far);
        check.noting(note)
    }
}

/// Runs the model for every measurement and moment.
pub(super) fn compare(
    inputs: &Inputs<'_>,
    spec: &MachineSpec,
    all: &[Ends],
) -> Result<Vec<Pair>, ValidateError> {
    let repetitions = inputs.context.by_scale(50, 400);
    let counts = inputs.context.map(all, |ends| {
        let chip = Arc::new(Chip::new(&with_ways(spec, ends.ways), None)?);
        survivors(&chip, ends, repetitions, inputs.context.seed())
    })?;
    let mut pairs = Vec::new();
    for (ends, counts) in all.iter().zip(counts) {
        let moments = ends.looks.iter().zip(counts?);
        pairs.extend(moments.map(|(moment, model)| Pair::new(ends, moment, model)));
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
fn survivors(
    chip: &Arc<Chip>,
    ends: &Ends,
    repetitions: u64,
    seed: u64,
) -> Result<Vec<Counts>, ValidateError> {
    let mut counts = vec![Counts::new(); ends.looks.len()];
    for repetition in 0..repetitions {
        let seed = seed.wrapping_add(repetition);
        let classes = run(chip, ends, seed)?;
        for (counts, class) in counts.iter_mut().zip(classes) {
            *counts.entry(class).or_default() += 1;
        }
    }
    Ok(counts)
}

/// One repetition: the placement at each moment.
fn run(chip: &Arc<Chip>, ends: &Ends, seed: u64) -> Result<Vec<String>, ValidateError> {
    let work = half_short(ends.started as usize, seed)?;
    let settings = once(seed, "linux");
    let mut machine = machine(chip, &work, &settings, LOOK_NS, Box::<Quiet>::default())?;
    let (mut since_ns, mut classes) = (None, Vec::new());
    while let Some(due) = ends.looks.get(classes.len()) {
        let Some(seen) = machine.observe()? else {
            break;
        };
        if 2 * seen.threads.len() <= work.len() {
            let since_ns = *since_ns.get_or_insert(seen.time_ns);
            if seen.time_ns - since_ns >= due.after_ms * 1_000_000 {
                classes.push(placement(chip, &seen));
            }
        }
    }
    Ok(classes)
}

fn placement(chip: &Chip, seen: &Observation) -> String {
    let pus = seen.threads.iter().filter_map(|t| t.last_pu);
    class(chip, &pus.map(|pu| pu.0 as usize).collect::<Vec<_>>())
}

/// Processes of which a random half has little work.
fn half_short(started: usize, seed: u64) -> Result<Vec<Instance>, ValidateError> {
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
    use crate::Data;
    use crate::placement::measured::Measured;

    /// In the end every repetition is what nearly all of the kernel's are: as even as can be.
    #[test]
    fn the_model_ends_where_the_kernel_does() {
        let data = Data::embedded();
        let spec = data.machine("forms-machine.toml").unwrap();
        for ends in Measured::read(&data).unwrap().ends {
            let chip = Arc::new(Chip::new(&with_ways(&spec, ends.ways), None).unwrap());
            let model = survivors(&chip, &ends, 20, 1).unwrap();
            let count = |counts: &Counts| counts.values().sum::<u64>();
            assert!(model.iter().all(|counts| count(counts) == 20));
            let last = |counts: &Counts| counts.keys().next().cloned();
            let kernel = &ends.looks.last().unwrap().counts;
            assert_eq!(last(model.last().unwrap()), last(kernel));
            assert_eq!(model.last().unwrap().len(), 1);
            // Half of a full machine that ends at random seldom leaves it even.
            assert!(model[0].len() > 1);
        }
    }
}
