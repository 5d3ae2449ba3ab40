//! The runs on which all studies of thread mappings stand, made once for all that share them.

use super::plan::{
    ALONE_S, MAPPINGS, ProgramNamePair, SEEDS, chip, held, instances, pairs, workload,
};
use super::{part_error, plan};
use crate::simulate::{experiment, run_every_case};
use crate::study::StudyError;
use consort_core::mapping::analysis::{MappingRow, MappingTable, Usage};
use consort_experiment::ExperimentContext;
use consort_experiment::mapping::{
    CharacterisedProgram, NamedMapping, RUNS_OF_LONGEST, characterise_with_runs, usage,
};
use consort_experiment::{AloneWork, ExperimentError, RepeatedProgram, measure_alone};
use consort_sim::chip::Chip;
use consort_sim::workload::{ProgramInstance, Workload};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Factor of the time after which a run is stopped: this many times the time that its programs take
/// alone one after the other, as often as they are to do their work.
const PATIENCE: f64 = 5.0;

/// All runs.
pub(in crate::studies) struct PairRuns {
    /// The pairs.
    pub pairs: Vec<ProgramNamePair>,
    /// Characteristics and runs of each program alone, in the order of [`plan::PROGRAMS`].
    pub alone: Vec<CharacterisedProgram>,
    /// Number of seeds.
    pub seeds: usize,
    /// Runs of both programs, by pair, then mapping, then seed.
    cells: Vec<BothPrograms>,
    pus: usize,
}

/// Runs of the two programs of a pair at once.
type BothPrograms = Vec<RepeatedProgram>;

/// Machine, programs and work of the runs of pairs under mappings.
pub(in crate::studies) struct PairTestbed {
    chip: Arc<Chip>,
    instances: Vec<ProgramInstance>,
    work: BTreeMap<String, AloneWork>,
    alone_s: f64,
    seeds: usize,
}

impl PairTestbed {
    /// Measures the work of each program, which it does alone in `alone_s`; every run is to have
    /// so many seeds.
    pub fn new(
        context: &ExperimentContext<'_>,
        alone_s: f64,
        seeds: usize,
    ) -> Result<Self, StudyError> {
        let (chip, instances) = (chip()?, instances()?);
        let work = context.map(&instances, |entry| {
            measure_alone(&chip, entry, alone_s, context.seed())
        })?;
        let named = instances.iter().zip(work);
        let work = named.map(|(entry, work)| Ok((entry.name.clone(), work?)));
        let work = work.collect::<Result<_, ExperimentError>>();
        Ok(Self {
            work: work.map_err(part_error("alone"))?,
            seeds,
            chip,
            instances,
            alone_s,
        })
    }

    /// Runs pairs under policies that hold mappings, with the seeds that follow the context's: case
    /// by case, then seed by seed.
    pub fn run(
        &self,
        context: &ExperimentContext<'_>,
        cases: &[(ProgramNamePair, NamedMapping)],
    ) -> Result<Vec<BothPrograms>, StudyError> {
        let run = |(pair, held): &(ProgramNamePair, NamedMapping), (): &(), seed| {
            let part = format!("{} under {}", pair.join("+"), held.name());
            self.both(pair, held, seed).map_err(part_error(&part))
        };
        run_every_case(context, (cases, &[()], self.seeds), run)
    }

    fn both(
        &self,
        pair: &ProgramNamePair,
        held: &NamedMapping,
        seed: u64,
    ) -> Result<BothPrograms, ExperimentError> {
        let workload: Workload = workload(pair, &self.instances);
        let work: Vec<AloneWork> = pair.iter().map(|name| self.work[*name]).collect();
        let experiment = experiment(&self.chip, workload, self.alone_s);
        let patience = Some(PATIENCE);
        experiment.run_times(held.contender(), &work, seed, RUNS_OF_LONGEST, patience)
    }
}

/// Returns the runs, made once.
pub(in crate::studies) fn runs(
    context: &ExperimentContext<'_>,
) -> Result<Arc<PairRuns>, StudyError> {
    context.get_or_compute("mapping sweep", || PairRuns::new(context))
}

impl PairRuns {
    fn new(context: &ExperimentContext<'_>) -> Result<Self, StudyError> {
        let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
        let field = PairTestbed::new(context, alone_s, context.by_scale(SEEDS[0], SEEDS[1]))?;
        let (pairs, held) = (pairs(context), held()?);
        let under = |pair: &ProgramNamePair| {
            held.iter()
                .map(|held| (*pair, held.clone()))
                .collect::<Vec<_>>()
        };
        let cases: Vec<(ProgramNamePair, NamedMapping)> = pairs.iter().flat_map(under).collect();
        let cells = field.run(context, &cases)?;
        let alone = characterise_with_runs(&field.chip, &field.instances, field.alone_s, context);
        Ok(Self {
            alone: alone.map_err(part_error("alone"))?,
            seeds: field.seeds,
            pus: field.chip.topology().pus().len(),
            pairs,
            cells,
        })
    }

    /// Runs of both programs of a pair under a mapping, seed by seed; empty for pairs that were not
    /// run.
    pub fn both(&self, pair: ProgramNamePair, mapping: &str) -> &[BothPrograms] {
        let pair = self.pairs.iter().position(|p| *p == pair);
        let mapping = MAPPINGS.iter().position(|m| *m == mapping);
        let Some((pair, mapping)) = pair.zip(mapping) else {
            return &[];
        };
        let first = (pair * MAPPINGS.len() + mapping) * self.seeds;
        &self.cells[first..first + self.seeds]
    }

    /// The pairs with a program, and its place in each.
    pub fn with(&self, program: &str) -> impl Iterator<Item = (ProgramNamePair, usize)> {
        let place = move |pair: &ProgramNamePair| pair.iter().position(|name| *name == program);
        let found = self
            .pairs
            .iter()
            .map(move |pair| Some((*pair, place(pair)?)));
        found.flatten()
    }

    /// Characteristics of a program alone.
    pub fn alone(&self, program: &str) -> Option<&CharacterisedProgram> {
        let place = plan::PROGRAMS.iter().position(|name| *name == program)?;
        self.alone.get(place)
    }

    /// Use that a program of a run made of the hardware.
    pub fn usage(&self, program: &RepeatedProgram) -> Usage {
        usage(program, self.pus)
    }

    /// Table for analyses: all seeds added up.
    pub fn table(&self) -> MappingTable {
        self.rows(|runs| {
            let (first, others) = runs.split_first()?;
            let mut sum = first.clone();
            for run in others {
                sum.iter_mut().zip(run).for_each(|(sum, one)| sum.add(one));
            }
            Some(sum)
        })
    }

    /// Tables of each seed.
    pub fn by_seed(&self) -> Vec<MappingTable> {
        let one = |seed: usize| self.rows(|runs| runs.get(seed).cloned());
        (0..self.seeds).map(one).collect()
    }

    fn rows(&self, of: impl Fn(&[BothPrograms]) -> Option<BothPrograms>) -> MappingTable {
        let mut rows = Vec::new();
        for pair in &self.pairs {
            for mapping in MAPPINGS {
                let both = of(self.both(*pair, mapping)).unwrap_or_default();
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

    /// Runs that were stopped before a program had done its work as often as it should.
    pub fn stopped(&self) -> Vec<(ProgramNamePair, &'static str)> {
        let short = |both: &BothPrograms| both.iter().any(|p| p.runs < RUNS_OF_LONGEST as usize);
        let cases = self
            .pairs
            .iter()
            .flat_map(|pair| MAPPINGS.map(|m| (*pair, m)));
        cases
            .filter(|(pair, m)| self.both(*pair, m).iter().any(short))
            .collect()
    }
}

#[cfg(test)]
impl PairRuns {
    /// One pair whose two programs take these times, s, in the order of mappings and then seeds;
    /// every second is a second of both L2MP and cycles of four cores at 1 GHz.
    pub fn of_times(times_s: &[[f64; 2]]) -> Self {
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
            seeds: times_s.len() / MAPPINGS.len(),
            cells: times_s
                .iter()
                .map(|both| both.map(program).to_vec())
                .collect(),
            pus: 4,
        }
    }
}
