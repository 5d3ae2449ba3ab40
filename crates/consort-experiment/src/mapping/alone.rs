//! Programs alone: with and without prefetchers, under one cache and under several.

use super::NamedMapping;
use crate::{
    AloneWork, Experiment, ExperimentContext, ExperimentError, RepeatedProgram, measure_alone,
};
use consort_core::PuId;
use consort_core::mapping::analysis::{AloneCharacteristics, AloneCounts};
use consort_core::mapping::{Mapping, domains};
use consort_sim::chip::Chip;
use consort_sim::workload::{ProgramInstance, Workload};
use std::sync::Arc;

/// A program alone is run once for each of its characteristics.
struct LoneProgram<'a> {
    chip: &'a Arc<Chip>,
    entry: &'a ProgramInstance,
    work: AloneWork,
    seed: u64,
}

/// A program by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct CharacterisedProgram {
    /// Its characteristics.
    pub characteristics: AloneCharacteristics,
    /// Its run on the machine as it is.
    pub with: RepeatedProgram,
    /// Its run without prefetchers.
    pub without: RepeatedProgram,
}

/// Characterises each program by itself, in the order given.
///
/// # Errors
/// A program that makes no progress.
pub fn characterise(
    chip: &Arc<Chip>,
    entries: &[ProgramInstance],
    alone_s: f64,
    context: &ExperimentContext<'_>,
) -> Result<Vec<AloneCharacteristics>, ExperimentError> {
    let all = characterise_with_runs(chip, entries, alone_s, context)?;
    Ok(all.into_iter().map(|one| one.characteristics).collect())
}

/// The same with the runs with and without prefetchers.
///
/// # Errors
/// A program that makes no progress.
pub fn characterise_with_runs(
    chip: &Arc<Chip>,
    entries: &[ProgramInstance],
    alone_s: f64,
    context: &ExperimentContext<'_>,
) -> Result<Vec<CharacterisedProgram>, ExperimentError> {
    let spec = chip.spec().clone().without_prefetchers();
    let bare = Arc::new(Chip::new(&spec, Some(chip.topology().smt() as u32))?);
    let found = context.map(entries, |entry| {
        let lone = LoneProgram {
            chip,
            entry,
            // The same on both chips, measured on the usual one.
            work: measure_alone(chip, entry, alone_s, context.seed())?,
            seed: context.seed(),
        };
        let with = lone.run(chip, &NamedMapping::from_os("linux")?)?;
        let without = lone.run(&bare, &NamedMapping::from_os("linux")?)?;
        Ok(CharacterisedProgram {
            characteristics: AloneCharacteristics::from(&lone.alone_counts(&with, &without)?),
            with,
            without,
        })
    })?;
    found.into_iter().collect()
}

impl LoneProgram<'_> {
    fn alone_counts(
        &self,
        usual: &RepeatedProgram,
        bare: &RepeatedProgram,
    ) -> Result<AloneCounts, ExperimentError> {
        let line_bytes = f64::from(self.chip.spec().memory.line_bytes);
        let (counters, each) = (&usual.counters, usual.per_run());
        let misses = |of: &RepeatedProgram| of.counters.llc_misses * of.per_run();
        let lines_in = |of: &RepeatedProgram| {
            (of.counters.memory.total() - of.counters.memory.writebacks) * of.per_run()
        };
        Ok(AloneCounts {
            time_s: usual.time_s,
            threads: f64::from(usual.threads),
            instructions: Some(usual.instructions),
            l2_misses: Some(misses(usual)),
            l2_misses_together_apart: self.misses_by_spread()?,
            l2_misses_unprefetched: Some(misses(bare)),
            lines_in: Some((lines_in(usual), lines_in(bare))),
            memory_bytes: Some(counters.memory.total() * each * line_bytes),
            prefetch_fraction: counters.memory.prefetch_fraction(),
            l1i_misses: Some(counters.l1i_misses * each),
            io_s: Some(counters.time.io_s * each),
            sibling_s: Some((counters.time.spin_s + counters.time.asleep_s) * each),
            switches: Some(counters.context_switches as f64 * each),
        })
    }

    /// Misses with all threads on the CPUs of one cache domain, and on as many CPUs of several;
    /// `None` on a machine with one domain.
    fn misses_by_spread(&self) -> Result<Option<(f64, f64)>, ExperimentError> {
        let domains = domains(self.chip.topology());
        let pus = domains[0].len();
        if domains.len() < 2 || pus < 2 {
            return Ok(None);
        }
        // One CPU of each domain in turn, so that as many domains as possible take part.
        let longest = domains.iter().map(Vec::len).max().unwrap_or(0);
        let round = (0..longest).flat_map(|i| domains.iter().filter_map(move |d| d.get(i)));
        let apart: Vec<PuId> = round.copied().take(pus).collect();
        let misses = |pus: &[PuId]| -> Result<f64, ExperimentError> {
            let threads = self.entry.threads as usize;
            let held = NamedMapping::from_mapping(&Mapping::on_pus(pus, threads), "linux")?;
            let run = self.run(self.chip, &held)?;
            Ok(run.counters.llc_misses * run.per_run())
        };
        Ok(Some((misses(&domains[0])?, misses(&apart)?)))
    }

    fn run(
        &self,
        chip: &Arc<Chip>,
        held: &NamedMapping,
    ) -> Result<RepeatedProgram, ExperimentError> {
        let experiment = Experiment::new(
            chip,
            Workload {
                text: self.entry.name.clone(),
                entries: vec![self.entry.clone()],
            },
            self.work.alone_s,
        );
        let mut programs =
            experiment.run_times(held.contender(), &[self.work], self.seed, 1, None)?;
        programs.pop().ok_or_else(|| ExperimentError::NoProgress {
            program: self.entry.name.clone(),
            seconds: self.work.alone_s,
        })
    }
}
