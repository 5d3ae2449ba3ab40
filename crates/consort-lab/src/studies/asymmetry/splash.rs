//! SPLASH-2 on one large and three small cores, on which A6, A9 and A10 stand.

use super::case::{Case, Value};
use super::chips::chip;
use super::compared::Group;
use super::grid::Grid;
use super::programs::{parallel, suite};
use crate::context::Context;
use crate::report::Cell;
use crate::studies::symbiosis::cells::{interval, ratios};
use crate::studies::symbiosis::memo::Memo;
use crate::study::StudyError;
use consort_sim::program::ProgramSpec;
use std::sync::Arc;

/// The suite.
pub(in crate::studies) const SUITE: &str = "splash2";
/// The machine.
pub(in crate::studies) const MACHINE: &str = "acmp-1+3";
/// The policies, in the order of rows.
pub(in crate::studies) const POLICIES: [&str; 4] = ["linux", "hrrs", "fair-progress", "kuths"];
/// Threads of a program.
pub(in crate::studies) const THREADS: [u32; 3] = [4, 8, 16];
/// Runs of each program, number of threads and policy, at the quick and the full scale.
const RUNS: [usize; 2] = [2, 5];
/// Programs at the two scales.
const PROGRAMS: [usize; 2] = [4, usize::MAX];
/// Time of a program's work alone, s.
const ALONE_S: [f64; 2] = [0.1, 1.0];

static MADE: Memo<Grid> = Memo::new();

/// At most so many of the programs, evenly over the alphabet.
pub(in crate::studies) fn programs(
    context: &Context<'_>,
) -> Result<Vec<Arc<ProgramSpec>>, StudyError> {
    suite(SUITE, context.by_scale(PROGRAMS[0], PROGRAMS[1]))
}

/// Every program with 4, 8 and 16 threads under every policy, made once; keys of the cases are
/// `PROGRAM/THREADS`.
pub(in crate::studies) fn grid(context: &Context<'_>) -> Result<Arc<Grid>, StudyError> {
    MADE.get(context, || make(context))
}

fn make(context: &Context<'_>) -> Result<Grid, StudyError> {
    let chip = chip(MACHINE)?;
    let programs = programs(context)?;
    let with_threads = |program| THREADS.map(|threads| (program, threads));
    let jobs: Vec<(&Arc<ProgramSpec>, u32)> = programs.iter().flat_map(with_threads).collect();
    let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
    let cases = context.map(&jobs, |(program, threads)| {
        let key = format!("{}/{threads}", program.name);
        Case::new(
            &key,
            &chip,
            parallel(program, *threads),
            alone_s,
            context.seed(),
        )
    })?;
    let cases: Vec<Case> = cases.into_iter().collect::<Result<_, _>>()?;
    Grid::run(
        context,
        &cases,
        &POLICIES,
        context.by_scale(RUNS[0], RUNS[1]),
    )
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
