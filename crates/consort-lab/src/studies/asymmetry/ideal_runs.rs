//! The closed form of round robin beside simulated schedulers. It stands among the policies as
//! `ideal`.

use super::alone::named;
use super::ideal::IdealRoundRobin;
use super::single::SingleRun;
use crate::frame::{Case as FrameCase, Frame};
use crate::simulate::case::PreparedCase;
use crate::simulate::chips::{chip, full_chip, machine_spec, single_core_chip};
use crate::simulate::programs::{find, staggered_copies};
use crate::simulate::{
    AlonePlace, ExperimentSpec, Presets, RestartKind, map_jobs, prepare_cases, run_cases,
};
use crate::study::StudyError;
use consort_core::stats::mean;
use consort_experiment::ExperimentContext;
use consort_experiment::watch::CoreKind;
use consort_sim::chip::Chip;
use std::sync::Arc;

/// Machines by their names in rows, with their cores.
const MACHINES: [(&str, u32); 4] = [("1+1", 2), ("1+3", 4), ("1+7", 8), ("1+15", 16)];
/// The program of equal threads.
const PROGRAM: &str = "pure-int";
/// Large over small, at the quick and the full scale.
const RATIOS: [&[f64]; 2] = [&[1.0, 2.0, 4.0], &[1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]];
/// Work with which speeds are measured, instructions.
const SPEED_INSTR: f64 = 2e9;
/// The closed form among the policies.
const IDEAL: &str = "ideal";

/// A case, and what the closed form says of it: the time of the whole, s, or the mean slowdown.
struct ClosedFormCase {
    case: PreparedCase,
    ideal: f64,
}

/// Equal threads on each of the machines at each of the ratios, with moves that cost nothing; the
/// measure is `makespan_s`.
pub(in crate::studies) fn at_ratios(
    context: &ExperimentContext<'_>,
    of: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let ratios = context.by_scale(RATIOS[0], RATIOS[1]);
    let on = |&(name, cores): &(&'static str, u32)| {
        ratios.iter().map(move |&ratio| (name, cores, ratio))
    };
    let jobs: Vec<(&str, u32, f64)> = MACHINES.iter().flat_map(on).collect();
    let settings = map_jobs(context, &jobs, |&job| setting(context, of, job))?;
    let cases: Vec<PreparedCase> = settings
        .iter()
        .map(|setting| setting.case.clone())
        .collect();
    let ran = run_cases(context, &cases, &of.policies, of.runs(context))?;
    let ideal: Vec<f64> = settings.iter().map(|setting| setting.ideal).collect();
    Ok(beside(&[("", &ran)], &ideal, "makespan_s"))
}

fn setting(
    context: &ExperimentContext<'_>,
    of: &ExperimentSpec,
    (machine, cores, ratio): (&'static str, u32, f64),
) -> Result<ClosedFormCase, StudyError> {
    let chip = with_ratio(&format!("acmp-{machine}"), ratio, context.seed())?;
    let workload = staggered_copies(&find(PROGRAM)?, cores as usize);
    let labels = [
        ("machine", machine.to_owned()),
        ("ratio", ratio.to_string()),
    ];
    let of_frame = FrameCase {
        key: format!("{machine}/{ratio}"),
        labels: labels
            .map(|(label, value)| (label.to_owned(), value))
            .into(),
        programs: Vec::new(),
    };
    let alone = (AlonePlace::LargeCore, of.alone_s(context));
    let case = PreparedCase::new(of_frame, &chip, workload, alone, context.seed())?;
    let system = of.system.as_deref().unwrap_or("linux");
    let case = case
        .on_system(system, RestartKind::Threads)
        .with_free_migration();
    let model = IdealRoundRobin {
        large_ips: ips(&chip, CoreKind::Large, context.seed())?,
        small_ips: ips(&chip, CoreKind::Small, context.seed())?,
        cores,
    };
    let ideal = model.time_s(case.work[0].instructions, cores);
    Ok(ClosedFormCase { case, ideal })
}

/// The machine with its small cores' clock such that large cores are so many times as fast.
fn with_ratio(machine: &str, ratio: f64, seed: u64) -> Result<Arc<Chip>, StudyError> {
    let mut spec = machine_spec(machine)?;
    let given = full_chip(&spec)?;
    let speed = |kind| ips(&given, kind, seed);
    let factor = speed(CoreKind::Large)? / speed(CoreKind::Small)? / ratio;
    let small =
        (0..given.places().len()).find(|&pu| CoreKind::from_pu(&given, pu) == CoreKind::Small);
    let kind = small.map(|pu| given.places()[pu].core_type);
    if let Some(small) = kind.and_then(|kind| spec.core_types.values_mut().nth(kind)) {
        small.frequency_ghz *= factor;
    }
    full_chip(&spec)
}

/// Instructions per second of the program alone on a core of a kind.
fn ips(chip: &Chip, kind: CoreKind, seed: u64) -> Result<f64, StudyError> {
    let alone = SingleRun::run(
        &single_core_chip(chip, kind)?,
        &find(PROGRAM)?,
        SPEED_INSTR,
        seed,
    )?;
    Ok(SPEED_INSTR / alone.time_s)
}

/// The experiment's cases under its policy, and the same with moves that cost nothing, which is
/// the policy `free moves`; the measure is `antt`.
pub(in crate::studies) fn beside_hrrs(
    context: &ExperimentContext<'_>,
    of: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let cases = prepare_cases(context, of, &Presets)?;
    let small = single_core_chip(&*chip(&of.machine)?, CoreKind::Small)?;
    let ideal = map_jobs(context, &cases, |case| {
        slowdown(case, &small, context.seed())
    })?;
    let runs = of.runs(context);
    let simulated = run_cases(context, &cases, &of.policies, runs)?;
    let free: Vec<PreparedCase> = cases
        .into_iter()
        .map(PreparedCase::with_free_migration)
        .collect();
    let free = run_cases(context, &free, &of.policies, runs)?;
    let both = [("hrrs", &simulated), ("free moves", &free)];
    Ok(beside(&both, &ideal, "antt"))
}

/// Mean slowdown of the instances by the closed form.
fn slowdown(case: &PreparedCase, small: &Arc<Chip>, seed: u64) -> Result<f64, StudyError> {
    let cores = case.experiment.chip.places().len() as u32;
    let threads = case.work.len() as u32;
    let one = |n: usize| {
        let (entry, work) = (&case.experiment.workload.entries[n], &case.work[n]);
        let alone = SingleRun::run(small, &entry.program, work.instructions, seed)?;
        let model = IdealRoundRobin {
            large_ips: work.instructions / work.alone_s,
            small_ips: work.instructions / alone.time_s,
            cores,
        };
        Ok(model.time_s(work.instructions, threads) / work.alone_s)
    };
    let all = (0..case.work.len()).map(one);
    let all: Vec<f64> = all.collect::<Result<_, StudyError>>()?;
    Ok(mean(&all).unwrap_or(f64::NAN))
}

/// Frames of the same cases side by side, and what the closed form says of each case. The
/// policies of a frame that has a name are that name.
fn beside(frames: &[(&str, &Frame)], ideal: &[f64], measure: &str) -> Frame {
    let first = frames[0].1;
    let mut policies = Vec::new();
    for (name, frame) in frames {
        match name.is_empty() {
            true => policies.extend(frame.policies.clone()),
            false => policies.extend(named(&[*name])),
        }
    }
    policies.extend(named(&[IDEAL]));
    let mut values = Vec::new();
    for (case, ideal) in ideal.iter().enumerate() {
        for (_, frame) in frames {
            let each = 0..frame.policies.len();
            values.extend(each.flat_map(|policy| frame.run_values(case, policy, measure)));
        }
        values.extend(vec![*ideal; first.runs]);
    }
    let mut all = Frame::new(first.cases.clone(), policies, first.runs);
    all.set_run_values(measure, values);
    all
}
