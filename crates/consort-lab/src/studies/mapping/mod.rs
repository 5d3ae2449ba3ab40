//! Studies of thread mappings, M1 to M15: pairs of programs under every mapping.
//!
//! All studies share one sweep, so the first study of a set takes the time of all.

mod gains;
mod measures;
mod pairs;
mod programs;
mod resources;

pub(super) use gains::{m14, m15};
pub(super) use pairs::{m8, m9, pair_of_programs};
pub(super) use programs::{m7, m11, measure_of_programs};
pub(super) use resources::{m6, m13};

use super::output::OutputBuilder;
use crate::frame::{interval_cell, paired_ratio_cell};
use crate::simulate::programs::{find, instance};
use crate::simulate::{chips, part_error, run_every_case};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::mapping::analysis::{MappingRow, MappingTable, Usage};
use consort_core::mapping::{Mapping, MappingScheme};
use consort_core::stats::{ConfidenceInterval, RatioInterval, geometric_mean};
use consort_data::Cell;
use consort_experiment::mapping::{
    CharacterisedProgram, NamedMapping, OS, RUNS_OF_LONGEST, characterise_with_runs, usage,
};
use consort_experiment::{
    AloneWork, Experiment, ExperimentContext, NOT_MODELLED, RepeatedProgram, measure_alone,
};
use consort_sim::chip::Chip;
use consort_sim::workload::{ProgramInstance, Workload};
use measures::{MappedRunValue, SECONDS};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The source's programs, in the order of its Table III: little sharing of data first.
const PROGRAMS: [&str; 9] = [
    "canneal",
    "facesim",
    "fluidanimate",
    "streamcluster",
    "x264",
    "blackscholes",
    "bodytrack",
    "swaptions",
    "vips",
];

/// The mappings, in the order of columns.
const MAPPINGS: [&str; 4] = [OS, "iso", "int", "spr"];

/// The pairs that a study names: all that the quick scale has.
const NAMED: [[&str; 2]; 7] = [
    ["canneal", "fluidanimate"],
    ["facesim", "streamcluster"],
    ["streamcluster", "x264"],
    ["streamcluster", "blackscholes"],
    ["streamcluster", "bodytrack"],
    ["streamcluster", "swaptions"],
    ["bodytrack", "vips"],
];

/// The pair whose programs also run by themselves where `int` has them: the source's Solo-Int.
const IN_PLACE: ProgramNamePair = ["canneal", "fluidanimate"];

/// The operating system beneath: a kernel of the source's time.
const LINUX: &str = "linux-2.6";

/// Factor of the time after which a run is stopped: this many times the time that its programs take
/// alone one after the other, as often as they are to do their work.
const PATIENCE: f64 = 5.0;

/// Two programs.
type ProgramNamePair = [&'static str; 2];

/// Runs of the two programs of a pair at once.
type BothPrograms = Vec<RepeatedProgram>;

/// All pairs, in the order of [`PROGRAMS`].
pub(super) fn all_pairs() -> Vec<ProgramNamePair> {
    let with_later = |i: usize| PROGRAMS[i + 1..].iter().map(move |b| [PROGRAMS[i], *b]);
    (0..PROGRAMS.len()).flat_map(with_later).collect()
}

/// The source's machine.
pub(super) fn chip() -> Result<Arc<Chip>, StudyError> {
    chips::chip("core2-q9550")
}

/// One instance of each program, with four threads.
pub(super) fn instances() -> Result<Vec<ProgramInstance>, StudyError> {
    let entry = |name: &&str| Ok(instance((*name).to_owned(), &find(name)?, 4));
    PROGRAMS.iter().map(entry).collect()
}

/// These programs of `instances` together.
pub(super) fn workload(names: &[&str], instances: &[ProgramInstance]) -> Workload {
    let named = |name: &&str| instances.iter().find(|entry| entry.name == **name).cloned();
    Workload {
        text: names.join("+"),
        entries: names.iter().filter_map(named).collect(),
    }
}

/// Policies that hold each of [`MAPPINGS`] on top of Linux.
fn held_mappings() -> Result<Vec<NamedMapping>, StudyError> {
    // In the order of `MAPPINGS`, by which runs are found; a test compares the names.
    let schemes =
        { MappingScheme::ALL.iter() }.map(|scheme| NamedMapping::from_scheme(*scheme, LINUX));
    let held = std::iter::once(NamedMapping::from_os(LINUX)).chain(schemes);
    held.map(|held| held.map_err(part_error("mappings")))
        .collect()
}

/// Runs a study that adds to an output from the sweep's runs.
///
/// # Errors
/// Those of the sweep and of the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
    study: fn(&PairRuns, &mut OutputBuilder<'_>) -> Result<(), StudyError>,
) -> Result<StudyOutput, StudyError> {
    let runs = PairRuns::get_or_run(context)?;
    let mut output = OutputBuilder::new(file, runs.seeds)?;
    study(&runs, &mut output)?;
    Ok(runs.finish(output))
}

/// Machine, programs and work of the runs of pairs under mappings.
struct PairTestbed {
    chip: Arc<Chip>,
    instances: Vec<ProgramInstance>,
    work: BTreeMap<String, AloneWork>,
    /// Time of each program's work alone, s.
    alone_s: f64,
    seeds: usize,
}

impl PairTestbed {
    /// Measures the work of each program.
    fn new(context: &ExperimentContext<'_>) -> Result<Self, StudyError> {
        let (chip, instances) = (chip()?, instances()?);
        let alone_s = context.by_scale(0.3, 2.0);
        let measured = context.map(&instances, |entry| {
            measure_alone(&chip, entry, alone_s, context.seed())
        })?;
        let mut work = BTreeMap::new();
        for (entry, measured) in instances.iter().zip(measured) {
            work.insert(entry.name.clone(), measured.map_err(part_error("alone"))?);
        }
        Ok(Self {
            chip,
            instances,
            work,
            alone_s,
            seeds: context.by_scale(1, 3),
        })
    }

    /// Runs pairs under policies that hold mappings, with the seeds that follow the context's: case
    /// by case, then seed by seed.
    fn run(
        &self,
        context: &ExperimentContext<'_>,
        cases: &[(ProgramNamePair, NamedMapping)],
    ) -> Result<Vec<BothPrograms>, StudyError> {
        let run = |(pair, held): &(ProgramNamePair, NamedMapping), (): &(), seed| {
            let work: Vec<AloneWork> = pair.iter().map(|name| self.work[*name]).collect();
            let workload = workload(pair, &self.instances);
            Experiment::new(&self.chip, workload, self.alone_s)
                .run_times(
                    held.contender(),
                    &work,
                    seed,
                    RUNS_OF_LONGEST,
                    Some(PATIENCE),
                )
                .map_err(part_error(&format!(
                    "{} under {}",
                    pair.join("+"),
                    held.name()
                )))
        };
        run_every_case(context, (cases, &[()], self.seeds), run)
    }
}

impl PairTestbed {
    /// Runs each program of a pair by itself on the CPUs that `int` gives it in the pair.
    fn run_in_place(
        &self,
        context: &ExperimentContext<'_>,
        pair: ProgramNamePair,
    ) -> Result<BothPrograms, StudyError> {
        let both = workload(&pair, &self.instances);
        let threads: Vec<usize> = both.entries.iter().map(|e| e.threads as usize).collect();
        let int = Mapping::from_scheme(MappingScheme::Int, self.chip.topology(), &threads);
        let places: Vec<usize> = (0..pair.len()).collect();
        let runs = context.map(&places, |&place| {
            let name = pair[place];
            let failed = part_error(name);
            let mapping = Mapping::on_pus(&int.programs()[place], threads[place]);
            let held = NamedMapping::from_mapping(&mapping, LINUX).map_err(&failed)?;
            let alone = workload(&[name], &self.instances);
            let experiment = Experiment::new(&self.chip, alone, self.alone_s);
            let (work, seed) = ([self.work[name]], context.seed());
            let run = experiment.run_times(held.contender(), &work, seed, RUNS_OF_LONGEST, None);
            Ok(run.map_err(failed)?.remove(0))
        })?;
        runs.into_iter().collect()
    }
}

/// All runs of the sweep.
pub(crate) struct PairRuns {
    pairs: Vec<ProgramNamePair>,
    /// Characteristics and runs of each program alone, in the order of [`PROGRAMS`].
    alone: Vec<CharacterisedProgram>,
    /// The programs of [`IN_PLACE`] by themselves.
    in_place: BothPrograms,
    seeds: usize,
    /// Runs of both programs, by pair, then mapping, then seed.
    cells: Vec<BothPrograms>,
    pus: usize,
}

impl PairRuns {
    /// Returns the runs of this context, which the studies share.
    fn get_or_run(context: &ExperimentContext<'_>) -> Result<Arc<Self>, StudyError> {
        context.get_or_compute("mapping sweep", || {
            let testbed = PairTestbed::new(context)?;
            let (pairs, held) = (pairs_of_scale(context), held_mappings()?);
            let mut cases = Vec::new();
            for pair in &pairs {
                cases.extend(held.iter().map(|held| (*pair, held.clone())));
            }
            let cells = testbed.run(context, &cases)?;
            let in_place = testbed.run_in_place(context, IN_PLACE)?;
            let PairTestbed {
                chip,
                instances,
                alone_s,
                seeds,
                ..
            } = testbed;
            let alone = characterise_with_runs(&chip, &instances, alone_s, context);
            Ok(Self {
                pairs,
                alone: alone.map_err(part_error("alone"))?,
                in_place,
                seeds,
                cells,
                pus: chip.topology().pus().len(),
            })
        })
    }

    /// Runs of both programs of a pair under a mapping, seed by seed; empty for pairs that were not
    /// run.
    fn both(&self, pair: ProgramNamePair, mapping: &str) -> &[BothPrograms] {
        let pair = self.pairs.iter().position(|p| *p == pair);
        let mapping = MAPPINGS.iter().position(|m| *m == mapping);
        let Some((pair, mapping)) = pair.zip(mapping) else {
            return &[];
        };
        let first = (pair * MAPPINGS.len() + mapping) * self.seeds;
        &self.cells[first..first + self.seeds]
    }

    /// The pairs with a program, and its place in each.
    fn with(&self, program: &str) -> impl Iterator<Item = (ProgramNamePair, usize)> {
        let pairs = self.pairs.iter();
        pairs.filter_map(move |pair| Some((*pair, pair.iter().position(|p| *p == program)?)))
    }

    /// A value of a program alone; NaN, which a table shows as missing, if it was not run.
    fn value_alone(&self, program: &str, value: MappedRunValue) -> Cell {
        let place = PROGRAMS.iter().position(|name| *name == program);
        let alone = place.and_then(|place| self.alone.get(place));
        alone.map_or(f64::NAN, |alone| value(&alone.with)).into()
    }

    /// A value of a program by itself where `int` has it in the pair [`IN_PLACE`].
    fn value_in_place(&self, program: &str, value: MappedRunValue) -> Cell {
        let run = self.in_place.iter().find(|run| run.name == program);
        run.map_or(f64::NAN, value).into()
    }

    /// Use that a program of a run made of the hardware.
    fn usage(&self, program: &RepeatedProgram) -> Usage {
        usage(program, self.pus)
    }

    /// Table for analyses: all seeds added up.
    fn table(&self) -> MappingTable {
        self.rows(|runs| {
            let (first, others) = runs.split_first()?;
            let mut sum = first.clone();
            for run in others {
                sum.iter_mut().zip(run).for_each(|(sum, one)| sum.add(one));
            }
            Some(sum)
        })
    }

    /// Tables for analyses, one for each seed.
    fn by_seed(&self) -> Vec<MappingTable> {
        let one = |seed: usize| self.rows(|runs| runs.get(seed).cloned());
        (0..self.seeds).map(one).collect()
    }

    fn rows(&self, runs: impl Fn(&[BothPrograms]) -> Option<BothPrograms>) -> MappingTable {
        let mut rows = Vec::new();
        for pair in &self.pairs {
            for mapping in MAPPINGS {
                let both = runs(self.both(*pair, mapping)).unwrap_or_default();
                rows.extend(both.iter().enumerate().map(|(place, program)| MappingRow {
                    mapping: mapping.to_owned(),
                    program: program.name.clone(),
                    co_runner: pair[1 - place].to_owned(),
                    usage: self.usage(program),
                }));
            }
        }
        MappingTable { rows }
    }

    /// A value of the program at one place of a pair under a mapping, seed by seed.
    fn values(
        &self,
        pair: ProgramNamePair,
        place: usize,
        mapping: &str,
        value: MappedRunValue,
    ) -> Vec<f64> {
        let runs = self.both(pair, mapping).iter();
        runs.map(|both| value(&both[place])).collect()
    }

    /// Mean over seeds of a program's value.
    fn cell(
        &self,
        pair: ProgramNamePair,
        place: usize,
        mapping: &str,
        value: MappedRunValue,
    ) -> Cell {
        interval_cell(&finite(self.values(pair, place, mapping, value)))
    }

    /// Speed of a program under a mapping over that under `os`, seed by seed.
    fn speed(&self, pair: ProgramNamePair, place: usize, mapping: &str) -> Cell {
        let times = |mapping: &str| self.values(pair, place, mapping, SECONDS);
        // A speed is the inverse of a time, so the time under `os` comes first.
        paired_ratio_cell(&times(OS), &times(mapping))
    }

    /// Mean over a program's co-runners of its value under a mapping, seed by seed.
    fn over_co_runners(&self, program: &str, mapping: &str, value: MappedRunValue) -> Vec<f64> {
        let mean = |seed: usize| {
            let pairs = self.with(program);
            let all = pairs.map(|(pair, place)| value(&self.both(pair, mapping)[seed][place]));
            // Co-runners with which the program has no value do not count.
            let all = finite(all.collect());
            all.iter().sum::<f64>() / all.len() as f64
        };
        finite((0..self.seeds).map(mean).collect())
    }

    /// The output, with a last note if some runs were stopped before a program had done its work as
    /// often as it should.
    fn finish(&self, mut output: OutputBuilder<'_>) -> StudyOutput {
        let short = |both: &BothPrograms| both.iter().any(|p| p.runs < RUNS_OF_LONGEST as usize);
        let mut names: Vec<String> = Vec::new();
        for pair in &self.pairs {
            for mapping in MAPPINGS {
                if self.both(*pair, mapping).iter().any(short) {
                    names.push(format!("{} under {mapping}", pair.join("+")));
                }
            }
        }
        if !names.is_empty() {
            output.note(format!(
                "Stopped before the slower program had done its work three times, in {} of {} \
                 cases: {}.",
                names.len(),
                self.pairs.len() * MAPPINGS.len(),
                names.join(", "),
            ));
        }
        output.finish()
    }
}

/// The pairs of this scale, in their order.
fn pairs_of_scale(context: &ExperimentContext<'_>) -> Vec<ProgramNamePair> {
    let mut pairs = all_pairs();
    pairs.retain(|pair| context.by_scale(NAMED.contains(pair), true));
    pairs
}

/// The values that are finite: a program without misses, for example, has no latency.
fn finite(mut values: Vec<f64>) -> Vec<f64> {
    values.retain(|value| value.is_finite());
    values
}

/// Geometric mean of gains, factors by seed, in percent with its interval.
fn gain_cell(factors: &[f64]) -> Cell {
    match RatioInterval::from_ratios(factors).map(|ratio| ratio.to_interval()) {
        Some(factor) => Cell::Interval(ConfidenceInterval {
            mean: 100.0 * (factor.mean - 1.0),
            ci95: factor.ci95.map(|half| 100.0 * half),
            n: factor.n,
        }),
        None => interval_cell(&[]),
    }
}

/// Geometric mean over pairs of their means over seeds, with the interval over pairs.
fn mean_gain(pairs: &[ProgramNamePair], gains: impl Fn(ProgramNamePair) -> Vec<f64>) -> Cell {
    let means = { pairs.iter() }.filter_map(|pair| geometric_mean(&gains(*pair)));
    gain_cell(&means.collect::<Vec<_>>())
}

/// Note on resources that the simulation does not model.
fn not_modelled() -> String {
    let what = { NOT_MODELLED.iter() }.map(|(what, why)| format!("{what} ({why})"));
    let what: Vec<String> = what.collect();
    format!("Not modelled, and so without numbers: {}.", what.join("; "))
}

#[cfg(test)]
impl PairRuns {
    /// One pair whose two programs take these times, s, in the order of mappings and then seeds;
    /// every second is a second of both L2MP and cycles of four cores at 1 GHz.
    fn of_times(times_s: &[[f64; 2]]) -> Self {
        let program = |time_s: f64| {
            let mut counters = consort_experiment::ProgramCounters {
                instructions: 1e9,
                cycles: 4e9 * time_s,
                llc_misses: 1.0,
                outstanding_cycles: 1e9 * time_s,
                ..Default::default()
            };
            counters.memory.reads = 1.0;
            counters.time.on_pu_s = 4.0 * time_s;
            RepeatedProgram {
                name: "a".to_owned(),
                threads: 4,
                runs: 3,
                time_s,
                instructions: 1e9,
                counters,
                span_s: time_s,
            }
        };
        Self {
            pairs: vec![["canneal", "vips"]],
            alone: Vec::new(),
            in_place: Vec::new(),
            seeds: times_s.len() / MAPPINGS.len(),
            cells: times_s
                .iter()
                .map(|both| both.map(program).to_vec())
                .collect(),
            pus: 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;
    use consort_experiment::Scale;

    #[test]
    fn full_scale_has_36_pairs_quick_the_named_ones() {
        let pairs = |scale| pairs_of_scale(&ExperimentContext::new(1, scale, workers(1), &|_| ()));
        let (quick, full) = (pairs(Scale::Quick), pairs(Scale::Full));
        assert_eq!((quick.len(), full.len()), (NAMED.len(), 36));
        assert!(quick.iter().all(|pair| full.contains(pair)));
        let programs = quick.iter().flatten();
        assert!(PROGRAMS.iter().all(|p| programs.clone().any(|q| q == p)));
    }

    #[test]
    fn mappings_are_held_by_their_names() {
        let held = held_mappings().unwrap();
        let names: Vec<&str> = held.iter().map(NamedMapping::name).collect();
        assert_eq!(names, MAPPINGS);
    }

    #[test]
    fn gain_is_the_percentage_above_1() {
        let cell = gain_cell(&[1.1, 1.1]);
        assert!((cell.value().unwrap() - 10.0).abs() < 1e-9);
        assert!(cell.ci95().unwrap() < 1e-6 && cell.n() == Some(2));
        let pairs = [["a", "b"], ["c", "d"]];
        let gains = |pair: ProgramNamePair| vec![if pair[0] == "a" { 2.0 } else { 0.5 }];
        assert!(mean_gain(&pairs, gains).value().unwrap().abs() < 1e-9);
        assert_eq!(gain_cell(&[]).value(), None);
    }
}
