//! Runs of programs together in both engines.

use super::INSTRUCTIONS;
use super::case::EngineCase;
use super::chip_part::ChipPart;
use crate::alone::solve;
use crate::error::ValidateError;
use consort_experiment::ExperimentContext;
use consort_experiment::traced::TracedProgram;
use consort_reference::{Reference, RunLength, ThreadOutcome, TracePlacement};
use consort_sim::contention::{Solver, ThreadRates};
use consort_sim::program::PhaseSpec;
use std::collections::BTreeMap;

/// Instructions before measurement begins: caches of a few MiB are warm after them.
pub(super) const WARM_UP: u64 = 2 * INSTRUCTIONS;

/// Programs alone: by ground, place and program.
#[derive(Default)]
pub(super) struct AloneThreads(BTreeMap<(usize, usize, usize), EngineThreads>);

/// One thread by both engines.
#[derive(Clone, Debug)]
pub(super) struct EngineThreads {
    pub(super) fast: ThreadRates,
    pub(super) reference: ThreadOutcome,
}

/// Both engines with their programs and grounds.
pub(super) struct EngineTestbed<'a> {
    pub(super) grounds: &'a [ChipPart],
    pub(super) programs: &'a [TracedProgram],
    /// Phase that a profile makes of each.
    pub(super) phases: &'a [PhaseSpec],
    pub(super) context: &'a ExperimentContext<'a>,
}

impl EngineTestbed<'_> {
    /// Every program alone on every ground, once for each place that is unlike the others.
    pub(super) fn run_alone(&self, grounds: &[usize]) -> Result<AloneThreads, ValidateError> {
        let mut jobs = Vec::new();
        for &ground in grounds {
            for place in self.grounds[ground].distinct_places() {
                jobs.extend((0..self.programs.len()).map(|program| (ground, place, program)));
            }
        }
        let both = self.context.map(&jobs, |&(ground, place, program)| {
            let mut threads = self.run_engines(ground, &[(place, program)])?;
            Ok::<_, ValidateError>(threads.swap_remove(0))
        })?;
        let both: Vec<EngineThreads> = both.into_iter().collect::<Result<_, _>>()?;
        Ok(AloneThreads(jobs.into_iter().zip(both).collect()))
    }

    /// Programs together, each set on its ground.
    pub(super) fn run_together(
        &self,
        sets: &[(usize, Vec<usize>)],
        alone: &AloneThreads,
    ) -> Result<Vec<(EngineCase, Vec<EngineThreads>)>, ValidateError> {
        let cases = self.context.map(sets, |(ground, programs)| {
            let placed: Vec<(usize, usize)> = programs.iter().copied().enumerate().collect();
            let threads = self.run_engines(*ground, &placed)?;
            Ok(self.build_case(*ground, programs, alone, threads))
        })?;
        cases.into_iter().collect()
    }

    fn build_case(
        &self,
        ground: usize,
        programs: &[usize],
        alone: &AloneThreads,
        threads: Vec<EngineThreads>,
    ) -> (EngineCase, Vec<EngineThreads>) {
        let mut case = EngineCase {
            ground,
            programs: programs.to_vec(),
            fast: Vec::new(),
            reference: Vec::new(),
        };
        for (place, (program, thread)) in programs.iter().zip(&threads).enumerate() {
            let alone = alone.find_thread(&self.grounds[ground], (ground, place, *program));
            case.fast
                .push(alone.map_or(f64::NAN, |alone| alone.fast.ips / thread.fast.ips));
            let cycles = |both: &EngineThreads| both.reference.cycles as f64;
            let slowdown = alone.map_or(f64::NAN, |alone| cycles(thread) / cycles(alone));
            case.reference.push(slowdown);
        }
        (case, threads)
    }

    /// Programs at places of a ground, by both engines.
    fn run_engines(
        &self,
        ground: usize,
        placed: &[(usize, usize)],
    ) -> Result<Vec<EngineThreads>, ValidateError> {
        let site = &self.grounds[ground];
        let fast = placed.iter().map(|&(place, program)| {
            let pu = site.pus[place].0 as usize;
            (pu, &self.phases[program])
        });
        let solver = Solver::new(site.chip.clone());
        let fast = solve(&solver, &fast.collect::<Vec<_>>());
        let placements = placed
            .iter()
            .zip(0..)
            .map(|(&(place, program), space)| TracePlacement {
                pu: site.pus[place],
                space,
                program: &self.programs[program],
            });
        let placements: Vec<TracePlacement<'_>> = placements.collect();
        let reference = Reference::new(&site.chip, &placements, self.context.seed())?;
        let length = RunLength {
            warm_up: WARM_UP,
            measured: INSTRUCTIONS,
        };
        let outcome = reference.run(length)?;
        let both = fast.into_iter().zip(outcome.threads);
        Ok(both
            .map(|(fast, reference)| EngineThreads { fast, reference })
            .collect())
    }
}

impl AloneThreads {
    /// All of them, by ground, place and program.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&(usize, usize, usize), &EngineThreads)> {
        self.0.iter()
    }

    /// A program alone at a place, or at the one that is like it.
    pub(super) fn find_thread(
        &self,
        site: &ChipPart,
        (ground, place, program): (usize, usize, usize),
    ) -> Option<&EngineThreads> {
        let kind = |place: usize| site.chip.places()[site.pus[place].0 as usize].core_type;
        let like = site
            .distinct_places()
            .into_iter()
            .find(|&other| kind(other) == kind(place))?;
        self.0.get(&(ground, like, program))
    }
}
