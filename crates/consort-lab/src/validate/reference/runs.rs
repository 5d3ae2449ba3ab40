//! Runs of programs together in both engines.

use super::INSTRUCTIONS;
use super::parts::ChipPart;
use super::summary::EngineCase;
use crate::validate::simulated::solve;
use crate::validate::{GroupInputs, ValidateError};
use consort_experiment::traced::TracedProgram;
use consort_reference::{Reference, RunLength, ThreadOutcome, TracePlacement};
use consort_sim::contention::{Solver, ThreadRates};
use consort_sim::program::PhaseSpec;
use std::collections::BTreeMap;

/// Instructions before measurement begins: caches of a few MiB are warm after them.
pub(super) const WARM_UP: u64 = 2 * INSTRUCTIONS;

/// Programs alone, by part, place and program.
pub(super) type AloneThreads = BTreeMap<(usize, usize, usize), EngineThreads>;

/// One thread by both engines.
#[derive(Clone, Debug)]
pub(super) struct EngineThreads {
    pub(super) fast: ThreadRates,
    pub(super) reference: ThreadOutcome,
}

/// Both engines with their programs and parts of machines.
pub(super) struct EngineTestbed<'a> {
    pub(super) parts: &'a [ChipPart],
    pub(super) programs: &'a [TracedProgram],
    /// Phase that a profile makes of each program.
    pub(super) phases: &'a [PhaseSpec],
    pub(super) inputs: &'a GroupInputs<'a>,
}

impl EngineTestbed<'_> {
    /// Every program alone on every part, once for each place that differs from the others.
    pub(super) fn run_alone(&self, parts: &[usize]) -> Result<AloneThreads, ValidateError> {
        let mut jobs = Vec::new();
        for &part in parts {
            for place in self.parts[part].distinct_places() {
                jobs.extend((0..self.programs.len()).map(|program| (part, place, program)));
            }
        }
        let both = self.inputs.map(&jobs, |&(part, place, program)| {
            Ok(self.run_engines(part, &[(place, program)])?.swap_remove(0))
        })?;
        Ok(jobs.into_iter().zip(both).collect())
    }

    /// Programs together, each set on its part.
    pub(super) fn run_together(
        &self,
        sets: &[(usize, Vec<usize>)],
        alone: &AloneThreads,
    ) -> Result<Vec<(EngineCase, Vec<EngineThreads>)>, ValidateError> {
        self.inputs.map(sets, |(part, programs)| {
            let placed: Vec<(usize, usize)> = programs.iter().copied().enumerate().collect();
            let threads = self.run_engines(*part, &placed)?;
            let mut case = EngineCase {
                part: *part,
                programs: programs.clone(),
                fast: Vec::new(),
                reference: Vec::new(),
            };
            for (thread, &(place, program)) in threads.iter().zip(&placed) {
                let alone = find_alone(alone, &self.parts[*part], (*part, place, program));
                let cycles = |both: &EngineThreads| both.reference.cycles as f64;
                let (fast, reference) = alone.map_or((f64::NAN, f64::NAN), |alone| {
                    let fast = alone.fast.ips / thread.fast.ips;
                    (fast, cycles(thread) / cycles(alone))
                });
                case.fast.push(fast);
                case.reference.push(reference);
            }
            Ok((case, threads))
        })
    }

    /// Programs at places of a part, by both engines.
    fn run_engines(
        &self,
        part: usize,
        placed: &[(usize, usize)],
    ) -> Result<Vec<EngineThreads>, ValidateError> {
        let part = &self.parts[part];
        let fast = placed
            .iter()
            .map(|&(place, program)| (part.pus[place].0 as usize, &self.phases[program]));
        let solver = Solver::new(part.chip.clone());
        let fast = solve(&solver, &fast.collect::<Vec<_>>());
        let placements: Vec<TracePlacement<'_>> = { placed.iter().zip(0..) }
            .map(|(&(place, program), space)| TracePlacement {
                pu: part.pus[place],
                space,
                program: &self.programs[program],
            })
            .collect();
        let reference = Reference::new(&part.chip, &placements, self.inputs.context.seed())?;
        let outcome = reference.run(RunLength {
            warm_up: WARM_UP,
            measured: INSTRUCTIONS,
        })?;
        let both = fast.into_iter().zip(outcome.threads);
        Ok(both
            .map(|(fast, reference)| EngineThreads { fast, reference })
            .collect())
    }
}

/// A program alone at a place, or at the place of the same core type that was run.
pub(super) fn find_alone<'a>(
    alone: &'a AloneThreads,
    part: &ChipPart,
    (number, place, program): (usize, usize, usize),
) -> Option<&'a EngineThreads> {
    let places = part.distinct_places().into_iter();
    let mut alike = places.filter(|&other| part.core_type(other) == part.core_type(place));
    alone.get(&(number, alike.next()?, program))
}
