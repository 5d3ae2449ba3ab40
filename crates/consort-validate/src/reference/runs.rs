//! Runs of programs together in both engines.

use super::INSTRUCTIONS;
use super::case::Case;
use super::ground::Ground;
use crate::alone::solve;
use crate::error::ValidateError;
use consort_experiment::Context;
use consort_experiment::traced::Traced;
use consort_reference::{Length, Placement, Reference, ThreadOutcome};
use consort_sim::contention::{Solver, ThreadRates};
use consort_sim::program::PhaseSpec;
use std::collections::BTreeMap;

/// Instructions before measurement begins: caches of a few MiB are warm after them.
pub(super) const WARM_UP: u64 = 2 * INSTRUCTIONS;

/// Programs alone: by ground, place and program.
#[derive(Default)]
pub(super) struct Alone(BTreeMap<(usize, usize, usize), Both>);

/// One thread by both engines.
#[derive(Clone, Debug)]
pub(super) struct Both {
    pub(super) fast: ThreadRates,
    pub(super) reference: ThreadOutcome,
}

/// Both engines with their programs and grounds.
pub(super) struct Bench<'a> {
    pub(super) grounds: &'a [Ground],
    pub(super) programs: &'a [Traced],
    /// Phase that a profile makes of each.
    pub(super) phases: &'a [PhaseSpec],
    pub(super) context: &'a Context<'a>,
}

impl Bench<'_> {
    /// Every program alone on every ground, once for each place that is unlike the others.
    pub(super) fn alone(&self, grounds: &[usize]) -> Result<Alone, ValidateError> {
        let mut jobs = Vec::new();
        for &ground in grounds {
            for place in self.grounds[ground].unlike() {
                jobs.extend((0..self.programs.len()).map(|program| (ground, place, program)));
            }
        }
        let both = self.context.map(&jobs, |&(ground, place, program)| {
            let mut threads = self.run(ground, &[(place, program)])?;
            Ok::<_, ValidateError>(threads.swap_remove(0))
        })?;
        let both: Vec<Both> = both.into_iter().collect::<Result<_, _>>()?;
        Ok(Alone(jobs.into_iter().zip(both).collect()))
    }

    /// Programs together, each set on its ground.
    pub(super) fn together(
        &self,
        sets: &[(usize, Vec<usize>)],
        alone: &Alone,
    ) -> Result<Vec<(Case, Vec<Both>)>, ValidateError> {
        let cases = self.context.map(sets, |(ground, programs)| {
            let placed: Vec<(usize, usize)> = programs.iter().copied().enumerate().collect();
            let threads = self.run(*ground, &placed)?;
            Ok(self.case(*ground, programs, alone, threads))
        })?;
        cases.into_iter().collect()
    }

    fn case(
        &self,
        ground: usize,
        programs: &[usize],
        alone: &Alone,
        threads: Vec<Both>,
    ) -> (Case, Vec<Both>) {
        let mut case = Case {
            ground,
            programs: programs.to_vec(),
            fast: Vec::new(),
            reference: Vec::new(),
        };
        for (place, (program, thread)) in programs.iter().zip(&threads).enumerate() {
            let alone = alone.at(&self.grounds[ground], (ground, place, *program));
            case.fast
                .push(alone.map_or(f64::NAN, |alone| alone.fast.ips / thread.fast.ips));
            let cycles = |both: &Both| both.reference.cycles as f64;
            let slowdown = alone.map_or(f64::NAN, |alone| cycles(thread) / cycles(alone));
            case.reference.push(slowdown);
        }
        (case, threads)
    }

    /// Programs at places of a ground, by both engines.
    fn run(&self, ground: usize, placed: &[(usize, usize)]) -> Result<Vec<Both>, ValidateError> {
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
            .map(|(&(place, program), space)| Placement {
                pu: site.pus[place],
                space,
                program: &self.programs[program],
            });
        let placements: Vec<Placement<'_>> = placements.collect();
        let reference = Reference::new(&site.chip, &placements, self.context.seed())?;
        let length = Length {
            warm_up: WARM_UP,
            measured: INSTRUCTIONS,
        };
        let outcome = reference.run(length)?;
        let both = fast.into_iter().zip(outcome.threads);
        Ok(both
            .map(|(fast, reference)| Both { fast, reference })
            .collect())
    }
}

impl Alone {
    /// All of them, by ground, place and program.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&(usize, usize, usize), &Both)> {
        self.0.iter()
    }

    /// A program alone at a place, or at the one that is like it.
    pub(super) fn at(
        &self,
        site: &Ground,
        (ground, place, program): (usize, usize, usize),
    ) -> Option<&Both> {
        let kind = |place: usize| site.chip.places()[site.pus[place].0 as usize].core_type;
        let like = site
            .unlike()
            .into_iter()
            .find(|&other| kind(other) == kind(place))?;
        self.0.get(&(ground, like, program))
    }
}
