//! Workloads under thread mappings, measured.
//!
//! Source: Wang et al., "Performance Analysis of Thread Mappings with a Holistic View of the
//! Hardware Resources" (ISPASS 2012). The method is the source's: each workload runs until the
//! program that is last has done its work three times.
//!
//! Usage: a [`MappingSweep`] of workloads and [`NamedMapping`] mappings gives [`SweepResults`];
//! [`consort_core::mapping::analysis`] works on their [`SweepResults::table`]. Pitfall: a program's
//! work is what it does alone in a set time, so that all programs of a workload are about equally
//! long; the source's have their own lengths.

use crate::{
    AloneWork, Contender, Experiment, ExperimentContext, ExperimentError, ProgramCounters,
    RepeatedProgram, measure_alone,
};
use consort_core::mapping::analysis::{
    Amount, MappingRow, MappingTable, MemoryPath, SharedResource, Usage,
};
use consort_core::mapping::{Mapping, MappingScheme};
use consort_sim::chip::Chip;
use consort_sim::contention::CpiStack;
use consort_sim::workload::{ProgramInstance, Workload};
use std::collections::BTreeMap;
use std::sync::Arc;

mod alone;

pub use alone::{CharacterisedProgram, characterise, characterise_with_runs};

/// The mapping that is none: what the operating system does.
pub const OS: &str = "os";

/// A mapping by name, with what brings it about on a simulated machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedMapping {
    name: String,
    contender: Contender,
}

impl NamedMapping {
    /// The operating system of that name, left alone.
    ///
    /// # Errors
    /// An unknown name.
    pub fn from_os(system: &str) -> Result<Self, ExperimentError> {
        Ok(Self {
            name: OS.to_owned(),
            contender: Contender::new("none", system)?,
        })
    }

    /// A named mapping on top of an operating system.
    ///
    /// # Errors
    /// An unknown operating system.
    pub fn from_scheme(scheme: MappingScheme, system: &str) -> Result<Self, ExperimentError> {
        Self::from_map(scheme.name(), system)
    }

    /// These CPUs for the threads of each program.
    ///
    /// # Errors
    /// An unknown operating system.
    pub fn from_mapping(mapping: &Mapping, system: &str) -> Result<Self, ExperimentError> {
        Self::from_map(&mapping.to_string(), system)
    }

    /// A policy that finds mappings by itself.
    ///
    /// # Errors
    /// An unknown policy or operating system.
    pub fn from_policy(name: &str, system: &str) -> Result<Self, ExperimentError> {
        Ok(Self {
            name: name.to_owned(),
            contender: Contender::new(name, system)?,
        })
    }

    /// From the first quantum on every thread is where it is to be, active or not.
    fn from_map(map: &str, system: &str) -> Result<Self, ExperimentError> {
        let policy = format!("mapping:map={map},active=0");
        Ok(Self {
            name: map.to_owned(),
            contender: Contender::new(&policy, system)?,
        })
    }

    /// Its name: `os`, `iso`, `int`, `spr`, or the CPUs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The contender that brings it about.
    pub fn contender(&self) -> &Contender {
        &self.contender
    }
}

/// Runs of the longest program of a workload, as in the source.
pub const RUNS_OF_LONGEST: u32 = 3;

/// Workloads and mappings to measure.
#[derive(Clone, Debug)]
pub struct MappingSweep {
    /// The machine.
    pub chip: Arc<Chip>,
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// The mappings.
    pub held: Vec<NamedMapping>,
    /// Time that each program's work takes alone, s.
    pub alone_s: f64,
    /// Number of times that the program that is last does its work.
    pub times: u32,
    /// Repetitions of each workload under each mapping, with successive seeds.
    pub runs: usize,
}

/// Results of each program of each workload under each mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepResults {
    /// By workload and mapping, the programs; repetitions are added up. `None` if a run was given
    /// up.
    pub programs: Vec<Vec<Option<Vec<RepeatedProgram>>>>,
    /// The same by repetition: mean times of each program's work, s.
    pub times_s: Vec<Vec<Vec<Vec<f64>>>>,
    /// Runs that were given up, one sentence each.
    pub given_up: Vec<String>,
    mappings: Vec<String>,
    pus: usize,
}

/// Programs of a kind: the same program with as many threads.
type ProgramKind = (String, u32);

impl MappingSweep {
    /// Measures everything.
    ///
    /// # Errors
    /// A program that makes no progress alone, and those of [`Experiment::run`].
    pub fn measure(
        &self,
        context: &ExperimentContext<'_>,
    ) -> Result<SweepResults, ExperimentError> {
        let work = self.measure_work(context)?;
        let runs = self.runs.max(1);
        let jobs: Vec<(usize, usize, u64)> = (0..self.workloads.len())
            .flat_map(|w| (0..self.held.len()).map(move |m| (w, m)))
            .flat_map(|(w, m)| (0..runs as u64).map(move |run| (w, m, run)))
            .collect();
        let done = context.map(&jobs, |&(w, m, run)| {
            self.run(w, m, &work, context.seed().wrapping_add(run))
        })?;
        let ended = jobs
            .iter()
            .zip(done)
            .map(|(&(w, m, _), run)| self.accept_run(w, m, run));
        let (runs_of, given_up) = ended.collect::<Result<(Vec<_>, Vec<_>), _>>()?;
        Ok(self.gather_results(&runs_of, given_up.into_iter().flatten().collect(), runs))
    }

    /// A run, or what to say of one that was given up.
    fn accept_run(
        &self,
        workload: usize,
        held: usize,
        run: Result<Vec<RepeatedProgram>, ExperimentError>,
    ) -> Result<(Option<Vec<RepeatedProgram>>, Option<String>), ExperimentError> {
        match run {
            Ok(programs) => Ok((Some(programs), None)),
            Err(error @ ExperimentError::Endless { .. }) => {
                let (workload, held) = (&self.workloads[workload].text, self.held[held].name());
                Ok((
                    None,
                    Some(format!("{workload} under {held} was given up: {error}")),
                ))
            }
            Err(error) => Err(error),
        }
    }

    fn gather_results(
        &self,
        done: &[Option<Vec<RepeatedProgram>>],
        mut given_up: Vec<String>,
        runs: usize,
    ) -> SweepResults {
        // Repetitions of one cell are given up with the same sentence.
        given_up.dedup();
        let cells: Vec<&[Option<Vec<RepeatedProgram>>]> = done.chunks(runs).collect();
        let rows = || cells.chunks(self.held.len().max(1));
        let time_s = |run: &Vec<RepeatedProgram>| run.iter().map(|p| p.time_s).collect();
        let times_s =
            |cell: &&[Option<Vec<RepeatedProgram>>]| cell.iter().flatten().map(time_s).collect();
        SweepResults {
            programs: rows()
                .map(|row| row.iter().map(|c| sum_repetitions(c)).collect())
                .collect(),
            times_s: rows()
                .map(|row| row.iter().map(times_s).collect())
                .collect(),
            given_up,
            mappings: self
                .held
                .iter()
                .map(|held| held.name().to_owned())
                .collect(),
            pus: self.chip.topology().pus().len(),
        }
    }

    fn run(
        &self,
        workload: usize,
        held: usize,
        work: &BTreeMap<ProgramKind, AloneWork>,
        seed: u64,
    ) -> Result<Vec<RepeatedProgram>, ExperimentError> {
        let workload = self.workloads[workload].clone();
        let work: Vec<AloneWork> = workload
            .entries
            .iter()
            .map(|e| work[&program_kind(e)])
            .collect();
        let experiment = Experiment::new(&self.chip, workload, self.alone_s);
        experiment.run_times(self.held[held].contender(), &work, seed, self.times, None)
    }

    /// The work of each kind of program, measured alone.
    fn measure_work(
        &self,
        context: &ExperimentContext<'_>,
    ) -> Result<BTreeMap<ProgramKind, AloneWork>, ExperimentError> {
        let entries = self.workloads.iter().flat_map(|w| &w.entries);
        let kinds: BTreeMap<ProgramKind, &ProgramInstance> =
            entries.map(|e| (program_kind(e), e)).collect();
        let kinds: Vec<(ProgramKind, &ProgramInstance)> = kinds.into_iter().collect();
        let measured = context.map(&kinds, |(_, entry)| {
            measure_alone(&self.chip, entry, self.alone_s, context.seed())
        })?;
        let named = kinds.into_iter().zip(measured);
        named.map(|((kind, _), work)| Ok((kind, work?))).collect()
    }
}

fn program_kind(entry: &ProgramInstance) -> ProgramKind {
    (entry.program.name.clone(), entry.threads)
}

/// The repetitions of one workload under one mapping as one; `None` if one was given up.
fn sum_repetitions(runs: &[Option<Vec<RepeatedProgram>>]) -> Option<Vec<RepeatedProgram>> {
    let runs: Option<Vec<&Vec<RepeatedProgram>>> = runs.iter().map(Option::as_ref).collect();
    let (first, others) = runs.as_deref()?.split_first()?;
    let mut sum = (*first).clone();
    for run in others {
        sum.iter_mut()
            .zip(*run)
            .for_each(|(sum, program)| sum.add(program));
    }
    Some(sum)
}

impl SweepResults {
    /// Gives the table that the analysis works on.
    pub fn table(&self) -> MappingTable {
        let mut rows = Vec::new();
        for workload in &self.programs {
            for (mapping, programs) in self.mappings.iter().zip(workload) {
                let programs = programs.as_deref().unwrap_or_default();
                rows.extend((0..programs.len()).map(|p| self.row(mapping, programs, p)));
            }
        }
        MappingTable { rows }
    }

    fn row(&self, mapping: &str, programs: &[RepeatedProgram], program: usize) -> MappingRow {
        let others = programs
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != program);
        let others: Vec<&str> = others.map(|(_, other)| other.name.as_str()).collect();
        MappingRow {
            mapping: mapping.to_owned(),
            program: programs[program].name.clone(),
            co_runner: others.join("+"),
            usage: usage(&programs[program], self.pus),
        }
    }
}

/// Usage of a program per run on a machine of `pus` CPUs. Stall cycles are those of the
/// simulation's cycle stack: data from the L2 and LLC count for the L1D that they missed, data
/// from idle memory for the shared cache, and queueing for the memory path. What branch predictors
/// learn again after strangers is among the branch predictor's.
pub fn usage(program: &RepeatedProgram, pus: usize) -> Usage {
    let counters = &program.counters;
    let each = program.per_run();
    Usage {
        time_s: program.time_s,
        cycles: Some(counters.cycles * each),
        utilisation: Some(counters.time.on_pu_s / (pus as f64 * program.span_s)),
        amounts: amounts(counters, each),
        memory: Some(MemoryPath {
            l2_misses: counters.llc_misses * each,
            outstanding_cycles: counters.outstanding_cycles * each,
            reads: (counters.memory.total() - counters.memory.writebacks) * each,
            instruction_fetches: counters.memory.fetches * each,
        }),
    }
}

fn amounts(counters: &ProgramCounters, each: f64) -> BTreeMap<SharedResource, Amount> {
    let stall = |names: &[&str]| {
        let parts = CpiStack::NAMES.iter().zip(counters.stack_cycles);
        let mine = parts.filter(|(name, _)| names.contains(name));
        Some(mine.map(|(_, cycles)| cycles).sum::<f64>() * each)
    };
    let amount = |used: f64, stall_cycles| Amount {
        used: used * each,
        stall_cycles,
    };
    BTreeMap::from([
        (
            SharedResource::L1d,
            amount(counters.l1d_misses, stall(&["l2", "llc"])),
        ),
        (
            SharedResource::L1i,
            amount(counters.l1i_misses, stall(&["fetch"])),
        ),
        (
            SharedResource::L2,
            amount(counters.llc_misses, stall(&["memory"])),
        ),
        (
            SharedResource::Prefetcher,
            amount(counters.memory.prefetches, None),
        ),
        (
            SharedResource::MemoryPath,
            amount(counters.memory.total(), stall(&["queue"])),
        ),
        (
            SharedResource::BranchPredictor,
            amount(
                counters.branch_misses,
                Some(counters.branch_miss_cycles * each),
            ),
        ),
        (
            SharedResource::Tlb,
            amount(counters.tlb_walks, stall(&["tlb"])),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;
    use crate::testing::{chip, pair, workers};
    use consort_core::mapping::MappingScheme;

    fn sweep() -> MappingSweep {
        let mut workload = pair(["blackscholes", "swaptions"]);
        workload
            .entries
            .iter_mut()
            .for_each(|entry| entry.threads = 4);
        let schemes = MappingScheme::ALL
            .iter()
            .map(|s| NamedMapping::from_scheme(*s, "linux"));
        let held = std::iter::once(NamedMapping::from_os("linux")).chain(schemes);
        MappingSweep {
            chip: chip("core2-q9550"),
            workloads: vec![workload],
            held: held.collect::<Result<_, _>>().unwrap(),
            alone_s: 0.1,
            times: RUNS_OF_LONGEST,
            runs: 2,
        }
    }

    fn measured(count: usize) -> SweepResults {
        let context = ExperimentContext::new(3, Scale::Quick, workers(count), &|_| ());
        sweep().measure(&context).unwrap()
    }

    #[test]
    fn programs_have_rows_under_every_mapping() {
        let one = measured(1);
        assert_eq!(one, measured(3));
        let table = one.table();
        assert_eq!(table.rows.len(), 8);
        let pairs = table.pairs();
        let names: Vec<&str> = pairs.keys().map(|(program, _)| program.as_str()).collect();
        assert_eq!(names, ["blackscholes", "swaptions"]);
        assert!(
            one.programs[0]
                .iter()
                .flatten()
                .flatten()
                .all(|p| p.runs >= 6)
        );
        assert!(one.given_up.is_empty());
    }

    /// Exec_Time = Exec_Cycles/(Cores · Utilisation · Frequency), but for the run under way at the
    /// end, which is counted and has no time.
    #[test]
    fn time_follows_from_cycles_and_utilisation() {
        for row in measured(2).table().rows {
            let usage = &row.usage;
            let cores_hz = 4.0 * 2.83e9 * usage.utilisation.unwrap();
            let error = usage.cycles.unwrap() / cores_hz / usage.time_s - 1.0;
            assert!(
                error.abs() < 0.1,
                "{} {}: {error}",
                row.program,
                row.mapping
            );
        }
    }

    #[test]
    fn everything_is_per_run() {
        let mut counters = ProgramCounters {
            instructions: 4e9,
            cycles: 8e9,
            llc_misses: 400.0,
            ..ProgramCounters::default()
        };
        counters.time.on_pu_s = 4.0;
        counters.stack_cycles[6] = 2e9;
        counters.branch_miss_cycles = 1e9;
        let program = RepeatedProgram {
            name: "a".to_owned(),
            threads: 4,
            runs: 4,
            time_s: 0.5,
            instructions: 1e9,
            counters,
            span_s: 2.0,
        };
        let usage = usage(&program, 4);
        assert_eq!((usage.cycles, usage.utilisation), (Some(2e9), Some(0.5)));
        let l2 = usage.amounts[&SharedResource::L2];
        assert_eq!((l2.used, l2.stall_cycles), (100.0, Some(5e8)));
        let branch = usage.amounts[&SharedResource::BranchPredictor];
        assert_eq!(branch.stall_cycles, Some(2.5e8));
    }
}
