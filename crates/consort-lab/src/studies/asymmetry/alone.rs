//! Programs alone on either kind of core.
//!
//! The closed form of round robin over threads that stay where they were dealt follows from them.
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), ideal model for HRRS ([`super::ideal`]).
//!
//! N equal threads with the work W on one large and N - 1 small cores are done after N·W/(L + (N-1)·S)
//! under round robin, and after W/S where each stays on its core: round robin is (r + N - 1)/N
//! times as fast, where r = L/S. k threads on each core take k times as long either way.

use super::single::{SingleRun, pass_instr};
use crate::frame::{Case, Frame};
use crate::simulate::chips::{chip, single_core_chip};
use crate::simulate::programs::{find, instance, suite};
use crate::simulate::{
    ExperimentSpec, Presets, map_jobs, part_error, prepare_cases, run_every_case,
};
use crate::study::{Frames, StudyError};
use consort_core::stats::geometric_mean;
use consort_experiment::ExperimentContext;
use consort_experiment::watch::CoreKind;
use consort_experiment::{AloneWork, measure_alone};
use consort_sim::chip::Chip;
use consort_sim::contention::CpiStack;
use consort_sim::program::ProgramSpec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Largest number of instructions of a program, for cycles by cause.
const MOST_INSTR: [f64; 2] = [50e9, f64::INFINITY];
/// Work with which speeds are measured for the closed form, instructions.
const SPEED_INSTR: [f64; 2] = [1e8, 2e9];
/// The kinds of cores as policies.
const LARGE: &str = "large";
const SMALL: &str = "small";
/// Causes that are no part of a thread's cycles alone: no core is shared, nobody waits for locks.
const NOT_ALONE: [&str; 3] = ["window", "dispatch", "lock"];

/// Speed of round robin over the baseline, for large cores so many times as fast as small ones.
fn speed(ratio: f64, cores: usize) -> f64 {
    let n = cores as f64;
    (ratio + n - 1.0) / n
}

/// One large and one small core of the experiment's machine.
fn cores(spec: &ExperimentSpec) -> Result<[Arc<Chip>; 2], StudyError> {
    let whole = chip(&spec.machine)?;
    Ok([
        single_core_chip(&whole, CoreKind::Large)?,
        single_core_chip(&whole, CoreKind::Small)?,
    ])
}

/// The programs of the experiment's suites.
pub(super) fn programs(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Vec<Arc<ProgramSpec>>, StudyError> {
    let mut all = Vec::new();
    for case in &spec.cases {
        let name = case.suite.as_deref().unwrap_or_default();
        all.extend(suite(name, case.most.at_scale(context))?);
    }
    Ok(all)
}

/// Policies by their names.
pub(super) fn named(policies: &[&str]) -> Vec<String> {
    policies.iter().map(ToString::to_string).collect()
}

/// Measures the speed of one thread of each program on the large core over that on the small one,
/// beside the closed form of it. The policy is `closed`.
pub(in crate::studies) fn closed_form(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let both = cores(spec)?;
    let instructions = context.by_scale(SPEED_INSTR[0], SPEED_INSTR[1]);
    let programs = programs(context, spec)?;
    let ratio = |program: &Arc<ProgramSpec>| {
        let time = |core| SingleRun::run(core, program, instructions, context.seed());
        let (large, small) = (time(&both[0])?, time(&both[1])?);
        Ok(small.time_s / large.time_s)
    };
    let ratios = map_jobs(context, &programs, ratio)?;
    let count = chip(&spec.machine)?.places().len();
    let cases = programs
        .iter()
        .map(|p| Case::with_label(&p.name, "program", &p.name));
    let mut frame = Frame::new(cases.collect(), named(&["closed"]), 1);
    let speeds = ratios.iter().map(|ratio| speed(*ratio, count)).collect();
    frame.set_run_values("round_robin_speed", speeds);
    frame.set_run_values("large_over_small", ratios);
    Ok(frame)
}

/// A program's runs on either core.
struct CoreTypeRuns {
    name: String,
    large: Vec<SingleRun>,
    small: Vec<SingleRun>,
}

impl CoreTypeRuns {
    /// Geometric mean of instructions per cycle on the large core over those on the small one.
    fn ratio(&self) -> f64 {
        let pairs = self.large.iter().zip(&self.small);
        let ratios: Vec<f64> = pairs
            .map(|(large, small)| large.ipc() / small.ipc())
            .collect();
        geometric_mean(&ratios).unwrap_or(0.0)
    }
}

/// Runs whole passes through each program on either core, the program with the highest ratio of
/// instructions per cycle first. The policies are `large` and `small`.
pub(in crate::studies) fn cores_alone(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let mut rows = rows(context, spec)?;
    rows.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
    let cases = rows
        .iter()
        .map(|row| Case::with_label(&row.name, "program", &row.name));
    let runs = spec.runs(context);
    let mut frame = Frame::new(cases.collect(), named(&[LARGE, SMALL]), runs);
    let all = rows
        .iter()
        .flat_map(|row| row.large.iter().chain(&row.small));
    let all: Vec<&SingleRun> = all.collect();
    let of = |value: &dyn Fn(&SingleRun) -> f64| all.iter().map(|run| value(run)).collect();
    frame.set_run_values("ipc", of(&SingleRun::ipc));
    frame.set_run_values("cpi", of(&|run| 1.0 / run.ipc()));
    for (cause, name) in CpiStack::NAMES.iter().enumerate() {
        frame.set_run_values(
            &format!("cpi_{name}"),
            of(&|run| run.counters.stack()[cause]),
        );
    }
    Ok(frame)
}

fn rows(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Vec<CoreTypeRuns>, StudyError> {
    let both = cores(spec)?;
    let programs = programs(context, spec)?;
    let most = context.by_scale(MOST_INSTR[0], MOST_INSTR[1]);
    let runs = spec.runs(context);
    let reported = run_every_case(context, (&programs, &both, runs), |program, core, seed| {
        SingleRun::run(core, program, pass_instr(program).min(most), seed)
    })?;
    let row = |(program, both): (&Arc<ProgramSpec>, &[SingleRun])| {
        let (large, small) = both.split_at(runs);
        CoreTypeRuns {
            name: program.name.clone(),
            large: large.to_vec(),
            small: small.to_vec(),
        }
    };
    Ok(programs
        .iter()
        .zip(reported.chunks_exact(2 * runs))
        .map(row)
        .collect())
}

/// Speeds of the programs of drawn workloads on either core. The policies are `large` and
/// `small`.
pub(in crate::studies) fn programs_alone(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let both = cores(spec)?;
    let drawn = prepare_cases(context, spec, &Presets)?;
    let names: BTreeSet<String> = drawn
        .into_iter()
        .flat_map(|case| case.of.programs)
        .collect();
    let names: Vec<String> = names.into_iter().collect();
    let speeds = map_jobs(context, &names, |name| {
        let instance = instance(name.clone(), &find(name)?, 1);
        let ips = |core| {
            let work = measure_alone(core, &instance, spec.alone_s(context), context.seed());
            work.map(|work: AloneWork| work.instructions / work.alone_s)
                .map_err(part_error(name))
        };
        Ok([ips(&both[0])?, ips(&both[1])?])
    })?;
    let cases = names
        .iter()
        .map(|name| Case::with_label(name, "program", name));
    let mut frame = Frame::new(cases.collect(), named(&[LARGE, SMALL]), 1);
    frame.set_run_values("ips", speeds.concat());
    frame.set_run_values(
        "ips_g",
        speeds.concat().iter().map(|ips| ips / 1e9).collect(),
    );
    let ratios = speeds.iter().flat_map(|[large, small]| [large / small; 2]);
    frame.set_run_values("large_over_small", ratios.collect());
    Ok(frame)
}

/// Notes on the cycles that the large core saves the programs with the highest and the lowest
/// ratio, by the largest causes.
pub(in crate::studies) fn saved(frames: &Frames) -> Vec<String> {
    let Some(frame) = frames.get("programs") else {
        return Vec::new();
    };
    let ends = [0, frame.cases.len().saturating_sub(1)];
    let [first, last] = ends.map(|case| saved_by(frame, case));
    vec![format!(
        "Cycles per instruction that the large core saves, by cause. {first} {last}"
    )]
}

fn saved_by(frame: &Frame, case: usize) -> String {
    let cpi = |policy: usize, cause: &str| {
        let values = frame.run_values(case, policy, &format!("cpi_{cause}"));
        values.iter().sum::<f64>() / values.len() as f64
    };
    let causes = CpiStack::NAMES
        .into_iter()
        .filter(|name| !NOT_ALONE.contains(name));
    let mut saved: Vec<(&str, f64)> = causes
        .map(|name| (name, cpi(1, name) - cpi(0, name)))
        .collect();
    saved.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let words = { saved.iter().take(3) }.map(|(name, cycles)| format!("{name} {cycles:.2}"));
    let group = frame
        .group_by_label("case", crate::frame::IntervalBasis::Cases, |_| true)
        .swap_remove(case);
    let ratio = frame.cell(
        &crate::frame::CellQuery {
            measure: "ipc",
            policy: LARGE,
            over: Some(SMALL),
            ..Default::default()
        },
        &group,
    );
    let words = words.collect::<Vec<_>>().join(", ");
    format!("{} ({}): {words}.", group.key, ratio.text())
}

#[cfg(test)]
mod tests {
    use super::super::ideal::IdealRoundRobin;
    use super::*;

    #[test]
    fn the_closed_form_is_the_ideal_model_over_the_slowest_thread_that_stays() {
        // r = 2 on 1+3: (2 + 3)/4.
        assert_eq!(speed(2.0, 4), 1.25);
        let model = IdealRoundRobin {
            large_ips: 3e9,
            small_ips: 1e9,
            cores: 4,
        };
        for threads in [4, 8, 16] {
            let stays_s = f64::from(threads / 4) * 6e9 / 1e9;
            let over = stays_s / model.time_s(6e9, threads);
            assert!((over - speed(3.0, 4)).abs() < 1e-12, "{threads}: {over}");
        }
    }
}
