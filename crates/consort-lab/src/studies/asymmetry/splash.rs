//! SPLASH-2: groups of cases that A6, A10, A11 and A14 show, and means over several cases.

use super::BASE;
use super::case::Value;
use super::compared::Group;
use super::grid::Grid;
use super::programs::{SPLASH, suite};
use super::runs::{FAIR, FAIR_4MS, HRRS, LINUX, THREADS};
use crate::context::Context;
use crate::report::Cell;
use crate::studies::symbiosis::cells::{interval, ratios};
use crate::study::StudyError;
use consort_sim::program::ProgramSpec;
use std::sync::Arc;

/// Kernel-to-user-mode scheduling in hardware.
pub(in crate::studies) const KUTHS: &str = "kuths:form=hardware";
/// The policies that are set against each other, the baseline first.
pub(in crate::studies) const POLICIES: [&str; 6] = [BASE, LINUX, HRRS, FAIR, FAIR_4MS, KUTHS];
/// Programs at the two scales.
const PROGRAMS: [usize; 2] = [4, usize::MAX];

/// At most so many of the programs, evenly over the alphabet.
pub(in crate::studies) fn programs(
    context: &Context<'_>,
) -> Result<Vec<Arc<ProgramSpec>>, StudyError> {
    suite(SPLASH, context.by_scale(PROGRAMS[0], PROGRAMS[1]))
}

/// Cases of one program; of all where none is named.
pub(in crate::studies) fn cases_of(grid: &Grid, program: Option<&str>) -> Vec<usize> {
    grid.cases(|key| match (program, key.split_once('/')) {
        (Some(name), Some((first, _))) => first == name,
        _ => program.is_none(),
    })
}

/// Cases by number of threads.
pub(in crate::studies) fn by_threads(grid: &Grid) -> Vec<Group> {
    let group = |threads: u32| {
        let key = threads.to_string();
        let is_of = |case: &str| case.split_once('/').is_some_and(|(_, n)| n == key);
        Group::of_cases(&key, grid.cases(is_of))
    };
    THREADS.map(group).into()
}

/// Geometric mean of several cases of a policy's value over another's; the mean over cases is
/// taken in each run, the interval is over runs.
pub(in crate::studies) fn joint(
    grid: &Grid,
    cases: &[usize],
    policy: usize,
    over: usize,
    value: Value,
) -> Cell {
    let of_run = |run: usize| {
        let log = |&case: &usize| {
            let of = |policy| value(&grid.outcomes(case, policy)[run]);
            libm::log(of(policy) / of(over))
        };
        libm::exp(cases.iter().map(log).sum::<f64>() / cases.len() as f64)
    };
    ratios(&(0..grid.runs).map(of_run).collect::<Vec<_>>())
}

/// Mean of several cases of a policy's value, taken in each run; the interval is over runs.
pub(in crate::studies) fn joint_mean(
    grid: &Grid,
    cases: &[usize],
    policy: usize,
    value: Value,
) -> Cell {
    let of_run = |run: usize| {
        let values = cases
            .iter()
            .map(|&case| value(&grid.outcomes(case, policy)[run]));
        values.sum::<f64>() / cases.len() as f64
    };
    interval(&(0..grid.runs).map(of_run).collect::<Vec<_>>())
}
