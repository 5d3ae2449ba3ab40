//! Hardware round robin where moves cost nothing and threads do not slow each other down, and its
//! closed form compared with simulated schedulers.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), ideal model for HRRS: T = Workload / (L + (N−1)·S) · N · Q.
//!
//! Derivation. One large and N − 1 small cores run N threads. In a round of N quanta of length Q
//! every thread has the large core once and a small one N − 1 times, so it commits
//! L + (N−1)·S instructions, where L and S are what a thread commits *in one quantum* on a large
//! and on a small core: instructions per cycle times the cycles of a quantum. A thread with
//! `Workload` instructions takes Workload / (L + (N−1)·S) rounds of N·Q each. With
//! instructions per second in place of instructions per quantum the length of the quantum
//! cancels, since both L and S have it as a factor.
//!
//! More threads than cores share the cores by time: n threads in place of N take n/N times as
//! long, since together they commit no more per second than N threads do.

use super::SingleRun;
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

/// One large and several small cores with round robin among them.
#[doc(alias = "ideal model")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdealRoundRobin {
    /// Instructions per second of a thread on the large core.
    pub large_ips: f64,
    /// Instructions per second of a thread on a small core.
    pub small_ips: f64,
    /// N, the cores in all.
    pub cores: u32,
}

impl IdealRoundRobin {
    /// Instructions per second of all cores together.
    pub fn ips(&self) -> f64 {
        self.large_ips + f64::from(self.cores.saturating_sub(1)) * self.small_ips
    }

    /// Time in which each of so many equal threads, at least one per core, commits so many
    /// instructions, s.
    pub fn time_s(&self, instructions: f64, threads: u32) -> f64 {
        instructions / self.ips() * f64::from(threads)
    }
}

/// Equal threads on each of the machines at each of the ratios, with moves that cost nothing; the
/// measure is `makespan_s`.
pub(in crate::studies) fn ideal_at_ratios(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let mut jobs = Vec::new();
    for (machine, cores) in MACHINES {
        let ratios = context.by_scale(RATIOS[0], RATIOS[1]).iter();
        jobs.extend(ratios.map(|&ratio| (machine, cores, ratio)));
    }
    let prepared = map_jobs(context, &jobs, |&job| prepare_ratio(context, spec, job))?;
    let (cases, ideal): (Vec<PreparedCase>, Vec<f64>) = prepared.into_iter().unzip();
    let ran = run_cases(context, &cases, &spec.policies, spec.runs(context))?;
    Ok(join_frames(
        &[&ran],
        ran.policies.clone(),
        &ideal,
        "makespan_s",
    ))
}

/// A case, and the time of the whole by the closed form, s.
fn prepare_ratio(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
    (machine, cores, ratio): (&str, u32, f64),
) -> Result<(PreparedCase, f64), StudyError> {
    let chip = chip_with_ratio(&format!("acmp-{machine}"), ratio, context.seed())?;
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
    let alone = (AlonePlace::LargeCore, spec.alone_s(context));
    let case = PreparedCase::new(of_frame, &chip, workload, alone, context.seed())?;
    let system = spec.system.as_deref().unwrap_or("linux");
    let case = case.on_system(system, RestartKind::Threads);
    let model = IdealRoundRobin {
        large_ips: alone_ips(&chip, CoreKind::Large, context.seed())?,
        small_ips: alone_ips(&chip, CoreKind::Small, context.seed())?,
        cores,
    };
    let ideal_s = model.time_s(case.work[0].instructions, cores);
    Ok((case.with_free_migration(), ideal_s))
}

/// The machine with its small cores' clock such that large cores are so many times as fast.
fn chip_with_ratio(machine: &str, ratio: f64, seed: u64) -> Result<Arc<Chip>, StudyError> {
    let mut spec = machine_spec(machine)?;
    let given = full_chip(&spec)?;
    let large_ips = alone_ips(&given, CoreKind::Large, seed)?;
    let factor = large_ips / alone_ips(&given, CoreKind::Small, seed)? / ratio;
    let mut pus = 0..given.places().len();
    let small = pus.find(|&pu| CoreKind::from_pu(&given, pu) == CoreKind::Small);
    let kind = small.map(|pu| given.places()[pu].core_type);
    // Only the clock of small cores changes, so that the large core is the same at every ratio.
    if let Some(small) = kind.and_then(|kind| spec.core_types.values_mut().nth(kind)) {
        small.frequency_ghz *= factor;
    }
    full_chip(&spec)
}

/// Instructions per second of the program alone on a core of a kind.
fn alone_ips(chip: &Chip, kind: CoreKind, seed: u64) -> Result<f64, StudyError> {
    let core = single_core_chip(chip, kind)?;
    let alone = SingleRun::run(&core, &find(PROGRAM)?, SPEED_INSTR, seed)?;
    Ok(SPEED_INSTR / alone.time_s)
}

/// The experiment's cases under its policy, and the same with moves that cost nothing, which is
/// the policy `free moves`; the measure is `antt`.
pub(in crate::studies) fn ideal_next_to_hrrs(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let cases = prepare_cases(context, spec, &Presets)?;
    let small = single_core_chip(&*chip(&spec.machine)?, CoreKind::Small)?;
    let ideal = map_jobs(context, &cases, |case| {
        ideal_slowdown(case, &small, context.seed())
    })?;
    let runs = spec.runs(context);
    let simulated = run_cases(context, &cases, &spec.policies, runs)?;
    let free = cases.into_iter().map(PreparedCase::with_free_migration);
    let free = run_cases(context, &free.collect::<Vec<_>>(), &spec.policies, runs)?;
    let policies = ["hrrs", "free moves"].map(str::to_owned);
    Ok(join_frames(
        &[&simulated, &free],
        policies.into(),
        &ideal,
        "antt",
    ))
}

/// Mean slowdown of the instances by the closed form.
fn ideal_slowdown(case: &PreparedCase, small: &Arc<Chip>, seed: u64) -> Result<f64, StudyError> {
    let cores = case.experiment.chip.places().len() as u32;
    let threads = case.work.len() as u32;
    let mut slowdowns = Vec::new();
    for (entry, work) in case.experiment.workload.entries.iter().zip(&case.work) {
        let alone = SingleRun::run(small, &entry.program, work.instructions, seed)?;
        let model = IdealRoundRobin {
            large_ips: work.instructions / work.alone_s,
            small_ips: work.instructions / alone.time_s,
            cores,
        };
        slowdowns.push(model.time_s(work.instructions, threads) / work.alone_s);
    }
    Ok(mean(&slowdowns).unwrap_or(f64::NAN))
}

/// Frames of the same cases side by side, their policies under these names, and the value of the
/// closed form for each case.
fn join_frames(
    frames: &[&Frame],
    mut policies: Vec<String>,
    ideal: &[f64],
    measure: &str,
) -> Frame {
    policies.push(IDEAL.to_owned());
    let mut values = Vec::new();
    for (case, ideal) in ideal.iter().enumerate() {
        for frame in frames {
            let each = 0..frame.policies.len();
            values.extend(each.flat_map(|policy| frame.run_values(case, policy, measure)));
        }
        values.extend(vec![*ideal; frames[0].runs]);
    }
    let mut all = Frame::new(frames[0].cases.clone(), policies, frames[0].runs);
    all.set_run_values(measure, values);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn round_is_as_worked_by_hand() {
        let four = IdealRoundRobin {
            large_ips: 4e9,
            small_ips: 2e9,
            cores: 4,
        };
        // In four quanta of 1 ms a thread commits 4 + 3·2 million instructions.
        assert!((four.time_s(10e6, 4) - 4e-3).abs() < 1e-15);
        assert!((four.time_s(10e6, 8) - 8e-3).abs() < 1e-15);
    }

    proptest! {
        /// The formula as it is printed, with instructions per quantum: Q cancels.
        #[test]
        fn length_of_quantum_cancels(
            large in 1e8f64..1e10, ratio in 1.0f64..4.0, cores in 2u32..17, quantum_s in 1e-4f64..1e-1,
        ) {
            let small = large / ratio;
            let model = IdealRoundRobin { large_ips: large, small_ips: small, cores };
            let n = f64::from(cores);
            let (l, s) = (large * quantum_s, small * quantum_s);
            let printed = 1e9 / (l + (n - 1.0) * s) * n * quantum_s;
            prop_assert!((model.time_s(1e9, cores) / printed - 1.0).abs() < 1e-12);
        }

        /// Equal cores are no better than themselves, and a faster large core is never worse.
        #[test]
        fn time_lies_between_small_and_large_cores(
            small in 1e8f64..1e10, ratio in 1.0f64..4.0, cores in 2u32..17,
        ) {
            let model = IdealRoundRobin { large_ips: small * ratio, small_ips: small, cores };
            let time = model.time_s(1e9, cores);
            prop_assert!(time <= 1e9 / small * (1.0 + 1e-12));
            prop_assert!(time >= 1e9 / (small * ratio) * (1.0 - 1e-12));
        }
    }
}
