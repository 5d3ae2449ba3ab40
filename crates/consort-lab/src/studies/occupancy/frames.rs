//! The runs of the cases as frames. Labels of cases: `title`, for people, `load`, which is the key
//! without the length, and `length`. Their programs are the classes, `int` and `fp` of a pair, or
//! `all`.

use super::case::{PreparedOccupancyCase, RunMethod};
use super::runs::{OccupancyOutcome, outcome};
use super::{LENGTHS, PairLength, prepared};
use crate::frame::{Case, Frame};
use crate::simulate::{ExperimentSpec, run_every_case};
use crate::study::StudyError;
use consort_experiment::ExperimentContext;
use consort_experiment::ProgramCounters;
use consort_experiment::watch::FpuWatch;
use consort_sim::contention::CpiStack;
use std::ops::Range;

/// Runs each program once, all started together.
pub(in crate::studies) fn once(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    frame(context, spec, &[RunMethod::Once(0)])
}

/// Runs each program once at the other lengths.
pub(in crate::studies) fn lengths(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let all: Vec<RunMethod> = (1..LENGTHS.len()).map(RunMethod::Once).collect();
    frame(context, spec, &all)
}

/// Equal work, again and again until the last has done its own.
pub(in crate::studies) fn equal(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    frame(context, spec, &[RunMethod::Equal])
}

fn frame(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
    methods: &[RunMethod],
) -> Result<Frame, StudyError> {
    let cases = prepared(context, spec)?;
    let runs = spec.runs(context);
    let of_method = |&method| cases.iter().map(move |case| (method, case));
    let all: Vec<(RunMethod, &PreparedOccupancyCase)> =
        methods.iter().flat_map(of_method).collect();
    let run = |(method, case): &(RunMethod, &PreparedOccupancyCase), policy: &String, seed| {
        let watch = FpuWatch::new(&case.chip);
        outcome(case, *method, (policy, seed), &watch)
    };
    let outcomes = run_every_case(context, (&all, &spec.policies, runs), run)?;
    let of = all.iter().map(|&(method, of)| case(of, method)).collect();
    let mut frame = Frame::new(of, spec.policies.clone(), runs);
    let each = spec.policies.len() * runs;
    let runs = all.iter().flat_map(|case| std::iter::repeat_n(case, each));
    let shares = runs
        .clone()
        .map(|(method, _)| 100.0 * length(*method).share(context));
    frame.set_run_values("length_percent", shares.collect());
    fill(&mut frame, &outcomes);
    let of: Vec<&PreparedOccupancyCase> = runs.map(|(_, case)| *case).collect();
    fill_classes(&mut frame, &outcomes, &of);
    Ok(frame)
}

fn length(method: RunMethod) -> PairLength {
    match method {
        RunMethod::Once(length) => LENGTHS[length],
        RunMethod::Equal => LENGTHS[0],
    }
}

fn case(of: &PreparedOccupancyCase, method: RunMethod) -> Case {
    let length = length(method).name;
    let labels = [
        ("title", of.key.replace('/', " ")),
        ("load", of.key.clone()),
        ("length", length.to_owned()),
    ];
    let classes = of.classes().into_iter().map(|(name, _)| name.to_owned());
    Case {
        key: match method {
            RunMethod::Once(0) | RunMethod::Equal => of.key.clone(),
            RunMethod::Once(_) => format!("{}/{length}", of.key),
        },
        labels: labels
            .map(|(label, value)| (label.to_owned(), value))
            .into(),
        programs: classes.collect(),
    }
}

/// A value of a run.
type OccupancyValue = fn(&OccupancyOutcome) -> f64;

/// Values of a run by the key of the measure.
const VALUES: &[(&str, OccupancyValue)] = &[
    ("makespan_s", |o| o.result.makespan_s),
    ("stp", |o| o.result.stp),
    ("antt", |o| o.result.antt),
    ("unfairness", |o| o.result.unfairness),
    ("migrations", |o| o.result.migrations as f64),
    ("fpu_mean_percent", |o| 100.0 * o.fpu.mean),
    ("fpu_busiest_percent", |o| 100.0 * o.fpu.busiest),
    ("fpu_idlest_percent", |o| 100.0 * o.fpu.idlest),
];

fn fill(frame: &mut Frame, outcomes: &[OccupancyOutcome]) {
    for (measure, value) in VALUES {
        frame.set_run_values(measure, outcomes.iter().map(value).collect());
    }
}

/// The programs of a class in a run.
type ProgramClass<'a> = (&'a OccupancyOutcome, Range<usize>);

/// A value of a class in a run.
type ClassValue = fn(&ProgramClass<'_>) -> f64;

/// Values of a class by the key of the measure.
const OF_CLASSES: &[(&str, ClassValue)] = &[
    ("slowdown", |class| {
        let programs = &class.0.result.programs[class.1.clone()];
        programs.iter().map(|p| p.slowdown).sum::<f64>() / programs.len() as f64
    }),
    ("end_s", |class| {
        let programs = class.0.result.programs[class.1.clone()].iter();
        programs.map(|p| p.together_s).fold(0.0, f64::max)
    }),
    ("l2_mpki", |class| sum(class).l2_mpki()),
    ("fpu_busy_percent", |class| 100.0 * sum(class).fpu_busy()),
    ("cpi", |class| {
        let sum = sum(class);
        sum.cycles / sum.instructions
    }),
];

fn sum((outcome, programs): &ProgramClass<'_>) -> ProgramCounters {
    let mut sum = ProgramCounters::default();
    for program in &outcome.result.programs[programs.clone()] {
        sum.add(&program.counters);
    }
    sum
}

/// Measures of the classes, and of all programs of a case, without those of the runtime.
fn fill_classes(frame: &mut Frame, outcomes: &[OccupancyOutcome], of: &[&PreparedOccupancyCase]) {
    let both = || outcomes.iter().zip(of);
    let all = |value: &dyn Fn(&ProgramClass<'_>) -> f64| {
        both()
            .map(|(outcome, case)| value(&(outcome, case.programs())))
            .collect()
    };
    frame.set_run_values("all_l2_mpki", all(&|class| sum(class).l2_mpki()));
    frame.set_run_values("l2_misses_g", all(&|class| sum(class).l2_misses / 1e9));
    let classes = |value: &dyn Fn(&ProgramClass<'_>) -> f64| {
        let of_run = |(outcome, case): (&OccupancyOutcome, &&PreparedOccupancyCase)| {
            let classes = case.classes().into_iter();
            classes
                .map(|(_, programs)| value(&(outcome, programs)))
                .collect()
        };
        both().map(of_run).collect()
    };
    for (measure, value) in OF_CLASSES {
        frame.set_program_values(measure, classes(value));
    }
    for (cause, name) in CpiStack::NAMES.iter().enumerate() {
        let cpi = classes(&|class| sum(class).stack()[cause]);
        frame.set_program_values(&format!("cpi_{name}"), cpi);
    }
}
