//! Programs alone on either kind of core.
//!
//! The closed form of round robin over threads that stay where they were dealt follows from them.
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), ideal model for HRRS ([`super::ideal`]).
//!
//! N equal threads with the work W on one large and N - 1 small cores are done after N·W/(L + (N-1)·S)
//! under round robin, and after W/S where each stays on its core: round robin is (r + N - 1)/N
//! times as fast, where r = L/S. k threads on each core take k times as long either way.

use super::{SingleRun, program_cases, suite_programs};
use crate::frame::Frame;
use crate::simulate::chips::{chip, single_core_chip};
use crate::simulate::programs::{find, instance};
use crate::simulate::{
    ExperimentSpec, Presets, map_jobs, part_error, prepare_cases, run_every_case,
};
use crate::study::StudyError;
use consort_core::stats::geometric_mean;
use consort_experiment::watch::CoreKind;
use consort_experiment::{ExperimentContext, measure_alone};
use consort_sim::chip::Chip;
use consort_sim::contention::CpiStack;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Largest number of instructions of a program, for cycles by cause: at the full scale a whole
/// pass, so that every phase counts by its length.
const MOST_INSTR: [f64; 2] = [50e9, f64::INFINITY];
/// Work with which speeds are measured for the closed form, instructions.
const SPEED_INSTR: [f64; 2] = [1e8, 2e9];
/// The kinds of cores as policies.
pub(super) const LARGE: &str = "large";
pub(super) const SMALL: &str = "small";

/// Speed of round robin over the baseline, for large cores so many times as fast as small ones.
fn round_robin_speed(ratio: f64, cores: usize) -> f64 {
    let n = cores as f64;
    (ratio + n - 1.0) / n
}

/// One large and one small core of the experiment's machine.
fn both_cores(spec: &ExperimentSpec) -> Result<[Arc<Chip>; 2], StudyError> {
    let whole = chip(&spec.machine)?;
    Ok([
        single_core_chip(&whole, CoreKind::Large)?,
        single_core_chip(&whole, CoreKind::Small)?,
    ])
}

/// Measures the speed of one thread of each program on the large core over that on the small one,
/// and sets the closed form next to it. The policy is `closed`.
pub(in crate::studies) fn closed_form(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let [large, small] = both_cores(spec)?;
    let instructions = context.by_scale(SPEED_INSTR[0], SPEED_INSTR[1]);
    let programs = suite_programs(context, spec)?;
    let ratios = map_jobs(context, &programs, |program| {
        let run = |core| SingleRun::run(core, program, instructions, context.seed());
        Ok(run(&small)?.time_s / run(&large)?.time_s)
    })?;
    let count = chip(&spec.machine)?.places().len();
    let speeds = ratios.iter().map(|ratio| round_robin_speed(*ratio, count));
    let cases = program_cases(programs.iter().map(|program| &program.name));
    let mut frame = Frame::new(cases, vec!["closed".to_owned()], 1);
    frame.set_run_values("round_robin_speed", speeds.collect());
    frame.set_run_values("large_over_small", ratios);
    Ok(frame)
}

/// Runs whole passes through each program on either core, the program with the highest ratio of
/// instructions per cycle first. The policies are `large` and `small`.
pub(in crate::studies) fn cores_alone(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let programs = suite_programs(context, spec)?;
    let most = context.by_scale(MOST_INSTR[0], MOST_INSTR[1]);
    let runs = spec.runs(context);
    let both = both_cores(spec)?;
    let outcomes = run_every_case(context, (&programs, &both, runs), |program, core, seed| {
        let pass = 1e9 * program.phases.iter().map(|p| p.length_ginstr).sum::<f64>();
        SingleRun::run(core, program, pass.min(most), seed)
    })?;
    // Runs on the large core, then on the small one.
    let mut rows = Vec::new();
    for (program, outcomes) in programs.iter().zip(outcomes.chunks_exact(2 * runs)) {
        let (large, small) = outcomes.split_at(runs);
        let pairs = large.iter().zip(small);
        let ratios: Vec<f64> = pairs
            .map(|(large, small)| large.ipc() / small.ipc())
            .collect();
        rows.push((
            geometric_mean(&ratios).unwrap_or(0.0),
            &program.name,
            outcomes,
        ));
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let cases = program_cases(rows.iter().map(|row| row.1));
    let mut frame = Frame::new(cases, vec![LARGE.to_owned(), SMALL.to_owned()], runs);
    let all = || rows.iter().flat_map(|row| row.2);
    frame.set_run_values("ipc", all().map(SingleRun::ipc).collect());
    frame.set_run_values("cpi", all().map(|run| 1.0 / run.ipc()).collect());
    for (cause, name) in CpiStack::NAMES.iter().enumerate() {
        let cpi = all().map(|run| run.counters.stack()[cause]);
        frame.set_run_values(&format!("cpi_{name}"), cpi.collect());
    }
    Ok(frame)
}

/// Speeds of the programs of drawn workloads on either core. The policies are `large` and `small`.
pub(in crate::studies) fn programs_alone(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let both = both_cores(spec)?;
    let drawn = prepare_cases(context, spec, &Presets)?.into_iter();
    let names: BTreeSet<String> = drawn.flat_map(|case| case.of.programs).collect();
    let names: Vec<String> = names.into_iter().collect();
    let speeds = map_jobs(context, &names, |name| {
        let instance = instance(name.clone(), &find(name)?, 1);
        let ips = |core| {
            let work = measure_alone(core, &instance, spec.alone_s(context), context.seed());
            let work = work.map_err(part_error(name))?;
            Ok::<f64, StudyError>(work.instructions / work.alone_s)
        };
        Ok([ips(&both[0])?, ips(&both[1])?])
    })?;
    let ratios = speeds.iter().flat_map(|[large, small]| [large / small; 2]);
    let ips = speeds.concat();
    let policies = vec![LARGE.to_owned(), SMALL.to_owned()];
    let mut frame = Frame::new(program_cases(&names), policies, 1);
    frame.set_run_values("large_over_small", ratios.collect());
    frame.set_run_values("ips_g", ips.iter().map(|ips| ips / 1e9).collect());
    frame.set_run_values("ips", ips);
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::super::ideal::IdealRoundRobin;
    use super::*;

    #[test]
    fn closed_form_is_the_ideal_over_staying_threads() {
        // r = 2 on 1+3: (2 + 3)/4.
        assert_eq!(round_robin_speed(2.0, 4), 1.25);
        let model = IdealRoundRobin {
            large_ips: 3e9,
            small_ips: 1e9,
            cores: 4,
        };
        for threads in [4, 8, 16] {
            let stays_s = f64::from(threads / 4) * 6e9 / 1e9;
            let over = stays_s / model.time_s(6e9, threads);
            assert!(
                (over - round_robin_speed(3.0, 4)).abs() < 1e-12,
                "{threads}: {over}"
            );
        }
    }
}
