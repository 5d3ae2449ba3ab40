//! Placements of spinning threads by the model of the operating system, compared with those of a
//! real kernel: after the start, and of the rest when others have ended.

use super::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use super::data::{PLACEMENTS, PublishedData, ValidateError, data_error};
use super::simulated::{instance, start_run};
use super::{GroupInputs, GroupOutput, GroupResult};
use crate::simulate::chips::full_chip;
use consort_core::stats::quantile;
use consort_core::{Machine, Observation};
use consort_data::{ReportColumn, ReportTable};
use consort_sim::chip::Chip;
use consort_sim::engine::SimulatedProgram;
use consort_sim::machine::{MachineSpec, SmtMode};
use consort_sim::program::{ThreadsSpec, presets};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

pub(super) const NAME: &str = "placement";

/// Agreement: no farther apart than two samples of one distribution would be in 95 of 100 cases.
const DISTANCE: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: "measured: linux-placements.toml",
    unit: "total variation",
    tolerance: Tolerance::distance(),
};

/// Layout of the machine that the model runs on: cores and CPUs per core.
const LAYOUT: (u32, u32) = (4, 2);
/// A program that does nothing but compute.
const SPINNER: &str = "pure-int";
/// Work that does not end, instructions.
const ENDLESS: f64 = 1e18;
/// The model's reading of `after_ms = 0`: the shortest time after the start, ns.
const SOON_NS: u64 = 1_000_000;
/// Time between two observations of survivors, ns: the shortest of the kernel's measurement.
const SURVIVORS_QUANTUM_NS: u64 = 4_000_000;
/// Work of the processes that end, instructions: so long that ends fall anywhere between two
/// attempts of the model to balance its load.
const SHORT: Range<f64> = 2e7..2e8;
/// Work of the others, instructions: hours of it, but part of the run, unlike [`SimulatedProgram::ENDLESS`].
const LONG: f64 = 1e15;
/// Reshufflings for the distance that noise makes.
const SHUFFLES: usize = 1000;

/// The measurement of a real kernel.
#[derive(Clone, Debug, Deserialize)]
struct PlacementMeasurement {
    kernel: String,
    accelerator: String,
    date: String,
    cores: u32,
    ways: u32,
    #[serde(rename = "placements")]
    cases: Vec<PlacementCase>,
    #[serde(default)]
    ends: Vec<SurvivorCase>,
}

/// Placements some time after the start of some threads.
#[derive(Clone, Debug, Deserialize)]
struct PlacementCase {
    threads: u32,
    /// `threads` of one process or `processes`.
    arrival: String,
    after_ms: u64,
    counts: ClassCounts,
}

/// Placements after a random half of as many processes as CPUs has ended.
#[derive(Clone, Debug, Deserialize)]
struct SurvivorCase {
    cores: u32,
    ways: u32,
    started: u32,
    looks: Vec<SurvivorSnapshot>,
}

#[derive(Clone, Debug, Deserialize)]
struct SurvivorSnapshot {
    after_ms: u64,
    counts: ClassCounts,
}

impl PlacementMeasurement {
    fn read(data: &PublishedData) -> Result<Self, ValidateError> {
        let measured: Self = data.parse_toml(PLACEMENTS)?;
        let (cores, ways) = (measured.cores, measured.ways);
        if (cores, ways) != LAYOUT {
            let message = format!("{cores} cores x {ways}; 4 cores x 2 are compared");
            return Err(data_error(PLACEMENTS, message));
        }
        for ends in &measured.ends {
            let (started, cores, ways) = (ends.started, ends.cores, ends.ways);
            if (cores, started) != (LAYOUT.0, cores * ways) {
                let message = format!(
                    "ends of {started} processes on {cores} cores x {ways}; 4 cores and a process \
                     per CPU are compared"
                );
                return Err(data_error(PLACEMENTS, message));
            }
        }
        Ok(measured)
    }
}

/// Counts of the kernel and of the model in one case.
struct PlacementComparison {
    id: String,
    what: String,
    /// Behind the numbers of repetitions in the check's note.
    remark: &'static str,
    kernel: ClassCounts,
    model: ClassCounts,
}

impl PlacementComparison {
    fn check(&self, seed: u64) -> ValidationCheck {
        let noise = PublishedFigure::AtMost(noise_distance(&self.kernel, &self.model, seed));
        let note = format!(
            "{} repetitions, {} of the kernel{}",
            total(&self.model),
            total(&self.kernel),
            self.remark
        );
        let far = distance(&self.kernel, &self.model);
        DISTANCE
            .check(self.id.as_str(), self.what.as_str(), noise, far)
            .with_note(note)
    }
}

pub(super) fn run(inputs: &GroupInputs<'_>) -> GroupResult {
    let measured = PlacementMeasurement::read(inputs.data)?;
    let spec = inputs.data.parse_machine("forms-machine.toml")?;
    let chip = full_chip(&spec)?;
    let seed = inputs.context.seed();
    let repetitions = inputs.context.by_scale(50, 400);
    let models = inputs.map(&measured.cases, |case| {
        count_placements(&chip, case, repetitions, seed)
    })?;
    let starts: Vec<PlacementComparison> = { measured.cases.iter().zip(models) }
        .map(|(case, model)| PlacementComparison {
            id: format!(
                "{}-{}-after-{}-ms",
                case.threads, case.arrival, case.after_ms
            ),
            what: format!(
                "placements of {} spinning {} on 4 cores x 2, {} ms after the start",
                case.threads, case.arrival, case.after_ms
            ),
            remark: "",
            kernel: case.counts.clone(),
            model,
        })
        .collect();
    let models = inputs.map(&measured.ends, |case| {
        let chip = full_chip(&with_ways(&spec, case.ways))?;
        count_survivor_placements(&chip, case, repetitions, seed)
    })?;
    let mut ends = Vec::new();
    for (case, models) in measured.ends.iter().zip(models) {
        let (cores, started, ways) = (case.cores, case.started, case.ways);
        for (look, model) in case.looks.iter().zip(models) {
            let after_ms = look.after_ms;
            ends.push(PlacementComparison {
                id: format!("{cores}-x-{ways}-{after_ms}-ms-after-ends"),
                what: format!(
                    "placements on 4 cores x {ways}, {after_ms} ms after half of {started} \
                     processes have ended"
                ),
                remark: ", whose delays under emulation are an order of magnitude",
                kernel: look.counts.clone(),
                model,
            });
        }
    }
    let note = format!(
        "The kernel: Linux {} in a virtual machine of 4 cores x 2 (accelerator {}), {}. \
         Which CPU it chooses is the kernel's decision; times inside such a machine mean \
         nothing for real ones. An early look sees a placement that is still being evened out.",
        measured.kernel, measured.accelerator, measured.date
    );
    Ok(GroupOutput {
        checks: { starts.iter().chain(&ends) }
            .map(|pair| pair.check(seed))
            .collect(),
        tables: vec![
            shares_table(
                "placements",
                "Threads per CPU of each core, fullest first: shares of repetitions",
                &starts,
            )?,
            shares_table(
                "ends",
                "The same of the ones that remain when half of as many processes as CPUs end",
                &ends,
            )?,
        ],
        notes: vec![note],
        ..GroupOutput::default()
    })
}

/// Shares of every class of placements on both sides, by case.
fn shares_table(
    name: &str,
    title: &str,
    comparisons: &[PlacementComparison],
) -> Result<ReportTable, ValidateError> {
    let columns = vec![
        ReportColumn::plain("case", "case"),
        ReportColumn::plain("placement", "placement"),
        ReportColumn::with_unit("kernel", "kernel", "%"),
        ReportColumn::with_unit("model", "model", "%"),
    ];
    let mut table = ReportTable::new(name, title, columns)?;
    for pair in comparisons {
        let classes: BTreeSet<&String> = pair.kernel.keys().chain(pair.model.keys()).collect();
        for class in classes {
            let cells = vec![
                pair.id.as_str().into(),
                class.as_str().into(),
                (100.0 * share(&pair.kernel, class)).into(),
                (100.0 * share(&pair.model, class)).into(),
            ];
            table.push(&format!("{}/{}", pair.id, class.replace(' ', "_")), cells)?;
        }
    }
    Ok(table)
}

/// Repetitions by the placement that the model makes some time after the start.
fn count_placements(
    chip: &Arc<Chip>,
    case: &PlacementCase,
    repetitions: u64,
    seed: u64,
) -> Result<ClassCounts, ValidateError> {
    let mut program = presets::find(SPINNER)?;
    let work: Vec<SimulatedProgram> = if case.arrival == "processes" {
        let one = instance(&Arc::new(program), 1, ENDLESS);
        vec![one; case.threads as usize]
    } else {
        program.threads = Some(ThreadsSpec {
            default: case.threads,
            max: case.threads,
            divide_work: false,
            serial_share: 0.0,
            shared_data: 0.0,
            shared_code: 1.0,
            barrier: None,
            lock: None,
            spin_us: 0.0,
            stages: Vec::new(),
        });
        vec![instance(&Arc::new(program), case.threads, ENDLESS)]
    };
    let quantum_ns = (case.after_ms * 1_000_000).max(SOON_NS);
    let mut counts = ClassCounts::new();
    for repetition in 0..repetitions {
        let mut machine = start_run(chip, &work, seed.wrapping_add(repetition), quantum_ns)?;
        let seen = machine.observe()?.unwrap_or_default();
        *counts.entry(observed_class(chip, &seen)).or_default() += 1;
    }
    Ok(counts)
}

/// Repetitions by the placement of the survivors, for each time after the ends.
fn count_survivor_placements(
    chip: &Arc<Chip>,
    case: &SurvivorCase,
    repetitions: u64,
    seed: u64,
) -> Result<Vec<ClassCounts>, ValidateError> {
    let mut counts = vec![ClassCounts::new(); case.looks.len()];
    for repetition in 0..repetitions {
        let seed = seed.wrapping_add(repetition);
        let work = draw_processes(case.started as usize, seed)?;
        let mut machine = start_run(chip, &work, seed, SURVIVORS_QUANTUM_NS)?;
        let (mut since_ns, mut looked) = (None, 0);
        while let Some(due) = case.looks.get(looked) {
            let Some(seen) = machine.observe()? else {
                break;
            };
            // Time counts from the moment at which half of the processes have ended.
            if 2 * seen.threads.len() <= work.len() {
                let since_ns = *since_ns.get_or_insert(seen.time_ns);
                if seen.time_ns - since_ns >= due.after_ms * 1_000_000 {
                    *counts[looked]
                        .entry(observed_class(chip, &seen))
                        .or_default() += 1;
                    looked += 1;
                }
            }
        }
    }
    Ok(counts)
}

/// The machine with another number of CPUs per core.
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

/// Processes, a random half of them with little work.
fn draw_processes(started: usize, seed: u64) -> Result<Vec<SimulatedProgram>, ValidateError> {
    let program = Arc::new(presets::find(SPINNER)?);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let short = random.random_range(SHORT);
    let mut work: Vec<f64> = (0..started)
        .map(|i| if i < started / 2 { short } else { LONG })
        .collect();
    work.shuffle(&mut random);
    let instances = work.into_iter().map(|work| instance(&program, 1, work));
    Ok(instances.collect())
}

fn observed_class(chip: &Chip, seen: &Observation) -> String {
    let pus = seen.threads.iter().filter_map(|t| t.last_pu);
    placement_class(chip, &pus.map(|pu| pu.0 as usize).collect::<Vec<_>>())
}

/// Threads per CPU of every core, fullest first, as the measurement writes it: `1|1 1|0 1|0 0|0`.
fn placement_class(chip: &Chip, pus: &[usize]) -> String {
    let mut cores: Vec<Vec<usize>> = vec![Vec::new(); chip.domains().cores];
    for (pu, place) in chip.places().iter().enumerate() {
        let threads = pus.iter().filter(|&&other| other == pu).count();
        cores[place.core].push(threads);
    }
    for core in &mut cores {
        core.sort_by_key(|&threads| Reverse(threads));
    }
    cores.sort_by_key(|core| Reverse((core.iter().sum::<usize>(), core.clone())));
    let texts = cores.iter().map(|core| {
        let pus: Vec<String> = core.iter().map(usize::to_string).collect();
        pus.join("|")
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// Observations of each class.
type ClassCounts = BTreeMap<String, u64>;

fn total(counts: &ClassCounts) -> u64 {
    counts.values().sum()
}

/// Share of a class, 0 to 1.
fn share(counts: &ClassCounts, class: &str) -> f64 {
    counts.get(class).copied().unwrap_or(0) as f64 / total(counts).max(1) as f64
}

/// Total variation distance: half the sum of the differences of shares, 0 to 1.
fn distance(a: &ClassCounts, b: &ClassCounts) -> f64 {
    let only_b = b.keys().filter(|class| !a.contains_key(*class));
    let classes = a.keys().chain(only_b);
    0.5 * classes
        .map(|c| (share(a, c) - share(b, c)).abs())
        .sum::<f64>()
}

/// The distance below which 95 percent of the distances lie that two samples of these sizes from
/// one distribution have (permutation of the pooled observations).
fn noise_distance(a: &ClassCounts, b: &ClassCounts, seed: u64) -> f64 {
    let mut pool: Vec<&str> = Vec::new();
    for (class, &n) in a.iter().chain(b) {
        pool.extend((0..n).map(|_| class.as_str()));
    }
    let size = total(a) as usize;
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut distances = Vec::with_capacity(SHUFFLES);
    for _ in 0..SHUFFLES {
        pool.shuffle(&mut random);
        let mut both = [ClassCounts::new(), ClassCounts::new()];
        for (at, class) in pool.iter().enumerate() {
            let counts = &mut both[usize::from(at >= size)];
            // Looked up first, because an entry would need a copy of the key each time.
            match counts.get_mut(*class) {
                Some(n) => *n += 1,
                None => drop(counts.insert((*class).to_owned(), 1)),
            }
        }
        distances.push(distance(&both[0], &both[1]));
    }
    quantile(&distances, 0.95).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chip() -> Chip {
        let spec = PublishedData::embedded()
            .parse_machine("forms-machine.toml")
            .unwrap();
        Chip::new(&spec, None).unwrap()
    }

    fn counts(pairs: &[(&str, u64)]) -> ClassCounts {
        pairs
            .iter()
            .map(|&(class, n)| (class.to_owned(), n))
            .collect()
    }

    #[test]
    fn placements_are_written_as_in_the_measurement() {
        let chip = chip();
        assert_eq!(placement_class(&chip, &[0, 2, 4, 7]), "1|0 1|0 1|0 1|0");
        assert_eq!(placement_class(&chip, &[4, 5, 0, 7]), "1|1 1|0 1|0 0|0");
        assert_eq!(placement_class(&chip, &[5, 5, 0, 7]), "2|0 1|0 1|0 0|0");
    }

    #[test]
    fn every_repetition_counts_once() {
        let case = PlacementCase {
            threads: 6,
            arrival: "threads".to_owned(),
            after_ms: 0,
            counts: ClassCounts::new(),
        };
        let counts = count_placements(&Arc::new(chip()), &case, 7, 1).unwrap();
        assert_eq!(total(&counts), 7);
    }

    /// In the end every repetition is as even as can be, as nearly all of the kernel's are.
    #[test]
    fn model_ends_where_the_kernel_does() {
        let data = PublishedData::embedded();
        let spec = data.parse_machine("forms-machine.toml").unwrap();
        for ends in PlacementMeasurement::read(&data).unwrap().ends {
            let chip = Arc::new(Chip::new(&with_ways(&spec, ends.ways), None).unwrap());
            let model = count_survivor_placements(&chip, &ends, 20, 1).unwrap();
            assert!(model.iter().all(|counts| total(counts) == 20));
            let last = |counts: &ClassCounts| counts.keys().next().cloned();
            let kernel = &ends.looks.last().unwrap().counts;
            assert_eq!(last(model.last().unwrap()), last(kernel));
            assert_eq!(model.last().unwrap().len(), 1);
            // Half of a full machine that ends at random seldom leaves it even.
            assert!(model[0].len() > 1);
        }
    }

    #[test]
    fn noise_shrinks_with_the_samples() {
        let noise = |n: u64| {
            let even = counts(&[("a", n), ("b", n)]);
            noise_distance(&even, &even, 1)
        };
        assert!(noise(10) > noise(1000) && noise(1000) > 0.0);
        assert_eq!(
            noise_distance(&counts(&[("a", 5)]), &counts(&[("a", 9)]), 1),
            0.0
        );
    }

    proptest! {
        #[test]
        fn distances_are_symmetric_and_between_0_and_1(
            a in prop::array::uniform3(0u64..9), b in prop::array::uniform3(1u64..9),
        ) {
            let of = |n: [u64; 3]| counts(&[("x", n[0] + 1), ("y", n[1]), ("z", n[2])]);
            let (a, b) = (of(a), of(b));
            prop_assert_eq!(distance(&a, &a), 0.0);
            prop_assert!((distance(&a, &b) - distance(&b, &a)).abs() < 1e-12);
            prop_assert!((0.0..=1.0).contains(&distance(&a, &b)));
        }
    }
}
