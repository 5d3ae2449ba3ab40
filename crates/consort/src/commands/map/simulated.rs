//! Mappings on a simulated machine.

use super::mappings::{MappingChoice, parse_mappings};
use super::{MappingFindings, duration_notice, misplaced_option, thresholds};
use crate::cli::MapArgs;
use crate::commands::compare::refusal;
use crate::failure::say;
use crate::{descriptions, progress};
use anyhow::Result;
use consort_experiment::mapping::{MappingSweep, NamedMapping, characterise};
use consort_experiment::{ExperimentContext, Scale, StageProgress};
use consort_experiment::{ExperimentError, NOT_MODELLED};
use consort_lab::mapping::Analysis;
use consort_sim::workload::Workload;
use std::time::{Duration, Instant};

pub(super) fn simulate_mappings(args: &MapArgs) -> Result<MappingFindings> {
    let text = args.workload.as_deref().ok_or_else(|| {
        let given = format!("{} is simulated and runs described programs", args.machine);
        misplaced_option(&given, "--workload, for example streamcluster@4+facesim@4")
    })?;
    let chip = descriptions::chip(&args.machine)?;
    let workload = descriptions::workload(text)?;
    let threads: Vec<usize> = workload
        .entries
        .iter()
        .map(|e| e.threads as usize)
        .collect();
    let (mappings, count) = parse_mappings(&args.mappings, args.bound, chip.topology(), &threads)?;
    let held = mappings
        .iter()
        .map(|mapping| named_mapping(mapping, &args.os));
    let held: Vec<NamedMapping> = held.collect::<Result<_, _>>().map_err(refusal)?;
    let sweep = MappingSweep {
        chip,
        workloads: vec![workload],
        held,
        alone_s: args.alone.as_secs_f64(),
        times: args.times,
        runs: args.runs as usize,
    };
    let (analysis, notes) = measure(args, &sweep).map_err(refusal)?;
    Ok(MappingFindings {
        machine: descriptions::label(&args.machine, &sweep.chip.spec().name),
        workload: sweep.workloads[0].text.clone(),
        tier: "simulated".to_owned(),
        count,
        analysis,
        notes,
    })
}

/// Time for all mappings on this host, from the time that a program alone has taken, s.
fn estimate_s(args: &MapArgs, sweep: &MappingSweep, alone: Duration) -> f64 {
    let programs = sweep.workloads[0].entries.len() as u32 * sweep.times;
    let runs = (sweep.held.len() * sweep.runs).div_ceil(args.jobs.workers().get());
    (alone * programs * runs as u32).as_secs_f64()
}

fn named_mapping(mapping: &MappingChoice, os: &str) -> Result<NamedMapping, ExperimentError> {
    match mapping {
        MappingChoice::Os => NamedMapping::from_os(os),
        MappingChoice::Scheme(scheme) => NamedMapping::from_scheme(*scheme, os),
        MappingChoice::Fixed(mapping) => NamedMapping::from_mapping(mapping, os),
    }
}

/// The analysis, and what was given up.
fn measure(
    args: &MapArgs,
    sweep: &MappingSweep,
) -> Result<(Analysis, Vec<String>), ExperimentError> {
    let progress = progress::start_meter("runs");
    let report_progress = |at: StageProgress| progress.set_done(at.done, at.total);
    let context = ExperimentContext::new(
        args.seed,
        Scale::Full,
        args.jobs.workers(),
        &report_progress,
    );
    let programs = kinds(&sweep.workloads[0]);
    let begin = Instant::now();
    let alone = characterise(&sweep.chip, &programs.entries, sweep.alone_s, &context)?;
    say(&duration_notice(estimate_s(
        args,
        sweep,
        begin.elapsed() / programs.entries.len().max(1) as u32,
    )));
    let measured = sweep.measure(&context)?;
    progress.finish();
    let names = programs.entries.iter().map(|entry| entry.name.clone());
    let mappings = sweep.held.iter().map(|held| held.name().to_owned());
    let analysis = Analysis::new(
        mappings.collect(),
        measured.table(),
        names.zip(alone).collect(),
        &thresholds(args),
        &unmodelled_reason(),
    );
    Ok((analysis, measured.given_up))
}

/// One instance of each program: copies are alike.
fn kinds(workload: &Workload) -> Workload {
    let mut kinds = workload.clone();
    let like = |a: &consort_sim::workload::ProgramInstance,
                b: &consort_sim::workload::ProgramInstance| {
        a.program.name == b.program.name && a.threads == b.threads
    };
    let entries = &workload.entries;
    let first = |i: usize| !entries[..i].iter().any(|e| like(e, &entries[i]));
    let firsts = (0..entries.len()).filter(|&i| first(i));
    kinds.entries = firsts.map(|i| entries[i].clone()).collect();
    kinds
}

fn unmodelled_reason() -> String {
    let what = NOT_MODELLED
        .iter()
        .map(|(what, why)| format!("{what} ({why})"));
    let all: Vec<String> = what.collect();
    format!("the simulation does not model {}", all.join(", "))
}
