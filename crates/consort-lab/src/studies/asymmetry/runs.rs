//! The runs on one large and three small cores on which A4, A5, A7, A8 and A9 stand.
//!
//! Keys of cases are `PROGRAM/THREADS`.

use super::BASE;
use super::case::Case;
use super::chips::chip;
use super::grid::Grid;
use super::programs::{SPEC, SPLASH, copies, parallel, suite};
use crate::context::Context;
use crate::studies::symbiosis::memo::Memo;
use crate::study::StudyError;
use consort_sim::program::ProgramSpec;
use std::sync::Arc;

/// The machine.
pub(in crate::studies) const MACHINE: &str = "acmp-1+3";
/// The system that knows no core types, beside [`super::BASE`].
pub(in crate::studies) const LINUX: &str = "linux";
/// Threads, as in the source.
pub(in crate::studies) const THREADS: [u32; 3] = [4, 8, 16];

/// Round robin in hardware.
pub(in crate::studies) const HRRS: &str = "hrrs:form=hardware";
/// The source's rival, in hardware.
pub(in crate::studies) const FAIR: &str = "fair-progress:form=hardware";
/// The same in the operating system.
pub(in crate::studies) const FAIR_4MS: &str = "fair-progress:form=software";

/// What single-threaded programs run under.
const SPEC_POLICIES: [&str; 6] = [BASE, LINUX, HRRS, "hrrs:form=software", FAIR, FAIR_4MS];
/// What multithreaded programs run under.
const SPLASH_POLICIES: [&str; 8] = [
    BASE,
    LINUX,
    HRRS,
    "hrrs:form=software",
    FAIR,
    FAIR_4MS,
    "kuths:form=hardware",
    "kuths:form=software",
];

/// Programs of a suite, at the quick and the full scale.
const PROGRAMS: [usize; 2] = [4, usize::MAX];
/// Runs of each workload and policy.
const RUNS: [usize; 2] = [2, 3];
/// Time of a program's work alone, s: 50 rounds of four 1 ms quanta at the full scale.
const ALONE_S: [f64; 2] = [0.05, 0.2];

static SPEC_RUNS: Memo<Grid> = Memo::new();
static SPLASH_RUNS: Memo<Grid> = Memo::new();

/// Several instances of each single-threaded program, made once per process.
pub(in crate::studies) fn spec(context: &Context<'_>) -> Result<Arc<Grid>, StudyError> {
    SPEC_RUNS.get(context, || {
        let cases = cases(context, SPEC, |program, n| copies(program, n as usize))?;
        Grid::run(context, &cases, &SPEC_POLICIES, runs(context))
    })
}

/// Each multithreaded program, made once per process.
pub(in crate::studies) fn splash(context: &Context<'_>) -> Result<Arc<Grid>, StudyError> {
    SPLASH_RUNS.get(context, || {
        let cases = cases(context, SPLASH, parallel)?;
        Grid::run(context, &cases, &SPLASH_POLICIES, runs(context))
    })
}

/// Several instances of each single-threaded program, as many as cores: workload by workload.
pub(in crate::studies) fn one_per_core(context: &Context<'_>) -> Result<Vec<Case>, StudyError> {
    let all = programs(context, SPEC)?;
    prepared(context, &all, &THREADS[..1], |p, n| copies(p, n as usize))
}

/// Runs of each workload and policy.
pub(in crate::studies) fn runs(context: &Context<'_>) -> usize {
    context.by_scale(RUNS[0], RUNS[1])
}

/// The programs of a suite that are run at this scale.
pub(in crate::studies) fn programs(
    context: &Context<'_>,
    name: &str,
) -> Result<Vec<Arc<ProgramSpec>>, StudyError> {
    suite(name, context.by_scale(PROGRAMS[0], PROGRAMS[1]))
}

type Make = fn(&Arc<ProgramSpec>, u32) -> consort_sim::workload::Workload;

fn cases(context: &Context<'_>, name: &str, make: Make) -> Result<Vec<Case>, StudyError> {
    prepared(context, &programs(context, name)?, &THREADS, make)
}

fn prepared(
    context: &Context<'_>,
    programs: &[Arc<ProgramSpec>],
    threads: &[u32],
    make: Make,
) -> Result<Vec<Case>, StudyError> {
    let chip = chip(MACHINE)?;
    let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
    let with_threads = |program| threads.iter().map(move |&n| (program, n));
    let jobs: Vec<(&Arc<ProgramSpec>, u32)> = programs.iter().flat_map(with_threads).collect();
    let cases = context.map(&jobs, |(program, n)| {
        let key = format!("{}/{n}", program.name);
        let case = Case::new(&key, &chip, make(program, *n), alone_s, context.seed());
        case.map(Case::like_source)
    })?;
    cases.into_iter().collect()
}
